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
	w    *Workspace
	rel  string
	lock *os.File // who holds it is alive
}

func (w *Workspace) temporary() (*temporary, error) {
	rel := path.Join(tmpDir, strings.ToLower(rand.Text()))
	lock, err := tryLockFile(w.abs(rel + ".lock"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "making a temporary directory")
	}
	t := &temporary{w: w, rel: rel, lock: lock}
	if err := w.root.Mkdir(rel, 0o700); err != nil {
		t.end()
		return nil, fault.Wrap(err, fault.Internal, "making a temporary directory")
	}
	return t, nil
}

// sub returns a path inside the directory, absolute.
func (t *temporary) sub(name string) string { return t.w.abs(path.Join(t.rel, name)) }

func (t *temporary) end() {
	_ = t.w.root.RemoveAll(t.rel)
	_ = t.w.root.Remove(t.rel + ".lock")
	_ = t.lock.Close()
}

// clearTemporary removes what processes left behind that died.
func (w *Workspace) clearTemporary(ctx context.Context) {
	entries, err := fs.ReadDir(w.root.FS(), tmpDir)
	if err != nil {
		w.log.WarnContext(ctx, "cannot list temporary directories", "err", err)
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinishedPrefix) {
			if info, err := e.Info(); err == nil {
				w.clearUnfinished(e.Name(), info.ModTime())
			}
			continue
		}
		name := strings.TrimSuffix(e.Name(), ".lock")
		lock, err := tryLockFile(w.abs(path.Join(tmpDir, name+".lock")))
		if err != nil {
			continue // its owner is alive
		}
		(&temporary{w: w, rel: path.Join(tmpDir, name), lock: lock}).end()
	}
}

// discard removes a directory below Root so that it is gone at once, whatever
// happens while its files are deleted.
func (w *Workspace) discard(rel string) error {
	if _, err := w.root.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	t, err := w.temporary()
	if err != nil {
		return err
	}
	defer t.end()
	if err := w.root.Rename(rel, path.Join(t.rel, "old")); err != nil {
		return fault.Wrap(err, fault.Internal, "removing a directory of the workspace")
	}
	return nil
}
