// Package console is a messaging platform for one person at a terminal, or for
// text piped in and out. It needs no account.
//
// There is one conversation, "local", with one sender, "local". The package
// shows what it is given and decides nothing; the application grants the sender
// access, because whoever has the terminal has the process.
package console

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Name is the platform's name.
const Name messages.Platform = "console"

// Sender is the id of the person at the console.
const Sender messages.UserID = "local"

// Conversation is the key of the only conversation.
var Conversation = messages.ConversationKey{Platform: Name, ID: "local"}

const (
	maxLine = 1 << 20 // longest line that is read, in bytes
	maxText = 1 << 20 // there is no real limit; in code points
)

// Config configures an Adapter.
type Config struct {
	In  io.Reader
	Out io.Writer

	// Terminal is true if a person types at In and looks at Out: there is a
	// prompt and answers grow in place. Otherwise only final texts are written.
	Terminal bool

	// Idle waits until everything that was accepted has been answered, or waits
	// for a decision. It is
	// called at the end of the input; nil waits for nothing.
	Idle func(ctx context.Context) error
}

// Adapter implements platform.Editor. All methods are safe for concurrent use.
type Adapter struct {
	config Config
	screen *screen
	ended  chan struct{} // closed by Run

	mu   sync.Mutex // guards sent
	sent recent[messages.DeliveryID, messages.MessageID]
}

var _ platform.Editor = (*Adapter)(nil)

// New returns an Adapter that has read nothing yet.
func New(config Config) *Adapter {
	return &Adapter{
		config: config,
		screen: &screen{out: config.Out, terminal: config.Terminal},
		ended:  make(chan struct{}),
	}
}

// Platform implements platform.Adapter.
func (a *Adapter) Platform() messages.Platform { return Name }

// Capabilities implements platform.Adapter. A Send is repeated safely within
// this process only, and there is a new screen after every start; so answers
// are placed and edited, which also lets them grow.
func (a *Adapter) Capabilities() platform.Capabilities {
	return platform.Capabilities{
		MaxText:       maxText,
		Streaming:     a.config.Terminal,
		EditInterval:  50 * time.Millisecond,
		Place:         "the operator's terminal",
		Format:        "It is shown as you write it: keep to plain text, short lists and code blocks.",
		CommandPrefix: "/",
	}
}

// Ended is closed when the input has ended and everything that was read has
// been answered: the application may stop. It stays open when Run ended because
// of its context, and when the input of a program without a terminal was empty
// from the start, as a service manager gives it.
func (a *Adapter) Ended() <-chan struct{} { return a.ended }

// Run implements platform.Adapter. Each line is a message. At the end of the
// input it waits for the answers (Config.Idle), closes Ended and returns nil.
//
// A Read of Config.In cannot be interrupted: the goroutine that is in one when
// ctx ends stays until In yields or is closed.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	lines := make(chan line)
	go read(ctx, a.config.In, lines)
	a.screen.prompt()
	heard := false
	for {
		select {
		case <-ctx.Done():
			a.screen.leave()
			return nil
		case l, ok := <-lines:
			if !ok {
				return a.end(ctx, heard)
			}
			if a.take(ctx, sink, l) {
				heard = true
			}
		}
	}
}

// take passes a line on. It reports whether there is something to answer.
func (a *Adapter) take(ctx context.Context, sink platform.Sink, l line) bool {
	a.screen.entered()
	text := strings.TrimSpace(strings.ToValidUTF8(l.text, "\uFFFD"))
	switch {
	case l.tooLong:
		a.screen.note("That line is too long (more than 1 MiB) and was not sent.")
		return false
	case text == "":
		a.screen.prompt()
		return false
	}
	id, err := uuid.NewV7() // unique over restarts, as event ids must be
	if err == nil {
		err = sink.Accept(ctx, messages.Inbound{
			Event:        messages.EventID(id.String()),
			Kind:         messages.KindMessage,
			Conversation: Conversation,
			Message:      messages.MessageID(id.String()),
			Sender:       messages.Sender{ID: Sender, Name: "you"},
			Private:      true,
			Text:         text,
			SentAt:       time.Now().UTC(),
		})
	}
	if err != nil && ctx.Err() == nil {
		a.screen.note("That was not taken: " + fault.Public(err) + " Please send it again.")
		return false
	}
	return err == nil
}

func (a *Adapter) end(ctx context.Context, heard bool) error {
	if !heard && !a.config.Terminal {
		<-ctx.Done()
		return nil
	}
	if a.config.Idle != nil {
		if err := a.config.Idle(ctx); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // told to stop while it waited
			}
			return err
		}
	}
	a.screen.leave()
	close(a.ended)
	return nil
}

// Send implements platform.Adapter. platform.Placeholder takes its place but is
// not shown.
func (a *Adapter) Send(_ context.Context, out messages.Outbound) (messages.Ref, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ref := messages.Ref{Conversation: out.Conversation}
	if id, ok := a.sent.get(out.Delivery); ok && out.Delivery != "" {
		ref.Message = id
		return ref, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return messages.Ref{}, fault.Wrap(err, fault.Internal, "mint message id")
	}
	ref.Message = messages.MessageID(id.String())
	if out.Text != platform.Placeholder {
		if err := a.screen.show(ref.Message, out.Text, placed); err != nil {
			return messages.Ref{}, writeFault(err)
		}
	}
	a.sent.put(out.Delivery, ref.Message)
	return ref, nil
}

// Edit implements platform.Editor. A message of an earlier process is not on
// this screen and is shown anew.
func (a *Adapter) Edit(_ context.Context, edit platform.Edit) error {
	to := done
	if edit.Progress {
		to = growing
	}
	return writeFault(a.screen.show(edit.Ref.Message, edit.Text, to))
}

// writeFault classifies an error of the output: a reader that went away (head,
// a closed terminal) does not come back.
func writeFault(err error) error { return fault.Wrap(err, fault.Gone, "write to the console") }

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
