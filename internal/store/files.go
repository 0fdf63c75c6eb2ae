package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
)

// File is a row of the table files. Its bytes are in the row on PostgreSQL, where
// every replica has to read them, and in DATA_DIR/files on SQLite, where they would
// go through the write-ahead log and into every copy of the database.
type File struct {
	Hash string // SHA-256, in hex
	Size int64
	Data []byte // nil on SQLite
}

// KeepsBytes reports whether bytes of files are kept in the database.
func (s *Store) KeepsBytes() bool { return s.pg != nil }

// Put stores a file, or notes that one that is there is used again. It is safe
// to repeat.
func (t *Files) Put(ctx context.Context, f File) error {
	return t.tx.run(ctx, "store a file", `
		INSERT INTO files (hash, size, data, used_ms) VALUES ($1, $2, $3, $4)
		ON CONFLICT (hash) DO UPDATE SET used_ms = excluded.used_ms, released = 0`,
		f.Hash, f.Size, bytesOrNull(f.Data), millis(time.Now()))
}

// Hold reports whether a file is there, and keeps it there until the
// transaction ends, by when a message may have it.
func (t *Files) Hold(ctx context.Context, hash string) (bool, error) {
	n, err := t.tx.exec(ctx, `UPDATE files SET released = 0 WHERE hash = $1`, hash)
	return n > 0, wrap(err, "hold a file")
}

// Data returns the bytes of a file that the database keeps; fault.NotFound if it
// does not.
func (t *Files) Data(ctx context.Context, hash string) ([]byte, error) {
	var data []byte
	ok, err := t.tx.one(ctx, []any{&data}, `SELECT data FROM files WHERE hash = $1 AND data IS NOT NULL`, hash)
	if err == nil && !ok {
		return nil, fault.New(fault.NotFound, "The file is no longer stored.")
	}
	return data, wrap(err, "read a file")
}

// Has reports whether there is a row for a file.
func (t *Files) Has(ctx context.Context, hash string) (bool, error) {
	ok, err := t.tx.exists(ctx, `SELECT 1 FROM files WHERE hash = $1`, hash)
	return ok, wrap(err, "look for a file")
}

// unneeded is the condition that no message has a file.
const unneeded = `NOT EXISTS (SELECT 1 FROM message_files m WHERE m.hash = files.hash)`

// Released returns files that no message has any more because the ones that had
// them were deleted, and such that nobody used since before although no message came to
// have them.
func (t *Files) Released(ctx context.Context, before time.Time, limit int) ([]string, error) {
	return t.hashes(ctx, `
		SELECT hash FROM files WHERE released = 1 AND `+unneeded+`
		UNION SELECT hash FROM files WHERE used_ms < $1 AND `+unneeded+` LIMIT $2`, millis(before), limit)
}

// Before returns files that were last used before a time, whether messages have
// them or not, the oldest first.
func (t *Files) Before(ctx context.Context, before time.Time, limit int) ([]string, error) {
	return t.hashes(ctx, `SELECT hash FROM files WHERE used_ms < $1 ORDER BY used_ms LIMIT $2`, millis(before), limit)
}

// CountBefore counts what Before returns without a limit.
func (t *Files) CountBefore(ctx context.Context, before time.Time) (n int64, err error) {
	_, err = t.tx.one(ctx, []any{&n}, `SELECT count(*) FROM files WHERE used_ms < $1`, millis(before))
	return n, wrap(err, "count files")
}

// Drop deletes files, those that Released returned only if it still would.
func (t *Files) Drop(ctx context.Context, hashes []string, released bool, before time.Time) (dropped []string, err error) {
	condition := ` AND used_ms < $2`
	if released {
		condition = ` AND (released = 1 OR used_ms < $2) AND ` + unneeded
	}
	for _, hash := range hashes {
		n, err := t.tx.exec(ctx, `DELETE FROM files WHERE hash = $1`+condition, hash, millis(before))
		if err != nil {
			return nil, fmt.Errorf("delete a file: %w", err)
		}
		if n > 0 {
			dropped = append(dropped, hash)
		}
	}
	return dropped, nil
}

func (t *Files) hashes(ctx context.Context, query string, args ...any) (list []string, err error) {
	list, err = t.tx.ids(ctx, query, args...)
	return list, wrap(err, "list files")
}

// AfterErasing sets what runs after each transaction that deleted what somebody said,
// before whoever deleted it is told that it is done. It is called once, before the
// first transaction.
func (s *Store) AfterErasing(do func(context.Context)) { s.afterErasing = do }
