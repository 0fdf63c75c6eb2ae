package telegram

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// anonymousAdmin is the account under which administrators write who hide.
const anonymousAdmin = 1087968824

// Sent tells what became of something that a person did. UpdateID is zero if
// the bot does not get to know of it.
type Sent struct {
	UpdateID  int64
	ChatID    int64
	MessageID int
}

// SendText lets a user write a text to a chat and returns the ids of the update
// and the message.
func (s *Server) SendText(chatID, userID int64, text string) (updateID int64, messageID int) {
	sent := s.Person(userID).In(chatID).Says(text)
	return sent.UpdateID, sent.MessageID
}

// Person is someone who does things in a chat. The methods that return a Person
// leave the receiver as it is.
type Person struct {
	server  *Server
	user    int64
	chat    int64
	thread  int
	replyTo int
	extra   map[string]any
}

// Person returns a user in their private chat with the bot.
func (s *Server) Person(userID int64) Person {
	return Person{server: s, user: userID, chat: userID}
}

// In returns the person in another chat.
func (p Person) In(chatID int64) Person { p.chat, p.thread = chatID, 0; return p }

// InTopic returns the person in a topic, which comes into being when they write.
func (p Person) InTopic(threadID int) Person { p.thread = threadID; return p }

// ReplyingTo returns the person answering a message.
func (p Person) ReplyingTo(messageID int) Person { p.replyTo = messageID; return p }

// With returns the person with a field that is added to their messages, or
// replaces one, such as "forward_origin" or "entities".
func (p Person) With(field string, value any) Person {
	p.extra = maps.Clone(p.extra)
	if p.extra == nil {
		p.extra = map[string]any{}
	}
	p.extra[field] = value
	return p
}

// Says sends a text. Commands, mentions and links in it become entities.
func (p Person) Says(text string) Sent {
	return p.send(text, FindEntities(text), nil)
}

// Attachment is a file. Kind is "document", "photo", "voice", "audio", "video"
// or "sticker".
type Attachment struct {
	Kind string
	Name string
	MIME string
	Data []byte
	Size int64 // what Telegram says it is; zero for the length of Data
}

// Sends sends a file with a caption, which may be empty.
func (p Person) Sends(a Attachment, caption string) Sent {
	p.server.mu.Lock()
	fields := p.server.files.describe(a)
	p.server.mu.Unlock()
	if caption != "" {
		fields["caption"] = caption
		if entities := FindEntities(caption); len(entities) > 0 {
			fields["caption_entities"] = entities
		}
	}
	return p.send("", nil, fields)
}

// SendsAlbum sends several files as one group; the caption is on the first.
func (p Person) SendsAlbum(caption string, attachments ...Attachment) []Sent {
	var out []Sent
	group := "album" + strconv.FormatInt(p.server.opts.Now().UnixNano(), 10)
	for _, a := range attachments {
		out = append(out, p.With("media_group_id", group).Sends(a, caption))
		caption = ""
	}
	return out
}

// send puts a message into the chat and tells the bot.
func (p Person) send(text string, entities []Entity, fields map[string]any) Sent {
	s := p.server
	s.mu.Lock()
	defer s.unlock()
	c := s.open(p.chat)
	if p.thread != 0 {
		c.topics[p.thread] = true
		if !c.info.IsForum {
			info := *c.info
			info.IsForum = true
			c.info = &info
		}
	}
	now := s.opts.Now()
	m := &Message{
		ThreadID: p.thread, From: s.user(p.user), ReplyTo: p.replyTo,
		Text: text, Entities: entities, CreatedAt: now, UpdatedAt: now, fields: fields,
	}
	c.add(m)
	if c.visible(m, fields) {
		m.UpdateID = s.tell(c, "message", m, fields, p.extra)
	}
	s.change(ChangeReceived, m)
	return Sent{UpdateID: m.UpdateID, ChatID: p.chat, MessageID: m.ID}
}

// tell queues an update about a message. The lock must be held.
func (u *Updates) tell(c *chat, kind string, m *Message, extras ...map[string]any) int64 {
	fields := map[string]any{}
	for _, extra := range extras {
		maps.Copy(fields, extra)
	}
	body, err := extend(c.wire(m, true), fields)
	if err != nil {
		panic(fmt.Sprintf("telegram emulator: a message of kind %q: %v", kind, err))
	}
	return u.enqueue(Update{Kind: kind, ChatID: c.info.ID, Payload: body})
}

// visible reports whether the bot gets a message, by the rules of privacy mode.
func (c *chat) visible(m *Message, fields map[string]any) bool {
	if !c.platform.opts.Privacy || !c.isGroup() || c.botIsAdmin {
		return true
	}
	if replied, ok := c.find(m.ReplyTo); ok && replied.FromBot {
		return true
	}
	caption, _ := fields["caption"].(string)
	if m.Text == "" && caption == "" {
		return len(fields) > 0 && fields["new_chat_members"] != nil
	}
	text := m.Text + caption
	if strings.Contains(strings.ToLower(text), "@"+strings.ToLower(c.platform.bot.Username)) {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return strings.HasPrefix(first, "/") && !strings.Contains(first, "@")
}
