package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/tool"
	"remote-agent/internal/tool/files"
)

// tree is a worktree in a directory, beside a secret that no tool may reach.
type tree struct {
	t     *testing.T
	dir   string
	tools map[string]tool.Tool
}

const secret = "the secret"

func newTree(t *testing.T, content map[string]string) *tree {
	t.Helper()
	return newTreeWith(t, files.Options{}, content)
}

func newTreeWith(t *testing.T, opts files.Options, content map[string]string) *tree {
	t.Helper()
	base := t.TempDir()
	w := &tree{t: t, dir: filepath.Join(base, "ws"), tools: make(map[string]tool.Tool)}
	for p, text := range content {
		w.put(p, text)
	}
	for _, d := range []string{w.dir, filepath.Join(base, "ws-evil")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"secret", "ws-evil/secret"} {
		if err := os.WriteFile(filepath.Join(base, p), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	for _, x := range files.New(root, opts) {
		w.tools[x.Spec().Name] = x
	}
	return w
}

func (w *tree) put(p, text string) {
	w.t.Helper()
	p = filepath.Join(w.dir, p)
	if err := os.MkdirAll(filepath.Dir(p), 0o750); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *tree) get(p string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, p))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func arguments(args map[string]any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return raw
}

// run returns the content of a result, or the error.
func (w *tree) run(name string, args map[string]any) (string, error) {
	r, err := w.tools[name].Run(context.Background(), arguments(args))
	return r.Content, err
}

func (w *tree) must(name string, args map[string]any) string {
	w.t.Helper()
	got, err := w.run(name, args)
	if err != nil {
		w.t.Fatalf("%s %v: %v", name, args, err)
	}
	return got
}

// refuses checks that a call fails before anything is done, with a text.
func (w *tree) refuses(name string, args map[string]any, want string) {
	w.t.Helper()
	_, effectErr := w.tools[name].Effect(context.Background(), arguments(args))
	_, runErr := w.run(name, args)
	for what, err := range map[string]error{"Effect": effectErr, "Run": runErr} {
		if what == "Effect" && name == files.NameRead {
			continue // it does not look into the file
		}
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.NotFound {
			w.t.Errorf("%s of %s %.200v: %v, want fault.Invalid", what, name, args, err)
		} else if !strings.Contains(fault.Public(err), want) {
			w.t.Errorf("%s of %s %.200v says %q, want %q", what, name, args, fault.Public(err), want)
		}
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"a.txt": "one\ntwo\nthree", "empty": "", "long": strings.Repeat("é", 2000) + "\nnext\n", "latin1": "caf\xe9\n"})
	tests := []struct {
		name string
		args map[string]any
		want string
	}{
		{"Whole", map[string]any{"path": "a.txt"}, "one\ntwo\nthree\n"},
		{"Absolute", map[string]any{"path": filepath.Join(w.dir, "a.txt")}, "one\ntwo\nthree\n"},
		{"Dots", map[string]any{"path": "./x/../a.txt"}, "one\ntwo\nthree\n"},
		{"Numbers", map[string]any{"path": "a.txt", "line_numbers": true}, "1\tone\n2\ttwo\n3\tthree\n"},
		{"Part", map[string]any{"path": "a.txt", "offset": 2, "limit": 1}, "two\n[lines 2 to 2 of 3; continue with offset 3]"},
		{"End", map[string]any{"path": "a.txt", "offset": 3, "line_numbers": true}, "3\tthree\n[lines 3 to 3, the end]"},
		{"Empty", map[string]any{"path": "empty"}, "[the file is empty]"},
		{"LongLine", map[string]any{"path": "long"}, strings.Repeat("é", 1000) + "… [2001 more bytes]\nnext\n\n[some lines are not shown exactly: they are too long or not UTF-8]"},
		{"Latin1", map[string]any{"path": "latin1"}, "caf\uFFFD\n\n[some lines are not shown exactly: they are too long or not UTF-8]"},
	}
	for _, tt := range tests {
		if got := w.must(files.NameRead, tt.args); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestReadFileRefuses(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"a.txt": "one\n", "program": "\x7fELF\x00\x00", "dir/x": "x"})
	if err := syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(w.dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(65<<20), big.Close()); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{
		"program": "not a text file (application/octet-stream, 6 bytes)",
		"dir":     "is a folder",
		"pipe":    "is a pipe",
		"big":     "files over 64 MiB",
		"none":    "There is no none",
		"a.txt/b": "a part of the path is a file",
		"":        `"path" is missing`,
	} {
		w.refuses(files.NameRead, map[string]any{"path": p}, want)
	}
	w.refuses(files.NameRead, map[string]any{"path": "a.txt", "offset": 5}, "has only 1 lines")
	w.refuses(files.NameRead, map[string]any{"path": "a.txt", "limit": 100000}, `"limit" is 1 to 10000`)
	w.refuses(files.NameRead, map[string]any{"path": "a.txt", "lines": 3}, `unknown field "lines"`)
}

