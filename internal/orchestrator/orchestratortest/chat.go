package orchestratortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// PlatformName names the scripted platform.
const PlatformName messages.Platform = "chat"

// Room is the conversation in which people talk if nobody says another one: a private
// chat.
const Room = "room"

// Post is a message of the bot as the platform has it.
type Post struct {
	ID      messages.MessageID
	Room    string
	Text    string
	Buttons []messages.Button
	ReplyTo messages.MessageID
	OnlyFor messages.UserID
	File    string // its name
	Sent    messages.DeliveryID
	At      time.Time
	Texts   []string // all that it showed, in order
	Silent  bool     // it notified nobody
}

// Asked is what a process asked the platform for.
type Asked struct {
	What string // "send", "edit", "file" or "dialog"
	Room string
	Text string
	Post messages.MessageID // of an edit
	// Again is set on a send that may be a repetition.
	Again, Progress bool
	At              time.Time
}

// Reaction is how the platform answers a call: with an error if there is one. Done says
// that it did what was asked for nevertheless, and Dies that the process dies before it
// learns of it.
type Reaction struct {
	Err  error
	Done bool
	Dies bool
}

// Chat is the platform: what people say, what the bot posted, and how the platform
// behaves. It outlives all processes and is safe for concurrent use.
type Chat struct {
	// Caps, Gate and the like are set before a process starts, which takes them over.
	Caps platform.Capabilities

	// Admits, if not nil, makes the platform one that says who may give orders.
	Admits func(ctx context.Context, in messages.Inbound) (bool, error)

	// Plain is a platform whose messages cannot be edited.
	Plain bool

	// React, if not nil, says how the platform answers. It is called without locks.
	React func(a Asked) Reaction

	// Earlier, if not nil, returns what was said before the bot was called. Then each
	// first turn of a conversation is prepared before it begins.
	Earlier func(in messages.Inbound) ([]messages.Quote, error)

	// Opens, if not nil, opens a place of its own beside a room, and returns its room.
	Opens func(o platform.Opening) (string, error)

	// Locates, if not nil, completes what an event says of its repository.
	Locates func(in messages.Inbound) (messages.Repository, error)

	// Names, if not nil, is what the platform tells of people whose events have no name.
	Names map[messages.UserID]string

	// Files has the content of attachments by their source.
	Files map[string]string

	world *World

	// Turn is for how many nanoseconds a process waits for its turn to post something.
	Turn atomic.Int64

	// SlowToShow is the mark that takes a second to be there.
	SlowToShow platform.Mark

	// NoMarks is why the chat takes no marks; nil: it does.
	NoMarks error

	// NoNotes is why nobody can be told something alone; nil: they can.
	NoNotes error

	mu      sync.Mutex // guards all below
	to      *Process
	number  int
	unacked []messages.Inbound
	posts   []*Post
	calls   []Asked
	marks   map[messages.MessageID][]platform.Mark
	notes   []string
	dialogs []platform.Dialog
	typing  int
}

func newChat(w *World) *Chat {
	return &Chat{
		world: w, marks: make(map[messages.MessageID][]platform.Mark), Files: make(map[string]string),
		Caps: platform.Capabilities{MaxText: 4096, Streaming: true, SilentEdits: true, EditInterval: time.Second, Buttons: true, CommandPrefix: "/", Place: "a test"},
	}
}

// Option changes an event before it happens.
type Option func(in *messages.Inbound)

// From says who does it; else Ann does.
func From(id messages.UserID) Option {
	return func(in *messages.Inbound) { in.Sender.ID, in.Sender.Name = id, strings.ToUpper(string(id)) }
}

// In says where; else it is Room. Other rooms than Room are not private.
func In(room string) Option {
	return func(in *messages.Inbound) { in.Conversation.ID, in.Private = room, room == Room }
}

// With changes the event in another way.
func With(change func(in *messages.Inbound)) Option { return change }

