package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
)

// nearQuery asks for the memories nearest to an embedding.
type nearQuery struct {
	scope     memory.Scope
	exactly   bool // only those of the scope's codebase, not those that hold everywhere too
	to        memory.Embedding
	limit     int
	threshold float64
	now       time.Time
}

// where is the condition on the rows of a table, m. Its arguments are from $1 to $4.
func (q nearQuery) where(alive string) (condition string, args []any) {
	condition = `m.user_id = $1 AND m.embedding_model = $2 AND ` + strings.ReplaceAll(alive, "$2", "$3")
	if q.exactly {
		condition += ` AND m.codebase_id IS NOT DISTINCT FROM $4`
	} else {
		condition += ` AND (m.codebase_id IS NULL OR m.codebase_id = $4)`
	}
	return condition, []any{q.scope.Person, q.to.Model, rfc3339(q.now), orNull(q.scope.Codebase)}
}

// ranked is a row with its similarity, before the rest of it is read.
type ranked struct {
	id, number int64
	similarity float64
}

// better orders rows, the best first. Of two alike the newer one is better.
func better(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(b.number, a.number))
}

// nearest returns the limit rows nearest to an embedding that reach the threshold,
// best first. All that may be are compared. In a transaction that writes, it needs
// the lock on the person.
func (t *Memories) nearest(ctx context.Context, table memoryTable, q nearQuery) ([]memory.Candidate, error) {
	if err := q.to.Vector.Check(); err != nil {
		return nil, err
	}
	vectors, err := t.vectorsOf(ctx, table, q.scope.Person, q.to.Model)
	if err != nil {
		return nil, err
	}
	best := bestRows{limit: q.limit, threshold: q.threshold}
	if vectors == nil { // too many to be kept
		err = t.compare(ctx, table, q, &best)
	} else if vectors.compare(q, &best); !t.tx.text.reads {
		err = t.dropBad(ctx, table, vectors)
	}
	if err != nil {
		return nil, err
	}
	return t.whole(ctx, table, best.rows)
}

// whole reads the rest of rows, in their order.
func (t *Memories) whole(ctx context.Context, table memoryTable, rows []ranked) ([]memory.Candidate, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := lists.Map(rows, func(r ranked) int64 { return r.id })
	among, list := t.among(ids, 1)
	found, err := t.memories(ctx, table, `WHERE `+among, list)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]memory.Memory, len(found))
	for _, m := range found {
		byID[m.ID] = m
	}
	all := make([]memory.Candidate, 0, len(rows))
	for _, r := range rows {
		if m, ok := byID[r.id]; ok {
			all = append(all, memory.Candidate{Memory: m, Similarity: r.similarity})
		}
	}
	return all, nil
}

// among is a condition that the id of a row is one of a list, $place, and the list.
func (t *Memories) among(list []int64, place int) (condition, arg string) {
	ids := lists.Map(list, func(id int64) string { return strconv.FormatInt(id, 10) })
	if arg = strings.Join(ids, ","); t.tx.pg != nil {
		return `m.id = ANY(CAST($` + strconv.Itoa(place) + ` AS bigint[]))`, "{" + arg + "}"
	}
	return `m.id IN (SELECT value FROM json_each($` + strconv.Itoa(place) + `))`, "[" + arg + "]"
}

// compare compares rows as they are read.
func (t *Memories) compare(ctx context.Context, table memoryTable, q nearQuery, best *bestRows) error {
	probe := memory.NewProbe(q.to.Vector)
	var row ranked
	dest := []any{&row.id, &row.number, rawBytes(func(raw []byte) { row.similarity = probe.Cosine(raw) })}
	where, args := q.where(table.alive)
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		best.add(row)
		return nil
	}, `SELECT m.id, m.seq, m.embedding FROM `+table.name+` m WHERE `+where+` AND m.embedding IS NOT NULL`, args...)
	return wrap(err, "compare memories")
}

// bestRows keeps the best rows that were added, in order and each once.
type bestRows struct {
	limit     int
	threshold float64
	rows      []ranked
}

// worst is what a row has to reach to be among the best.
func (b *bestRows) worst() float64 {
	if len(b.rows) < b.limit {
		return b.threshold
	}
	return b.rows[b.limit-1].similarity
}

func (b *bestRows) add(row ranked) {
	if !(row.similarity >= b.threshold) || len(b.rows) == b.limit && better(row, b.rows[b.limit-1]) >= 0 {
		return
	}
	at, there := slices.BinarySearchFunc(b.rows, row, better)
	if there {
		return // numbers are unique: it is the same row
	}
	b.rows = slices.Insert(b.rows, at, row)
	b.rows = b.rows[:min(len(b.rows), b.limit)]
}

// rawBytes scans a column of bytes by looking at the driver's own: copying them
// would cost more than reading.
type rawBytes func(raw []byte)

// Scan implements sql.Scanner.
func (look rawBytes) Scan(value any) error {
	raw, ok := value.([]byte)
	if !ok {
		return fault.Newf(fault.Internal, "a column of bytes is %T", value)
	}
	look(raw)
	return nil
}

// ScanBytes is what pgx calls instead of Scan, without a copy.
func (look rawBytes) ScanBytes(raw []byte) error {
	look(raw)
	return nil
}
