package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/terminal"
)

// Question is one message, asked from a script. The answer is all that is written to
// Out, in Markdown; what is no answer goes to Errors.
type Question struct {
	// Text is what the person wrote; a file that it names with @path is sent as well.
	// Quoted follows it and is somebody else's, such as a patch from a pipe: no file
	// that it names is sent. One of them may be empty.
	Text, Quoted string

	Conversation string
	Out, Errors  io.Writer
	Markdown     func(text string) string // how an answer is shown; nil: as it is

	// Progress, if not nil, is told every second what is under way; nothing at the end.
	Progress func(text string)
}

// FreshConversation returns the name of a conversation that nobody had yet.
func FreshConversation() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "mint a name")
	}
	return "question-" + id.String(), nil
}

// Ask asks and waits for the answer. It returns an error if there is none: the turn
// failed, it waits for a decision, or ctx ended, after which the turn is told to stop.
func (q Question) Ask(ctx context.Context, b Backend) error {
	w, err := b.Watch(ctx, q.Conversation)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // nothing is read any more
	files, notes := attachments(terminal.Input{Text: q.Text})
	for _, note := range notes {
		q.tell("%s", note)
	}
	open := newPending()
	open.begin()
	id, err := b.Say(ctx, q.Conversation, Message{Text: strings.TrimLeft(q.Text+"\n\n"+q.Quoted, "\n"), Files: files})
	open.said(id, err)
	if err != nil {
		return err
	}
	if note := sentWith(files); note != "" {
		q.tell("%s", note)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var texts []string
	var lost error
	var work sync.WaitGroup
	work.Go(func() {
		defer stop() // the other side is gone, or ctx has ended
		texts, lost = q.collect(watching, w, open)
	})
	work.Go(func() { q.report(watching) })
	questions, err := settled(watching, b, q.Conversation, open)
	stop()
	work.Wait()
	if ctx.Err() != nil {
		return q.stop(context.WithoutCancel(ctx), b)
	}
	if lost != nil {
		return lost
	}
	return q.finish(texts, questions, err, open.anyFailed())
}

// report tells how long it takes until ctx ends.
func (q Question) report(ctx context.Context) {
	if q.Progress == nil {
		return
	}
	defer q.Progress("")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for start := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			q.Progress(fmt.Sprintf("Working, %d s. Ctrl-C stops it.", int(now.Sub(start).Seconds())))
		}
	}
}

// collect takes final texts until ctx ends.
func (q Question) collect(ctx context.Context, w Watcher, open *pending) (texts []string, err error) {
	at := make(map[string]int)
	for {
		e, err := w.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				return texts, errStopped
			}
			return texts, nil //nolint:nilerr // nobody waits for more
		}
		open.seen(e)
		if e.Aside {
			q.tell("%s", e.Text)
		}
		if !e.Final || e.Aside {
			continue
		}
		i, known := at[e.Message]
		if !known {
			i = len(texts)
			at[e.Message] = i
			texts = append(texts, "")
		}
		texts[i] = e.Text
	}
}

// finish writes the answer, or says why there is none.
func (q Question) finish(texts, questions []string, err error, failed bool) error {
	text := terminal.Clean(strings.Join(texts, "\n\n"))
	switch {
	case err != nil:
		return err
	case len(questions) > 0:
		q.tell("%s", text)
		return fault.Newf(fault.Conflict, "%[1]s waits for your decision: bot chat -c %[2]s, then /approve %[1]s or /deny %[1]s.", questions[0], q.Conversation)
	case failed && text == "":
		return fault.New(fault.Internal, "There was no answer.")
	case failed:
		q.tell("%s", text)
		return errFailed
	}
	if q.Markdown != nil {
		text = q.Markdown(text)
	}
	_, err = io.WriteString(q.Out, strings.TrimRight(text, "\n")+"\n")
	return fault.Wrap(err, fault.Gone, "write the answer")
}

// errFailed says that what happened was told already.
var errFailed = fault.New(fault.Unavailable, "The question was not answered.")

// stop ends the turn that nobody waits for any more.
func (q Question) stop(ctx context.Context, b Backend) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if _, err := b.Say(ctx, q.Conversation, Message{Text: "/stop"}); err != nil {
		return errors.Join(fault.New(fault.Canceled, "Stopped waiting. The question may still be answered; bot sessions list shows it."), err)
	}
	for ctx.Err() == nil { // a bot that runs for this question ends with it, and so must not end before the turn
		if state, err := b.State(ctx, q.Conversation); err != nil || !state.Busy {
			break
		}
		_ = platform.Sleep(ctx, askFirst)
	}
	return fault.New(fault.Canceled, "Stopped.")
}

func (q Question) tell(format string, args ...any) {
	_, _ = io.WriteString(q.Errors, terminal.Clean(fmt.Sprintf(format, args...))+"\n") // nobody may look
}