// Say has a person say something, and returns it. The platform delivers it; if that
// fails it does so again when the next process starts.
func (c *Chat) Say(text string, options ...Option) messages.Inbound {
	return c.Do(append([]Option{func(in *messages.Inbound) { in.Text = text }}, options...)...)
}

// Edit has a person change what they said.
func (c *Chat) Edit(said messages.Inbound, text string) messages.Inbound {
	return c.Do(func(in *messages.Inbound) {
		event := in.Event
		*in = said
		in.Event, in.Kind, in.Text = event, messages.KindEdit, text
	})
}

// Delete has a person delete what they said.
func (c *Chat) Delete(said messages.Inbound, options ...Option) messages.Inbound {
	return c.Do(append([]Option{func(in *messages.Inbound) {
		in.Kind, in.Conversation, in.Message, in.Sender = messages.KindDeleted, said.Conversation, said.Message, messages.Sender{}
		in.Raw = []byte(fmt.Sprintf(`{"deleted":%q}`, said.Text)) // platforms repeat the words
	}}, options...)...)
}

// Press has a person press a button of a post by its label.
func (c *Chat) Press(p Post, label string, options ...Option) messages.Inbound {
	c.world.T.Helper()
	i := slices.IndexFunc(p.Buttons, func(b messages.Button) bool { return b.Label == label })
	if i < 0 {
		c.world.T.Fatalf("no button %q under %q: %+v", label, p.Text, p.Buttons)
	}
	return c.Do(append([]Option{In(p.Room), func(in *messages.Inbound) {
		in.Kind, in.Action, in.Message = messages.KindAction, p.Buttons[i].ID, p.ID
	}}, options...)...)
}

// Do has something happen on the platform: a message of Ann, as options change it.
func (c *Chat) Do(options ...Option) messages.Inbound {
	c.world.T.Helper()
	c.mu.Lock()
	c.number++
	in := messages.Inbound{
		Account: "bot", Event: messages.EventID(fmt.Sprintf("e%d", c.number)), Kind: messages.KindMessage,
		Conversation: messages.ConversationKey{Platform: PlatformName, ID: Room}, Private: true,
		Message: messages.MessageID(fmt.Sprintf("m%d", c.number)), Sender: messages.Sender{ID: Ann, Name: "Ann"},
		SentAt: time.Now(),
	}
	to := c.to
	c.mu.Unlock()
	for _, o := range options {
		o(&in)
	}
	if to == nil {
		to = c.world.process
	}
	c.mu.Lock()
	c.unacked = append(c.unacked, in)
	c.mu.Unlock()
	if to != nil && !to.Dead() {
		c.deliver(to, in)
	}
	return in
}

// DeliverTo has events delivered to a process; nil: to the newest.
func (c *Chat) DeliverTo(p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = p
}

// Again delivers an event once more, though it was acknowledged.
func (c *Chat) Again(in messages.Inbound) { c.deliver(c.world.process, in) }

// Unacknowledged returns how many events the platform still has to deliver.
func (c *Chat) Unacknowledged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unacked)
}

// deliver hands an event over, as the receiving loop of an adapter does, and returns
// when it was acknowledged or the process is gone.
func (c *Chat) deliver(p *Process, in messages.Inbound) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.life.serve()
		failpoint.Hit(failpoint.Received)
		if err := p.Engine.Accept(c.world.T.Context(), in); err != nil {
			if p.life.fail.Load() == nil && !p.life.over() && !fault.Uncertain(err) {
				c.world.T.Errorf("accepting %q: %v", in.Text, err)
			}
			return
		}
		failpoint.Hit(failpoint.Stored)
		p.life.serve()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unacked = slices.DeleteFunc(c.unacked, func(u messages.Inbound) bool { return u.Event == in.Event })
	}()
	<-done
}

func (c *Chat) redeliver(p *Process) {
	c.mu.Lock()
	left := slices.Clone(c.unacked)
	c.mu.Unlock()
	for _, in := range left {
		c.deliver(p, in)
	}
}