// TestReadFileShows what a model can look at, and leaves text that only begins so as it is.
func TestReadFileShows(t *testing.T) {
	t.Parallel()
	content := map[string]string{
		"png": "\x89PNG\r\n\x1a\n\x00", "jpeg": "\xff\xd8\xff\xe0\x00", "gif": "GIF89a\x00", "webp": "RIFF\x00\x00\x00\x00WEBP", "pdf": "%PDF-1.7\n\x00",
	}
	put := map[string]string{"text": "GIF89a begins a picture.\n"}
	for name, data := range content {
		put["docs/shot."+name] = data
	}
	w := newTree(t, put)
	for name, data := range content {
		kind := "image/" + name
		if name == "pdf" {
			kind = "application/pdf"
		}
		got, err := w.tools[files.NameRead].Run(t.Context(), arguments(map[string]any{"path": "docs/shot." + name}))
		if want := fmt.Sprintf("[docs/shot.%s: %s, %d bytes]", name, kind, len(data)); err != nil || got.Content != want || got.File == nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		for range 2 { // reading is tried again
			f, err := got.File.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			read, err := io.ReadAll(f)
			if err := errors.Join(err, f.Close()); err != nil || string(read) != data || got.File.Name != "shot."+name || got.File.MediaType != kind {
				t.Errorf("%s: %q of %+v, %v", name, read, got.File, err)
			}
		}
	}
	if got := w.must(files.NameRead, map[string]any{"path": "text"}); got != put["text"] {
		t.Errorf("a text is read as %q", got)
	}
	got, err := w.tools[files.NameRead].Run(t.Context(), arguments(map[string]any{"path": "docs/shot.png"}))
	if err := errors.Join(err, os.Remove(filepath.Join(w.dir, "docs/shot.png"))); err != nil {
		t.Fatal(err)
	}
	if _, err := got.File.Open(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestReadFileIsCapped(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"a": strings.Repeat(strings.Repeat("x", 999)+"\n", 500)})
	got := w.must(files.NameRead, map[string]any{"path": "a"})
	if len(got) > 66<<10 || !strings.HasSuffix(got, "[lines 1 to 65 of 500; continue with offset 66]") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-60:])
	}
}

