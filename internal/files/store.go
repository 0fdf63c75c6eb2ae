// Package files keeps what people attach, for as long as a message has it, and
// turns it into what an assistant can be given.
//
// Store keeps bytes once, under their SHA-256: in DATA_DIR/files beside an SQLite
// database, in the database itself on PostgreSQL, where every replica has to read
// what another one stored. Intake reads, checks and stores what came with a message.
// Show puts the bytes back into the messages of a request.
package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

const (
	// incoming is the folder of files that are being read, which takes minutes at most.
	incoming = "incoming"
	stale    = time.Hour

	// abandoned is how long a file may be there that no message has: the message that
	// it came with is stored right after it.
	abandoned = 24 * time.Hour

	batch = 100 // files of a transaction
)

// Store keeps the bytes of files. It is safe for concurrent use; of several processes
// on one SQLite database one may write.
type Store struct {
	db  *store.Store
	dir string
	log *slog.Logger

	// mu is held by who adds bytes or removes some, so that none are removed which
	// somebody just found to be there.
	mu sync.Mutex
}

// NewStore returns the files of a database, with a folder for those that it does not
// keep itself. It creates nothing.
func NewStore(db *store.Store, dir string, log *slog.Logger) *Store {
	return &Store{db: db, dir: dir, log: log}
}

// Put stores data and returns its hash. It is safe to repeat.
func (s *Store) Put(ctx context.Context, data []byte) (hash string, err error) {
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:])
	f := store.File{Hash: hash, Size: int64(len(data))}
	if s.db.KeepsBytes() {
		f.Data = data
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.db.InTx(ctx, func(tx *store.Tx) error { return tx.Files().Put(ctx, f) }); err != nil {
		return "", err
	}
	if s.db.KeepsBytes() {
		return hash, nil
	}
	if err := s.write(hash, data); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "store a file")
	}
	return hash, nil
}

// path returns where the bytes of a hash are.
func (s *Store) path(hash string) string { return filepath.Join(s.dir, hash[:2], hash) }

func valid(hash string) bool {
	raw, err := hex.DecodeString(hash)
	return err == nil && len(raw) == sha256.Size
}

// write brings a file to the disk, whole or not at all.
func (s *Store) write(hash string, data []byte) (err error) {
	to := s.path(hash)
	if info, err := os.Stat(to); err == nil && info.Size() == int64(len(data)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := s.spool()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}

// spool returns a new file for what is being read.
func (s *Store) spool() (*os.File, error) {
	folder := filepath.Join(s.dir, incoming)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(folder, "file-*")
}

// Get returns the bytes of a hash. fault.NotFound means that they are not kept any
// more.
func (s *Store) Get(ctx context.Context, hash string) (data []byte, err error) {
	gone := fault.New(fault.NotFound, "The file is no longer stored.")
	if !valid(hash) {
		return nil, gone
	}
	if s.db.KeepsBytes() {
		err = s.db.InRead(ctx, func(tx *store.Tx) error {
			data, err = tx.Files().Data(ctx, hash)
			return err
		})
		return data, err
	}
	data, err = os.ReadFile(s.path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, gone
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read a file")
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return nil, fault.New(fault.NotFound, "The file was changed on the disk.")
	}
	return data, nil
}

// Sweep removes the files that no message has any more. It returns how many.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	before := time.Now().Add(-abandoned)
	return s.remove(ctx, true, before, func(tx *store.Tx) ([]string, error) { return tx.Files().Released(ctx, before, batch) })
}

// Expire removes the files that nobody has attached since before, and what the browser
// shows of them. Messages that had them stay.
func (s *Store) Expire(ctx context.Context, before time.Time) (removed int, err error) {
	if err := s.db.InTx(ctx, func(tx *store.Tx) error { return tx.Board().EmptyPosted(ctx, before) }); err != nil {
		return 0, err
	}
	return s.remove(ctx, false, before, func(tx *store.Tx) ([]string, error) { return tx.Files().Before(ctx, before, batch) })
}

func (s *Store) remove(ctx context.Context, released bool, before time.Time, next func(tx *store.Tx) ([]string, error)) (removed int, err error) {
	for {
		hashes, err := store.Within(ctx, s.db.InRead, func(tx *store.Tx) ([]string, error) { return next(tx) })
		if err != nil || len(hashes) == 0 {
			return removed, err
		}
		n, err := s.drop(ctx, hashes, released, before)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

// drop deletes rows first: bytes without a row are removed by Tidy, a row without
// bytes would have to be explained.
func (s *Store) drop(ctx context.Context, hashes []string, released bool, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped, err := store.Within(ctx, s.db.InTx, func(tx *store.Tx) ([]string, error) { return tx.Files().Drop(ctx, hashes, released, before) })
	if err != nil || s.db.KeepsBytes() {
		return len(dropped), err
	}
	for _, hash := range dropped {
		if err := os.Remove(s.path(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return len(dropped), fault.Wrap(err, fault.Unavailable, "remove a file")
		}
	}
	return len(dropped), nil
}

// Tidy removes from the folder what a crash has left there: files that were being
// read, and bytes without a row.
func (s *Store) Tidy(ctx context.Context) error {
	folder := os.DirFS(s.dir) // its own name may mean something in a pattern
	left, err := fs.Glob(folder, incoming+"/*")
	if err != nil {
		return err
	}
	for _, name := range left {
		name = filepath.Join(s.dir, name)
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(name) // tried again next time
		}
	}
	if s.db.KeepsBytes() {
		return nil
	}
	found, err := fs.Glob(folder, "[0-9a-f][0-9a-f]/*")
	if err != nil {
		return err
	}
	for _, name := range found {
		if err := s.tidyOne(ctx, filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) tidyOne(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := false
	err := s.db.InRead(ctx, func(tx *store.Tx) (err error) {
		known, err = tx.Files().Has(ctx, filepath.Base(name))
		return err
	})
	if err != nil || known {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a file without a row: %w", err)
	}
	return nil
}

// AfterErasing is for store.Store.AfterErasing: it removes what deleted messages had.
// What fails is tried again with the next deletion and by the sweep.
func (s *Store) AfterErasing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := s.Sweep(ctx); err != nil {
		s.log.WarnContext(ctx, "could not remove the files of deleted messages yet", "err", err)
	}
}
