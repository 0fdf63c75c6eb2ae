package store

import (
	"context"

	"remote-agent/internal/memory"
)

// IndexWords gives at most limit memories what they are found by in words, and
// returns how many it looked at. They were stored by another way than this
// program, such as by the functions of seed 004 in SQL, which leave them without.
func (t *Memories) IndexWords(ctx context.Context, limit int) (n int, err error) {
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
func (t *Memories) indexWords(ctx context.Context, table memoryTable, m memory.Memory) error {
	hash := memory.Hash(m.Text)
	same, err := t.memories(ctx, table, sameText+` AND m.id <> $4 LIMIT 1`, m.Person, orNull(m.Codebase), hash, m.ID)
	if err != nil {
		return err
	}
	if len(same) > 0 {
		hash = m.Hash
	}
	return t.tx.run(ctx, "index the words of a memory", `UPDATE `+table.name+` SET terms = $2, content_hash = $3 WHERE id = $1 AND `+table.text+` = $4`,
		m.ID, storedTerms(m.Person, m.Text), hash, m.Text)
}
