package slack

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"remote-agent/internal/lists"
)

// Message is a message as people see it, and what the bot attached to it.
type Message struct {
	Channel  string
	TS       string // its id in the channel
	ThreadTS string // of the root, for answers; the root itself has none

	User    string // who wrote it; for the bot, the bot's user
	BotID   string // set for messages of any bot
	FromBot bool   // of the app under test
	Subtype string // such as "file_share", "thread_broadcast", "tombstone"

	Text        string // the text argument, as stored
	Blocks      json.RawMessage
	Attachments json.RawMessage
	Plain       string   // what people read: the blocks if there are some, else the text
	Pings       []string // mentions by the bot that notify, such as "!channel" and "@U1"

	Metadata    json.RawMessage // nil for none
	UnfurlLinks *bool           // as the bot sent it
	UnfurlMedia *bool
	Broadcast   bool // an answer that also shows in the channel
	Reactions   []Reaction
	Files       []File
	ClientMsgID string

	Stream  StreamState // of messages that were streamed
	Appends int         // calls that added to the stream

	EphemeralTo string // the only user who sees it; empty for all
	Edited      bool   // shows "(edited)"
	Edits       int
	History     []Version // what it was before edits
	CreatedAt   time.Time
	UpdatedAt   time.Time

	stream *stream
}

// Version is a message before an edit.
type Version struct {
	Plain string
}

// Reaction is an emoji and who put it there.
type Reaction struct {
	Name  string
	Users []string
}

// HasReaction reports whether a user put an emoji on the message.
func (m Message) HasReaction(name, user string) bool {
	return slices.ContainsFunc(m.Reactions, func(r Reaction) bool { return r.Name == name && slices.Contains(r.Users, user) })
}

// ReactionsOf returns the emoji that a user put on the message, in order.
func (m Message) ReactionsOf(user string) []string {
	var out []string
	for _, r := range m.Reactions {
		if slices.Contains(r.Users, user) {
			out = append(out, r.Name)
		}
	}
	return out
}

// Button is a button of a message or a view.
type Button struct {
	BlockID, ActionID, Value, Text, Style string
}

// Buttons returns the buttons that people can click.
func (m Message) Buttons() []Button { return buttonsIn(m.Blocks) }

func buttonsIn(raw json.RawMessage) []Button {
	var blocks []block
	_ = json.Unmarshal(raw, &blocks)
	var out []Button
	for _, b := range blocks {
		for _, raw := range append(slices.Clone(b.Elements), b.Accessory) {
			var e element
			if json.Unmarshal(raw, &e) != nil || e.Type != "button" {
				continue
			}
			var t textObject
			_ = json.Unmarshal(e.Text, &t)
			out = append(out, Button{BlockID: b.BlockID, ActionID: e.ActionID, Value: e.Value, Text: t.Text, Style: e.Style})
		}
	}
	return out
}

// MetadataField returns a field of the metadata's payload as text, or nothing.
func (m Message) MetadataField(name string) string {
	var meta struct {
		Payload map[string]any `json:"event_payload"`
	}
	_ = json.Unmarshal(m.Metadata, &meta)
	text, _ := meta.Payload[name].(string)
	return text
}

// ChannelView is what people see in a conversation.
type ChannelView struct {
	Channel    Channel
	Messages   []Message // visible to all, answers in threads included, oldest first
	Deleted    []Message // what was there before
	Ephemerals []Message // each visible to one user
}

// FromBot returns the visible messages of the bot.
func (v ChannelView) FromBot() []Message { return fromBot(v.Messages) }

// Message returns the visible message with a timestamp, or the zero Message.
func (v ChannelView) Message(ts string) Message { return find(v.Messages, ts) }

// Roots returns the visible messages that are not answers in a thread.
func (v ChannelView) Roots() []Message {
	return pick(v.Messages, func(m Message) bool { return m.ThreadTS == "" })
}

// SeenBy returns the ephemeral messages for a user.
func (v ChannelView) SeenBy(user string) []Message { return seenBy(v.Ephemerals, user) }

// ThreadView is what people see in a thread.
type ThreadView struct {
	Root       Message   // zero if it is gone
	Messages   []Message // with the root, oldest first
	Ephemerals []Message
	Status     string // what is shown now
	Loading    []string
	Session    Session
}

