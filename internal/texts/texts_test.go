package texts

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var write = flag.Bool("write", false, "write docs/texts.md")

const document = "../../docs/texts.md"

const head = `# What it says

Every text of the program that a person may read, package by package and in the order of
the source, so that they can be read through; [style.md](style.md) says how they are written.
` + "`make generate`" + ` makes this page from the source, and a test fails while it is out of date.

A text is a string literal of two words or more, or of one capitalized word, and the help of a
flag or command. Literals joined with + are one text. Errors that only operators read, and
messages of the log, have a heading of their own. Left out are tests, stand-ins for services,
the benchmark, SQL, patterns and the names of HTTP headers.
`

// silent are packages and files that say nothing to a person: tests, what tests use,
// and lists of words and of credentials.
var silent = []string{
	"internal/arch", "internal/bench", "internal/conformance", "internal/emulator", "internal/heavytest",
	"internal/journey", "internal/memory/lexicon.go", "internal/redact", "internal/texts", "internal/waittest",
}

// TestDocument compares docs/texts.md with the source.
func TestDocument(t *testing.T) {
	t.Parallel()
	want, err := page("../..")
	if err != nil {
		t.Fatal(err)
	}
	if *write {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("docs/texts.md is out of date: run `make generate`. The first difference:\n%s", difference(string(have), want))
	}
}

// difference returns the first line in which two pages differ.
func difference(have, want string) string {
	old, now := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(old), len(now)) {
		if old[i] != now[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, old[i], now[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(old), len(now))
}

// page makes the document from the source below root.
func page(root string) (string, error) {
	found := map[string]string{} // what a package says, by its folder
	for _, top := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			switch {
			case d.IsDir() && (slices.Contains(silent, name) || strings.HasSuffix(name, "test") || d.Name() == "testdata"):
				return fs.SkipDir
			case d.IsDir(), slices.Contains(silent, name), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if texts := textsOf(file); texts != "" {
				folder := name[:strings.LastIndex(name, "/")]
				found[folder] += fmt.Sprintf("\n### %s\n\n%s", d.Name(), texts)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString(head)
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "\n## %s\n%s", folder, found[folder])
	}
	return b.String(), nil
}

// The lists of a file.
const (
	said = iota
	errorText
	logged
	kinds
)

// textsOf returns the lists of a file's texts.
func textsOf(file *ast.File) string {
	var lists [kinds]strings.Builder
	v := &visitor{lists: &lists, seen: map[string]bool{}}
	for _, d := range file.Decls {
		ast.Walk(v, d)
	}
	out := lists[said].String()
	if s := lists[errorText].String(); s != "" {
		out += "\n**errors**\n\n" + s
	}
	if s := lists[logged].String(); s != "" {
		out += "\n**log**\n\n" + s
	}
	return strings.TrimPrefix(out, "\n")
}

// visitor walks through a file and collects texts.
type visitor struct {
	lists *[kinds]strings.Builder
	kind  int
	seen  map[string]bool // what is listed already, with its kind
}

// Visit collects the texts below n.
func (v *visitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return nil
	case *ast.Field: // of its tag only what the command line's help says is a text
		if n.Tag != nil {
			if tag, err := strconv.Unquote(n.Tag.Value); err == nil {
				v.add(reflect.StructTag(tag).Get("help"))
			}
		}
		ast.Walk(v, n.Type)
		return nil
	case *ast.CallExpr:
		kind, skip := calling(n)
		if skip {
			return nil
		}
		inner := &visitor{lists: v.lists, kind: v.kind, seen: v.seen}
		if kind != said {
			inner.kind = kind
		}
		ast.Walk(inner, n.Fun)
		for _, a := range n.Args {
			ast.Walk(inner, a)
		}
		return nil
	case *ast.BinaryExpr, *ast.BasicLit:
		if text, ok := joined(n.(ast.Expr)); ok {
			v.add(text)
			return nil
		}
	}
	return v
}

// add puts a text onto its list, if it is one.
func (v *visitor) add(text string) {
	key := fmt.Sprint(v.kind, text)
	if v.seen[key] || !readable(text) {
		return
	}
	v.seen[key] = true
	b := &v.lists[v.kind]
	if lines := strings.Split(strings.Trim(text, "\n"), "\n"); len(lines) > 1 {
		b.WriteString("-   ```text\n")
		for _, l := range lines {
			fmt.Fprintf(b, "    %s\n", strings.TrimRight(strings.ReplaceAll(l, "```", "'''"), " \t"))
		}
		b.WriteString("    ```\n")
		return
	}
	text = strings.Trim(text, "\n")
	fence := "`"
	if strings.Contains(text, "`") {
		fence = "``"
		if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
			text = " " + text + " "
		}
	}
	fmt.Fprintf(b, "- %s%s%s\n", fence, text, fence)
}

