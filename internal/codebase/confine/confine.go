// Package confine opens paths that come from a person, a repository or a model
// inside one directory and never outside it.
//
// Every access goes through an os.Root, which checks each step while it is made;
// comparing path texts is not enough, because a symbolic link, or a directory that
// is swapped for one, escapes such a check. The lexical checks here only give
// better error texts. Errors are of kind Invalid or NotFound, and their texts are
// safe to show.
package confine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"remote-agent/internal/fault"
)

// MaxPath is the longest path in bytes that is accepted.
const MaxPath = 1024

// Clean checks a path as text and returns it relative to the root with slashes;
// "." is the root. It refuses absolute paths, "..", "~", NUL and other control
// characters, and everything inside a .git directory, which belongs to git.
func Clean(p string) (string, error) {
	switch {
	case len(p) > MaxPath:
		return "", fault.Newf(fault.Invalid, "The path is longer than %d bytes.", MaxPath)
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return "", fault.New(fault.Invalid, "The path contains a control character.")
	case strings.HasPrefix(p, "/"):
		return "", fault.New(fault.Invalid, "The path is absolute. Give it relative to the top folder of the repository, like src/app.")
	case strings.HasPrefix(path.Clean(p), "~"): // as "./~" is for whoever gets the result
		return "", fault.New(fault.Invalid, "“~” means a home folder, which is outside the repository. Give the path relative to the top folder, like src/app.")
	}
	for element := range strings.SplitSeq(p, "/") {
		switch {
		case element == "..":
			return "", fault.New(fault.Invalid, "The path contains “..”. Give it relative to the top folder of the repository, like src/app.")
		case strings.EqualFold(element, ".git"):
			return "", fault.New(fault.Invalid, "The .git folder is off limits.")
		}
	}
	return path.Clean(p), nil // of "" it makes "."
}

// Open opens a regular file for reading, following links that stay inside root.
// It refuses directories, devices, sockets and pipes, and never blocks on one.
func Open(root *os.Root, p string) (*os.File, fs.FileInfo, error) {
	rel, err := Clean(p)
	if err != nil {
		return nil, nil, err
	}
	// Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, classify(err, rel)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Newf(fault.Invalid, "%s is %s, not a file.", rel, kind(info.Mode()))
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, classify(err, rel)
	}
	return f, info, nil
}

// ReadFile returns the content of a regular file of at most limit bytes. A
// larger one is refused, also if it grows while it is read.
func ReadFile(root *os.Root, p string, limit int64) ([]byte, error) {
	f, info, err := Open(root, p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > limit {
		return nil, tooLarge(p, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, classify(err, p)
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(p, limit)
	}
	return data, nil
}

// Dir checks that a path is an existing directory inside root and returns it
// relative to root. The answer is about this moment: open it through the root
// again at each use.
func Dir(root *os.Root, p string) (string, error) {
	rel, err := Clean(p)
	if err != nil {
		return "", err
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", classify(err, rel)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", classify(err, rel)
	}
	if !info.IsDir() {
		return "", fault.Newf(fault.Invalid, "%s is %s, not a folder.", rel, kind(info.Mode()))
	}
	return rel, nil
}

func tooLarge(p string, limit int64) error {
	return fault.Newf(fault.Invalid, "%s is larger than %d KiB.", p, limit>>10)
}

// classify turns an error of the file system into one that can be shown. The
// text of the error itself is not: it can name places outside the root.
func classify(err error, p string) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	is := func(target error) bool { return errors.Is(err, target) }
	out := &fault.Error{Kind: fault.Invalid, Err: err}
	switch {
	case is(fs.ErrNotExist):
		out.Kind, out.Public = fault.NotFound, fmt.Sprintf("There is no %s in this repository.", p)
	case is(syscall.ENOTDIR):
		out.Kind, out.Public = fault.NotFound, fmt.Sprintf("There is no %s in this repository: a part of the path is a file.", p)
	case is(syscall.ELOOP):
		out.Public = fmt.Sprintf("%s is a loop of links.", p)
	case is(syscall.ENXIO), is(syscall.ENODEV), is(syscall.EOPNOTSUPP):
		out.Public = fmt.Sprintf("%s is a pipe, socket or device, not a file.", p)
	case is(fs.ErrPermission):
		out.Public = fmt.Sprintf("No permission to read %s.", p)
	default: // os.Root has no error value for an escape.
		out.Public = fmt.Sprintf("%s cannot be opened: it leads outside this repository, or is not a file.", p)
	}
	return out
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
