package telegram

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

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

func sendMessage(r *request) (any, *apiError) {
	body, refused := readContent(r.p)
	if refused != nil {
		return nil, refused
	}
	return r.publish(body)
}

// publish sends a message of the bot.
func (r *request) publish(body content) (any, *apiError) {
	s := r.server
	c, refused := s.target(r.p)
	if refused != nil {
		return nil, refused
	}
	thread, refused := c.thread(r.p)
	if refused != nil {
		return nil, refused
	}
	replyTo, refused := c.replyTarget(r.p)
	if refused != nil {
		return nil, refused
	}
	if refused := s.paceSend(c); refused != nil {
		return nil, refused
	}
	s.checkEntities(c, body.entities)
	now := s.opts.Now()
	m := &Message{
		ThreadID: thread, From: s.bot, FromBot: true, ReplyTo: replyTo,
		Text: body.text, Entities: body.entities, Markup: body.markup, LinkPreview: body.preview,
		Silent: r.p.bool("disable_notification"), CreatedAt: now, UpdatedAt: now, Document: s.files.document(body.document),
	}
	c.add(m)
	c.ring(m)
	clear(c.drafts)
	s.change(ChangeSent, m)
	return c.wire(m, true), nil
}

const notModified = "message is not modified: specified new message content and reply markup are " +
	"exactly the same as a current content and reply markup of the message"

func editMessageText(r *request) (any, *apiError) {
	body, refused := readContent(r.p)
	if refused != nil {
		return nil, refused
	}
	return r.rewrite(body)
}

// rewrite edits a message of the bot.
func (r *request) rewrite(body content) (any, *apiError) {
	s := r.server
	c, refused := s.target(r.p)
	if refused != nil {
		return nil, refused
	}
	old, ok := c.find(int(r.p.int("message_id", 0)))
	switch {
	case !ok:
		return nil, badRequest("message to edit not found")
	case !old.FromBot:
		return nil, badRequest("message can't be edited")
	case old.Document != nil && body.document == nil:
		return nil, badRequest("there is no text in the message to edit")
	case body.document == nil && old.Text == body.text && sameEntities(old.Entities, body.entities) && bytes.Equal(old.Markup, body.markup):
		return nil, badRequest(notModified)
	}
	if refused := s.paceEdit(c); refused != nil {
		return nil, refused
	}
	s.checkEntities(c, body.entities)
	m := *old
	m.Text, m.Entities, m.Markup, m.LinkPreview = body.text, body.entities, body.markup, body.preview
	m.Document = s.files.document(body.document)
	c.supersede(old, &m)
	return c.wire(&m, true), nil
}

func sameEntities(a, b []Entity) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func deleteMessage(r *request) (any, *apiError) {
	c, refused := r.server.target(r.p)
	if refused != nil {
		return nil, refused
	}
	n, ok := c.index(int(r.p.int("message_id", 0)))
	if !ok {
		return nil, badRequest("message to delete not found")
	}
	if !c.messages[n].FromBot && c.isGroup() && !c.botIsAdmin {
		return nil, badRequest("message can't be deleted")
	}
	r.server.change(ChangeDeleted, c.remove(n))
	return true, nil
}

func sendChatAction(r *request) (any, *apiError) {
	switch r.p["action"] {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice",
		"upload_document", "choose_sticker", "find_location", "record_video_note", "upload_video_note":
	default:
		return nil, badRequest("wrong parameter action in request")
	}
	c, refused := r.server.target(r.p)
	if refused != nil {
		return nil, refused
	}
	if _, refused := c.thread(r.p); refused != nil {
		return nil, refused
	}
	c.actions++
	c.lastAction, c.actionAt, c.view = r.p["action"], r.server.opts.Now(), nil
	return true, nil
}

func sendMessageDraft(r *request) (any, *apiError) {
	text, entities, refused := readText(r.p, textField, true)
	if refused != nil {
		return nil, refused
	}
	id := r.p.int("draft_id", 0)
	c, refused := r.server.target(r.p)
	if refused != nil {
		return nil, refused
	}
	if c.info.Type != Private {
		return nil, badRequest("drafts can be sent only to private chats")
	}
	if id == 0 {
		return nil, badRequest("draft_id must be non-zero")
	}
	thread, refused := c.thread(r.p)
	if refused != nil {
		return nil, refused
	}
	if c.drafts == nil {
		c.drafts = map[int64]Draft{}
	}
	c.drafts[id] = Draft{
		ID: id, ThreadID: thread, Text: text, Entities: entities,
		At: r.server.opts.Now(), Updates: c.drafts[id].Updates + 1,
	}
	c.view = nil
	return true, nil
}

// reactions are the emoji that bots may put on messages, without variation
// selectors.
const reactions = " 👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 " +
	"❤\u200d🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 " +
	"😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡 "

func setMessageReaction(r *request) (any, *apiError) {
	var wanted []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if _, refused := r.p.json("reaction", &wanted); refused != nil {
		return nil, refused
	}
	if len(wanted) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	var emoji []string
	for _, one := range wanted {
		plain := strings.ReplaceAll(one.Emoji, "\ufe0f", "")
		if one.Type != "emoji" || plain == "" || !strings.Contains(reactions, " "+plain+" ") {
			return nil, badRequest("REACTION_INVALID")
		}
		emoji = append(emoji, one.Emoji)
	}
	c, refused := r.server.target(r.p)
	if refused != nil {
		return nil, refused
	}
	old, ok := c.find(int(r.p.int("message_id", 0)))
	if !ok {
		return nil, badRequest("message to react not found")
	}
	m := *old
	m.Reactions = emoji
	c.replace(&m)
	r.server.change(ChangeReacted, &m)
	return true, nil
}
