package sketch

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Estimate is a row that may be similar.
type Estimate struct {
	ID         int64
	Similarity float64 // estimated
	Upper      float64 // the true one is hardly ever more
}

// Shortlist collects the rows that may be most similar to a Probe.
type Shortlist struct {
	probe *Probe
	floor float64
	limit int
	now   uint32
	list  []Estimate
}

// NewShortlist returns a Shortlist of at most limit rows that have not expired by
// now and whose similarity may be floor or more.
func NewShortlist(p *Probe, limit int, floor float64, now time.Time) *Shortlist {
	return &Shortlist{probe: p, limit: limit, floor: floor, now: uint32(max(0, now.Unix())), //nolint:gosec // until 2106
		list: make([]Estimate, 0, 2*limit)}
}

// Add looks through a chunk.
func (s *Shortlist) Add(chunk *Chunk) {
	for i := range chunk.entries {
		one := &chunk.entries[i]
		if one.expires != 0 && one.expires < s.now {
			continue
		}
		if similarity, upper := s.probe.estimate(one, s.floor); upper >= s.floor {
			s.keep(Estimate{one.id, similarity, upper})
		}
	}
}

// worthAnother is how many chunks are worth another processor: looking through them
// takes about a millisecond.
const worthAnother = 256

// AddAll looks through chunks on as many processors as there are and it is worth.
func (s *Shortlist) AddAll(chunks []*Chunk) {
	parts := max(1, min(runtime.GOMAXPROCS(0), len(chunks)/worthAnother))
	others := make([]*Shortlist, 0, parts)
	var wait sync.WaitGroup
	for some := range slices.Chunk(chunks, max(1, (len(chunks)+parts-1)/parts)) {
		other := &Shortlist{probe: s.probe, limit: s.limit, floor: s.floor, now: s.now, list: make([]Estimate, 0, 2*s.limit)}
		others = append(others, other)
		wait.Go(func() {
			for _, chunk := range some {
				other.Add(chunk)
			}
		})
	}
	wait.Wait()
	for _, other := range others {
		for _, e := range other.list {
			s.keep(e)
		}
	}
}

func (s *Shortlist) keep(e Estimate) {
	if e.Upper < s.floor {
		return
	}
	if s.list = append(s.list, e); len(s.list) == cap(s.list) {
		s.cut()
	}
}

// cut keeps the best, and lets none in from now on that is worse than those.
func (s *Shortlist) cut() {
	slices.SortFunc(s.list, func(a, b Estimate) int {
		return cmp.Or(cmp.Compare(b.Upper, a.Upper), cmp.Compare(b.ID, a.ID))
	})
	if len(s.list) >= s.limit {
		s.list = s.list[:s.limit]
		s.floor = max(s.floor, s.list[s.limit-1].Upper)
	}
}

// Best returns the collected rows, the highest Upper first.
func (s *Shortlist) Best() []Estimate {
	s.cut()
	return s.list
}
