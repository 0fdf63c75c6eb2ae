package files

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

var writeSpec = messages.ToolSpec{
	Name: NameWrite,
	Description: "Create a text file, or replace its whole content. Missing folders are created. " +
		"A file with Windows line ends keeps them. To change a part of a file, use edit_file.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Path relative to the top folder"},` +
		`"content":{"type":"string","description":"The whole new content"}},` +
		`"required":["path","content"],"additionalProperties":false}`),
}

var editSpec = messages.ToolSpec{
	Name: NameEdit,
	Description: "Replace a text in a file. old must be exactly as in the file, with the same spaces, and must occur once; " +
		"give more of the text around it if it does not, or set all to replace every occurrence.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Path relative to the top folder"},` +
		`"old":{"type":"string","description":"The text to replace"},` +
		`"new":{"type":"string","description":"What to put in its place; may be empty"},` +
		`"all":{"type":"boolean","description":"Replace every occurrence"}},` +
		`"required":["path","old","new"],"additionalProperties":false}`),
}

type writeArgs struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

type editArgs struct {
	Path string  `json:"path"`
	Old  string  `json:"old"`
	New  *string `json:"new"`
	All  bool    `json:"all"`
}

// plan is a change that is worked out but not made.
type plan struct {
	rel           string
	before, after string
	mode          fs.FileMode
	isNew         bool
	places        int  // where an edit changes the text
	crlf          bool // line ends were adapted
}

func (p plan) diff() change {
	name := p.rel
	if p.isNew {
		name = ""
	}
	return diff(name, p.rel, p.before, p.after)
}

func (p plan) effect(verb string) tool.Effect {
	c := p.diff()
	detail := tool.Exact("diff", c.unified)
	switch {
	case p.isNew && p.after == "":
		detail = "Creates `" + p.rel + "` as an empty file."
	case c.unified == "":
		detail = "Changes nothing: `" + p.rel + "` has this content already."
	}
	return tool.Effect{
		Kind:    assistant.KindWrite,
		Summary: fmt.Sprintf("%s %s %s", verb, p.rel, c.note()),
		Detail:  detail,
		Rule:    p.rel,
	}
}

func (d *directory) writeEffect(a writeArgs) (tool.Effect, error) {
	p, err := d.planWrite(a)
	if err != nil {
		return tool.Effect{Kind: assistant.KindWrite, Summary: "Write " + a.Path}, err
	}
	if p.isNew {
		return p.effect("Create"), nil
	}
	return p.effect("Write"), nil
}

func (d *directory) write(_ context.Context, a writeArgs) (tool.Result, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	p, err := d.planWrite(a)
	if err != nil {
		return tool.Result{}, err
	}
	if err := d.replace(p); err != nil {
		return tool.Result{}, err
	}
	c := p.diff()
	what := "Replaced"
	if p.isNew {
		what = "Created"
	}
	content := fmt.Sprintf("%s %s, %d bytes, %s lines.", what, p.rel, len(p.after), c.note())
	if p.crlf {
		content += " Its Windows line ends were kept."
	}
	return tool.Result{Content: content, Note: c.note()}, nil
}

func (d *directory) planWrite(a writeArgs) (plan, error) {
	switch {
	case a.Content == nil:
		return plan{}, fault.New(fault.Invalid, `"content" is missing.`)
	case len(*a.Content) > maxFile:
		return plan{}, fault.Newf(fault.Invalid, "The content has %d bytes; at most %d MiB are written.", len(*a.Content), maxFile>>20)
	}
	p, err := d.current(a.Path)
	switch {
	case err == nil:
		p.after = *a.Content
		if onlyCRLF(p.before) && strings.Contains(p.after, "\n") && !strings.Contains(p.after, "\r\n") {
			p.after, p.crlf = toCRLF(p.after), true
		}
		return p, nil
	case fault.Is(err, fault.NotFound):
		rel, err := d.locate(a.Path)
		if err == nil && (rel == "." || strings.HasSuffix(a.Path, "/")) {
			err = fault.Newf(fault.Invalid, "%s is a folder; give the path of a file.", a.Path)
		}
		return plan{rel: rel, after: *a.Content, mode: 0o644, isNew: true}, err
	}
	return plan{}, err
}

// current reads a text file that is to be changed.
func (d *directory) current(p string) (plan, error) {
	rel, err := d.locate(p)
	if err != nil {
		return plan{}, err
	}
	data, info, err := d.content(rel)
	switch {
	case err != nil:
		return plan{}, err
	case binary(data):
		return plan{}, refuseBinary(rel, data, info.Size())
	case info.Mode().Perm()&0o200 == 0:
		return plan{}, fault.Newf(fault.Invalid, "%s is read-only (mode %04o); change that first if it is meant.", rel, info.Mode().Perm())
	}
	return plan{rel: rel, before: string(data), mode: info.Mode().Perm()}, nil
}

