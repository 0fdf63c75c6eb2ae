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
	"path"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

const (
	defaultLines = 2000
	maxLines     = 10_000
)

var readSpec = messages.ToolSpec{
	Name: NameRead,
	Description: "Read a text file, or a part of it. At most 2000 lines and 64 KiB come back at once unless limit says otherwise; " +
		"the last line says where to go on. Lines longer than 2000 bytes are cut. " +
		"Pictures (PNG, JPEG, GIF, WebP) and PDFs are shown as such; other binary files are refused.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Path relative to the top folder"},` +
		`"offset":{"type":"integer","minimum":1,"description":"First line, counted from 1"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"How many lines"},` +
		`"line_numbers":{"type":"boolean","description":"Put the number and a tab before each line"}},` +
		`"required":["path"],"additionalProperties":false}`),
}

type readArgs struct {
	Path        string `json:"path"`
	Offset      int    `json:"offset"`
	Limit       int    `json:"limit"`
	LineNumbers bool   `json:"line_numbers"`
}

func (a *readArgs) check() error {
	if a.Offset < 0 || a.Limit < 0 || a.Limit > maxLines {
		return fault.Newf(fault.Invalid, `"offset" counts from 1, and "limit" is 1 to %d.`, maxLines)
	}
	a.Offset = max(a.Offset, 1)
	a.Limit = cmp.Or(a.Limit, defaultLines)
	return nil
}

func (d *directory) readEffect(a readArgs) (tool.Effect, error) {
	e := tool.Effect{Kind: assistant.KindRead, Summary: "Read " + a.Path}
	if err := a.check(); err != nil {
		return e, err
	}
	rel, err := d.locate(a.Path)
	if err == nil {
		e.Summary = "Read " + rel
	}
	return e, err
}

func (d *directory) read(ctx context.Context, a readArgs) (tool.Result, error) {
	if err := a.check(); err != nil {
		return tool.Result{}, err
	}
	rel, err := d.locate(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := d.open(rel)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxScan {
		return tool.Result{}, fault.Newf(fault.Invalid, "%s has %d bytes; files over %d MiB are not read here. Use a program that takes out the part you need.", rel, info.Size(), maxScan>>20)
	}
	in := bufio.NewReaderSize(io.LimitReader(f, maxScan), sniffed)
	start, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, classify(err, rel)
	}
	switch {
	case !binary(start):
		return show(ctx, in, rel, a)
	case shownKind(start) != "":
		return d.shown(rel, shownKind(start), info.Size()), nil
	}
	return tool.Result{}, refuseBinary(rel, start, info.Size())
}

// shownKind returns the type of a file that a model is shown as it is: a picture or a PDF,
// by its beginning; else nothing.
func shownKind(start []byte) string {
	if bytes.HasPrefix(start, []byte("%PDF-")) {
		return "application/pdf"
	}
	if kind := messages.PictureKind(start); kind != "" {
		return "image/" + kind
	}
	return ""
}

// shown is the result for such a file, which is located.
func (d *directory) shown(rel, kind string, size int64) tool.Result {
	return tool.Result{
		Content: fmt.Sprintf("[%s: %s, %d bytes]", rel, kind, size), Note: fmt.Sprintf("%s, %d bytes", kind, size),
		Shown: tool.Shown{File: &tool.File{Name: path.Base(rel), MediaType: kind, Open: func(context.Context) (io.ReadCloser, error) {
			f, _, err := d.open(rel)
			if err != nil {
				return nil, err
			}
			return f, nil
		}}},
	}
}

// page collects the lines of one call.
type page struct {
	out          strings.Builder
	shown, total int
	cut          bool // a line was cut, or a byte is not UTF-8
	full         bool
}

func show(ctx context.Context, in *bufio.Reader, rel string, a readArgs) (tool.Result, error) {
	var p page
	for {
		line, length, err := readLine(in, maxLine)
		if length == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return tool.Result{}, classify(err, rel)
		}
		if p.total++; p.total%1000 == 0 && ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		if p.total >= a.Offset && p.shown < a.Limit && !p.full {
			p.add(line, length, a.LineNumbers)
		}
	}
	if p.total > 0 && a.Offset > p.total {
		return tool.Result{}, fault.Newf(fault.Invalid, "%s has only %d lines; offset %d is after its end.", rel, p.total, a.Offset)
	}
	last := a.Offset + p.shown - 1
	switch {
	case p.total == 0:
		p.out.WriteString("[the file is empty]")
	case last < p.total:
		fmt.Fprintf(&p.out, "[lines %d to %d of %d; continue with offset %d]", a.Offset, last, p.total, last+1)
	case a.Offset > 1:
		fmt.Fprintf(&p.out, "[lines %d to %d, the end]", a.Offset, last)
	}
	if p.cut {
		p.out.WriteString("\n[some lines are not shown exactly: they are too long or not UTF-8]")
	}
	return tool.Result{Content: p.out.String(), Note: fmt.Sprintf("%d lines", p.shown)}, nil
}

func (p *page) add(line []byte, length int, number bool) {
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if text != string(line) {
		p.cut = true
	}
	if length > len(line) {
		p.cut = true
		text = fmt.Sprintf("%s… [%d more bytes]\n", text, length-len(line))
	}
	if number {
		text = fmt.Sprintf("%d\t%s", p.total, text)
	}
	if p.shown > 0 && p.out.Len()+len(text) > maxOutput {
		p.full = true
		return
	}
	p.shown++
	p.out.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		p.out.WriteByte('\n')
	}
}

// readLine reads a line with its end and returns at most limit bytes of it, and
// its whole length.
func readLine(in *bufio.Reader, limit int) (line []byte, length int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		length += len(part)
		if room := limit - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if length > len(line) {
				line = trimRune(line)
			}
			return line, length, err
		}
	}
}

// trimRune takes the incomplete character away at which a line was cut.
func trimRune(line []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(line)); i++ {
		if start := len(line) - i; utf8.RuneStart(line[start]) {
			if !utf8.FullRune(line[start:]) {
				return line[:start]
			}
			break
		}
	}
	return line
}