// Posts returns what the bot posted in a room, in order.
func (c *Chat) Posts(room string) []Post {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Post
	for _, p := range c.posts {
		if p.Room == room {
			copied := *p
			copied.Texts = slices.Clone(p.Texts)
			out = append(out, copied)
		}
	}
	return out
}

// Texts returns what stands in a room by now, without messages that show nothing or the
// beginning of an answer.
func (c *Chat) Texts(room string) []string {
	var out []string
	for _, p := range c.Posts(room) {
		if !strings.HasSuffix(p.Text, platform.Placeholder) {
			out = append(out, p.Text)
		}
	}
	return out
}

// Strays returns how many messages stand in a room that show nothing or the beginning of
// an answer.
func (c *Chat) Strays(room string) int { return len(c.Posts(room)) - len(c.Texts(room)) }

// Find returns the only post of all rooms whose text contains part, and fails the test if
// there is none or another one.
func (c *Chat) Find(part string) Post {
	c.world.T.Helper()
	var found []Post
	for _, p := range c.all() {
		if strings.Contains(p.Text, part) {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		c.world.T.Fatalf("%d posts contain %q, want 1; posted: %q", len(found), part, c.texts())
	}
	return found[0]
}

// Want fails the test unless exactly these texts stand in Room. Each may be a part of
// what stands there.
func (c *Chat) Want(parts ...string) { c.world.T.Helper(); c.WantIn(Room, parts...) }

// WantIn is Want for another room.
func (c *Chat) WantIn(room string, parts ...string) {
	c.world.T.Helper()
	got := c.Texts(room)
	ok := len(got) == len(parts)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.Contains(got[i], parts[i])
	}
	if !ok {
		c.world.T.Errorf("in %s stands %q, want %q", room, got, parts)
	}
}

func (c *Chat) all() []Post {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lists.Map(c.posts, func(p *Post) Post { return *p })
}

func (c *Chat) texts() []string {
	return lists.Map(c.all(), func(p Post) string { return p.Text })
}

// Calls returns what processes asked the platform for, in order.
func (c *Chat) Calls() []Asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Marks returns the marks that a message of a person got, in order.
func (c *Chat) Marks(in messages.Inbound) []platform.Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.marks[in.Message])
}

// Notes returns what single people were told.
func (c *Chat) Notes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// Dialogs returns the dialogs that were opened for people.
func (c *Chat) Dialogs() []platform.Dialog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.dialogs)
}

// Typed returns how often the platform showed that an answer is coming.
func (c *Chat) Typed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.typing
}

// ReactBy sets React while processes run.
func (c *Chat) ReactBy(react func(a Asked) Reaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.React = react
}

// call notes a call and asks how it goes. It ends the goroutine of a dead process.
func (c *Chat) call(l *life, made Asked) Reaction {
	l.serve()
	made.At = time.Now()
	c.mu.Lock()
	c.calls = append(c.calls, made)
	react := c.React
	c.mu.Unlock()
	if react == nil {
		return Reaction{}
	}
	r := react(made)
	l.serve()
	return r
}

// answer lets the process know what the platform did, or has it die of that.
func (l *life) answer(r Reaction) {
	if r.Dies {
		l.die()
	}
	l.serve()
}

// adapter returns the platform as a process knows it.
func (c *Chat) adapter(p *Process) platform.Adapter {
	port := port{c, p.life}
	switch {
	case c.Plain:
		return port
	case c.Admits != nil && c.Earlier != nil:
		return hubPort{gatedPort{editingPort{port}}, contextPort{editingPort{port}}}
	case c.Admits != nil:
		return gatedPort{editingPort{port}}
	case c.Earlier != nil:
		return contextPort{editingPort{port}}
	case c.Opens != nil:
		return openingPort{editingPort{port}}
	case c.Locates != nil:
		return locatingPort{editingPort{port}}
	case c.Names != nil:
		return namingPort{editingPort{port}}
	default:
		return editingPort{port}
	}
}
