// Package console is a messaging platform for the person who runs the program: at
// its own terminal, at another one through a socket, or with text piped in and out.
// It needs no account.
//
// The adapter passes messages on and shows nothing by itself: who wants to see what
// is said in a conversation watches it (Backend). Chat is a person at a terminal,
// Pipe is text in and out, Ask is one question. Handler and Client carry a Backend
// over a socket.
//
// There is one sender, "local". The package decides nothing; the application grants
// the sender access, because whoever has the terminal has the process.
package console

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Name is the platform's name.
const Name messages.Platform = "console"

// Sender is the id of the person at the console.
const Sender messages.UserID = "local"

// Local is the id of the conversation at a terminal, whichever one it is.
const Local = "local"

// Conversation is the key of the conversation at a terminal.
var Conversation = messages.ConversationKey{Platform: Name, ID: Local}

const (
	maxText = 1 << 20 // there is no real limit; in code points

	// maxRecent is how many messages are remembered: enough for any that can still
	// be edited, and a bound for a console that stays open for months.
	maxRecent = 512
)

// Config configures an Adapter.
type Config struct {
	// State tells whether something is under way in a conversation, and the names of
	// the questions that it waits for a person with; idle includes the latter.
	State func(ctx context.Context, key messages.ConversationKey) (idle bool, questions []string, err error)

	// Commands returns the names of all commands.
	Commands func() []string

	// Chat is what happens at this process's own terminal or pipe; nil is nothing.
	// Ended is closed when it returns nil before its context ends.
	Chat func(ctx context.Context, b Backend) error
}

// Adapter implements platform.Editor and Backend. All methods are safe for
// concurrent use.
type Adapter struct {
	config Config
	ended  chan struct{} // closed by Run

	mu       sync.Mutex // guards what follows
	sink     platform.Sink
	ready    chan struct{} // closed when there is a sink
	sent     *platform.Recent[messages.DeliveryID, messages.MessageID]
	placed   *platform.Recent[messages.MessageID, string] // the text that a message had from the start
	shown    *platform.Recent[string, int64]              // the number of the newest event of a conversation
	watchers map[*watcher]struct{}
}

var (
	_ platform.Editor  = (*Adapter)(nil)
	_ platform.Marker  = (*Adapter)(nil)
	_ platform.Fetcher = (*Adapter)(nil)
	_ Backend          = (*Adapter)(nil)
)

// New returns an Adapter that passes on nothing yet.
func New(config Config) *Adapter {
	return &Adapter{
		config:   config,
		ended:    make(chan struct{}),
		ready:    make(chan struct{}),
		sent:     platform.NewRecent[messages.DeliveryID, messages.MessageID](maxRecent),
		placed:   platform.NewRecent[messages.MessageID, string](maxRecent),
		shown:    platform.NewRecent[string, int64](maxRecent),
		watchers: make(map[*watcher]struct{}),
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
		Streaming:     true,
		EditInterval:  50 * time.Millisecond,
		OutcomeMarks:  true,
		Local:         true,
		Place:         "the operator's terminal",
		Format:        "It is shown in a terminal: use short paragraphs, lists and code blocks.",
		CommandPrefix: "/",
	}
}

// Ended is closed when Config.Chat has ended by itself: the application may stop. It
// stays open when Run ended because of its context.
func (a *Adapter) Ended() <-chan struct{} { return a.ended }

// Run implements platform.Adapter.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	a.mu.Lock()
	a.sink = sink
	a.mu.Unlock()
	close(a.ready)
	if a.config.Chat == nil {
		<-ctx.Done()
		return nil
	}
	err := a.config.Chat(ctx, a)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // told to stop
	}
	if err == nil {
		close(a.ended)
	}
	return err
}

// Say implements Backend.
func (a *Adapter) Say(ctx context.Context, conversation string, m Message) (messages.MessageID, error) {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	id, err := uuid.NewV7() // unique over restarts, as event ids must be
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "mint message id")
	}
	in := messages.Inbound{
		Event:        messages.EventID(id.String()),
		Kind:         messages.KindMessage,
		Conversation: messages.ConversationKey{Platform: Name, ID: conversation},
		Message:      messages.MessageID(id.String()),
		Sender:       messages.Sender{ID: Sender, Name: "you"},
		Private:      true,
		Text:         strings.TrimRightFunc(strings.ToValidUTF8(m.Text, "\uFFFD"), unicode.IsSpace),
		Attachments:  m.Files,
		SentAt:       time.Now().UTC(),
	}
	return in.Message, a.sink.Accept(ctx, in)
}

// State implements Backend.
func (a *Adapter) State(ctx context.Context, conversation string) (State, error) {
	if a.config.State == nil {
		return State{}, nil
	}
	idle, questions, err := a.config.State(ctx, messages.ConversationKey{Platform: Name, ID: conversation})
	a.mu.Lock()
	defer a.mu.Unlock()
	shown, _ := a.shown.Get(conversation) // after the question what is under way, see State.Shown
	return State{Busy: !idle, Questions: questions, Shown: shown}, err
}

// Commands implements Backend.
func (a *Adapter) Commands(context.Context) ([]string, error) {
	if a.config.Commands == nil {
		return nil, nil
	}
	return a.config.Commands(), nil
}

// Send implements platform.Adapter. platform.Placeholder takes its place but is
// not shown.
func (a *Adapter) Send(_ context.Context, out messages.Outbound) (messages.Ref, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ref := messages.Ref{Conversation: out.Conversation}
	if id, ok := a.sent.Get(out.Delivery); ok && out.Delivery != "" {
		ref.Message = id
		return ref, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return messages.Ref{}, fault.Wrap(err, fault.Internal, "mint message id")
	}
	ref.Message = messages.MessageID(id.String())
	if out.Text != platform.Placeholder {
		a.placed.Put(ref.Message, out.Text)
		a.publish(out.Conversation.ID, Event{Message: string(ref.Message), Text: out.Text, Final: true})
	}
	a.sent.Put(out.Delivery, ref.Message)
	return ref, nil
}

// Edit implements platform.Editor. A text that was shown as it was sent stays; what
// takes its place is shown behind it.
func (a *Adapter) Edit(_ context.Context, edit platform.Edit) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := Event{Message: string(edit.Ref.Message), Text: edit.Text, Final: !edit.Progress, Aside: edit.Aside}
	if before, ok := a.placed.Get(edit.Ref.Message); ok && before != edit.Text {
		e.Message += "+"
	}
	a.publish(edit.Ref.Conversation.ID, e)
	return nil
}

// Mark implements platform.Marker.
func (a *Adapter) Mark(_ context.Context, ref messages.Ref, mark platform.Mark) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.publish(ref.Conversation.ID, Event{Message: string(ref.Message), Mark: mark})
	return nil
}

// Fetch implements platform.Fetcher: a file of this machine that the person named,
// who may read what the program may.
func (a *Adapter) Fetch(_ context.Context, at messages.Attachment) (io.ReadCloser, error) {
	info, err := os.Stat(at.Source)
	if err != nil || !info.Mode().IsRegular() {
		return nil, fault.Newf(fault.NotFound, "The file %q no longer exists.", at.Name)
	}
	f, err := os.Open(filepath.Clean(at.Source))
	if err != nil {
		return nil, fault.Newf(fault.NotFound, "The file %q cannot be read by the user that the bot runs as.", at.Name)
	}
	return f, nil
}
