//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Owner is whose a folder is to be: root's commands leave files to the user as whom the
// daemon runs.
type Owner struct {
	uid, gid int
	root     bool   // this process is root's, and the folder is not
	at       string // the folder, or the one that is there and that it will be in
}

// OwnerAt returns whose a path is or, if it does not exist, the folder that it will be in.
func OwnerAt(path string) Owner {
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return Owner{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return Owner{int(stat.Uid), int(stat.Gid), ok && os.Geteuid() == 0 && stat.Uid != 0, path}
}

// Differs reports whether what this process makes there has to be given to the owner.
func (o Owner) Differs() bool { return o.root }

// Take gives what name is in a folder to the owner, and the folder and those that it is in if
// they were missing. It reaches nothing outside of the one that was there, which may be
// somebody's who puts links there meanwhile.
func (o Owner) Take(folder, name string) error {
	if !o.root {
		return nil
	}
	made, err := filepath.Rel(o.at, folder)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(o.at)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only read
	err = fs.WalkDir(root.FS(), filepath.Join(made, name), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, root.Lchown(path, o.uid, o.gid))
	})
	for ; made != "."; made = filepath.Dir(made) {
		err = errors.Join(err, root.Lchown(made, o.uid, o.gid))
	}
	return err
}
