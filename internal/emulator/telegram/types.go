package telegram

import (
	"encoding/json"
	"time"
)

// User is a Telegram account.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username,omitempty"`
}

// Chat types, as in the Bot API.
const (
	Private    = "private"
	Group      = "group"
	Supergroup = "supergroup"
	Channel    = "channel"
)

// Chat describes a chat.
type Chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"` // has topics; also possible in a private chat
}

// Entity is a part of a text with a meaning or a style. Offset and Length count
// UTF-16 code units.
type Entity struct {
	Type          string `json:"type"`
	Offset        int    `json:"offset"`
	Length        int    `json:"length"`
	URL           string `json:"url,omitempty"`
	User          *User  `json:"user,omitempty"`
	Language      string `json:"language,omitempty"`
	CustomEmojiID string `json:"custom_emoji_id,omitempty"`
}

// Message is what a person sees of one message. Messages in a Ledger are never
// changed afterwards.
type Message struct {
	ID       int
	ChatID   int64
	ThreadID int
	From     User
	FromBot  bool // sent by the bot under test
	UpdateID int64

	Text     string // the caption if there is a Document
	Entities []Entity
	Document *File           // a file that the bot sent
	ReplyTo  int             // message id, zero for none
	Markup   json.RawMessage // reply_markup as it was sent

	Silent      bool            // without notification
	LinkPreview json.RawMessage // link_preview_options as they were sent
	Reactions   []string        // emoji that the bot put on it

	Edits     int
	History   []Version // earlier texts, oldest first; see Options.KeepEdits
	CreatedAt time.Time
	UpdatedAt time.Time

	fields map[string]any // what a person sent besides text, such as a photo
}

// File is a file that people see in a chat. Its data must not be changed.
type File struct {
	ID   string // for getFile
	Name string
	Size int64
	Data []byte
}

// PreviewDisabled reports whether the message was sent, or last edited, with its
// link preview switched off.
func (m Message) PreviewDisabled() bool {
	var o struct {
		IsDisabled bool `json:"is_disabled"`
	}
	return json.Unmarshal(m.LinkPreview, &o) == nil && o.IsDisabled
}

// Button is a button under a message.
type Button struct {
	Text  string `json:"text"`
	Data  string `json:"callback_data"`
	Style string `json:"style"`
}

// Keyboard returns the rows of buttons under the message; nil if it has none.
func (m Message) Keyboard() [][]Button {
	var markup struct {
		Rows [][]Button `json:"inline_keyboard"`
	}
	if len(m.Markup) == 0 || json.Unmarshal(m.Markup, &markup) != nil {
		return nil
	}
	return markup.Rows
}

// Version is a text that a message had before it was edited.
type Version struct {
	Text     string
	Entities []Entity
	At       time.Time
}

// Draft is a text that a private chat shows while it is being written.
type Draft struct {
	ID       int64
	ThreadID int
	Text     string
	Entities []Entity
	At       time.Time
	Updates  int
}

// Command is an entry of the bot's menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// CallbackAnswer is what the bot answered to a pressed button.
type CallbackAnswer struct {
	QueryID string
	Text    string
	Alert   bool
}

// wireMessage is a message as the Bot API shows it.
type wireMessage struct {
	MessageID       int             `json:"message_id"`
	MessageThreadID int             `json:"message_thread_id,omitempty"`
	From            *User           `json:"from,omitempty"`
	Date            int64           `json:"date"`
	Chat            *Chat           `json:"chat"`
	IsTopicMessage  bool            `json:"is_topic_message,omitempty"`
	ReplyToMessage  json.RawMessage `json:"reply_to_message,omitempty"`
	EditDate        int64           `json:"edit_date,omitempty"`
	Text            string          `json:"text,omitempty"`
	Entities        []Entity        `json:"entities,omitempty"`
	Caption         string          `json:"caption,omitempty"`
	CaptionEntities []Entity        `json:"caption_entities,omitempty"`
	Document        *wireFile       `json:"document,omitempty"`
	ReplyMarkup     json.RawMessage `json:"reply_markup,omitempty"`
}

type wireFile struct {
	ID       string `json:"file_id"`
	UniqueID string `json:"file_unique_id"`
	Name     string `json:"file_name"`
	Size     int64  `json:"file_size"`
}

// wire renders m for the bot. The server's lock must be held.
func (c *chat) wire(m *Message, withReply bool) *wireMessage {
	w := &wireMessage{
		MessageID:       m.ID,
		MessageThreadID: m.ThreadID,
		From:            &m.From,
		Date:            m.CreatedAt.Unix(),
		Chat:            c.info,
		IsTopicMessage:  m.ThreadID != 0 && c.info.IsForum,
		Text:            m.Text,
		Entities:        m.Entities,
		ReplyMarkup:     m.Markup,
	}
	if doc := m.Document; doc != nil {
		w.Text, w.Entities, w.Caption, w.CaptionEntities = "", nil, m.Text, m.Entities
		w.Document = &wireFile{ID: doc.ID, UniqueID: "u" + doc.ID, Name: doc.Name, Size: doc.Size}
	}
	if m.Edits > 0 {
		w.EditDate = m.UpdatedAt.Unix()
	}
	if withReply && m.ReplyTo != 0 {
		if replied, ok := c.find(m.ReplyTo); ok {
			w.ReplyToMessage, _ = extend(c.wire(replied, false), replied.fields) // it was sent to the bot in the same form
		}
	}
	return w
}

// extend adds fields to a JSON object. It keeps the object as it is if there is
// nothing to add.
func extend(object any, extra map[string]any) (json.RawMessage, error) {
	b, err := json.Marshal(object)
	if err != nil || len(extra) == 0 {
		return b, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	for name, value := range extra {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}
