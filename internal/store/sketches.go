package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/sketch"
)

const (
	// packFrom is how many memories without a sketch are left alone: so many are
	// compared quickly enough.
	packFrom = 2 * sketch.PerChunk

	// halfEmpty is how many places of a chunk have to be taken, so that it is worth
	// reading; those of one with less move to another.
	halfEmpty = sketch.PerChunk / 4
)

// looseRows is the condition on the memories of a scope without a sketch, and its
// arguments. Of a codebase that may or may not be one PostgreSQL would expect
// hardly any rows, and look for them in the whole table.
func looseRows(s memory.Scope, model string) (condition string, args []any) {
	condition, args = `m.codebase_id IS NULL`, []any{s.Person, model}
	if s.Codebase != "" {
		condition, args = `m.codebase_id = $3`, append(args, s.Codebase)
	}
	return `m.user_id = $1 AND m.embedding_model = $2 AND m.sketch_id IS NULL AND m.embedding IS NOT NULL AND ` + condition, args
}

// someLoose ends a query for n loose rows, whichever. The order says nothing, but
// only the index which has these rows together can give it: PostgreSQL would look
// for them in the whole table else, or sort all, for each chunk anew. The number is
// no argument, so that it plans for few.
func someLoose(n int) string { return fmt.Sprintf(` ORDER BY m.sketch_id LIMIT %d`, n) }

