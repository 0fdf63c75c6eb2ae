package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

const (
	defaultMatches = 100
	searchTime     = 30 * time.Second
)

// errCannot means that rg did not do it, for instance because it does not know a
// part of the pattern.
var errCannot = errors.New("ripgrep cannot search for this")

var searchSpec = messages.ToolSpec{
	Name: NameSearch,
	Description: "Search the lines of text files with a regular expression (RE2 syntax). Each match is a line path:line:text. " +
		"What .gitignore leaves out, binary files and files over 4 MiB are not searched.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"Regular expression, matched against one line"},` +
		`"path":{"type":"string","description":"Folder or file relative to the top folder; the top folder if it is missing"},` +
		`"glob":{"type":"string","description":"Only files that fit, such as *.go or cmd/**/*_test.go; relative to path"},` +
		`"ignore_case":{"type":"boolean"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many matches; 100 if it is missing"}},` +
		`"required":["pattern"],"additionalProperties":false}`),
}

type searchArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Limit      int    `json:"limit"`
}

// query is a search that was checked.
type query struct {
	args    searchArgs
	pattern *regexp.Regexp
	fits    func(string) bool
	start   string // located
}

func (d *directory) prepare(a searchArgs) (query, error) {
	switch {
	case a.Pattern == "":
		return query{}, fault.New(fault.Invalid, `"pattern" is missing.`)
	case len(a.Pattern) > maxPattern:
		return query{}, fault.Newf(fault.Invalid, "The pattern is longer than %d bytes.", maxPattern)
	case a.Limit < 0 || a.Limit > maxMatches:
		return query{}, fault.Newf(fault.Invalid, `"limit" is 1 to %d.`, maxMatches)
	}
	a.Limit = cmp.Or(a.Limit, defaultMatches)
	a.Path = cmp.Or(a.Path, ".")
	flags := ""
	if a.IgnoreCase {
		flags = "(?i)"
	}
	q := query{args: a}
	var err error
	if q.pattern, err = regexp.Compile(flags + a.Pattern); err != nil {
		return q, fault.Newf(fault.Invalid, "The pattern is not a regular expression: %v. Escape characters that are meant as they are, like \\( or \\[.", err)
	}
	if q.fits, err = filter(a.Glob); err != nil {
		return q, err
	}
	q.start, err = d.locate(a.Path)
	return q, err
}

func (d *directory) searchEffect(a searchArgs) (tool.Effect, error) {
	e := tool.Effect{Kind: assistant.KindRead, Summary: "Search " + strconv.Quote(a.Pattern)}
	if a.Path != "" || a.Glob != "" {
		e.Summary += " in " + strings.TrimSpace(a.Path+" "+a.Glob)
	}
	_, err := d.prepare(a)
	return e, err
}

