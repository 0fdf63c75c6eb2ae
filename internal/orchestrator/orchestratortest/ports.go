package orchestratortest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// port can do what every platform can.
type port struct {
	chat *Chat
	life *life
}

// Platform implements platform.Adapter.
func (port) Platform() messages.Platform { return PlatformName }

// Capabilities implements platform.Adapter.
func (p port) Capabilities() platform.Capabilities { return p.chat.Caps }

// Run implements platform.Adapter. Events come from Chat.Do.
func (port) Run(ctx context.Context, _ platform.Sink) error {
	<-ctx.Done()
	return nil
}

// Send implements platform.Adapter.
func (p port) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	if err := platform.AwaitTurn(ctx, time.Duration(p.chat.Turn.Load())); err != nil {
		return messages.Ref{}, err
	}
	r := p.chat.call(p.life, Asked{What: "send", Room: out.Conversation.ID, Text: out.Text, Again: out.Again})
	defer p.life.answer(r)
	return p.chat.post(out, "", r)
}

// post posts what a process sends. With IdempotentSend, what was posted of the same
// delivery before is found by who looks for it.
func (c *Chat) post(out messages.Outbound, file string, r Reaction) (messages.Ref, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Err != nil && !r.Done {
		return messages.Ref{}, r.Err
	}
	var made *Post
	if c.Caps.IdempotentSend && out.Again {
		if i := slices.IndexFunc(c.posts, func(p *Post) bool { return p.Sent == out.Delivery && p.File == file }); i >= 0 {
			made = c.posts[i]
		}
	}
	if made == nil {
		c.number++
		made = &Post{
			ID: messages.MessageID(fmt.Sprintf("p%d", c.number)), Room: out.Conversation.ID, Text: out.Text, Texts: []string{out.Text},
			Buttons: out.Buttons, ReplyTo: out.ReplyTo, OnlyFor: out.OnlyFor, File: file, Sent: out.Delivery, At: time.Now(), Silent: out.Silent,
		}
		c.posts = append(c.posts, made)
	}
	if r.Err != nil {
		return messages.Ref{}, r.Err
	}
	return messages.Ref{Conversation: out.Conversation, Message: made.ID}, nil
}

// editingPort can edit, mark, show that it types, tell one person something and open a
// dialog; it reads attachments and posts files.
type editingPort struct{ port }

// Edit implements platform.Editor.
func (p editingPort) Edit(_ context.Context, e platform.Edit) error {
	r := p.chat.call(p.life, Asked{What: "edit", Room: e.Ref.Conversation.ID, Text: e.Text, Post: e.Ref.Message, Progress: e.Progress})
	defer p.life.answer(r)
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	if r.Err != nil && !r.Done {
		return r.Err
	}
	i := slices.IndexFunc(p.chat.posts, func(q *Post) bool { return q.ID == e.Ref.Message })
	if i < 0 {
		return fault.New(fault.NotFound, "There is no such message.")
	}
	q := p.chat.posts[i]
	q.Text, q.Buttons = e.Text, e.Buttons
	if q.Texts[len(q.Texts)-1] != e.Text {
		q.Texts = append(q.Texts, e.Text)
	}
	return r.Err
}

// Mark implements platform.Marker.
func (p editingPort) Mark(_ context.Context, ref messages.Ref, mark platform.Mark) error {
	p.life.serve()
	if mark != platform.MarkNone && mark == p.chat.SlowToShow {
		time.Sleep(time.Second)
	}
	if p.chat.NoMarks != nil {
		return p.chat.NoMarks
	}
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	p.chat.marks[ref.Message] = append(p.chat.marks[ref.Message], mark)
	return nil
}

// Typing implements platform.Typer.
func (p editingPort) Typing(context.Context, messages.ConversationKey) error {
	p.life.serve()
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	p.chat.typing++
	return nil
}

// Whisper implements platform.Whisperer.
func (p editingPort) Whisper(ctx context.Context, to messages.Inbound, text string) error {
	p.life.serve()
	if err := platform.AwaitTurn(ctx, time.Duration(p.chat.Turn.Load())); err != nil {
		return err
	}
	if p.chat.NoNotes != nil {
		return p.chat.NoNotes
	}
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	p.chat.notes = append(p.chat.notes, string(to.Sender.ID)+": "+text)
	return nil
}