// packOnce makes one chunk of sketches if enough memories of a scope have none. It
// needs the lock on the person, and reports whether there was one to make.
func (t *Tx) packOnce(ctx context.Context, table memoryTable, s memory.Scope, model string) (packed bool, err error) {
	var loose int
	where, args := looseRows(s, model)
	_, err = t.one(ctx, []any{&loose}, `SELECT count(*) FROM (SELECT 1 FROM `+table.name+` m WHERE `+where+someLoose(packFrom)+`) few`, args...)
	if err != nil || loose < packFrom {
		return false, wrap(err, "count memories without a sketch")
	}
	if err := t.dissolve(ctx, table, s, model); err != nil {
		return false, err
	}
	ids, chunk, err := t.sketchRows(ctx, table, s, model)
	if err != nil || len(ids) < sketch.PerChunk {
		return false, err
	}
	var id int64
	_, err = t.one(ctx, []any{&id}, `
		INSERT INTO memory_sketches (kind, user_id, codebase_id, embedding_model, live, data) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
		string(table.kind), s.Person, orNull(s.Codebase), model, len(ids), chunk)
	if err != nil {
		return false, fmt.Errorf("store sketches: %w", err)
	}
	_, err = t.exec(ctx, placeSQL(table), append([]any{id}, ids...)...)
	return err == nil, wrap(err, "place sketches")
}

// placeSQL gives the rows $2 and following their places in the chunk $1, in the
// order of their ids.
func placeSQL(table memoryTable) string {
	places := make([]string, sketch.PerChunk)
	for i := range places {
		places[i] = fmt.Sprintf("$%d", i+2)
	}
	return `UPDATE ` + table.name + ` SET sketch_id = $1, sketch_place = placed.place
		FROM (SELECT x.id AS row_id, row_number() OVER (ORDER BY x.id) - 1 AS place FROM ` + table.name + ` x
			WHERE x.id IN (` + strings.Join(places, ", ") + `)) placed
		WHERE id = placed.row_id`
}

// sketchRows makes sketches of some memories of a scope that have none, by their
// ids, and locks their rows: an embedding may be stored without the lock on the
// person.
func (t *Tx) sketchRows(ctx context.Context, table memoryTable, s memory.Scope, model string) (ids []any, chunk []byte, err error) {
	expires := `NULL`
	if table.kind == memory.Episodic {
		expires = `m.expires_at`
	}
	var unfit []int64
	where, args := looseRows(s, model)
	err = t.each(ctx, func(scan func(...any) error) error {
		var id int64
		var until time.Time
		var v memory.Vector
		err := scan(&id, stamp{&until}, rawBytes(func(raw []byte) { v, _ = memory.Decode(raw) })) // nil does not pass
		switch {
		case err != nil:
		case v.Check() != nil:
			unfit = append(unfit, id)
		default:
			ids, chunk = append(ids, id), sketch.Append(chunk, id, until, v)
		}
		return err
	}, `SELECT m.id, `+expires+`, m.embedding FROM `+table.name+` m
		WHERE m.id IN (SELECT m.id FROM `+table.name+` m WHERE `+where+someLoose(sketch.PerChunk)+`)
			AND m.embedding_model = $2 AND m.embedding IS NOT NULL -- still, now that it is locked
		ORDER BY m.id {lock}`, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("read memories without a sketch: %w", err)
	}
	// A vector that cannot be compared got in by another way than this program. It
	// is taken away, and the text embedded again.
	for _, id := range unfit {
		if _, err := t.exec(ctx, `UPDATE `+table.name+` SET embedding = NULL, embedding_model = '' WHERE id = $1`, id); err != nil {
			return nil, nil, fmt.Errorf("take a bad embedding away: %w", err)
		}
	}
	return ids, chunk, nil
}

// dissolve gives up the chunks of a scope that are nearly empty; their memories
// have no sketch then.
func (t *Tx) dissolve(ctx context.Context, table memoryTable, s memory.Scope, model string) error {
	const sparse = `SELECT k.id FROM memory_sketches k
		WHERE k.user_id = $1 AND k.embedding_model = $2 AND k.codebase_id IS NOT DISTINCT FROM $3 AND k.kind = $4 AND k.live < $5`
	args := []any{s.Person, model, orNull(s.Codebase), string(table.kind), halfEmpty}
	var one int64
	if any, err := t.one(ctx, []any{&one}, sparse+` LIMIT 1`, args...); err != nil || !any {
		return wrap(err, "look for sparse sketches")
	}
	_, err := t.exec(ctx, `UPDATE `+table.name+` SET sketch_id = NULL, sketch_place = NULL WHERE user_id = $1 AND sketch_id IN (`+sparse+`)`, args...)
	if err != nil {
		return fmt.Errorf("empty sparse sketches: %w", err)
	}
	_, err = t.exec(ctx, `DELETE FROM memory_sketches WHERE id IN (`+sparse+`)`, args...)
	return wrap(err, "remove sparse sketches")
}

// looseScope is a scope with memories that could be in a chunk of sketches.
type looseScope struct {
	table memoryTable
	scope memory.Scope
	model string
}

// PackMemories makes at most limit chunks of sketches for memories that came in by
// another way than one at a time: embedded later, imported, or stored by an older
// binary. It returns how many it made; call it until that is less than limit.
// Recall finds the same without it, but slower. It locks the people concerned.
func (t *Tx) PackMemories(ctx context.Context, limit int) (packed int, err error) {
	for _, table := range bothMemoryTables() {
		scopes, err := t.looseScopes(ctx, table, limit-packed)
		if err != nil {
			return packed, err
		}
		for _, s := range scopes {
			if err := t.touchPerson(ctx, s.scope.Person); err != nil {
				return packed, err
			}
			var on bool
			if _, err := t.one(ctx, []any{&on}, `SELECT enabled FROM memory_people WHERE user_id = $1 {lock}`, s.scope.Person); err != nil {
				return packed, fmt.Errorf("lock a person's memory: %w", err)
			}
			for packed < limit {
				more, err := t.packOnce(ctx, table, s.scope, s.model)
				if err != nil {
					return packed, err
				}
				if !more {
					break
				}
				packed++
			}
		}
	}
	return packed, nil
}

// looseScopes returns scopes that packOnce has something to do for, in an order
// that is the same for all processes.
func (t *Tx) looseScopes(ctx context.Context, table memoryTable, limit int) (list []looseScope, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = t.each(ctx, func(scan func(...any) error) error {
		s := looseScope{table: table}
		err := scan(&s.scope.Person, text{&s.scope.Codebase}, &s.model)
		list = append(list, s)
		return err
	}, `SELECT user_id, codebase_id, embedding_model FROM `+table.name+` WHERE sketch_id IS NULL AND embedding IS NOT NULL
		GROUP BY user_id, codebase_id, embedding_model HAVING count(*) >= $1 ORDER BY user_id LIMIT $2`, packFrom, limit)
	return list, wrap(err, "look for memories without a sketch")
}

// IndexWords gives at most limit memories what they are found by in words, and
// returns how many it looked at. They were stored by another way than this
// program, such as by the functions of seed 004 in SQL, which leave them without.
func (t *Tx) IndexWords(ctx context.Context, limit int) (n int, err error) {
	for _, table := range bothMemoryTables() {
		list, err := t.memories(ctx, table, `WHERE m.terms = '' ORDER BY m.id LIMIT $1`, limit-n)
		if err != nil {
			return n, err
		}
		n += len(list)
		for _, m := range list {
			if err := t.indexWords(ctx, table, m); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// indexWords leaves a row alone whose text has changed meanwhile. A hash that
// another row of the scope has stays as it is: they are two rows of one text.
func (t *Tx) indexWords(ctx context.Context, table memoryTable, m memory.Memory) error {
	hash := memory.Hash(m.Text)
	same, err := t.memories(ctx, table, sameText+` AND m.id <> $4 LIMIT 1`, m.Person, orNull(m.Codebase), hash, m.ID)
	if err != nil {
		return err
	}
	if len(same) > 0 {
		hash = m.Hash
	}
	_, err = t.exec(ctx, `UPDATE `+table.name+` SET terms = $2, content_hash = $3 WHERE id = $1 AND `+table.text+` = $4`,
		m.ID, storedTerms(m.Person, m.Text), hash, m.Text)
	return wrap(err, "index the words of a memory")
}
