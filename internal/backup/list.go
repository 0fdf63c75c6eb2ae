package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/order"
)

// Listed is a backup in a listing; Err says why it cannot be used.
type Listed struct {
	Dir      string
	Manifest Manifest
	Err      error
}

// List returns the backups below a folder, the newest first, also those that cannot be
// used, and links to them. A folder without a manifest is one if it has the name of one.
// It reads manifests only; Verify examines one.
func List(folder string) ([]Listed, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unread(folder, err)
	}
	var list []Listed
	for _, e := range slices.Backward(entries) {
		dir := filepath.Join(folder, e.Name())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		m, err := Read(dir)
		at, misnamed := time.Parse(nameLayout, strings.TrimSuffix(e.Name(), partial))
		if _, none := os.Lstat(filepath.Join(dir, manifestName)); none != nil && misnamed != nil {
			continue
		}
		if err != nil {
			m.CreatedAt = at
		}
		list = append(list, Listed{dir, m, err})
	}
	order.By(list, func(a, b Listed) int { return b.Manifest.CreatedAt.Compare(a.Manifest.CreatedAt) })
	return list, nil
}
