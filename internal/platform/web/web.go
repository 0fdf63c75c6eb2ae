// Package web is a messaging platform for people in the browser: conversations that are
// kept in the database of the program and shown by its pages.
//
// The adapter translates, like those of other platforms. What people say stands in the
// conversation first and is then passed on, until the engine has taken it; what the
// program says stands there once, whatever happens, because its delivery is looked up.
// Who speaks is an account of another platform, which has signed in; the package decides
// nothing about them.
package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Name is the platform's name.
const Name messages.Platform = "web"

const (
	maxText = 16_000 // code points of one message, which is rendered as Markdown

	passWithin = 20 * time.Second

	takeMost  = 100             // messages that are passed on at once
	takeAgain = 5 * time.Second // how often is looked for what was not taken
)

// Board keeps what stands in conversations. It is safe for concurrent use.
type Board interface {
	// Say stores what a person said, once for each p.ID, and what is to be passed on.
	// A conversation of somebody else is fault.NotFound.
	Say(ctx context.Context, p messages.Posted, event []byte) error

	// Untaken visits what was said in a conversation and not taken, or with none in those
	// whose ids are behind the given one: a conversation after the other, each in order,
	// up to limit messages. Took notes that it was taken.
	Untaken(ctx context.Context, chat, behind string, limit int, visit func(chat string, id messages.MessageID, event []byte)) error
	Took(ctx context.Context, ids ...messages.MessageID) error

	// Post stores a message of the program, once for each p.Delivery.
	Post(ctx context.Context, p messages.Posted) (messages.MessageID, error)
	Repost(ctx context.Context, p messages.Posted) error
	Unpost(ctx context.Context, chat string, id messages.MessageID) error
	MarkPosted(ctx context.Context, chat string, id messages.MessageID, mark string) error

	// OpenPosted returns a file of a conversation with its data.
	OpenPosted(ctx context.Context, chat, id string) (messages.PostedFile, error)
}

// Adapter implements platform.Adapter. All methods are safe for concurrent use.
type Adapter struct {
	board Board
	log   *slog.Logger

	mu    sync.Mutex // guards sink
	sink  platform.Sink
	ready chan struct{} // closed when there is a sink
}

var (
	_ platform.Editor  = (*Adapter)(nil)
	_ platform.Marker  = (*Adapter)(nil)
	_ platform.Fetcher = (*Adapter)(nil)
	_ platform.Filer   = (*Adapter)(nil)
	_ platform.Deleter = (*Adapter)(nil)
)

// New returns an Adapter that passes on nothing yet.
func New(board Board, log *slog.Logger) *Adapter {
	return &Adapter{board: board, log: log, ready: make(chan struct{})}
}

// Platform implements platform.Adapter.
func (a *Adapter) Platform() messages.Platform { return Name }

// Capabilities implements platform.Adapter.
func (a *Adapter) Capabilities() platform.Capabilities {
	return platform.Capabilities{
		MaxText:          maxText,
		Streaming:        true,
		EditInterval:     500 * time.Millisecond,
		IdempotentSend:   true,
		PlaceholderAfter: 300 * time.Millisecond,
		Buttons:          true,
		OutcomeMarks:     true,
		Place:            "a page in the browser, with one person",
		Format:           "Markdown is rendered, with tables and code blocks. Pictures are shown as links.",
		CommandPrefix:    "/",
	}
}

// Run implements platform.Adapter. It passes on what people said when nobody could take
// it, as before a restart.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	a.mu.Lock()
	if a.sink == nil {
		close(a.ready)
	}
	a.sink = sink
	a.mu.Unlock()
	tick := time.NewTicker(takeAgain)
	defer tick.Stop()
	for {
		if err := a.pass(ctx, ""); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "could not pass on what was said in the browser; it is tried again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Said is something that a person says.
type Said struct {
	Chat  string          // the conversation, which may begin with it
	ID    string          // of the message: saying it again changes nothing
	From  messages.Sender // with their platform
	Text  string
	Files []messages.PostedFile
}

// Say stores what a person says, and passes it on. It returns once it is stored: if it
// cannot be passed on now, that is done later.
func (a *Adapter) Say(ctx context.Context, s Said) error {
	in := messages.Inbound{
		Event: messages.EventID(s.ID), Kind: messages.KindMessage, Conversation: messages.ConversationKey{Platform: Name, ID: s.Chat},
		Message: messages.MessageID(s.ID), Sender: s.From, Private: true, Text: s.Text, SentAt: time.Now().UTC(),
	}
	p := messages.Posted{Chat: s.Chat, ID: in.Message, Author: in.Actor(), Text: s.Text, Files: s.Files}
	for i := range p.Files {
		f := &p.Files[i]
		f.ID = fmt.Sprintf("%s-%d", s.ID, i)
		in.Attachments = append(in.Attachments, messages.Attachment{Name: f.Name, MediaType: f.MediaType, Size: int64(len(f.Data)), Source: s.Chat + "/" + f.ID})
	}
	event, err := json.Marshal(in)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "encode a message")
	}
	if err := a.board.Say(ctx, p, event); err != nil {
		return err
	}
	// Whoever said it may have gone by now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), passWithin)
	defer cancel()
	if err := a.pass(ctx, s.Chat); err != nil {
		a.log.WarnContext(ctx, "could not pass on a message at once; it is tried again", "err", err)
	}
	return nil
}