// FromBot returns the visible messages of the bot.
func (v ThreadView) FromBot() []Message { return fromBot(v.Messages) }

// Texts returns what people read of the bot, in order.
func (v ThreadView) Texts() []string {
	return lists.Map(v.FromBot(), func(m Message) string { return m.Plain })
}

// SeenBy returns the ephemeral messages for a user.
func (v ThreadView) SeenBy(user string) []Message { return seenBy(v.Ephemerals, user) }

func fromBot(messages []Message) []Message {
	return pick(messages, func(m Message) bool { return m.FromBot })
}

func seenBy(messages []Message, user string) []Message {
	return pick(messages, func(m Message) bool { return m.EphemeralTo == user })
}

// pick returns the messages that match.
func pick(messages []Message, match func(Message) bool) []Message {
	var out []Message
	for _, m := range messages {
		if match(m) {
			out = append(out, m)
		}
	}
	return out
}

func find(messages []Message, ts string) Message {
	return lists.First(messages, func(m Message) bool { return m.TS == ts })
}

// Channel returns what people see now in a conversation.
func (w *Workspace) Channel(id string) ChannelView {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	c := w.channels[id]
	if c == nil {
		return ChannelView{Channel: Channel{ID: id}}
	}
	v := ChannelView{Channel: c.info, Deleted: copies(c.deleted), Ephemerals: copies(c.ephemerals)}
	for _, ts := range c.order {
		w.expire(c.byTS[ts])
		v.Messages = append(v.Messages, *c.byTS[ts])
	}
	return v
}

// Thread returns what people see now in a thread.
func (w *Workspace) Thread(channelID, root string) ThreadView {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	c := w.channels[channelID]
	if c == nil {
		return ThreadView{}
	}
	var v ThreadView
	if m := c.byTS[root]; m != nil {
		w.expire(m)
		v.Root = *c.byTS[root]
		v.Messages = append(v.Messages, v.Root)
	}
	for _, e := range c.ephemerals {
		if e.ThreadTS == root {
			v.Ephemerals = append(v.Ephemerals, *e)
		}
	}
	t := c.threads[root]
	if t == nil {
		return v
	}
	for _, ts := range t.replies {
		w.expire(c.byTS[ts])
		v.Messages = append(v.Messages, *c.byTS[ts])
	}
	v.Session = t.session
	if w.server.opts.Now().Sub(t.status.At) < statusTimeout {
		v.Status, v.Loading = t.status.Text, t.status.LoadingMessages
	}
	return v
}

func copies(in []*Message) []Message {
	return lists.Map(in, func(m *Message) Message { return *m })
}

// WaitText returns the first visible message of the bot in a thread whose
// reading passes check, waiting for it. An empty root is the whole
// conversation. Streams count only when they have ended.
func (w *Workspace) WaitText(ctx context.Context, channelID, root string, check func(string) bool) (Message, error) {
	return w.WaitMessage(ctx, channelID, root, func(m Message) bool { return m.Stream != Streaming && check(m.Plain) })
}

// WaitMessage returns the first visible message of the bot in a thread that
// passes check, waiting for it. An empty root is the whole conversation.
func (w *Workspace) WaitMessage(ctx context.Context, channelID, root string, check func(Message) bool) (Message, error) {
	return w.wait(ctx, check, func() []Message {
		if root == "" {
			return w.Channel(channelID).FromBot()
		}
		return w.Thread(channelID, root).FromBot()
	})
}

// WaitEphemeral returns the first message that only a user sees and that passes
// check, waiting for it.
func (w *Workspace) WaitEphemeral(ctx context.Context, channelID, user string, check func(string) bool) (Message, error) {
	return w.wait(ctx, func(m Message) bool { return check(m.Plain) }, func() []Message { return w.Channel(channelID).SeenBy(user) })
}

func (w *Workspace) wait(ctx context.Context, check func(Message) bool, seen func() []Message) (found Message, err error) {
	err = w.server.WaitFor(ctx, func() bool {
		messages := seen()
		n := slices.IndexFunc(messages, check)
		if n >= 0 {
			found = messages[n]
		}
		return n >= 0
	})
	return found, err
}