// Fetch implements platform.Fetcher.
func (p editingPort) Fetch(_ context.Context, a messages.Attachment) (io.ReadCloser, error) {
	p.life.serve()
	content, ok := p.chat.Files[a.Source]
	if !ok {
		return nil, fault.New(fault.NotFound, "The file is gone.")
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// OpenDialog implements platform.Dialoger.
func (p editingPort) OpenDialog(_ context.Context, in messages.Inbound, d platform.Dialog) error {
	r := p.chat.call(p.life, Asked{What: "dialog", Room: in.Conversation.ID, Text: d.Text})
	if r.Err != nil {
		return r.Err
	}
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	p.chat.dialogs = append(p.chat.dialogs, d)
	return nil
}

// SendFile implements platform.Filer.
func (p editingPort) SendFile(_ context.Context, f platform.File) (messages.Ref, error) {
	r := p.chat.call(p.life, Asked{What: "file", Room: f.Conversation.ID, Text: f.Name})
	defer p.life.answer(r)
	return p.chat.post(messages.Outbound{Delivery: f.Delivery, Conversation: f.Conversation, ReplyTo: f.ReplyTo, Text: f.Caption, Again: f.Again}, f.Name, r)
}

// EditFile implements platform.FileEditor.
func (p editingPort) EditFile(_ context.Context, ref messages.Ref, f platform.File) error {
	r := p.chat.call(p.life, Asked{What: "file", Room: f.Conversation.ID, Text: f.Name, Post: ref.Message})
	defer p.life.answer(r)
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	if r.Err != nil && !r.Done {
		return r.Err
	}
	i := slices.IndexFunc(p.chat.posts, func(q *Post) bool { return q.ID == ref.Message })
	if i < 0 {
		return fault.New(fault.NotFound, "There is no such message.")
	}
	q := p.chat.posts[i]
	q.Text, q.File = f.Caption, f.Name
	q.Texts = append(q.Texts, f.Caption)
	return r.Err
}

// Delete implements platform.Deleter.
func (p editingPort) Delete(_ context.Context, ref messages.Ref) error {
	r := p.chat.call(p.life, Asked{What: "delete", Room: ref.Conversation.ID, Post: ref.Message})
	defer p.life.answer(r)
	p.chat.mu.Lock()
	defer p.chat.mu.Unlock()
	if r.Err == nil || r.Done {
		p.chat.posts = slices.DeleteFunc(p.chat.posts, func(q *Post) bool { return q.ID == ref.Message })
	}
	return r.Err
}

// gatedPort says who may give orders.
type gatedPort struct{ editingPort }

var _ platform.Gatekeeper = gatedPort{}

// Admits implements platform.Gatekeeper.
func (p gatedPort) Admits(ctx context.Context, in messages.Inbound) (bool, error) {
	p.life.serve()
	defer p.life.serve()
	return p.chat.Admits(ctx, in)
}

// hubPort says who may give orders and reads what was said before, as GitHub does.
type hubPort struct {
	gatedPort
	earlier contextPort
}

var _ platform.Contexter = hubPort{}

// Context implements platform.Contexter.
func (p hubPort) Context(ctx context.Context, in messages.Inbound) ([]messages.Quote, error) {
	return p.earlier.Context(ctx, in)
}

// contextPort reads what was said before the bot was called.
type contextPort struct{ editingPort }

var _ platform.Contexter = contextPort{}

// Context implements platform.Contexter.
func (p contextPort) Context(_ context.Context, in messages.Inbound) ([]messages.Quote, error) {
	p.life.serve()
	defer p.life.serve()
	return p.chat.Earlier(in)
}

// locatingPort knows which branch an event is about.
type locatingPort struct{ editingPort }

var _ platform.Locator = locatingPort{}

// Locate implements platform.Locator.
func (p locatingPort) Locate(_ context.Context, in messages.Inbound) (messages.Repository, error) {
	p.life.serve()
	defer p.life.serve()
	return p.chat.Locates(in)
}

// namingPort tells what people are called.
type namingPort struct{ editingPort }

var _ platform.Namer = namingPort{}

// NameOf implements platform.Namer.
func (p namingPort) NameOf(_ context.Context, id messages.UserID) string {
	p.life.serve()
	return p.chat.Names[id]
}

// openingPort opens places beside a room.
type openingPort struct{ editingPort }

var _ platform.Opener = openingPort{}

// Open implements platform.Opener.
func (p openingPort) Open(_ context.Context, o platform.Opening) (messages.ConversationKey, error) {
	p.life.serve()
	room, err := p.chat.Opens(o)
	p.life.serve()
	return messages.ConversationKey{Platform: PlatformName, ID: room}, err
}

// Link implements platform.Opener.
func (p openingPort) Link(_ context.Context, key messages.ConversationKey) string {
	p.life.serve()
	return "https://chat.example/" + key.ID
}

var (
	_ platform.Editor    = editingPort{}
	_ platform.Marker    = editingPort{}
	_ platform.Typer     = editingPort{}
	_ platform.Whisperer = editingPort{}
	_ platform.Fetcher   = editingPort{}
	_ platform.Filer     = editingPort{}
	_ platform.Dialoger  = editingPort{}
	_ platform.Deleter   = editingPort{}

	_ platform.FileEditor = editingPort{}
)
