package memory

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// The confidences of seed 004. Facts and episodes have two scales; people see
// Certainty.
const (
	firstFactConfidence    = 0.5
	factStep               = 0.1
	maxFactConfidence      = 0.99
	firstEpisodeConfidence = 1.0
	episodeStep            = 0.5
	maxEpisodeConfidence   = 10.0
)

// Certainty is the confidence on the one scale that people see: from 0 to 1, and
// one half for what was heard once.
func (m Memory) Certainty() float64 {
	c := m.Confidence
	if m.Kind == Episodic {
		c /= c + 1
	}
	return math.Round(c*100) / 100
}

// Candidate is a stored memory that may be the same as a new one.
type Candidate struct {
	Memory
	Similarity float64
}

// Nearest returns the candidate that is most similar, if it reaches the
// threshold; of two alike the older one. A similarity that is not a number
// reaches none.
func Nearest(candidates []Candidate, threshold float64) (best Candidate, ok bool) {
	for _, c := range candidates {
		if !(c.Similarity >= threshold) {
			continue
		}
		if !ok || c.Similarity > best.Similarity || c.Similarity == best.Similarity && c.Number < best.Number {
			best, ok = c, true
		}
	}
	return best, ok
}

// NewMemory returns the fact as it is stored when nothing like it is there.
func (f Fact) NewMemory() Memory {
	return Memory{
		Kind: Semantic, Scope: f.Scope, RunID: f.RunID, Text: f.Text, Category: f.Category, Origin: f.Origin,
		Confidence: firstFactConfidence, AccessCount: 1, Events: union(nil, f.Events),
		CreatedAt: f.Now, UpdatedAt: f.Now, Hash: Hash(f.Text), Key: f.Key,
	}
}

// Judgment is what somebody who understands both found of a text and one that was
// there, so that Relate need not decide. The zero value is none.
type Judgment struct {
	Of       string // Hash of the text that was there
	Relation Relation
}

// Relation is how the fact relates to one that is there: as it was judged, else by
// Relate.
func (f Fact) Relation(old Memory) Relation {
	if f.Judged.Relation != "" && f.Judged.Of == old.Hash {
		return f.Judged.Relation
	}
	return Relate(old.Text, f.Text)
}

// Separate reports whether the fact was judged to be about something else than one
// that looks like it: both are kept then. Relate alone separates nothing.
func (f Fact) Separate(old Memory) bool {
	return f.Judged.Relation == Different && f.Judged.Of == old.Hash && Hash(f.Text) != old.Hash
}

// Update returns what the fact makes of one that is there: the seed's rule, but a
// text that contradicts the old one, or is meant to correct it, makes everybody less
// sure, and one that may be about something else makes nobody surer. What a fact
// said before is kept.
func (f Fact) Update(old Candidate) Outcome {
	out := Outcome{Operation: UpdateSimilar, Similarity: old.Similarity, Memory: old.Memory, Matched: old.Text}
	hash := Hash(f.Text)
	if f.Key != "" && f.Key == old.Key && hash == old.Hash {
		out.Repeated = true
		if old.AccessCount == 1 {
			out.Operation, out.Matched, out.Similarity = InsertNew, "", 0
		}
		return out
	}
	m := &out.Memory
	relation := f.Relation(old.Memory)
	out.Contradicted = relation == Opposite
	switch {
	case out.Contradicted, f.Correct && hash != old.Hash:
		m.Confidence = min(old.Confidence, firstFactConfidence)
	case relation != Different:
		m.Confidence = step(old.Confidence, factStep, maxFactConfidence)
	}
	if old.Text != f.Text {
		why := "rephrased"
		if relation == Different {
			why = "replaced"
		}
		switch {
		case f.Correct:
			why = "corrected"
		case out.Contradicted:
			why = "contradicted"
		}
		m.History = append(slices.Clone(old.History), Earlier{Text: old.Text, Confidence: old.Confidence, Until: f.Now, Why: why})
		m.History = m.History[max(0, len(m.History)-MaxHistory):]
	}
	if f.Category != "" {
		m.Category = f.Category
	}
	if f.Origin == ByPerson || f.Origin == Learned && hash != old.Hash {
		m.Origin = f.Origin // people see whose words they read now
	}
	m.Events = union(old.Events, f.Events)
	m.AccessCount++
	m.Text, m.Hash, m.RunID, m.Key, m.UpdatedAt = f.Text, hash, f.RunID, f.Key, f.Now
	return out
}

