package backup

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"remote-agent/internal/fault"
)

// Archive writes a backup as a tar archive that holds its folder. Nothing is written
// for a folder that is no backup; what its manifest does not name is left out.
func Archive(ctx context.Context, out io.Writer, dir string) error {
	m, err := Read(dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // nothing leads out of it
	if err != nil {
		return unusable(dir, err)
	}
	defer root.Close() //nolint:errcheck // only read
	w := tar.NewWriter(out)
	for _, f := range append(m.Files, File{Path: manifestName}) {
		if err := archiveFile(ctx, w, root, filepath.Base(dir), f.Path); err != nil {
			return err
		}
	}
	return w.Close()
}

func archiveFile(ctx context.Context, w *tar.Writer, root *os.Root, folder, name string) error {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return unusable(name, err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		return unusable(name, err)
	}
	if err := w.WriteHeader(&tar.Header{Name: path.Join(folder, name), Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}); err != nil {
		return fault.Wrap(err, fault.Unavailable, "write an archive")
	}
	_, err = io.Copy(w, reader{ctx, f})
	return fault.Wrap(err, fault.Unavailable, "write an archive")
}

// open opens a regular file for reading. What else is there, such as a pipe, which would
// wait for a writer, is no such file.
func open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator's own path
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	_ = f.Close()
	return nil, fs.ErrNotExist
}