// untaken is something that was said and that the engine has not taken.
type untaken struct {
	chat  string
	id    messages.MessageID
	event []byte
}

// pass passes on what was said in a conversation (empty: in any) and not taken. What
// cannot be passed on holds up the rest of its conversation, and no other. Another
// process may do so at the same time: the second time changes nothing.
func (a *Adapter) pass(ctx context.Context, chat string) error {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mu.Lock()
	sink := a.sink
	a.mu.Unlock()
	var failed error
	for behind := ""; ; {
		var list []untaken
		err := a.board.Untaken(ctx, chat, behind, takeMost, func(chat string, id messages.MessageID, event []byte) {
			list = append(list, untaken{chat, id, event})
		})
		held, last := "", ""
		for _, u := range list {
			if u.chat != last {
				if last != "" {
					behind = last
				}
				last = u.chat
			}
			if u.chat == held {
				continue
			}
			if err := a.take(ctx, sink, u); err != nil {
				failed = errors.Join(failed, fmt.Errorf("conversation %s: %w", u.chat, err))
				held = u.chat
			}
		}
		if err != nil || len(list) < takeMost || ctx.Err() != nil {
			return errors.Join(failed, err)
		}
		if held == last {
			behind = last
		}
	}
}

// take has the engine take one message.
func (a *Adapter) take(ctx context.Context, sink platform.Sink, u untaken) error {
	m := platform.Meaning{Event: messages.EventID(u.id), Raw: u.event}
	var in messages.Inbound
	if wrong := json.Unmarshal(u.event, &in); wrong != nil || in.Event == "" || in.Conversation.ID != u.chat {
		m.Reason = "not a message of this platform"
	} else {
		in.Raw = u.event
		m.Events = []messages.Inbound{in}
	}
	if _, err := platform.Store(ctx, sink, Name, "", m); err != nil {
		return err
	}
	return a.board.Took(ctx, u.id)
}

// Send implements platform.Adapter.
func (a *Adapter) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	return a.post(ctx, out.Conversation, messages.Posted{Delivery: out.Delivery, Text: out.Text, Buttons: out.Buttons})
}

// SendFile implements platform.Filer.
func (a *Adapter) SendFile(ctx context.Context, f platform.File) (messages.Ref, error) {
	kind := http.DetectContentType(f.Data)
	if !strings.HasPrefix(kind, "image/") {
		kind = "text/plain; charset=utf-8"
	}
	return a.post(ctx, f.Conversation, messages.Posted{
		Delivery: f.Delivery, Text: f.Caption, Files: []messages.PostedFile{{Name: f.Name, MediaType: kind, Data: f.Data}},
	})
}

func (a *Adapter) post(ctx context.Context, key messages.ConversationKey, p messages.Posted) (messages.Ref, error) {
	if err := ctx.Err(); err != nil {
		return messages.Ref{}, fault.Wrap(err, fault.Canceled, "post a message")
	}
	p.Chat = key.ID
	id, err := a.board.Post(ctx, p)
	return messages.Ref{Conversation: key, Message: id}, err
}

// Edit implements platform.Editor.
func (a *Adapter) Edit(ctx context.Context, e platform.Edit) error {
	return a.board.Repost(ctx, messages.Posted{Chat: e.Ref.Conversation.ID, ID: e.Ref.Message, Text: e.Text, Buttons: e.Buttons})
}

// Delete implements platform.Deleter.
func (a *Adapter) Delete(ctx context.Context, ref messages.Ref) error {
	return a.board.Unpost(ctx, ref.Conversation.ID, ref.Message)
}

// Mark implements platform.Marker.
func (a *Adapter) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	return a.board.MarkPosted(ctx, ref.Conversation.ID, ref.Message, string(mark))
}

// Fetch implements platform.Fetcher.
func (a *Adapter) Fetch(ctx context.Context, at messages.Attachment) (io.ReadCloser, error) {
	chat, id, _ := strings.Cut(at.Source, "/")
	f, err := a.board.OpenPosted(ctx, chat, id)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(f.Data)), nil
}
