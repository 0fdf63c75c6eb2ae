package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/memory"
)

// BareMemories returns at most limit memories that model has neither embedded nor
// refused, oldest first and facts before episodes.
func (t *Memories) BareMemories(ctx context.Context, model string, limit int, now time.Time) (all []memory.Memory, err error) {
	for _, table := range bothMemoryTables() {
		if len(all) == limit {
			break
		}
		list, err := t.memories(ctx, table, `
			WHERE (m.embedding_model < $1 OR m.embedding_model > $1) AND `+table.alive+`
				AND NOT (m.embedding_model = $4 AND m.embedding IS NULL) ORDER BY m.id LIMIT $3`,
			model, rfc3339(now), limit-len(all), memory.RefusedBy(model))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// SaveEmbedding stores the embedding of a memory, unless its text has changed
// since m was read or it is gone.
func (t *Memories) SaveEmbedding(ctx context.Context, m memory.Memory, e memory.Embedding) error {
	if err := e.Vector.Check(); err != nil {
		return err
	}
	return t.setEmbedding(ctx, m, e.Vector.Encode(), e.Model)
}

// RefuseEmbedding notes that a model refuses the text of a memory, unless that has changed
// since m was read. The memory is found by its words, and BareMemories does not return it
// for that model again.
func (t *Memories) RefuseEmbedding(ctx context.Context, m memory.Memory, model string) error {
	return t.setEmbedding(ctx, m, nil, memory.RefusedBy(model))
}

func (t *Memories) setEmbedding(ctx context.Context, m memory.Memory, encoded []byte, model string) error {
	var on bool // locked before the row, as everybody does who changes memories
	if _, err := t.tx.one(ctx, []any{&on}, memoryOnSQL+` {lock}`, m.Person); err != nil {
		return fmt.Errorf("lock a person's memory: %w", err)
	}
	return t.tx.run(ctx, "store an embedding", `UPDATE `+memoryTables[m.Kind].name+` SET embedding = $3, embedding_model = $4 WHERE id = $1 AND content_hash = $2`,
		m.ID, m.Hash, encoded, model)
}
