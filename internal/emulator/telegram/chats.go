package telegram

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// Chats are the people and the chats, with what the bot may do there.
type Chats struct {
	*platform

	byID      map[int64]*chat
	users     map[int64]User
	callbacks map[string]bool // open callback queries
	answers   []CallbackAnswer
}

// AddUser introduces an account, so that its name is known. Users that are not
// introduced are called "User <id>".
func (c *Chats) AddUser(u User) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users[u.ID] = u
}

// AddChat introduces a chat, or changes its description. Chats that are not
// introduced come into being when somebody writes there: a private chat for a
// positive id, a supergroup for an id below -1000000000000, else a group. A bot
// cannot write to a chat that does not exist.
func (c *Chats) AddChat(info Chat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open(info.ID)
	known.info, known.view = &info, nil
}

// open returns a chat and creates it if needed. The lock must be held.
func (c *Chats) open(id int64) *chat {
	if known := c.byID[id]; known != nil {
		return known
	}
	info := &Chat{ID: id, Type: Private}
	switch {
	case id < -1_000_000_000_000:
		info.Type, info.Title = Supergroup, fmt.Sprintf("Supergroup %d", id)
	case id < 0:
		info.Type, info.Title = Group, fmt.Sprintf("Group %d", id)
	default:
		info.FirstName = c.user(id).FirstName
	}
	c.byID[id] = &chat{platform: c.platform, info: info, nextID: 1, topics: map[int]bool{}}
	return c.byID[id]
}

func (c *Chats) user(id int64) User {
	if u, ok := c.users[id]; ok {
		return u
	}
	return User{ID: id, FirstName: fmt.Sprintf("User %d", id)}
}

// target returns the chat that a call is about. The lock must be held.
func (c *Chats) target(p params) (*chat, *apiError) {
	if strings.TrimSpace(p["chat_id"]) == "" {
		return nil, badRequest("chat_id is empty")
	}
	one := c.byID[p.int("chat_id", 0)]
	if one == nil {
		return nil, badRequest("chat not found")
	}
	if one.refusal != nil {
		return nil, one.refusal
	}
	return one, nil
}

func getChat(r *request) (any, *apiError) {
	c, refused := r.server.target(r.p)
	if refused != nil {
		return nil, refused
	}
	return *c.info, nil
}

func (c *Chats) answerCallbackQuery(r *request) (any, *apiError) {
	if utf8.RuneCountInString(r.p["text"]) > 200 {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	id := r.p["callback_query_id"]
	if !c.callbacks[id] {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	delete(c.callbacks, id)
	c.answers = append(c.answers, CallbackAnswer{QueryID: id, Text: r.p["text"], Alert: r.p.bool("show_alert")})
	return true, nil
}

// chat is the state of one chat. Messages are never changed but replaced, so that
// a Ledger can share them.
type chat struct {
	platform   *platform
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
func (c *chat) add(m *Message) {
	m.ID, m.ChatID = c.nextID, c.info.ID
	c.nextID++
	c.messages = append(c.messages, m)
	c.messages = newest(c.messages, c.platform.opts.KeepMessages)
	c.view = nil
}

// ring notes that a message of the bot made a sound.
func (c *chat) ring(m *Message) {
	if !m.Silent {
		c.rings = append(c.rings, Ring{MessageID: m.ID, Text: m.Text, At: m.CreatedAt})
		c.rings = newest(c.rings, c.platform.opts.KeepMessages)
	}
}

// remove takes the message at an index away.
func (c *chat) remove(n int) *Message {
	m := c.messages[n]
	c.messages = slices.Delete(c.messages, n, n+1)
	c.deleted = append(c.deleted, m)
	c.deleted = newest(c.deleted, c.platform.opts.KeepMessages)
	c.view = nil
	return m
}

// newest drops the first of a list that is one longer than what is kept.
func newest[T any](list []T, keep int) []T {
	if keep > 0 && len(list) > keep {
		clear(list[:1])
		list = list[1:]
	}
	return list
}

func (c *chat) isGroup() bool { return c.info.Type == Group || c.info.Type == Supergroup }

// supersede puts m in the place of old and keeps the old text.
func (c *chat) supersede(old, m *Message) {
	m.Edits++
	m.UpdatedAt = c.platform.opts.Now()
	if keep := c.platform.opts.KeepEdits; keep >= 0 {
		m.History = append(m.History, Version{Text: old.Text, Entities: old.Entities, At: old.UpdatedAt})
		if keep > 0 && len(m.History) > keep {
			m.History = slices.Clone(m.History[len(m.History)-keep:])
		}
	}
	c.replace(m)
	c.platform.change(ChangeEdited, m)
}

// thread checks message_thread_id.
func (c *chat) thread(p params) (int, *apiError) {
	id := int(p.int("message_thread_id", 0))
	if id != 0 && !c.topics[id] {
		return 0, badRequest("message thread not found")
	}
	return id, nil
}

// replyTarget checks reply_parameters and returns the message that is answered,
// or zero.
func (c *chat) replyTarget(p params) (int, *apiError) {
	var reply struct {
		MessageID    int  `json:"message_id"`
		AllowWithout bool `json:"allow_sending_without_reply"`
	}
	given, refused := p.json("reply_parameters", &reply)
	if refused != nil {
		return 0, refused
	}
	if !given {
		reply.MessageID = int(p.int("reply_to_message_id", 0))
		reply.AllowWithout = p.bool("allow_sending_without_reply")
	}
	if reply.MessageID == 0 {
		if given {
			return 0, badRequest("message to be replied not found")
		}
		return 0, nil
	}
	if _, ok := c.find(reply.MessageID); ok {
		return reply.MessageID, nil
	}
	if reply.AllowWithout {
		return 0, nil
	}
	return 0, badRequest("message to be replied not found")
}
