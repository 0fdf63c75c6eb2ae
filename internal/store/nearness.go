package store

import (
	"context"
	"fmt"

	"remote-agent/internal/memory"
)

// nearnessOf is what is noted of a new memory that was compared with others; nil if
// there were none.
func nearnessOf(others []memory.Candidate) any {
	if len(others) == 0 {
		return nil
	}
	most := 0.0
	for _, c := range others {
		most = max(most, c.Similarity)
	}
	return memory.Nearness(most)
}

// Nearness counts the memories of everybody by how near the nearest other one was, in
// thousandths, for each kind. The same text, 1000, is not among them.
func (t *Memories) Nearness(ctx context.Context) (map[memory.Kind]map[int64]int64, error) {
	all := make(map[memory.Kind]map[int64]int64)
	for _, table := range bothMemoryTables() {
		counts := make(map[int64]int64)
		err := t.tx.each(ctx, func(scan func(...any) error) error {
			var near, n int64
			err := scan(&near, &n)
			counts[near] = n
			return err
		}, `SELECT nearness, count(*) FROM `+table.name+` WHERE nearness < 1000 GROUP BY nearness`)
		if err != nil {
			return nil, fmt.Errorf("count near misses: %w", err)
		}
		all[table.kind] = counts
	}
	return all, nil
}