// calling says which list the texts in the arguments of a call belong on, and
// whether they are none at all.
func calling(c *ast.CallExpr) (kind int, skip bool) {
	name, of := "", ""
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok {
			of = x.Name
		}
	case *ast.Ident:
		name = f.Name
	}
	switch of + "." + name {
	case "fmt.Errorf", "errors.New", "fault.Note", "fault.Wrap":
		return errorText, false
	case "pattern.Lazy", "regexp.MustCompile", "strings.NewReplacer", "strings.Contains", "strings.Split":
		return said, true
	}
	switch name {
	case "Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "LogAttrs":
		if len(c.Args) > 0 {
			return logged, false
		}
	case "Get", "Set", "Add", "Del", "Values":
		return said, len(c.Args) > 0 && isLiteral(c.Args[0])
	case "panic", "Exec", "Query", "QueryRow", "exec", "query", "queryRow":
		return said, true
	}
	return said, false
}

// isLiteral reports whether an argument is a literal text.
func isLiteral(e ast.Expr) bool { _, ok := joined(e); return ok }

// joined returns the text of a literal, or of literals that are joined with +.
// What is joined and no literal is an ellipsis in it.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return joined(e.X)
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, ok := joined(e.X)
		if !ok {
			return "", false
		}
		right, ok := joined(e.Y)
		return left + right, ok
	}
	return "", false
}

// readable reports whether a text is one for a person.
func readable(text string) bool {
	if sql(text) || strings.HasPrefix(text, "{") || strings.Contains(text, "2006") || strings.ContainsRune(text, 0) { // SQL, JSON schemas, layouts of times, formats of files
		return false
	}
	words, letters := 0, 0
	for w := range strings.FieldsSeq(text) {
		w = strings.Trim(w, ".,:;!?()…*`\"'")
		only := w != ""
		for _, r := range w {
			if !unicode.IsLetter(r) && r != '\'' && r != '-' {
				only = false
			}
		}
		if only {
			words++
			letters += len(w)
		}
	}
	if words >= 2 {
		return true
	}
	text = strings.TrimSpace(text)
	r := []rune(text)
	if len(r) < 3 || !unicode.IsUpper(r[0]) {
		return words == 1 && strings.Contains(text, " ")
	}
	for _, c := range r[1:] {
		if !unicode.IsLower(c) && c != '.' && c != ':' && c != ' ' {
			return words == 1 && strings.Contains(text, " ")
		}
	}
	return true
}

// sql reports whether a text is a piece of SQL.
func sql(text string) bool {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsUpper(r) && !unicode.IsLower(r) && r != '_' }) {
		switch w {
		case "SELECT", "FROM", "WHERE", "INSERT", "UPDATE", "DELETE", "ORDER", "JOIN", "VALUES", "UNION", "CONFLICT", "COALESCE",
			"NULL", "EXISTS", "LIMIT", "CREATE", "RETURNING", "GROUP", "BY", "AND", "OR", "PRAGMA", "VACUUM", "LOCK", "BEGIN", "ROLLBACK", "AS", "IN", "SET", "DESC", "ASC":
			return true
		}
	}
	return false
}

// TestWhatIsAText holds the rules by which a literal is one.
func TestWhatIsAText(t *testing.T) {
	t.Parallel()
	const source = `package p

type c struct {
	F string ` + "`help:\"Tell what to do.\" name:\"f g\"`" + `
}

func f() {
	say("Use " + "it again.")
	say("one-word", "Retry", "Content-Type", "SELECT a FROM b WHERE c", "Retry")
	h.Set("Cache Control", "x y z")
	return fmt.Errorf("read the file: %w", err)
	log.Warn("could not read it", "err", err)
}
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := "- `Tell what to do.`\n- `Use it again.`\n- `Retry`\n\n**errors**\n\n- `read the file: %w`\n\n**log**\n\n- `could not read it`\n"
	if diff := cmp.Diff(want, textsOf(file)); diff != "" {
		t.Error(diff)
	}
}