// NewMemory returns the episode as it is stored when nothing like it is there.
func (e Episode) NewMemory() Memory {
	return Memory{
		Kind: Episodic, Scope: e.Scope, RunID: e.RunID, Text: e.Text, Origin: e.Origin,
		Confidence: e.Confidence, Sources: union(nil, e.Sources),
		CreatedAt: e.Now, UpdatedAt: e.Now, ExpiresAt: e.Now.Add(EpisodeLife), Hash: Hash(e.Text), Key: e.Key,
	}
}

// Confirm returns what the episode makes of one that is there: it is surer, and
// nothing else changes.
func (e Episode) Confirm(old Candidate) Outcome {
	out := Outcome{Operation: SkipDuplicate, Similarity: old.Similarity, Memory: old.Memory, Matched: old.Text}
	if e.Key != "" && e.Key == old.Key && Hash(e.Text) == old.Hash {
		out.Repeated = true
		if old.AccessCount == 0 {
			out.Operation, out.Matched, out.Similarity = InsertNew, "", 0
		}
		return out
	}
	m := &out.Memory
	m.Confidence = step(old.Confidence, episodeStep, maxEpisodeConfidence)
	m.AccessCount++
	m.Key, m.UpdatedAt = e.Key, e.Now
	return out
}

// Merge returns what a memory becomes when another one with the same text turns
// out to be of the same person: it was heard twice. Its number and its spelling
// stay.
func (m Memory) Merge(other Memory) Memory {
	by, limit := factStep, maxFactConfidence
	if m.Kind == Episodic {
		by, limit = episodeStep, maxEpisodeConfidence
	}
	m.Confidence = step(max(m.Confidence, other.Confidence), by, limit)
	m.AccessCount += other.AccessCount
	m.Category = cmp.Or(m.Category, other.Category)
	if other.Origin == ByPerson {
		m.Origin = ByPerson
	}
	m.Events, m.Sources = union(m.Events, other.Events), union(m.Sources, other.Sources)
	m.History = slices.Concat(m.History, other.History)
	sort.SliceStable(m.History, func(a, b int) bool { return m.History[a].Until.Before(m.History[b].Until) })
	m.History = m.History[max(0, len(m.History)-MaxHistory):]
	if other.CreatedAt.Before(m.CreatedAt) {
		m.CreatedAt = other.CreatedAt
	}
	if other.UpdatedAt.After(m.UpdatedAt) {
		m.UpdatedAt = other.UpdatedAt
	}
	if other.ExpiresAt.After(m.ExpiresAt) {
		m.ExpiresAt = other.ExpiresAt
	}
	return m
}

// step raises a confidence. It is rounded, so that five steps of 0.1 are 0.5.
func step(confidence, by, limit float64) float64 {
	return min(math.Round((confidence+by)*100)/100, limit)
}

// union returns the distinct elements of both in order, the newest MaxSources of
// them.
func union[T comparable](old, added []T) []T {
	all := make([]T, 0, len(old)+len(added))
	for _, list := range [][]T{old, added} {
		for _, x := range list {
			if !slices.Contains(all, x) {
				all = append(all, x)
			}
		}
	}
	return all[max(0, len(all)-MaxSources):]
}

// NearMiss is how far below a threshold the nearest memory is noted.
const NearMiss = 0.2

// Nearness is a similarity in thousandths, as it is noted with a memory. It is rounded
// down, so that what does not reach a threshold does not seem to.
func Nearness(similarity float64) int64 {
	return int64(max(0, min(1, similarity))*1000 + 1e-6)
}
