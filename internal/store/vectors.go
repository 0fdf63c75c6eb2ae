package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/memory"
)

// vectorsKept is how many embeddings are held in memory at most, about 40 MB of
// them. Those of somebody with more memories are read for each comparison.
const vectorsKept = 25_000

// maxSets is how many people's they are at most.
const maxSets = 2_000

// vectorKey names the embeddings of one person in one table that one model made.
type vectorKey struct {
	kind          memory.Kind
	person, model string
}

// vectorRow is what tells whether a memory is near, without reading it.
type vectorRow struct {
	id, number int64
	codebase   string
	expires    time.Time // zero: never
	encoded    []byte    // nil: it cannot be compared
}

// vectorSet holds the embeddings of a key as of a version. It does not change.
type vectorSet struct {
	version int64
	rows    []vectorRow
}

// compare adds to best those rows that a question is about.
func (s *vectorSet) compare(q nearQuery, best *bestRows) {
	probe := memory.NewProbe(q.to.Vector)
	now := q.now.UTC().Truncate(time.Millisecond) // as the database compares
	for _, r := range s.rows {
		if r.codebase != q.scope.Codebase && (q.exactly || r.codebase != "") || !r.expires.IsZero() && !r.expires.After(now) {
			continue
		}
		if similarity := probe.Cosine(r.encoded); similarity >= best.worst() {
			best.add(ranked{r.id, r.number, similarity})
		}
	}
}

// with returns the set with other rows in addition, or in place of their old ones.
func (s *vectorSet) with(version int64, changed []vectorRow) *vectorSet {
	old := make(map[int64]int, len(changed))
	for i, r := range changed {
		old[r.id] = i
	}
	next := &vectorSet{version: version, rows: make([]vectorRow, 0, len(s.rows)+len(changed))}
	for _, r := range s.rows {
		if _, ok := old[r.id]; !ok {
			next.rows = append(next.rows, r)
		}
	}
	next.rows = append(next.rows, changed...)
	return next
}

// vectorCache holds the embeddings of those who were answered last, vectorsKept of
// them at most. It is safe for concurrent use.
type vectorCache struct {
	mu    sync.Mutex
	limit int
	size  int
	sets  map[vectorKey]*vectorSet
	used  []vectorKey // the one used last is the last
}

func newVectorCache() *vectorCache {
	return &vectorCache{limit: vectorsKept, sets: make(map[vectorKey]*vectorSet)}
}

// fits reports whether one person may have so many embeddings here.
func (c *vectorCache) fits(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n <= c.limit
}

func (c *vectorCache) get(key vectorKey) *vectorSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.sets[key]
	if set != nil {
		c.use(key)
	}
	return set
}

func (c *vectorCache) use(key vectorKey) {
	c.used = append(slices.DeleteFunc(c.used, func(k vectorKey) bool { return k == key }), key)
}

// put keeps a set unless a newer one is there. Those unused for longest go.
func (c *vectorCache) put(key vectorKey, set *vectorSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.sets[key]; old != nil {
		if old.version > set.version {
			return
		}
		c.size -= len(old.rows)
	}
	c.sets[key], c.size = set, c.size+len(set.rows)
	c.use(key)
	for c.size > c.limit || len(c.sets) > maxSets {
		c.drop(c.used[0])
	}
}

func (c *vectorCache) drop(key vectorKey) {
	if set := c.sets[key]; set != nil {
		c.size -= len(set.rows)
		delete(c.sets, key)
		c.used = slices.DeleteFunc(c.used, func(k vectorKey) bool { return k == key })
	}
}

// forget drops what is held of a person.
func (c *vectorCache) forget(person string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.sets {
		if key.person == person {
			c.drop(key)
		}
	}
}

// vectorsOf returns the embeddings of a person, from memory where they are there as
// the database has them, and nil where there are too many. Every change of a
// person's embeddings, by whomever, raises the version of the person and gives it
// to the row: triggers do so. So what has a higher version than the set in memory
// is read, and whether something went away is seen by the number of rows.
//
// Only what a snapshot saw is kept for others: a version can come again when the
// transaction that gave it out is undone.
func (t *Memories) vectorsOf(ctx context.Context, table memoryTable, person, model string) (*vectorSet, error) {
	var version int64
	there, err := t.tx.one(ctx, []any{&version}, `SELECT embeddings_version FROM memory_people WHERE user_id = $1`, person)
	if err != nil || !there {
		return &vectorSet{}, wrap(err, "read the version of embeddings")
	}
	key := vectorKey{table.kind, person, model}
	set := t.tx.vectors.get(key)
	if set != nil && set.version == version {
		return set, nil
	}
	var count int
	if _, err := t.tx.one(ctx, []any{&count}, `SELECT count(*) FROM `+table.name+` WHERE user_id = $1 AND embedding_model = $2`, person, model); err != nil {
		return nil, fmt.Errorf("count embeddings: %w", err)
	}
	if !t.tx.vectors.fits(count) {
		return nil, nil
	}
	if set == nil || set.version > version { // it is of later than this snapshot
		set = &vectorSet{}
	} else {
		changed, err := t.vectorsSince(ctx, table, key, set.version)
		if err != nil {
			return nil, err
		}
		set = set.with(version, changed)
	}
	if len(set.rows) != count {
		if set.rows, err = t.vectorsSince(ctx, table, key, -1); err != nil {
			return nil, err
		}
		set = &vectorSet{version, set.rows}
	}
	if t.tx.text.reads {
		t.tx.vectors.put(key, set)
	}
	return set, nil
}

// vectorsSince reads the rows of a key whose version is above another.
func (t *Memories) vectorsSince(ctx context.Context, table memoryTable, key vectorKey, version int64) (rows []vectorRow, err error) {
	expires := `NULL`
	if table.kind == memory.Episodic {
		expires = `m.expires_at`
	}
	codebases := map[string]string{} // one string each
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var r vectorRow
		var codebase string
		var raw []byte
		if err := scan(&r.id, &r.number, text{&codebase}, stamp{&r.expires}, &raw); err != nil {
			return err
		}
		if memory.Comparable(raw) {
			r.encoded = raw
		}
		if _, ok := codebases[codebase]; !ok {
			codebases[codebase] = codebase
		}
		r.codebase = codebases[codebase]
		rows = append(rows, r)
		return nil
	}, `SELECT m.id, m.seq, m.codebase_id, `+expires+`, m.embedding FROM `+table.name+` m
		WHERE m.user_id = $1 AND m.embedding_model = $2 AND m.embedding_version > $3`, key.person, key.model, version)
	return rows, wrap(err, "read embeddings")
}

// dropBad takes embeddings away that cannot be compared and were stored by another
// way than this program, so that their texts are embedded again.
func (t *Memories) dropBad(ctx context.Context, table memoryTable, set *vectorSet) error {
	for _, r := range set.rows {
		if r.encoded != nil {
			continue
		}
		if _, err := t.tx.exec(ctx, `UPDATE `+table.name+` SET embedding = NULL, embedding_model = '' WHERE id = $1`, r.id); err != nil {
			return fmt.Errorf("take a bad embedding away: %w", err)
		}
	}
	return nil
}
