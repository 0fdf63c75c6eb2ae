package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
	"remote-agent/internal/order"
)

const (
	// sameText is the condition on the person, $1, the exact codebase, $2, and the
	// hash of the text, as the index of facts has them.
	sameText = `WHERE m.user_id = $1 AND COALESCE(CAST(m.codebase_id AS TEXT), '') = COALESCE(CAST($2 AS TEXT), '') AND m.content_hash = $3`

	// wordCandidates is how many memories with the same words are compared.
	wordCandidates = 50

	maxQueryTerms = 60
)

// storedTerms is what a memory is searched by. The person's term comes first: a
// search names it, so that the index leads to no other person's rows.
func storedTerms(person, text string) string {
	return strings.Join(append([]string{memory.PersonTerm(person)}, memory.Terms(text)...), " ")
}

// candidates returns memories of a scope that may be the same as a text: those of
// the same text, the nearest by embedding if it reaches the threshold or nearly does,
// and those with the same words that cannot be compared by embedding.
func (t *Memories) candidates(
	ctx context.Context, table memoryTable, s memory.Scope, text string, e memory.Embedding, threshold float64, now time.Time,
) ([]memory.Candidate, error) {
	alive := strings.ReplaceAll(table.alive, "$2", "$4")
	same, err := t.memories(ctx, table, sameText+` AND `+alive+` ORDER BY m.seq LIMIT 1`,
		s.Person, orNull(s.Codebase), memory.Hash(text), rfc3339(now))
	if err != nil {
		return nil, err
	}
	if len(same) > 0 {
		return []memory.Candidate{{Memory: same[0], Similarity: 1}}, nil
	}
	var all []memory.Candidate
	bare := true
	if !e.IsZero() {
		if bare, err = t.hasBare(ctx, table, s.Person, e.Model); err != nil {
			return nil, err
		}
		near, err := t.nearest(ctx, table, nearQuery{scope: s, exactly: true, to: e, limit: 1, threshold: max(threshold-memory.NearMiss, 0.01), now: now})
		if err != nil {
			return nil, err
		}
		all = near
	}
	if !bare {
		return all, nil
	}
	terms := memory.Terms(text)
	byWords, err := t.withWords(ctx, table, s.Person, append(slices.Clone(terms), memory.Akin(terms)...), wordCandidates,
		`m.codebase_id IS NOT DISTINCT FROM $2 AND (m.embedding_model <> $3 OR $3 = '') AND `+alive,
		orNull(s.Codebase), modelOf(e), rfc3339(now))
	if err != nil {
		return nil, err
	}
	for _, m := range byWords {
		all = append(all, memory.Candidate{Memory: m, Similarity: memory.TermSimilarity(terms, memory.Terms(m.Text))})
	}
	return all, nil
}

// hasBare reports whether a person has memories that a model has not embedded.
// Usually there are none, and the search for words is saved.
func (t *Memories) hasBare(ctx context.Context, table memoryTable, person, model string) (bool, error) {
	ok, err := t.tx.exists(ctx, `
		SELECT 1 FROM `+table.name+` WHERE user_id = $1 AND embedding_model < $2
		UNION ALL SELECT 1 FROM `+table.name+` WHERE user_id = $1 AND embedding_model > $2 LIMIT 1`, person, model)
	return ok, wrap(err, "look for memories without embedding")
}

// ofAccount is the person of account $1, as personOf finds them.
const ofAccount = `COALESCE((` + personOfSQL + `), $1)`

const recallableSQL = `
	SELECT 1 FROM semantic_memories m WHERE m.user_id = ` + ofAccount + `
	AND NOT EXISTS (SELECT 1 FROM memory_people o WHERE o.user_id = ` + ofAccount + ` AND NOT o.enabled)
	UNION ALL SELECT 1 FROM episodic_memories m WHERE m.user_id = ` + ofAccount + ` AND m.expires_at > $2
	AND NOT EXISTS (SELECT 1 FROM memory_people o WHERE o.user_id = ` + ofAccount + ` AND NOT o.enabled) LIMIT 1`

// Recallable reports whether Recall may find something of a person at all: memory
// is not off for them, and there is a memory that has not expired by now. It reads
// one of them at most, however many there are.
func (t *Memories) Recallable(ctx context.Context, account string, now time.Time) (bool, error) {
	ok, err := t.tx.exists(ctx, recallableSQL, account, rfc3339(now))
	return ok, wrap(err, "look for a memory")
}

