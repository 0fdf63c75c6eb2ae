package telegram

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// target returns the chat that a call is about. The lock must be held.
func (s *Server) target(p params) (*chat, *apiError) {
	if strings.TrimSpace(p["chat_id"]) == "" {
		return nil, badRequest("chat_id is empty")
	}
	c := s.chats[p.int("chat_id", 0)]
	if c == nil {
		return nil, badRequest("chat not found")
	}
	if c.refusal != nil {
		return nil, c.refusal
	}
	return c, nil
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

// markup checks reply_markup.
func markup(p params) (json.RawMessage, *apiError) {
	text := p["reply_markup"]
	if text == "" {
		return nil, nil
	}
	var keyboard struct {
		Rows [][]struct {
			Text         string  `json:"text"`
			CallbackData *string `json:"callback_data"`
		} `json:"inline_keyboard"`
	}
	if json.Unmarshal([]byte(text), &keyboard) != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	for _, row := range keyboard.Rows {
		for _, button := range row {
			if button.Text == "" {
				return nil, badRequest("inline keyboard button text must be non-empty")
			}
			if d := button.CallbackData; d != nil && (len(*d) < 1 || len(*d) > 64) {
				return nil, badRequest("BUTTON_DATA_INVALID")
			}
		}
	}
	return json.RawMessage(text), nil
}

func rawParam(p params, name string) (json.RawMessage, *apiError) {
	if p[name] == "" {
		return nil, nil
	}
	if !json.Valid([]byte(p[name])) {
		return nil, badRequest("can't parse %s JSON object", name)
	}
	return json.RawMessage(p[name]), nil
}

// content is what a message shows, read from a call.
type content struct {
	text     string
	entities []Entity
	markup   json.RawMessage
	preview  json.RawMessage
	document *upload // nil for none; then text is its caption
}

func readContent(p params) (c content, refused *apiError) {
	if c.text, c.entities, refused = readText(p, textField, false); refused != nil {
		return c, refused
	}
	if c.markup, refused = markup(p); refused != nil {
		return c, refused
	}
	c.preview, refused = rawParam(p, "link_preview_options")
	return c, refused
}

func (s *Server) sendMessage(p params) (any, *apiError) {
	body, refused := readContent(p)
	if refused != nil {
		return nil, refused
	}
	m, wire, refused := s.publish(p, body)
	if refused != nil {
		return nil, refused
	}
	s.changedMessage(ChangeSent, m)
	return wire, nil
}

func (s *Server) publish(p params, body content) (*Message, *wireMessage, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.target(p)
	if refused != nil {
		return nil, nil, refused
	}
	thread, refused := c.thread(p)
	if refused != nil {
		return nil, nil, refused
	}
	replyTo, refused := c.replyTarget(p)
	if refused != nil {
		return nil, nil, refused
	}
	if refused := s.paceSend(c); refused != nil {
		return nil, nil, refused
	}
	s.checkContent(c, body)
	now := s.opts.Now()
	m := &Message{
		ThreadID: thread, From: s.bot, FromBot: true, ReplyTo: replyTo,
		Text: body.text, Entities: body.entities, Markup: body.markup, LinkPreview: body.preview,
		Silent: p.bool("disable_notification"), CreatedAt: now, UpdatedAt: now,
	}
	if doc := body.document; doc != nil {
		id := s.keepFile(Attachment{Kind: "document", Name: doc.name, Data: doc.data})
		m.Document = &File{ID: id, Name: doc.name, Size: int64(len(doc.data)), Data: doc.data}
	}
	c.add(m, s.opts.KeepMessages)
	c.ring(m, s.opts.KeepMessages)
	clear(c.drafts)
	return m, c.wire(m, true), nil
}

// checkContent records what the real server would silently change.
func (s *Server) checkContent(c *chat, body content) {
	if detail := conflicts(body.entities); detail != "" {
		s.violate(c.info.ID, "entities", detail)
	}
}

const notModified = "message is not modified: specified new message content and reply markup are " +
	"exactly the same as a current content and reply markup of the message"

func (s *Server) editMessageText(p params) (any, *apiError) {
	body, refused := readContent(p)
	if refused != nil {
		return nil, refused
	}
	m, wire, refused := s.rewrite(p, body)
	if refused != nil {
		return nil, refused
	}
	s.changedMessage(ChangeEdited, m)
	return wire, nil
}

func (s *Server) rewrite(p params, body content) (*Message, *wireMessage, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.target(p)
	if refused != nil {
		return nil, nil, refused
	}
	old, ok := c.find(int(p.int("message_id", 0)))
	if !ok {
		return nil, nil, badRequest("message to edit not found")
	}
	if !old.FromBot {
		return nil, nil, badRequest("message can't be edited")
	}
	if old.Document != nil && body.document == nil {
		return nil, nil, badRequest("there is no text in the message to edit")
	}
	if body.document == nil && old.Text == body.text && sameEntities(old.Entities, body.entities) && bytes.Equal(old.Markup, body.markup) {
		return nil, nil, badRequest(notModified)
	}
	if refused := s.paceEdit(c); refused != nil {
		return nil, nil, refused
	}
	s.checkContent(c, body)
	m := *old
	m.Text, m.Entities, m.Markup, m.LinkPreview = body.text, body.entities, body.markup, body.preview
	if doc := body.document; doc != nil {
		id := s.keepFile(Attachment{Kind: "document", Name: doc.name, Data: doc.data})
		m.Document = &File{ID: id, Name: doc.name, Size: int64(len(doc.data)), Data: doc.data}
	}
	s.supersede(c, old, &m)
	return &m, c.wire(&m, true), nil
}

// supersede puts m in the place of old and keeps the old text.
func (s *Server) supersede(c *chat, old, m *Message) {
	m.Edits++
	m.UpdatedAt = s.opts.Now()
	if keep := s.opts.KeepEdits; keep >= 0 {
		m.History = append(m.History, Version{Text: old.Text, Entities: old.Entities, At: old.UpdatedAt})
		if keep > 0 && len(m.History) > keep {
			m.History = slices.Clone(m.History[len(m.History)-keep:])
		}
	}
	c.replace(m)
}

func sameEntities(a, b []Entity) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func (s *Server) deleteMessage(p params) (any, *apiError) {
	s.mu.Lock()
	c, refused := s.target(p)
	if refused != nil {
		s.mu.Unlock()
		return nil, refused
	}
	n, ok := c.index(int(p.int("message_id", 0)))
	if !ok {
		s.mu.Unlock()
		return nil, badRequest("message to delete not found")
	}
	if !c.messages[n].FromBot && c.isGroup() && !c.botIsAdmin {
		s.mu.Unlock()
		return nil, badRequest("message can't be deleted")
	}
	m := c.remove(n, s.opts.KeepMessages)
	s.mu.Unlock()
	s.changedMessage(ChangeDeleted, m)
	return true, nil
}

func (s *Server) sendChatAction(p params) (any, *apiError) {
	switch p["action"] {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice",
		"upload_document", "choose_sticker", "find_location", "record_video_note", "upload_video_note":
	default:
		return nil, badRequest("wrong parameter action in request")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.target(p)
	if refused != nil {
		return nil, refused
	}
	if _, refused := c.thread(p); refused != nil {
		return nil, refused
	}
	c.actions++
	c.lastAction, c.actionAt, c.view = p["action"], s.opts.Now(), nil
	return true, nil
}

func (s *Server) sendMessageDraft(p params) (any, *apiError) {
	text, entities, refused := readText(p, textField, true)
	if refused != nil {
		return nil, refused
	}
	id := p.int("draft_id", 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.target(p)
	if refused != nil {
		return nil, refused
	}
	if c.info.Type != Private {
		return nil, badRequest("drafts can be sent only to private chats")
	}
	if id == 0 {
		return nil, badRequest("draft_id must be non-zero")
	}
	thread, refused := c.thread(p)
	if refused != nil {
		return nil, refused
	}
	if c.drafts == nil {
		c.drafts = map[int64]Draft{}
	}
	c.drafts[id] = Draft{
		ID: id, ThreadID: thread, Text: text, Entities: entities,
		At: s.opts.Now(), Updates: c.drafts[id].Updates + 1,
	}
	c.view = nil
	return true, nil
}

// reactions are the emoji that bots may put on messages, without variation
// selectors.
const reactions = " 👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 " +
	"❤\u200d🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 " +
	"😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡 "

func (s *Server) setMessageReaction(p params) (any, *apiError) {
	var wanted []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if _, refused := p.json("reaction", &wanted); refused != nil {
		return nil, refused
	}
	if len(wanted) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	var emoji []string
	for _, r := range wanted {
		plain := strings.ReplaceAll(r.Emoji, "\ufe0f", "")
		if r.Type != "emoji" || plain == "" || !strings.Contains(reactions, " "+plain+" ") {
			return nil, badRequest("REACTION_INVALID")
		}
		emoji = append(emoji, r.Emoji)
	}
	s.mu.Lock()
	c, refused := s.target(p)
	if refused != nil {
		s.mu.Unlock()
		return nil, refused
	}
	old, ok := c.find(int(p.int("message_id", 0)))
	if !ok {
		s.mu.Unlock()
		return nil, badRequest("message to react not found")
	}
	m := *old
	m.Reactions = emoji
	c.replace(&m)
	s.mu.Unlock()
	s.changedMessage(ChangeReacted, &m)
	return true, nil
}