// onlyCRLF reports whether each line of a text ends in CR LF.
func onlyCRLF(s string) bool {
	n := strings.Count(s, "\n")
	return n > 0 && strings.Count(s, "\r\n") == n
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func (d *directory) editEffect(a editArgs) (tool.Effect, error) {
	p, err := d.planEdit(a)
	if err != nil {
		return tool.Effect{Kind: assistant.KindWrite, Summary: "Edit " + a.Path}, err
	}
	return p.effect("Edit"), nil
}

func (d *directory) edit(_ context.Context, a editArgs) (tool.Result, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	p, err := d.planEdit(a)
	if err != nil {
		return tool.Result{}, err
	}
	if err := d.replace(p); err != nil {
		return tool.Result{}, err
	}
	c := p.diff()
	places := "1 place"
	if p.places != 1 {
		places = fmt.Sprintf("%d places", p.places)
	}
	return tool.Result{Content: fmt.Sprintf("Edited %s in %s, %s lines.", p.rel, places, c.note()), Note: c.note()}, nil
}

func (d *directory) planEdit(a editArgs) (plan, error) {
	switch {
	case a.New == nil:
		return plan{}, fault.New(fault.Invalid, `"new" is missing.`)
	case a.Old == "":
		return plan{}, fault.Newf(fault.Invalid, `"old" is empty. Give the text to replace, or use %s to write a whole file.`, NameWrite)
	case a.Old == *a.New:
		return plan{}, fault.New(fault.Invalid, `"old" and "new" are the same, so nothing would change.`)
	}
	p, err := d.current(a.Path)
	if err != nil {
		return plan{}, err
	}
	if !utf8.ValidString(p.before) {
		return plan{}, fault.Newf(fault.Invalid, "%s is not UTF-8; use a program to change it.", p.rel)
	}
	from, to := a.Old, *a.New
	switch {
	case onlyCRLF(p.before):
		from, to = toCRLF(from), toCRLF(to)
	case !strings.Contains(p.before, "\r"):
		from, to = strings.ReplaceAll(from, "\r\n", "\n"), strings.ReplaceAll(to, "\r\n", "\n")
	}
	found := positions(p.before, from)
	switch {
	case len(found) == 0:
		return plan{}, fault.Newf(fault.Invalid, `"old" does not occur in %s (0 matches).%s`, p.rel, nearMiss(p.before, from))
	case len(found) > 1 && !a.All:
		times, more := fmt.Sprint(len(found)), ""
		if len(found) > maxPlaces {
			found, times, more = found[:maxPlaces], fmt.Sprintf("more than %d", maxPlaces), " and more"
		}
		return plan{}, fault.Newf(fault.Invalid, `"old" occurs %s times in %s (%s%s). Give more of the text around the one you mean, or set "all" to true.`, times, p.rel, atLines(p.before, found), more)
	case a.All:
		p.places, p.after = strings.Count(p.before, from), strings.ReplaceAll(p.before, from, to)
	default:
		p.places, p.after = 1, p.before[:found[0]]+to+p.before[found[0]+len(from):]
	}
	if len(p.after) > maxFile {
		return plan{}, fault.Newf(fault.Invalid, "%s would be larger than %d MiB.", p.rel, maxFile>>20)
	}
	return p, nil
}

// maxPlaces is how many places of a text are named.
const maxPlaces = 10

// positions returns the first places where a text occurs, one more than are named, also
// where it overlaps itself: then it is not clear which one is meant.
func positions(s, text string) (out []int) {
	for i := 0; len(out) <= maxPlaces; {
		next := strings.Index(s[i:], text)
		if next < 0 {
			break
		}
		out = append(out, i+next)
		i += next + 1
	}
	return out
}

func atLines(s string, positions []int) string {
	var numbers []string
	line, last := 1, 0
	for _, p := range positions {
		line += strings.Count(s[last:p], "\n")
		last = p
		numbers = append(numbers, fmt.Sprint(line))
	}
	return "lines " + strings.Join(numbers, ", ")
}

// nearMiss names a line that differs from the first line of text by spaces only.
func nearMiss(s, text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	want := strings.Join(strings.Fields(first), " ")
	for i, line := range strings.Split(s, "\n") {
		if want == "" || strings.Join(strings.Fields(line), " ") != want {
			continue
		}
		if strings.Contains(text, line) {
			return fmt.Sprintf(" Its first line is line %d of the file, but what follows there is different. Read it again.", i+1)
		}
		return fmt.Sprintf(" Line %d is the same except for spaces: %q.", i+1, tool.Clip(line, maxMatch))
	}
	return " Read the file again; it may have changed."
}

// replace makes a change: the new content is written beside the file and then
// takes its name, so that nobody ever sees half a file.
func (d *directory) replace(p plan) (err error) {
	if !p.isNew && p.before == p.after {
		return nil
	}
	folder, name := path.Split(p.rel)
	parent, err := d.parent(path.Clean(folder))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	temporary := ".remote-agent-" + rand.Text() + ".tmp"
	f, err := parent.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, p.mode)
	if err != nil {
		return classify(err, p.rel)
	}
	defer func() {
		if err != nil {
			_ = parent.Remove(temporary)
			err = classify(err, p.rel)
		}
	}()
	_, err = f.WriteString(p.after)
	if !p.isNew { // the mode of a new file is up to the umask
		err = errors.Join(err, f.Chmod(p.mode))
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return parent.Rename(temporary, name)
}

// parent opens the folder of a file, which is located, and makes what is missing
// of it. It goes down step by step and follows no link, so that a folder that is
// swapped for one meanwhile cannot lead a change into .git.
func (d *directory) parent(folder string) (*os.Root, error) {
	at, err := d.root.OpenRoot(".")
	if err != nil {
		return nil, classify(err, folder)
	}
	for element := range strings.SplitSeq(folder, "/") {
		if element == "." {
			continue
		}
		next, err := enter(at, element)
		_ = at.Close()
		if err != nil {
			return nil, classify(err, folder)
		}
		at = next
	}
	return at, nil
}

func enter(at *os.Root, element string) (*os.Root, error) {
	if err := at.Mkdir(element, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	seen, err := at.Lstat(element)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, syscall.ENOTDIR
	}
	next, err := at.OpenRoot(element)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = fault.Newf(fault.Conflict, "The folder %s was changed at the same time. Try again.", element)
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}
