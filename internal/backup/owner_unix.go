//go:build unix

package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// owner is whose a folder is to be: root's commands leave files to the user as whom the
// daemon runs.
type owner struct {
	uid, gid int
	root     bool // this process may give files away
}

// ownerAt returns whose a path is or, if it does not exist, the folder that it will be in.
func ownerAt(path string) owner {
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return owner{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return owner{int(stat.Uid), int(stat.Gid), ok && os.Geteuid() == 0 && stat.Uid != 0}
}

// take gives a folder, and what name is in it, to the owner. It reaches nothing outside of the
// folder, which may be somebody's who puts links there meanwhile.
func (o owner) take(folder, name string) error {
	if !o.root {
		return nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only read
	err = fs.WalkDir(root.FS(), name, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, root.Lchown(path, o.uid, o.gid))
	})
	return errors.Join(err, root.Lchown(".", o.uid, o.gid))
}
