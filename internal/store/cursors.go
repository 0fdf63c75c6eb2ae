package store

import (
	"context"
	"time"
)

// Cursor returns the position that was saved under a name; empty if none was.
func (t *Inbox) Cursor(ctx context.Context, name string) (position string, err error) {
	_, err = t.tx.one(ctx, []any{&position}, `SELECT position FROM platform_cursors WHERE name = $1`, name)
	return position, wrap(err, "read cursor")
}

// SaveCursor saves a position under a name, at most 255 bytes each.
func (t *Inbox) SaveCursor(ctx context.Context, name, position string) error {
	return t.tx.run(ctx, "save cursor", `
		INSERT INTO platform_cursors (name, position, updated_ms) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET position = excluded.position, updated_ms = excluded.updated_ms`,
		name, position, millis(time.Now()))
}
