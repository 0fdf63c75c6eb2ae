// Package commandfile finds, reads and fills in command files: Markdown files of
// a repository that are run as prompts.
//
// Everything in them comes from outside. Files are opened through an os.Root and
// read again at each run, so that what is stored elsewhere is a path and never a
// content that grew old. Errors are of kind Invalid or NotFound, with a text that
// can be shown.
package commandfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/fault"
	"remote-agent/internal/order"
	"remote-agent/internal/pattern"
)

const (
	// MaxSize is the largest command file in bytes.
	MaxSize = 256 << 10

	maxFiles    = 2000 // that one folder may give
	maxEntries  = 20000
	maxDepth    = 8
	maxProblems = 50
)

// DefaultFolders are looked through when a codebase is added or fetched.
func DefaultFolders() []string { return []string{".claude/commands", ".agents/commands"} }

// File is a command file as it is listed.
type File struct {
	Name string // the file's name without .md, as it is written
	Path string // relative to the root, with slashes
	Meta

	// Conflict is set when other files have the same name, regardless of case
	// and of "-" and "_". None of them may be run by name alone.
	Conflict bool

	// Problem is why the file cannot be used: only Load lists such files.
	Problem string
}

// Command is a command file with its text.
type Command struct {
	File
	Body string
}

var fileName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Fold returns the form of a name in which names are compared.
func Fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// LoadFolder is Load for one folder. That the folder is missing is a problem.
func LoadFolder(root *os.Root, folder string) (files []File, problems []string) {
	w := walk{root: root}
	rel, err := confine.Dir(root, folder)
	if err != nil {
		return nil, []string{fault.Public(err)}
	}
	w.dir(rel, 0)
	return w.result()
}

// Load lists the command files in folders and below, in order of name and path.
// A name is the file's own, without the folders above it. Folders that do not
// exist are left out. Files that cannot be used are named in problems with the
// reason, and are listed with it if their name is a command's; links are not
// followed.
func Load(root *os.Root, folders ...string) (files []File, problems []string) {
	w := walk{root: root, all: true}
	for _, folder := range folders {
		rel, err := confine.Dir(root, folder)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			w.problem(fault.Public(err))
		default:
			w.dir(rel, 0)
		}
	}
	return w.result()
}

type walk struct {
	root     *os.Root
	files    []File
	problems []string
	entries  int
	all      bool // files that cannot be used, too
	full     bool
}

func (w *walk) problem(text string) {
	if len(w.problems) == maxProblems {
		w.problems = append(w.problems, "There are further problems.")
	}
	if len(w.problems) < maxProblems {
		w.problems = append(w.problems, text)
	}
}

// stop reports whether a bound is reached, and says so once.
func (w *walk) stop(dir string) bool {
	if !w.full && (w.entries >= maxEntries || len(w.files) >= maxFiles) {
		w.full = true
		w.problem(fmt.Sprintf("%s has too many files; only the first %d command files were read.", dir, len(w.files)))
	}
	return w.full
}

func (w *walk) dir(dir string, depth int) {
	if depth > maxDepth {
		w.problem(fmt.Sprintf("%s is nested too deeply and was skipped.", dir))
		return
	}
	entries, err := w.list(dir)
	if err != nil {
		w.problem(fmt.Sprintf("Could not read %s.", dir))
		return
	}
	for _, e := range entries {
		if w.stop(dir) {
			return
		}
		w.entries++
		name, p := e.Name(), path.Join(dir, e.Name())
		switch {
		case e.IsDir() && !strings.EqualFold(name, ".git"):
			w.dir(p, depth+1)
		case e.IsDir() || !strings.EqualFold(path.Ext(name), ".md"):
		case e.Type()&fs.ModeSymlink != 0:
			w.problem(fmt.Sprintf("%s is a link and was skipped.", p))
		default:
			w.file(p)
		}
	}
}

// list reads a directory in order of name, up to the bound.
func (w *walk) list(dir string) ([]fs.DirEntry, error) {
	f, err := w.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxEntries - w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (w *walk) file(p string) {
	if !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return r < ' ' }) {
		w.problem(fmt.Sprintf("%q is not a valid name.", p))
		return
	}
	c, err := Read(w.root, p)
	if err != nil {
		c.File = File{Name: nameOf(p), Path: p, Problem: fault.Public(err)}
	}
	named := fileName.MatchString(c.Name)
	switch {
	case err != nil:
		w.problem(c.Problem)
	case !named:
		w.problem(fmt.Sprintf("%s cannot be a command: use only letters, digits, “-” and “_” in its name.", p))
	}
	if named && (err == nil || w.all) {
		w.files = append(w.files, c.File)
	}
}

func (w *walk) result() ([]File, []string) {
	order.By(w.files, func(a, b File) int {
		return cmp.Or(strings.Compare(Fold(a.Name), Fold(b.Name)), strings.Compare(a.Path, b.Path))
	})
	w.files = slices.CompactFunc(w.files, func(a, b File) bool { return a.Path == b.Path })
	MarkConflicts(w.files)
	return w.files, w.problems
}

// MarkConflicts sets Conflict for the usable files that share a name, in place.
func MarkConflicts(files []File) {
	count := map[string]int{}
	for _, f := range files {
		if f.Problem == "" {
			count[Fold(f.Name)]++
		}
	}
	for i := range files {
		files[i].Conflict = files[i].Problem == "" && count[Fold(files[i].Name)] > 1
	}
}

// Read reads a command file. It refuses what is not a regular file, leads out of
// the root, is larger than MaxSize, is not text in UTF-8, has no text, or has
// front matter that cannot be read.
func Read(root *os.Root, p string) (Command, error) {
	data, err := confine.ReadFile(root, p, MaxSize)
	if err != nil {
		return Command{}, err
	}
	p = path.Clean(p)
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return Command{}, fault.Newf(fault.Invalid, "%s is not a text file in UTF-8.", p)
	}
	meta, body, err := Split(string(data))
	if err != nil {
		return Command{}, &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("The front matter of %s cannot be read: %v.", p, err), Err: err}
	}
	if strings.TrimSpace(body) == "" {
		return Command{}, fault.Newf(fault.Invalid, "%s has no text.", p)
	}
	return Command{File: File{Name: nameOf(p), Path: p, Meta: meta}, Body: body}, nil
}

func nameOf(p string) string { return strings.TrimSuffix(path.Base(p), path.Ext(p)) }
