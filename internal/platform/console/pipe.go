package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/terminal"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = terminal.MaxText

// maxAhead is how many messages of a pipe wait for their outcome before more is read. It
// is far below MAX_WAITING_MESSAGES, beyond which a message is refused, and above what is
// said while a turn runs, such as /stop.
const maxAhead = 10

// errUnanswered is for the exit code: what happened was shown.
var errUnanswered = fault.New(fault.Unavailable, "Not every message was answered.")

// Pipe is text piped in and out: each line is a message, and final answers are
// written as they are, in Markdown.
type Pipe struct {
	In           io.Reader
	Out          io.Writer
	Errors       io.Writer // what is no answer
	Conversation string
}

// Run reads up to the end of the input and waits for the answers. If there was
// nothing to read, as when a service manager connects nothing, it waits for ctx. It returns
// an error if a turn failed, or waits for a decision.
func (p Pipe) Run(ctx context.Context, b Backend) error {
	w, err := b.Watch(ctx, p.Conversation)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // nothing is read any more
	open := newPending()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var broken error
	var work sync.WaitGroup
	work.Go(func() { broken = p.write(watching, w, open) })
	heard, err := p.read(ctx, b, open)
	var questions []string
	switch {
	case err != nil || ctx.Err() != nil:
	case !heard:
		<-ctx.Done()
	default:
		questions, err = settled(ctx, b, p.Conversation, open)
		switch {
		case err != nil:
		case len(questions) > 0:
			err = fault.Newf(fault.Conflict, "The input has ended, and %[1]s waits for a decision: bot chat, then /approve %[1]s or /deny %[1]s.", questions[0])
		case open.anyFailed():
			err = errUnanswered
		}
	}
	stop()
	work.Wait()
	return errors.Join(err, broken)
}

// read sends the lines of the input. It reports whether there was any.
func (p Pipe) read(ctx context.Context, b Backend, open *pending) (heard bool, err error) {
	lines := make(chan line)
	go read(ctx, p.In, lines)
	for {
		select {
		case <-ctx.Done():
			return heard, nil
		case l, ok := <-lines:
			if !ok {
				return heard, nil
			}
			switch text := strings.TrimSpace(l.text); {
			case l.tooLong:
				_, _ = fmt.Fprintln(p.Errors, "A line is too long (more than 1 MiB) and was not sent.") // nobody may look
				open.refused()
			case text == "":
			default:
				if open.open() >= maxAhead {
					if _, err := settled(ctx, b, p.Conversation, open); err != nil && ctx.Err() == nil {
						return heard, err
					}
				}
				open.begin()
				id, err := b.Say(ctx, p.Conversation, Message{Text: text})
				open.said(id, err)
				if err != nil && ctx.Err() == nil {
					return heard, err
				}
				heard = true
			}
		}
	}
}

// write writes final texts until ctx ends.
func (p Pipe) write(ctx context.Context, w Watcher, open *pending) error {
	written := platform.NewRecent[string, string](maxRecent)
	for {
		e, err := w.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the person has gone
			}
			return errStopped
		}
		open.seen(e)
		if before, ok := written.Get(e.Message); !e.Final || ok && before == e.Text {
			continue
		}
		written.Put(e.Message, e.Text)
		if _, err := io.WriteString(p.Out, terminal.Clean(e.Text)+"\n"); err != nil {
			return fault.Wrap(err, fault.Gone, "write to the console")
		}
	}
}

// line is one line of input.
type line struct {
	text    string
	tooLong bool
}

// read sends the lines of in and closes lines at its end. It returns early when
// ctx is done.
func read(ctx context.Context, in io.Reader, lines chan<- line) {
	defer close(lines)
	r := bufio.NewReader(in)
	for {
		l, err := readLine(r)
		if err == nil || l.text != "" || l.tooLong {
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return // also a terminal that was hung up: the input has ended
		}
	}
}

// readLine reads up to the next line feed but keeps at most maxLine bytes.
func readLine(r *bufio.Reader) (line, error) {
	var l line
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(text)+len(part) > maxLine {
			l.tooLong, text = true, nil
		} else if !l.tooLong {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.text = string(text)
		return l, err
	}
}