// withWords returns memories of a person that have at least one of the terms, the
// best match first. condition is on the arguments from $2 on.
func (t *Memories) withWords(
	ctx context.Context, table memoryTable, person string, terms []string, limit int, condition string, args ...any,
) ([]memory.Memory, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	terms = terms[:min(len(terms), maxQueryTerms)]
	from, order, quote, and, or := table.name+` m`, `ts_rank(m.words, CAST($1 AS tsquery)) DESC, m.seq DESC`, "'", " & ", " | "
	match := `m.words @@ CAST($1 AS tsquery)`
	if t.tx.pg == nil {
		from = table.words + ` JOIN ` + table.name + ` m ON m.id = ` + table.words + `.rowid`
		match, order = table.words+` MATCH $1`, `bm25(`+table.words+`), m.seq DESC`
		quote, and, or = `"`, " AND ", " OR "
	}
	quoted := lists.Map(terms, func(term string) string {
		return quote + strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(term) + quote
	})
	args = append([]any{quote + memory.PersonTerm(person) + quote + and + "(" + strings.Join(quoted, or) + ")"}, args...)
	n := len(args)
	args = append(args, person, limit)
	return rowsOf(ctx, t.tx, "search memories", scanMemory(table.kind), `SELECT `+table.columns+` FROM `+from+` WHERE `+match+` AND `+condition+
		` AND m.user_id = $`+strconv.Itoa(n+1)+` ORDER BY `+order+` LIMIT $`+strconv.Itoa(n+2), args...)
}

// Recall is seed 004's retrieve_similar_categorized_memories: memories of both
// kinds that have to do with a question, best first. With an embedding they are
// compared by it; memories that it cannot be compared with, and all without one,
// are found by their words. Only the person's own are seen, those that hold
// everywhere and those of the codebase, and no expired episode.
func (t *Memories) Recall(ctx context.Context, q memory.Query) ([]memory.Match, error) {
	q, err := q.Prepare()
	if err != nil {
		return nil, err
	}
	if q.Person, err = t.tx.Persons().personOf(ctx, q.Person); err != nil {
		return nil, err
	}
	near, err := t.recallNear(ctx, q)
	if err != nil {
		return nil, err
	}
	worded, err := t.recallWords(ctx, q)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(near, worded)
	return all[:min(len(all), q.Limit)], nil
}

func (t *Memories) recallNear(ctx context.Context, q memory.Query) ([]memory.Match, error) {
	if q.Embedding.IsZero() {
		return nil, nil
	}
	var all []memory.Match
	for _, table := range bothMemoryTables() {
		near, err := t.nearest(ctx, table, nearQuery{scope: q.Scope, to: q.Embedding, limit: q.Limit, threshold: q.Threshold, now: q.Now})
		if err != nil {
			return nil, err
		}
		for _, c := range near {
			all = append(all, memory.Match(c))
		}
	}
	order.By(all, bySimilarity)
	return all, nil
}

func bySimilarity(a, b memory.Match) int { return cmp.Compare(b.Similarity, a.Similarity) }

func (t *Memories) recallWords(ctx context.Context, q memory.Query) ([]memory.Match, error) {
	terms := memory.Terms(q.Text)
	var all []memory.Match
	for _, table := range bothMemoryTables() {
		if !q.Embedding.IsZero() {
			if bare, err := t.hasBare(ctx, table, q.Person, q.Embedding.Model); err != nil || !bare {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		list, err := t.withWords(ctx, table, q.Person, terms, q.Limit,
			`(m.codebase_id IS NULL OR m.codebase_id = $3) AND (m.embedding_model <> $4 OR $4 = '') AND `+table.alive,
			rfc3339(q.Now), orNull(q.Codebase), modelOf(q.Embedding))
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			all = append(all, memory.Match{Memory: m, Similarity: coverage(terms, memory.Terms(m.Text))})
		}
	}
	order.By(all, bySimilarity)
	return all, nil
}

// coverage is the share of the query's terms that a memory has.
func coverage(query, terms []string) float64 {
	n := 0
	for _, term := range query {
		if slices.Contains(terms, term) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(query)))
}

const standingSQL = `
	WHERE m.user_id = $1 AND (m.codebase_id IS NULL OR m.codebase_id = $2)
	AND (m.category = 'preference' OR m.origin = 'person') ORDER BY m.seq DESC LIMIT $3`

// Standing returns what matters to a person whatever they ask: their preferences,
// and what they said themselves; newest first.
func (t *Memories) Standing(ctx context.Context, s memory.Scope, limit int) ([]memory.Memory, error) {
	person, err := t.tx.Persons().personOf(ctx, s.Person)
	if err != nil {
		return nil, err
	}
	return t.memories(ctx, memoryTables[memory.Semantic], standingSQL, person, orNull(s.Codebase), limit)
}
