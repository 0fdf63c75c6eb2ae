package codebase

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"remote-agent/internal/fault"
)

// temporary is a directory below Root that vanishes: by end, or, if the process
// dies first, when a workspace is opened or something is cloned later.
type temporary struct {
	*folder
	rel  string
	lock *os.File // who holds it is alive
}

func (f *folder) temporary() (*temporary, error) {
	rel := path.Join(tmpDir, strings.ToLower(rand.Text()))
	lock, err := tryLockFile(f.abs(rel + ".lock"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "making a temporary directory")
	}
	t := &temporary{folder: f, rel: rel, lock: lock}
	if err := f.root.Mkdir(rel, 0o700); err != nil {
		t.end()
		return nil, fault.Wrap(err, fault.Internal, "making a temporary directory")
	}
	return t, nil
}

// sub returns a path inside the directory, absolute.
func (t *temporary) sub(name string) string { return t.abs(path.Join(t.rel, name)) }

func (t *temporary) end() {
	_ = t.root.RemoveAll(t.rel)
	_ = t.root.Remove(t.rel + ".lock")
	_ = t.lock.Close()
}

// clearTemporary removes what processes left behind that died.
func (f *folder) clearTemporary(ctx context.Context) {
	entries, err := fs.ReadDir(f.root.FS(), tmpDir)
	if err != nil {
		f.log.WarnContext(ctx, "cannot list temporary directories", "err", err)
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinishedPrefix) {
			if info, err := e.Info(); err == nil {
				f.clearUnfinished(e.Name(), info.ModTime())
			}
			continue
		}
		name := strings.TrimSuffix(e.Name(), ".lock")
		lock, err := tryLockFile(f.abs(path.Join(tmpDir, name+".lock")))
		if err != nil {
			continue // its owner is alive
		}
		(&temporary{folder: f, rel: path.Join(tmpDir, name), lock: lock}).end()
	}
}

// discard removes a directory below Root so that it is gone at once, whatever
// happens while its files are deleted.
func (f *folder) discard(rel string) error {
	if _, err := f.root.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	t, err := f.temporary()
	if err != nil {
		return err
	}
	defer t.end()
	return fault.Wrap(f.root.Rename(rel, path.Join(t.rel, "old")), fault.Internal, "removing a directory of the workspace")
}
