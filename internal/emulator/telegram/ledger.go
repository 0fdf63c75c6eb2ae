package telegram

import (
	"context"
	"slices"
	"time"

	"remote-agent/internal/lists"
	"remote-agent/internal/order"
)

// View is what people see in one chat.
type View struct {
	Chat       Chat
	Messages   []Message // what is visible, oldest first
	Deleted    []Message // what was there before
	Drafts     []Draft
	Rings      []Ring // the newest ones that KeepMessages allows, oldest first
	Actions    int    // how often the bot sent a chat action
	LastAction string
	ActionAt   time.Time
}

// Ring is what a phone that lies on the table shows, with a sound, when a message of
// the bot comes in. Edits and silent messages do not ring.
type Ring struct {
	MessageID int
	Text      string // as it was then
	At        time.Time
}

// FromBot returns the visible messages of the bot.
func (v View) FromBot() []Message {
	var out []Message
	for _, m := range v.Messages {
		if m.FromBot {
			out = append(out, m)
		}
	}
	return out
}

// BotTexts returns the texts of the visible messages of the bot.
func (v View) BotTexts() []string {
	return lists.Map(v.FromBot(), func(m Message) string { return m.Text })
}

// Message returns the visible message with an id, or the zero Message.
func (v View) Message(id int) Message {
	return lists.First(v.Messages, func(m Message) bool { return m.ID == id })
}

// Last returns the last visible message, or the zero Message.
func (v View) Last() Message {
	if len(v.Messages) == 0 {
		return Message{}
	}
	return v.Messages[len(v.Messages)-1]
}

// Ledger is what people see in all chats at one moment. It does not change.
type Ledger struct {
	Chats   map[int64]View
	Answers []CallbackAnswer // to pressed buttons, in order
}

// Chat returns a chat, or an empty View if nothing happened there.
func (l Ledger) Chat(id int64) View { return l.Chats[id] }

// Ledger returns what people see now.
func (c *Chats) Ledger() Ledger {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := Ledger{Chats: make(map[int64]View, len(c.byID)), Answers: slices.Clone(c.answers)}
	for id, one := range c.byID {
		l.Chats[id] = one.snapshot()
	}
	return l
}

// ChatView returns what people see now in one chat. It is cheaper than Ledger
// if there are many chats.
func (c *Chats) ChatView(id int64) View {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.byID[id]; one != nil {
		return one.snapshot()
	}
	return View{}
}

func (c *chat) snapshot() View {
	if c.view != nil {
		return *c.view
	}
	v := &View{
		Chat: *c.info, Messages: copyMessages(c.messages), Deleted: copyMessages(c.deleted),
		Rings: slices.Clone(c.rings), Actions: c.actions, LastAction: c.lastAction, ActionAt: c.actionAt,
	}
	for _, d := range c.drafts {
		v.Drafts = append(v.Drafts, d)
	}
	order.By(v.Drafts, func(a, b Draft) int { return a.At.Compare(b.At) })
	c.view = v
	return *v
}

func copyMessages(in []*Message) []Message {
	return lists.Map(in, func(m *Message) Message { return *m })
}

// Wait returns nil as soon as check reports true for what people see. It looks
// after changes, not all the time, and returns the cause of ctx if that ends
// first. check may call the server.
func (c *Chats) Wait(ctx context.Context, check func(Ledger) bool) error {
	return c.WaitFor(ctx, func() bool { return check(c.Ledger()) })
}

// WaitText returns the first visible message of the bot in a chat whose text
// passes check, waiting for it.
func (c *Chats) WaitText(ctx context.Context, chatID int64, check func(string) bool) (found Message, err error) {
	err = c.WaitFor(ctx, func() bool {
		messages := c.ChatView(chatID).FromBot()
		n := slices.IndexFunc(messages, func(m Message) bool { return check(m.Text) })
		if n >= 0 {
			found = messages[n]
		}
		return n >= 0
	})
	return found, err
}
