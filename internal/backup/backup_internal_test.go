package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/fault"
)

// What an operator reads names the folder, and says whether it was to be read or written.
func TestWhatFailedNamesItsFolder(t *testing.T) {
	t.Parallel()
	full := &fault.Error{Kind: fault.Disk, Err: errors.New("database or disk is full")}
	if err := outOfRoom("/backups/1", full); !fault.Is(err, fault.Disk) || !strings.Contains(fault.Public(err), "The disk of /backups/1 is full") {
		t.Errorf("a full disk: %v", err)
	}
	if err := outOfRoom("/backups/1", fs.ErrPermission); !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "full") {
		t.Errorf("another error: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := List(file); err == nil || !strings.HasPrefix(fault.Public(err), "Cannot read "+file) {
		t.Errorf("a folder that is a file: %v", err)
	}
}
