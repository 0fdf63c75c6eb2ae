package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"remote-agent/internal/fault"
)

// quickCheckLimit bounds the look at the pages of an SQLite file.
const quickCheckLimit = 2 * time.Second

// damaged is the fault of an SQLite file that cannot be read as it should.
func damaged(path string, err error) error {
	return &fault.Error{Kind: fault.Damaged, Public: path + " is damaged", Err: fmt.Errorf("examine the database: %w", err)}
}

// checkAtStart looks at an existing SQLite file before anything is written to it:
// at its header and, for two seconds at most, at its pages. Damage is
// fault.Damaged; whatever else goes wrong shows when the file is opened.
func (s *Store) checkAtStart(ctx context.Context, path string) error {
	if err := checkHeader(path); err != nil {
		return err
	}
	whole, err := quickCheck(ctx, path)
	if fault.Is(err, fault.Damaged) {
		return err
	}
	if err == nil && !whole && ctx.Err() == nil {
		s.log.InfoContext(ctx, "the database is too large to be examined whole at start", "limit", quickCheckLimit)
	}
	return nil
}

// The first 100 bytes of an SQLite file (sqlite.org/fileformat2.html, section 1.3).
const (
	headerSize  = 100
	headerMagic = "SQLite format 3\x00"
)

// headerProblem says what is wrong with the first bytes of a file; nil if nothing is.
func headerProblem(header []byte) error {
	size := pageSizeOf(header)
	switch {
	case len(header) < headerSize:
		return errors.New("the file ends within its header")
	case string(header[:16]) != headerMagic:
		return errors.New("the header does not begin as that of an SQLite database")
	case size < 512 || size > 65536 || size&(size-1) != 0:
		return fmt.Errorf("the header has a page size of %d", size)
	case header[18] < 1 || header[18] > 2 || header[19] < 1 || header[19] > 2:
		return fmt.Errorf("the header has file format versions %d and %d", header[18], header[19])
	case header[21] != 64 || header[22] != 32 || header[23] != 32:
		return errors.New("the header has wrong payload fractions")
	case binary.BigEndian.Uint32(header[44:]) > 4 || binary.BigEndian.Uint32(header[56:]) > 3:
		return errors.New("the header has an unknown schema format or text encoding")
	}
	return nil
}

func pageSizeOf(header []byte) int {
	if len(header) < 18 {
		return 0
	}
	if n := int(binary.BigEndian.Uint16(header[16:])); n != 1 {
		return n
	}
	return 65536
}

// checkHeader reports a header that is not SQLite's. A file that is empty is a new
// database. Beside a write-ahead log the header may be older than what it has.
func checkHeader(path string) error {
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator's own path; a pipe would wait for a writer
	if err != nil {
		return nil //nolint:nilerr // said when it is opened for writing
	}
	defer f.Close() //nolint:errcheck // only read
	header := make([]byte, headerSize)
	n, err := io.ReadFull(f, header)
	if n == 0 || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if problem := headerProblem(header[:n]); problem != nil {
		return damaged(path, problem)
	}
	return nil
}

// quickCheck runs SQLite's quick_check on a file for at most two seconds, over a
// connection of its own, which reads from the disk and not from a cache. whole is
// false if the time did not suffice.
func quickCheck(ctx context.Context, path string) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, quickCheckLimit)
	defer cancel()
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return true, nil //nolint:nilerr // a new database, or one that is said to be missing when it is opened
	}
	db, err := openFile(path, url.Values{"mode": {"ro"}, "_pragma": {busySetting, "query_only(1)", "trusted_schema(0)"}})
	if err != nil {
		return false, err
	}
	defer db.Close() //nolint:errcheck // only read
	var verdict string
	err = db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict)
	switch {
	case ctx.Err() != nil:
		return false, nil
	case fault.Is(classifySQLite(err), fault.Damaged):
		return true, damaged(path, err)
	case err != nil:
		return false, classifySQLite(err)
	case verdict != "ok":
		return true, damaged(path, fmt.Errorf("%s: %s", filepath.Base(path), verdict))
	}
	return true, nil
}
