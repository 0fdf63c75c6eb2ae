package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"remote-agent/internal/fault"
)

// errEnough ends a walk that has found enough.
var errEnough = errors.New("enough")

// walker goes through a folder in the order of names. It does not follow links
// and leaves out .git and what the .gitignore files of the worktree say.
type walker struct {
	d       *directory
	rules   map[string][]ignoreRule // by folder
	all     bool                    // also what is ignored
	visited int
}

// walk calls visit for each file and folder below start, which is located. visit
// may return fs.SkipDir and errEnough. complete is false if the walk ended early.
func (d *directory) walk(ctx context.Context, start string, all bool, visit func(p string, e fs.DirEntry) error) (complete bool, err error) {
	w := &walker{d: d, rules: make(map[string][]ignoreRule), all: all}
	for folder := start; ; folder = path.Dir(folder) {
		w.load(folder)
		if folder == "." {
			break
		}
	}
	err = fs.WalkDir(d.root.FS(), start, func(p string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p == start:
			return classify(err, p)
		case err != nil:
			return nil //nolint:nilerr // a folder that cannot be read, or that is gone by now
		case p == start:
			return nil
		}
		if w.visited++; w.visited > maxVisited {
			return errEnough
		}
		if strings.EqualFold(e.Name(), ".git") || !all && w.ignored(p, e.IsDir()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			w.load(p)
		}
		return visit(p, e)
	})
	if errors.Is(err, errEnough) {
		return false, nil
	}
	return err == nil, err
}

// ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	pattern    *regexp.Regexp // of the path relative to the file's folder
	negate     bool
	onlyFolder bool
}

const (
	maxIgnoreFile  = 256 << 10
	maxIgnoreRules = 2000
)

// load reads the .gitignore file of a folder, if there is one that can be read.
func (w *walker) load(folder string) {
	if w.all {
		return
	}
	f, info, err := w.d.open(path.Join(folder, ".gitignore"))
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxIgnoreFile {
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return
	}
	var rules []ignoreRule
	for line := range strings.Lines(string(data)) {
		if r, ok := parseIgnore(strings.TrimRight(line, "\r\n")); ok && len(rules) < maxIgnoreRules {
			rules = append(rules, r)
		}
	}
	w.rules[folder] = rules
}

// parseIgnore reads a line of a .gitignore file (gitignore(5)).
func parseIgnore(line string) (ignoreRule, bool) {
	var r ignoreRule
	trimmed := strings.TrimRight(line, " ")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		trimmed += " " // an escaped space at the end counts
	}
	if line = trimmed; line == "" || strings.HasPrefix(line, "#") {
		return r, false
	}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		line, r.negate = rest, true
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		line, r.onlyFolder = rest, true
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if !anchored {
		line = "**/" + line
	}
	var err error
	r.pattern, err = compileGlob(line, false)
	return r, err == nil
}

// ignored applies the rules from the root down; the last one that fits counts.
func (w *walker) ignored(p string, isDir bool) bool {
	result := false
	folders := []string{"."}
	for i, r := range p {
		if r == '/' {
			folders = append(folders, p[:i])
		}
	}
	for _, folder := range folders {
		rel := p
		if folder != "." {
			rel = p[len(folder)+1:]
		}
		for _, r := range w.rules[folder] {
			if (isDir || !r.onlyFolder) && r.pattern.MatchString(rel) {
				result = !r.negate
			}
		}
	}
	return result
}

// filter is a glob of a model: it fits the whole path below the folder that is
// searched, or, without a slash, the name at any depth.
func filter(glob string) (func(p string) bool, error) {
	if glob == "" {
		return func(string) bool { return true }, nil
	}
	if len(glob) > maxPattern {
		return nil, fault.Newf(fault.Invalid, "The glob is longer than %d bytes.", maxPattern)
	}
	glob = strings.TrimPrefix(filepath.ToSlash(glob), "./")
	if !strings.Contains(glob, "/") {
		glob = "**/" + glob
	}
	pattern, err := compileGlob(strings.TrimPrefix(glob, "/"), true)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "The glob %q is not valid: %v. It is like *.go, cmd/**/*.go or *.{js,ts}.", glob, err)
	}
	return pattern.MatchString, nil
}

// compileGlob makes a regular expression of a glob: * and ? stop at a slash, **
// does not, [a-z] and [!a-z] are sets, and with braces {a,b} are alternatives.
func compileGlob(glob string, braces bool) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`^(?s:`)
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case glob[i:] == "**" && i > 0 && glob[i-1] == '/':
			b.WriteString(`.+`)
			i++
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(`.*`)
			i++
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			end, class, err := globClass(glob[i:])
			if err != nil {
				return nil, err
			}
			b.WriteString(class)
			i += end
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		case braces && c == '{':
			depth++
			b.WriteString(`(?:`)
		case braces && c == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case braces && c == ',' && depth > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(quoteByte(c))
		}
	}
	if depth != 0 {
		return nil, errors.New("a { has no }")
	}
	return regexp.Compile(b.String() + `)$`)
}

// quoteByte quotes an ASCII byte and passes the bytes of other characters on, so
// that they come together again.
func quoteByte(c byte) string {
	if c < 0x80 {
		return regexp.QuoteMeta(string(rune(c)))
	}
	return string([]byte{c})
}

// globClass translates [...] at the start of s. end is the index of its last
// byte.
func globClass(s string) (end int, class string, err error) {
	i := 1
	negate := ""
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		negate = "^/"
		i++
	}
	start := i
	for i < len(s) && (s[i] != ']' || i == start) {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(s) {
		return 0, "", errors.New("a [ has no ]")
	}
	body := s[start:i]
	var quoted strings.Builder
	for j := 0; j < len(body); j++ {
		switch body[j] {
		case '\\':
			if j+1 < len(body) {
				j++
			}
			quoted.WriteString(regexp.QuoteMeta(body[j : j+1]))
		case '[', ']', '^', '&', '~':
			fmt.Fprintf(&quoted, `\%c`, body[j])
		default:
			quoted.WriteByte(body[j])
		}
	}
	return i, "[" + negate + quoted.String() + "]", nil
}