// TestConfined tries every way out with every tool.
func TestConfined(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"a.txt": "x\n", ".git/config": secret, ".git/hooks/post-commit": secret, "sub/.git/config": secret})
	for link, target := range map[string]string{
		"absolute": filepath.Join(w.dir, "..", "secret"), "relative": "../secret", "up": "..", "top": "/", "proc": "/proc/self/environ",
		"loop": "loop", "git": ".git", "nested/git": "../.git/hooks", "inside": "sub/../../secret",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(w.dir, filepath.Dir(link)), 0o750), os.Symlink(target, filepath.Join(w.dir, link))); err != nil {
			t.Fatal(err)
		}
	}
	evil := []string{
		"../secret", "a/../../secret", "/etc/passwd", filepath.Join(w.dir, "..", "secret"), w.dir + "-evil/secret", "~/secret", "~root",
		"a\x00b", "a\nb", "absolute", "relative", "up/secret", "top/etc/passwd", "proc", "loop", "loop/x", "inside",
		".git/config", ".GIT/config", ".git", "git/config", "git/hooks/post-commit", "nested/git/post-commit", "sub/.git/config", "./x/../.git/config",
		strings.Repeat("a/", 600), strings.Repeat("x", 300), "/proc/self/environ",
	}
	for _, p := range evil {
		w.refuses(files.NameWrite, map[string]any{"path": p, "content": "owned"}, "")
		w.refuses(files.NameEdit, map[string]any{"path": p, "old": secret, "new": "owned"}, "")
		for _, name := range []string{files.NameRead, files.NameList, files.NameSearch} {
			got, err := w.run(name, map[string]map[string]any{files.NameRead: {"path": p}, files.NameList: {"path": p}, files.NameSearch: {"path": p, "pattern": "."}}[name])
			if err == nil || strings.Contains(got, secret) {
				t.Errorf("%s of %q gives %q, %v", name, p, got, err)
			}
			if strings.Contains(fault.Public(err), filepath.Dir(w.dir)+"/secret") && !strings.HasPrefix(p, filepath.Dir(w.dir)) {
				t.Errorf("the error of %s %q names a place outside: %q", name, p, fault.Public(err))
			}
		}
	}
	for _, p := range []string{".git/config", ".git/hooks/post-commit", "sub/.git/config", "../secret", "../ws-evil/secret"} {
		if got := w.get(p); got != secret {
			t.Errorf("%s was changed to %q", p, got)
		}
	}
	if got := w.must(files.NameSearch, map[string]any{"pattern": "secret|root:"}); got != "[no match]\n" {
		t.Errorf("a search finds what is outside: %q", got)
	}
	if got := w.must(files.NameList, map[string]any{"all": true}); strings.Contains(got, "config") || strings.Contains(got, "secret") {
		t.Errorf("a list shows what is outside: %q", got)
	}
}

