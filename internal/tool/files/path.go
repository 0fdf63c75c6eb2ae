package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"remote-agent/internal/fault"
)

const (
	maxPath  = 1024 // bytes
	maxLinks = 20   // symbolic links on the way to a file
)

// locate makes of a path, as a model writes it, the path relative to the root
// with slashes and without symbolic links; "." is the root. Where a part does not
// exist, the rest is taken as it is. The result is checked as text only; the root
// confines each access to it.
func (d *directory) locate(p string) (string, error) {
	rel, err := d.relative(p)
	if err != nil {
		return "", err
	}
	rest, links := strings.Split(rel, "/"), 0
	done := "."
	for len(rest) > 0 {
		element := rest[0]
		rest = rest[1:]
		switch {
		case element == "." || element == "":
			continue
		case element == "..":
			if done == "." {
				return "", outside(p)
			}
			done = path.Dir(done)
			continue
		case strings.EqualFold(element, ".git"):
			return "", fault.Newf(fault.Invalid, "%s is inside .git, which belongs to git. Use git commands for it.", p)
		}
		next := path.Join(done, element)
		target, err := d.root.Readlink(next)
		if err != nil { // not a link, or not there
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fault.Newf(fault.Invalid, "%s is a loop of links.", p)
		}
		if filepath.IsAbs(target) {
			return "", outside(p)
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return done, nil
}

// relative checks a path as text.
func (d *directory) relative(p string) (string, error) {
	switch {
	case p == "":
		return "", fault.New(fault.Invalid, `"path" is missing. Give a path relative to the top folder, like "src/app.go".`)
	case len(p) > maxPath:
		return "", fault.Newf(fault.Invalid, "The path is longer than %d bytes.", maxPath)
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }):
		return "", fault.New(fault.Invalid, "The path contains a control character.")
	case strings.HasPrefix(p, "~"):
		return "", fault.New(fault.Invalid, `"~" means a home folder, which is outside. Give a path relative to the top folder, like "src/app.go".`)
	}
	if !filepath.IsAbs(p) {
		return filepath.ToSlash(p), nil
	}
	for _, root := range d.aliases {
		if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	return "", outside(p)
}

func outside(p string) error {
	return fault.Newf(fault.Invalid, "%s is outside the top folder; only what is inside can be used. Give a path relative to it, like \"src/app.go\".", p)
}

// open opens a regular file, which is located, for reading.
func (d *directory) open(rel string) (f *os.File, info fs.FileInfo, err error) {
	// Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
	f, err = d.root.OpenFile(filepath.FromSlash(rel), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, classify(err, rel)
	}
	info, err = f.Stat()
	switch {
	case err != nil:
		err = classify(err, rel)
	case info.IsDir():
		err = fault.Newf(fault.Invalid, "%s is a folder. Use %s to see what is in it.", rel, NameList)
	case !info.Mode().IsRegular():
		err = fault.Newf(fault.Invalid, "%s is a pipe, socket or device, not a file.", rel)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// content returns a whole file, which is located, of at most maxFile bytes.
func (d *directory) content(rel string) (data []byte, info fs.FileInfo, err error) {
	f, info, err := d.open(rel)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, classify(err, rel)
	}
	if len(data) > maxFile {
		return nil, nil, fault.Newf(fault.Invalid, "%s is larger than %d MiB; that is too large for this tool. Use a program for it.", rel, maxFile>>20)
	}
	return data, info, nil
}

// binary reports whether a file that starts with these bytes is not text.
func binary(start []byte) bool {
	return bytes.IndexByte(start[:min(len(start), sniffed)], 0) >= 0
}

func refuseBinary(rel string, start []byte, size int64) error {
	return fault.Newf(fault.Invalid, "%s is not a text file (%s, %d bytes), so it is not shown or changed here.", rel, http.DetectContentType(start), size)
}

// classify turns an error of the file system into one that can be shown. The
// text of the error itself is not: it can name places outside.
func classify(err error, p string) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	is := func(target error) bool { return errors.Is(err, target) }
	out := &fault.Error{Kind: fault.Invalid, Err: err}
	switch {
	case is(fs.ErrNotExist):
		out.Kind, out.Public = fault.NotFound, fmt.Sprintf("There is no %s. Use %s to find the right path.", p, NameList)
	case is(syscall.ENOTDIR):
		out.Kind, out.Public = fault.NotFound, fmt.Sprintf("There is no %s: a part of the path is a file.", p)
	case is(syscall.EISDIR):
		out.Public = p + " is a folder."
	case is(syscall.ENAMETOOLONG):
		out.Public = "The path has a part that is too long."
	case is(syscall.ENXIO), is(syscall.ENODEV), is(syscall.EOPNOTSUPP):
		out.Public = p + " is a pipe, socket or device, not a file."
	case is(syscall.ENOSPC), is(syscall.EDQUOT):
		out.Kind, out.Public = fault.Exhausted, "The disk is full; "+p+" is as it was."
	case is(syscall.EROFS), is(fs.ErrPermission):
		out.Public = fmt.Sprintf("The permissions of %s do not allow that.", p)
	default: // os.Root has no error value for an escape.
		out.Public = p + " cannot be used: it leads outside the top folder, or is not a file."
	}
	return out
}
