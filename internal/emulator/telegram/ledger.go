package telegram

import (
	"context"
	"slices"
	"sort"
	"time"

	"remote-agent/internal/order"
)

// chat is the state of one chat, guarded by the server. Messages are never
// changed but replaced, so that a Ledger can share them.
type chat struct {
	info       *Chat
	nextID     int
	messages   []*Message // by id
	deleted    []*Message
	topics     map[int]bool
	titles     []Topic // that the bot opened
	drafts     map[int64]Draft
	rings      []Ring
	actions    int
	lastAction string
	actionAt   time.Time
	refusal    *apiError // what every call about this chat gets
	botIsAdmin bool
	view       *View // nil after a change
}

func (c *chat) index(id int) (int, bool) {
	n := sort.Search(len(c.messages), func(i int) bool { return c.messages[i].ID >= id })
	return n, n < len(c.messages) && c.messages[n].ID == id
}

func (c *chat) find(id int) (*Message, bool) {
	n, ok := c.index(id)
	if !ok {
		return nil, false
	}
	return c.messages[n], true
}

func (c *chat) replace(m *Message) {
	if n, ok := c.index(m.ID); ok {
		c.messages[n] = m
	}
	c.view = nil
}

// add appends a message under the chat's next id.
func (c *chat) add(m *Message, keep int) {
	m.ID, m.ChatID = c.nextID, c.info.ID
	c.nextID++
	c.messages = append(c.messages, m)
	if keep > 0 && len(c.messages) > keep {
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	c.view = nil
}

// ring notes that a message of the bot made a sound.
func (c *chat) ring(m *Message, keep int) {
	if m.Silent {
		return
	}
	c.rings = append(c.rings, Ring{MessageID: m.ID, Text: m.Text, At: m.CreatedAt})
	if keep > 0 && len(c.rings) > keep {
		c.rings = c.rings[1:]
	}
}

func (c *chat) remove(n, keep int) *Message {
	m := c.messages[n]
	c.messages = slices.Delete(c.messages, n, n+1)
	c.deleted = append(c.deleted, m)
	if keep > 0 && len(c.deleted) > keep {
		c.deleted[0] = nil
		c.deleted = c.deleted[1:]
	}
	c.view = nil
	return m
}

func (c *chat) isGroup() bool { return c.info.Type == Group || c.info.Type == Supergroup }

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
	var out []string
	for _, m := range v.Messages {
		if m.FromBot {
			out = append(out, m.Text)
		}
	}
	return out
}

// Message returns the visible message with an id, or the zero Message.
func (v View) Message(id int) Message {
	for _, m := range v.Messages {
		if m.ID == id {
			return m
		}
	}
	return Message{}
}

// Last returns the last visible message, or the zero Message.
func (v View) Last() Message {
	if len(v.Messages) == 0 {
		return Message{}
	}
	return v.Messages[len(v.Messages)-1]
}

// RepliesTo returns the visible messages of the bot that answer a message.
func (v View) RepliesTo(id int) []Message {
	var out []Message
	for _, m := range v.Messages {
		if m.FromBot && m.ReplyTo == id {
			out = append(out, m)
		}
	}
	return out
}

// Ledger is what people see in all chats at one moment. It does not change.
type Ledger struct {
	Chats   map[int64]View
	Answers []CallbackAnswer // to pressed buttons, in order
}

// Chat returns a chat, or an empty View if nothing happened there.
func (l Ledger) Chat(id int64) View { return l.Chats[id] }

// Ledger returns what people see now.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger()
}

// ChatView returns what people see now in one chat. It is cheaper than Ledger
// if there are many chats.
func (s *Server) ChatView(id int64) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[id]; c != nil {
		return c.snapshot()
	}
	return View{}
}

func (s *Server) ledger() Ledger {
	l := Ledger{Chats: make(map[int64]View, len(s.chats)), Answers: slices.Clone(s.answers)}
	for id, c := range s.chats {
		l.Chats[id] = c.snapshot()
	}
	return l
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
	out := make([]Message, len(in))
	for i, m := range in {
		out[i] = *m
	}
	return out
}

// Wait returns nil as soon as check reports true for what people see. It looks
// after changes, not all the time, and returns the cause of ctx if that ends
// first. check may call the server.
func (s *Server) Wait(ctx context.Context, check func(Ledger) bool) error {
	return s.WaitFor(ctx, func() bool { return check(s.Ledger()) })
}

// WaitText returns the first visible message of the bot in a chat whose text
// passes check, waiting for it.
func (s *Server) WaitText(ctx context.Context, chatID int64, check func(string) bool) (Message, error) {
	var found Message
	err := s.WaitFor(ctx, func() bool {
		for _, m := range s.ChatView(chatID).FromBot() {
			if check(m.Text) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}

// Call is one API call of the bot.
type Call struct {
	Method string
	ChatID int64             // zero if there is none
	Params map[string]string // as sent; structures are JSON
	At     time.Time         // when it came in

	Status      int // of the answer, if it had arrived; zero if nothing was done
	Description string
	Faulty      bool // a fault was injected
	FromWebhook bool // named in the answer to a webhook
}

func (s *Server) log(c Call, refused *apiError, faulty bool) {
	c.Status, c.Faulty = 200, faulty
	if refused != nil {
		c.Status, c.Description = refused.code, refused.text
	}
	s.Log(c)
}

// changedMessage tells everyone who watches about a change. The lock must not
// be held.
func (s *Server) changedMessage(kind ChangeKind, m *Message) {
	if s.opts.OnChange != nil {
		s.opts.OnChange(Change{Kind: kind, Message: *m, At: s.opts.Now()})
	}
	s.Notify()
}