// TestLinksInside follows links that stay inside, and keeps them.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"docs/AGENTS.md": "one\n"})
	for link, target := range map[string]string{"CLAUDE.md": "docs/AGENTS.md", "d": "docs"} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	w.must(files.NameEdit, map[string]any{"path": "CLAUDE.md", "old": "one", "new": "two"})
	w.must(files.NameWrite, map[string]any{"path": "d/new.md", "content": "new\n"})
	if got := w.get("docs/AGENTS.md") + w.get("docs/new.md"); got != "two\nnew\n" {
		t.Errorf("content is %q", got)
	}
	if info, err := os.Lstat(filepath.Join(w.dir, "CLAUDE.md")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

// TestSwappedFolder swaps a folder for links while files are written below it.
func TestSwappedFolder(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"dir/a": "x\n", ".git/config": secret})
	if err := os.Symlink(".git", filepath.Join(w.dir, "git")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(w.dir, "up")); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		at := func(name string) string { return filepath.Join(w.dir, name) }
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			link := []string{"git", "up"}[i%2]
			_ = os.Rename(at("dir"), at("real"))
			_ = os.Rename(at(link), at("dir"))
			_ = os.Rename(at("dir"), at(link))
			_ = os.Rename(at("real"), at("dir"))
		}
	}()
	written := 0
	for range 1000 {
		if _, err := w.run(files.NameWrite, map[string]any{"path": "dir/config", "content": "owned"}); err == nil {
			written++
		}
	}
	close(stop)
	<-done
	if written == 0 {
		t.Error("no write got through, so the test says nothing")
	}
	if got := w.get(".git/config"); got != secret {
		t.Errorf(".git/config is %q", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "..", "config")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written outside: %v", err)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"run.sh": "#!/bin/sh\necho 1\n", "win.txt": "a\r\nb\r\n"})
	if err := os.Chmod(filepath.Join(w.dir, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	effect, err := w.tools[files.NameWrite].Effect(t.Context(), arguments(map[string]any{"path": "run.sh", "content": "#!/bin/sh\necho 2\n"}))
	want := tool.Effect{
		Kind: assistant.KindWrite, Summary: "Write run.sh +1 −1", Rule: "run.sh",
		Detail: "```diff\n--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo 1\n+echo 2\n```",
	}
	if diff := cmp.Diff(want, effect); diff != "" || err != nil {
		t.Errorf("Effect (-want +got):\n%s%v", diff, err)
	}
	r, err := w.tools[files.NameWrite].Run(t.Context(), arguments(map[string]any{"path": "run.sh", "content": "#!/bin/sh\necho 2\n"}))
	if err != nil || r.Note != "+1 −1" || r.IsError {
		t.Errorf("Run = %+v, %v", r, err)
	}
	if info, err := os.Stat(filepath.Join(w.dir, "run.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}

	w.must(files.NameWrite, map[string]any{"path": "new/deep/x.go", "content": "package x\n"})
	if got := w.must(files.NameWrite, map[string]any{"path": "win.txt", "content": "a\nc\n"}); !strings.Contains(got, "Windows line ends") {
		t.Errorf("result is %q", got)
	}
	if got := w.get("new/deep/x.go") + w.get("run.sh") + w.get("win.txt"); got != "package x\n#!/bin/sh\necho 2\na\r\nc\r\n" {
		t.Errorf("content is %q", got)
	}
	w.must(files.NameWrite, map[string]any{"path": "empty", "content": ""})
	if w.get("empty") != "" {
		t.Error("an empty file has content")
	}
	left, err := filepath.Glob(filepath.Join(w.dir, "*", ".remote-agent-*"))
	top, err2 := filepath.Glob(filepath.Join(w.dir, ".remote-agent-*"))
	if err != nil || err2 != nil || len(left)+len(top) > 0 {
		t.Errorf("temporary files are left: %q %q", left, top)
	}
}

func TestWriteFileRefuses(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{"a": "x", "dir/b": "y", "bin": "\x00", "locked": "x"})
	if err := os.Chmod(filepath.Join(w.dir, "locked"), 0o400); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{"dir": "is a folder", "dir/": "is a folder", ".": "is a folder", "none/": "is a folder", "bin": "not a text file", "locked": "read-only (mode 0400)"} {
		w.refuses(files.NameWrite, map[string]any{"path": p, "content": "x"}, want)
	}
	if _, err := w.run(files.NameWrite, map[string]any{"path": "a/b/c", "content": "x"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file below a file: %v", err)
	}
	w.refuses(files.NameWrite, map[string]any{"path": "x"}, `"content" is missing`)
	w.refuses(files.NameWrite, map[string]any{"path": "x", "content": strings.Repeat("x", 5<<20)}, "at most 4 MiB")
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	text := "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	tests := map[string]struct {
		before   string
		args     map[string]any
		want     string
		contains string
	}{
		"One":      {text, map[string]any{"old": "func a() {\n\treturn 1", "new": "func a() {\n\treturn 2"}, strings.Replace(text, "1", "2", 1), "in 1 place, +1 −1 lines"},
		"All":      {text, map[string]any{"old": "return 1", "new": "return 3", "all": true}, strings.ReplaceAll(text, "1", "3"), "in 2 places"},
		"Delete":   {text, map[string]any{"old": "\nfunc b() {\n\treturn 1\n}\n", "new": ""}, text[:23], "+0 −4"},
		"Windows":  {"a\r\nb\r\nc\r\n", map[string]any{"old": "a\nb\n", "new": "x\ny\nz\n"}, "x\r\ny\r\nz\r\nc\r\n", ""},
		"Mixed":    {"a\r\nb\nc\n", map[string]any{"old": "b\nc", "new": "d"}, "a\r\nd\n", ""},
		"ToUnix":   {"a\nb\n", map[string]any{"old": "a\r\nb", "new": "c\r\nd"}, "c\nd\n", ""},
		"NoEnd":    {"a", map[string]any{"old": "a", "new": "b"}, "b", ""},
		"Meta":     {"$1 \\1 ^*", map[string]any{"old": "\\1", "new": "$0"}, "$1 $0 ^*", ""},
		"ByteMark": {"\uFEFFa\n", map[string]any{"old": "a", "new": "b"}, "\uFEFFb\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTree(t, map[string]string{"f": tt.before})
			tt.args["path"] = "f"
			if got := w.must(files.NameEdit, tt.args); !strings.Contains(got, tt.contains) {
				t.Errorf("result %q, want %q", got, tt.contains)
			}
			if got := w.get("f"); got != tt.want {
				t.Errorf("content %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEditFileRefuses(t *testing.T) {
	t.Parallel()
	w := newTree(t, map[string]string{
		"f": "aaa\n\tx := 1\nb\nb\n", "bin": "\x00a", "latin": "\xe9", "many": strings.Repeat("c\n", 99),
		"same": strings.Repeat("a", 4<<20), // to look at each place of half of it takes minutes
	})
	tests := []struct{ path, old, want string }{
		{"f", "zzz", "(0 matches). Read the file again"},
		{"f", "x  := 1", `Line 2 is the same except for spaces: "\tx := 1"`},
		{"f", "\tx := 1\nnot this", "Its first line is line 2 of the file"},
		{"f", "b", "occurs 2 times in f (lines 3, 4)"},
		{"f", "aa", "occurs 2 times in f (lines 1, 1)"},
		{"many", "c", "occurs more than 10 times in many (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more)"},
		{"same", strings.Repeat("a", 2<<20), "occurs more than 10 times in same (lines 1, 1"},
		{"f", "", `"old" is empty`},
		{"f", "new", "are the same"},
		{"none", "a", "There is no none"},
		{"bin", "a", "not a text file"},
		{"latin", "a", "not UTF-8"},
	}
	for _, tt := range tests {
		w.refuses(files.NameEdit, map[string]any{"path": tt.path, "old": tt.old, "new": "new"}, tt.want)
	}
	w.refuses(files.NameEdit, map[string]any{"path": "f", "old": "a"}, `"new" is missing`)
	if w.get("f") != "aaa\n\tx := 1\nb\nb\n" {
		t.Error("a refused edit changed the file")
	}
}

// TestConcurrentEdits makes changes of one file at the same time; none is lost.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "value %02d\n", i)
	}
	w := newTree(t, map[string]string{"f": text.String()})
	errs := make(chan error)
	for i := range 20 {
		go func() {
			_, err := w.run(files.NameEdit, map[string]any{"path": "f", "old": fmt.Sprintf("value %02d", i), "new": fmt.Sprintf("changed %02d", i)})
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := w.get("f"); strings.Contains(got, "value") {
		t.Errorf("an edit was lost:\n%s", got)
	}
}

var project = map[string]string{
	".gitignore": "*.log\n/build/\n!keep.log\nnode_modules\ndoc/*.tmp\n# comment\n\\#odd\n",
	"main.go":    "package main\n\nfunc main() {}\n", "cmd/a/a.go": "package a // func\n", "cmd/a/a_test.go": "package a\n", "web/app.ts": "let Func = 1\r\n",
	"web/app.js": "func\n", "x.log": "func\n", "keep.log": "func\n", "build/out.go": "func\n", "web/build/in.go": "func\n",
	"web/node_modules/x/i.js": "func\n", "doc/a.tmp": "func\n", "doc/sub/a.tmp": "func\n", "sub/.gitignore": "*.gen.go\n", "sub/z.gen.go": "func\n",
	"z.gen.go": "func\n", "#odd": "func\n", "bin.dat": "func\x00\n", ".hidden": "func\n", "a b.txt": "func\n",
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	w := newTree(t, project)
	tests := map[string]struct {
		args map[string]any
		want []string
	}{
		"All": {nil, []string{
			".gitignore", ".hidden", "a b.txt", "bin.dat", "cmd/a/a.go", "cmd/a/a_test.go", "doc/sub/a.tmp", "keep.log", "main.go",
			"sub/.gitignore", "web/app.js", "web/app.ts", "web/build/in.go", "z.gen.go",
		}},
		"Glob":    {map[string]any{"glob": "*.go"}, []string{"cmd/a/a.go", "cmd/a/a_test.go", "main.go", "web/build/in.go", "z.gen.go"}},
		"Path":    {map[string]any{"glob": "*.{js,ts}", "path": "web"}, []string{"web/app.js", "web/app.ts"}},
		"Deep":    {map[string]any{"glob": "cmd/**/*_test.go"}, []string{"cmd/a/a_test.go"}},
		"Depth":   {map[string]any{"path": "web", "depth": 1}, []string{"web/app.js", "web/app.ts", "web/build/"}},
		"Ignored": {map[string]any{"path": "web/node_modules", "all": true}, []string{"web/node_modules/x/i.js"}},
		"None":    {map[string]any{"glob": "*.rs"}, []string{"[no file fits]"}},
		"Limit":   {map[string]any{"limit": 1}, []string{".gitignore", "[there are more; only the first 1 are shown. Use path, glob or depth to narrow it down]"}},
	}
	for name, tt := range tests {
		if tt.args == nil {
			tt.args = map[string]any{}
		}
		got := strings.Split(strings.TrimSpace(w.must(files.NameList, tt.args)), "\n")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	w.refuses(files.NameList, map[string]any{"glob": "[a"}, "a [ has no ]")
	w.refuses(files.NameList, map[string]any{"limit": 100000}, `"limit" is 1 to 5000`)
	if _, err := w.run(files.NameList, map[string]any{"path": "main.go"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a list of a file: %v", err)
	}
}

// TestIgnoreLikeGit compares with git itself.
func TestIgnoreLikeGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	w := newTree(t, project)
	w.put(".gitignore", project[".gitignore"]+"a?.txt\n[x-z].gen.go\nsub/**\n!sub/.gitignore\n**/in.go\nweb/app.*\n")
	for _, args := range [][]string{{"init", "-q"}, {"ls-files", "--others", "--exclude-standard"}} {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Env = w.dir, []string{"HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if args[0] == "ls-files" {
			if diff := cmp.Diff(string(out), w.must(files.NameList, map[string]any{})); diff != "" {
				t.Errorf("(-git +ours):\n%s", diff)
			}
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Log("rg is not installed; only the own search is tested")
	}
	for _, program := range []string{"", rg} {
		t.Run("ripgrep="+program, func(t *testing.T) {
			t.Parallel()
			w := newTreeWith(t, files.Options{Ripgrep: program}, project)
			w.put("long.txt", strings.Repeat("x", 5000)+"needle"+strings.Repeat("y", 5000)+"\n")
			tests := map[string]struct {
				args map[string]any
				want string
			}{
				"Plain":  {map[string]any{"pattern": "func"}, ".hidden:1:func\na b.txt:1:func\ncmd/a/a.go:1:package a // func\ndoc/sub/a.tmp:1:func\nkeep.log:1:func\nmain.go:3:func main() {}\nweb/app.js:1:func\nweb/build/in.go:1:func\nz.gen.go:1:func\n"},
				"Case":   {map[string]any{"pattern": "FUNC =", "ignore_case": true}, "web/app.ts:1:let Func = 1\n"},
				"Anchor": {map[string]any{"pattern": `^func \w+\(\) \{\}$`}, "main.go:3:func main() {}\n"},
				"CRLF":   {map[string]any{"pattern": `= 1$`}, "web/app.ts:1:let Func = 1\n"},
				"Glob":   {map[string]any{"pattern": "package", "glob": "*_test.go"}, "cmd/a/a_test.go:1:package a\n"},
				"Path":   {map[string]any{"pattern": "func", "path": "web", "glob": "app.*"}, "web/app.js:1:func\n"},
				"File":   {map[string]any{"pattern": "func", "path": "main.go"}, "main.go:3:func main() {}\n"},
				"Long":   {map[string]any{"pattern": "needle"}, "long.txt:1:…" + strings.Repeat("x", 100) + "needle" + strings.Repeat("y", 294) + "…\n"},
				"None":   {map[string]any{"pattern": "no such thing"}, "[no match]\n"},
				"GoOnly": {map[string]any{"pattern": `\Qmain()\E`}, "main.go:3:func main() {}\n"},
				"Limit":  {map[string]any{"pattern": "func", "limit": 2}, ".hidden:1:func\na b.txt:1:func\n[there may be more; the first 2 matches are shown. Use path, glob or a narrower pattern]\n"},
				"Dashes": {map[string]any{"pattern": "--pre=/bin/sh"}, "[no match]\n"},
			}
			for name, tt := range tests {
				if got := w.must(files.NameSearch, tt.args); got != tt.want {
					t.Errorf("%s: %q, want %q", name, got, tt.want)
				}
			}
		})
	}
}

// TestSearchStaysInTheOpenFolder puts a link in the place of the folder after it
// was opened: a program that searches it works in the folder all the same.
func TestSearchStaysInTheOpenFolder(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the folder has only its name")
	}
	top := t.TempDir()
	inside, outside := filepath.Join(top, "inside"), filepath.Join(top, "outside")
	for dir, text := range map[string]string{inside: "mine", outside: "foreign"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rg := filepath.Join(top, "rg")
	syscall.ForkLock.RLock()
	err := os.WriteFile(rg, []byte("#!/bin/sh\nprintf 'file\\0001:'; cat file\n"), 0o700) //nolint:gosec // it is executed
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // only read
	all := files.New(root, files.Options{Dir: inside, Ripgrep: rg})
	if err := errors.Join(os.Rename(inside, inside+"-moved"), os.Symlink(outside, inside)); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Spec().Name != files.NameSearch {
			continue
		}
		got, err := one.Run(t.Context(), arguments(map[string]any{"pattern": "."}))
		if err != nil || got.Content != "file:1:mine\n" {
			t.Errorf("search = %q, %v", got.Content, err)
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	t.Parallel()
	w := newTree(t, project)
	w.refuses(files.NameSearch, map[string]any{"pattern": "a("}, "missing closing )")
	w.refuses(files.NameSearch, map[string]any{"pattern": ""}, `"pattern" is missing`)
	w.refuses(files.NameSearch, map[string]any{"pattern": strings.Repeat("a", 2000)}, "longer than 1000 bytes")
	w.refuses(files.NameSearch, map[string]any{"pattern": "a", "limit": 5000}, `"limit" is 1 to 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.tools[files.NameSearch].Run(ctx, arguments(map[string]any{"pattern": "func"})); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped search: %v", err)
	}
}

func TestSearchWithoutRipgrepThatIsNamed(t *testing.T) {
	t.Parallel()
	w := newTreeWith(t, files.Options{Ripgrep: "/nonexistent/rg"}, map[string]string{"a": "needle\n"})
	if got := w.must(files.NameSearch, map[string]any{"pattern": "needle"}); got != "a:1:needle\n" {
		t.Errorf("search = %q", got)
	}
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	for name, x := range newTree(t, nil).tools {
		var schema struct {
			Type                 string                     `json:"type"`
			Properties           map[string]json.RawMessage `json:"properties"`
			Required             []string                   `json:"required"`
			AdditionalProperties *bool                      `json:"additionalProperties"`
		}
		if err := json.Unmarshal(x.Spec().Schema, &schema); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if schema.Type != "object" || len(schema.Properties) == 0 || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: schema is %s", name, x.Spec().Schema)
		}
		for _, r := range schema.Required {
			if schema.Properties[r] == nil {
				t.Errorf("%s: %s is required but not described", name, r)
			}
		}
	}
}