func (d *directory) search(ctx context.Context, a searchArgs) (tool.Result, error) {
	q, err := d.prepare(a)
	if err != nil {
		return tool.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	info, err := d.root.Stat(q.start)
	if err != nil {
		return tool.Result{}, classify(err, q.start)
	}
	m := &matches{query: q}
	complete := true
	switch {
	case !info.IsDir():
		err = d.searchFile(q.start, m)
	case d.rg != "" && d.dir != "" && q.start == ".":
		// Below the top, rg treats what is ignored further up differently.
		if err = d.searchRipgrep(ctx, m); errors.Is(err, errCannot) {
			complete, err = d.searchFolder(ctx, m)
		}
	default:
		complete, err = d.searchFolder(ctx, m)
	}
	switch {
	case errors.Is(err, errEnough):
		complete = false
	case errors.Is(err, context.DeadlineExceeded):
		m.out.WriteString("[stopped after 30 seconds]\n")
		complete = false
	case err != nil:
		return tool.Result{}, err
	}
	return m.result(complete), nil
}

func (d *directory) searchFolder(ctx context.Context, m *matches) (complete bool, err error) {
	return d.walk(ctx, m.start, false, func(p string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || !m.fits(under(p, m.start)) {
			return nil
		}
		if err := d.searchFile(p, m); errors.Is(err, errEnough) {
			return err
		}
		return nil // a file that cannot be read or is not text
	})
}

// matches collects what a search finds.
type matches struct {
	query
	out          strings.Builder
	count, files int
	last         string
}

// add takes a match. It returns errEnough if there is no room for it.
func (m *matches) add(file string, number int, line []byte) error {
	if m.count == m.args.Limit || m.out.Len() > maxOutput {
		return errEnough
	}
	m.count++
	if file != m.last {
		m.last = file
		m.files++
	}
	fmt.Fprintf(&m.out, "%s:%d:%s\n", file, number, m.excerpt(line))
	return nil
}

// excerpt returns a line without its end; of a long one the part around the match.
func (m *matches) excerpt(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) <= maxMatch {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	start := 0
	if at := m.pattern.FindIndex(line); at != nil {
		start = max(0, min(at[0]-maxMatch/4, len(line)-maxMatch))
	}
	part := strings.ToValidUTF8(string(line[start:start+maxMatch]), "")
	if start > 0 {
		part = "…" + part
	}
	if start+maxMatch < len(line) {
		part += "…"
	}
	return part
}

func (m *matches) result(complete bool) tool.Result {
	switch {
	case !complete:
		fmt.Fprintf(&m.out, "[there may be more; the first %d matches are shown. Use path, glob or a narrower pattern]\n", m.count)
	case m.count == 0:
		m.out.WriteString("[no match]\n")
	}
	return tool.Result{Content: m.out.String(), Note: fmt.Sprintf("%d matches in %d files", m.count, m.files)}
}

func (d *directory) searchFile(rel string, m *matches) error {
	data, _, err := d.content(rel)
	if err != nil {
		return err
	}
	if binary(data) {
		return refuseBinary(rel, data, int64(len(data)))
	}
	if !m.pattern.Match(data) && !strings.ContainsAny(m.args.Pattern, "^$\\") {
		return nil // most files: one pass over the whole is faster than line by line
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if m.pattern.Match(bytes.TrimRight(line, "\r\n")) {
			if err := m.add(rel, number, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchRipgrep lets rg search the whole worktree. It reads no configuration and
// follows no links. Globs are applied here: to rg a glob means that ignored files
// are searched too.
func (d *directory) searchRipgrep(ctx context.Context, m *matches) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	args := []string{
		"--no-config", "--no-follow", "--hidden", "--glob=!.git", "--no-require-git", "--no-ignore-dot", "--no-ignore-exclude",
		"--no-ignore-global", "--no-ignore-parent", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null",
		"--encoding=none", "--crlf", "--sort=path", "--threads=1", "--max-filesize=" + strconv.Itoa(maxFile),
	}
	if m.args.IgnoreCase {
		args = append(args, "--ignore-case")
	}
	cmd := exec.CommandContext(running, d.rg, append(args, "--regexp="+m.args.Pattern, "--", ".")...) //nolint:gosec // the operator's program; the pattern is one argument
	dir, leave, err := d.workingDir()
	if err != nil {
		return errCannot
	}
	defer leave()
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, []string{"LC_ALL=C.UTF-8"}, time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fault.Wrap(err, fault.Internal, "search with ripgrep")
	}
	if err := cmd.Start(); err != nil {
		return errCannot
	}
	found := readRipgrep(bufio.NewReaderSize(stdout, 64<<10), m)
	if found != nil {
		cancel() // it need not go on
	}
	_, _ = io.Copy(io.Discard, stdout)
	err = cmd.Wait()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case found != nil:
		return found
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil, isExit && exit.ExitCode() == 1, m.count > 0: // 1 is "nothing found"; 2 can be one folder that cannot be read
		return nil
	}
	return errCannot
}

// workingDir names the open directory for a program, until leave. Its path would
// not do: a command may have put a link in its place since it was opened.
func (d *directory) workingDir() (path string, leave func(), err error) {
	if runtime.GOOS != "linux" {
		return d.dir, func() {}, nil
	}
	f, err := d.root.Open(".")
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd()), func() { _ = f.Close() }, nil
}

// readRipgrep reads lines "path NUL number : text".
func readRipgrep(in *bufio.Reader, m *matches) error {
	for {
		line, _, err := readLine(in, maxFile)
		if file, rest, ok := bytes.Cut(line, []byte{0}); ok {
			digits, text, _ := bytes.Cut(rest, []byte(":"))
			number, bad := strconv.Atoi(string(digits))
			p := strings.TrimPrefix(filepath.ToSlash(string(file)), "./")
			if bad == nil && m.fits(p) {
				if err := m.add(p, number, text); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fault.Wrap(err, fault.Internal, "read from ripgrep")
		}
	}
}
