package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxHistory      = 1000     // texts that are kept
	maxHistoryEntry = 16 << 10 // bytes of the longest one
	maxHistoryFile  = 2 << 20  // bytes of the file: more are not read, and are removed
)

// History are the texts that were typed, the newest last. It is bounded: it has the
// last 1,000 texts of up to 16 KiB.
type History struct {
	entries []string
	path    string
	keep    func(text string) bool
}

// OpenHistory reads what was typed before from a file, which need not exist: one JSON
// string a line. Add writes to it, for this user only; an empty path keeps nothing
// over a start. A text that keep refuses is never written, and removed if it is there;
// nil keeps all. An error leaves a history that works and is empty.
func OpenHistory(path string, keep func(text string) bool) (*History, error) {
	h := &History{path: path, keep: keep}
	if path == "" {
		return h, nil
	}
	f, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		h.path = ""
		return h, fmt.Errorf("read the history: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	rest := err == nil && info.Size() > maxHistoryFile
	if rest {
		_, _ = f.Seek(-maxHistoryFile, io.SeekEnd) // the line it falls into is no JSON and is left out
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 8*maxHistoryEntry)
	count := 0
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) != nil || text == "" {
			continue
		}
		if keep != nil && !keep(text) {
			rest = true
			continue
		}
		h.remember(Clean(text))
		count++
	}
	if rest || count > 2*maxHistory || lines.Err() != nil {
		return h, h.rewrite()
	}
	return h, nil
}

// remember appends a text, unless it is the last one again.
func (h *History) remember(text string) bool {
	if n := len(h.entries); n > 0 && h.entries[n-1] == text {
		return false
	}
	h.entries = append(h.entries, text)
	if len(h.entries) > maxHistory {
		h.entries = slices.Delete(h.entries, 0, len(h.entries)-maxHistory)
	}
	return true
}

// Add keeps a text: at once for this process, and in the file. What starts with a
// space, is too long, or is refused by keep is only known to this process.
func (h *History) Add(text string) error {
	if !h.remember(text) || h.path == "" || strings.HasPrefix(text, " ") || len(text) > maxHistoryEntry || h.keep != nil && !h.keep(text) {
		return nil
	}
	f, err := os.OpenFile(filepath.Clean(h.path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	var size int64
	if err == nil {
		_, err = f.Write(encode(text))
		if info, statErr := f.Stat(); statErr == nil {
			size = info.Size()
		}
		err = errors.Join(err, f.Chmod(0o600), f.Close())
	}
	if err == nil && size > 2*maxHistoryFile {
		_, err = OpenHistory(h.path, h.keep) // which shortens it; here is more than may be written
	}
	if err != nil {
		h.path = "" // it would fail again
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// rewrite leaves in the file the newest of what was read from it.
func (h *History) rewrite() error {
	var newest [][]byte
	for left := maxHistoryFile / 2; len(newest) < len(h.entries); {
		line := encode(h.entries[len(h.entries)-1-len(newest)])
		if left -= len(line); left < 0 {
			break
		}
		newest = append(newest, line)
	}
	slices.Reverse(newest)
	all := bytes.Join(newest, nil)
	next := h.path + ".new"
	if err := os.WriteFile(next, all, 0o600); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	if err := os.Rename(next, h.path); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

func encode(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		return nil // a string is always encoded
	}
	return append(b, '\n')
}
