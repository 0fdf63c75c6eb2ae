package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// backupSuffix is what the earlier text of a file is kept under, asideSuffix one that was
// refused, and partPattern what a file is called while it is written.
const (
	backupSuffix = ".bak"
	asideSuffix  = ".refused"
	partPattern  = ".env.*.tmp"
)

// EnvFiles returns the files that hold options where path is the one that is read: also
// the earlier text, and one that was refused. It is nothing for an empty path.
func EnvFiles(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path, path + backupSuffix, path + asideSuffix}
}

// EnvText is the file that options are kept in, as it was read.
type EnvText struct {
	Path   string // absolute, of the file itself and not of a link to it
	Text   []byte
	Exists bool
}

// ReadEnv reads the .env file of a source. A file that is not there is an empty one. An
// error is one line that says what to do: the file is damaged, too large, or somebody
// else's.
func ReadEnv(src Source) (EnvText, error) {
	named := cmp.Or(src.EnvFile, EnvFile)
	path, err := filepath.Abs(named)
	if err != nil {
		return EnvText{}, fmt.Errorf("%s %s", named, fileTrouble(err))
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return EnvText{Path: path}, nil
	}
	if err != nil {
		return EnvText{}, fmt.Errorf("%s %s", path, fileTrouble(err))
	}
	if owner, ours := OwnedByUs(path); !ours {
		return EnvText{}, fmt.Errorf("%s belongs to %s: run this as that user, such as with sudo -u", path, owner)
	}
	if _, err := parseEnvFile(path, text); err != nil {
		return EnvText{}, err
	}
	return EnvText{Path: path, Text: text, Exists: true}, nil
}

// newFile is what a file is written through.
type newFile interface {
	Write(p []byte) (int, error)
	Sync() error
	Close() error
	Name() string
}

// createFile makes a file that only this user can read, beside the one that it is to
// replace.
func createFile(dir string) (newFile, error) {
	removeParts(dir)
	return os.CreateTemp(dir, partPattern)
}

// removeParts removes what a process left that ended while it wrote: it may hold secrets.
func removeParts(dir string) {
	parts, _ := fs.Glob(os.DirFS(dir), partPattern) // the pattern is right
	for _, name := range parts {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path) // the next one tries again
		}
	}
}

// Replace writes text in the place of e, for this user alone (mode 0600), at once or not
// at all; the earlier text is kept beside it, under the name with .bak. It refuses if the
// file has changed since e was read. An error says in one line what to do, and that
// nothing has changed is true then.
func (e EnvText) Replace(text []byte) (EnvText, error) { return e.replace(text, createFile) }

func (e EnvText) replace(text []byte, create func(dir string) (newFile, error)) (EnvText, error) {
	now, err := readFile(e.Path)
	if absent := errors.Is(err, fs.ErrNotExist); absent == e.Exists || (!absent && (err != nil || !bytes.Equal(now, e.Text))) {
		return e, fmt.Errorf("%s was changed by somebody else meanwhile; nothing was written: try again", e.Path)
	}
	if bytes.Equal(text, e.Text) {
		return e, nil
	}
	if e.Exists {
		if err := writeWhole(e.Path+backupSuffix, e.Text, create); err != nil {
			return e, writeTrouble(e.Path+backupSuffix, err)
		}
	}
	if err := writeWhole(e.Path, text, create); err != nil {
		return e, writeTrouble(e.Path, err)
	}
	return EnvText{Path: e.Path, Text: text, Exists: true}, nil
}

// PutAside writes another text beside the file, where nothing reads it, and says where.
func (e EnvText) PutAside(text []byte) (path string, err error) {
	path = e.Path + asideSuffix
	if err := writeWhole(path, text, createFile); err != nil {
		return "", writeTrouble(path, err)
	}
	return path, nil
}

// writeWhole puts a file with text at path, or leaves what is there.
func writeWhole(path string, text []byte, create func(dir string) (newFile, error)) error {
	f, err := create(filepath.Dir(path))
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// syncFolder has a new name survive a loss of power, where the system can do that.
func syncFolder(dir string) {
	if d, err := os.Open(filepath.Clean(dir)); err == nil {
		_ = d.Sync()  // the file itself is written
		_ = d.Close() // only read
	}
}

func writeTrouble(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot write %s: this user may not write to its folder; nothing was changed", path)
	case isFull(err):
		return fmt.Errorf("cannot write %s: the disk is full; nothing was changed", path)
	}
	return fmt.Errorf("cannot write %s: check the disk, and that its folder can be written to; nothing was changed", path)
}
