package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// maxAnswer bounds an answer in bytes.
const maxAnswer = 64 << 10

var errLongAnswer = errors.New("the answer is longer than 64 KiB")

// Asker asks questions and reads answers, a line each, at a terminal or from a pipe. It
// is for one goroutine.
type Asker struct {
	in      io.Reader
	out     io.Writer
	lines   *bufio.Reader
	pending chan answer // of a question that nobody waits for any more

	// Interrupt does what Ctrl-C does. It is called for that key at the question of a
	// Secret, which ends for it as for Ctrl-D if it is nil.
	Interrupt func()
}

type answer struct {
	text string
	err  error
}

// NewAsker returns one that reads from in and prints to out.
func NewAsker(in io.Reader, out io.Writer) *Asker {
	return &Asker{in: in, out: out, lines: bufio.NewReader(in)}
}

// Print shows a text, at a terminal in lines that fit. A closed terminal shows nothing.
func (a *Asker) Print(text string) {
	if f, ok := a.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // a descriptor fits
			text = fold(text, columns)
		}
	}
	_, _ = io.WriteString(a.out, text)
}

// Line asks for a line and returns it without its end. The error is io.EOF when nothing
// more comes, and that of ctx when it ends: an answer that comes then is that to the next
// question.
func (a *Asker) Line(ctx context.Context, prompt string) (string, error) {
	a.Print(prompt)
	if a.pending == nil {
		a.read(a.line)
	}
	return a.await(ctx)
}

// Secret does so, and a terminal does not show what is typed.
func (a *Asker) Secret(ctx context.Context, prompt string) (string, error) {
	f, ok := a.in.(*os.File)
	if !ok || !IsTerminal(a.in) {
		return a.Line(ctx, prompt)
	}
	if a.pending != nil { // what reads now would show what it gets
		if _, err := a.Line(ctx, "Press Enter. "); err != nil {
			return "", err
		}
	}
	a.Print(prompt)
	fd := int(f.Fd()) //nolint:gosec // a descriptor fits
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	a.read(a.secret)
	text, err := a.await(ctx)
	_ = term.Restore(fd, before) // a closed terminal
	a.Print("\n")
	return text, err
}

// secret reads one line of a terminal that passes keys on and shows nothing of them.
func (a *Asker) secret() (string, error) {
	var keys decoder
	var typed line
	key := make([]byte, 1) // what is typed behind the line is for the next question
	for {
		n, err := a.in.Read(key)
		for _, e := range keys.feed(key[:n]) {
			switch {
			case e.do == submit:
				return typed.text, nil
			case e.do == interrupt && a.Interrupt != nil:
				a.Interrupt()
			case e.do == interrupt, e.do == endOfInput && typed.text == "":
				return "", io.EOF
			case e.do == insert, e.do == paste:
				typed.put(e.text, false)
			default:
				typed.edit(e.do)
			}
		}
		if err != nil {
			return "", err
		}
	}
}

// read has a goroutine read one answer. It ends with the process if none comes.
func (a *Asker) read(read func() (string, error)) {
	pending := make(chan answer, 1)
	a.pending = pending
	go func() {
		text, err := read()
		pending <- answer{text, err}
	}()
}

func (a *Asker) await(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	select {
	case got := <-a.pending:
		a.pending = nil
		return got.text, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// line reads one line; what follows the last end of line is one, too.
func (a *Asker) line() (string, error) {
	var b strings.Builder
	for {
		part, more, err := a.lines.ReadLine()
		b.Write(part)
		switch {
		case err != nil && b.Len() == 0:
			return "", err
		case b.Len() > maxAnswer:
			return "", errLongAnswer
		case err != nil || !more:
			return b.String(), nil //nolint:nilerr // the next question hears of it
		}
	}
}
