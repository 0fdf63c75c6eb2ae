package telegram

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"remote-agent/internal/messages"
)

// The types below are the parts of Bot API objects that this package reads. The
// library's models are not used for receiving: they refuse a whole update when
// a part of it that nobody needs is of a kind they do not know.

type update struct {
	ID       json.RawMessage `json:"update_id"`
	Message  *message        `json:"message"`
	Edited   *message        `json:"edited_message"`
	Member   *memberChange   `json:"my_chat_member"`
	Callback *callbackQuery  `json:"callback_query"`
}

type user struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
}

type chatInfo struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"`
	Title    string `json:"title"`
	Username string `json:"username"`
}

type memberChange struct {
	Chat chatInfo `json:"chat"`
	From user     `json:"from"`
	Date int64    `json:"date"`
	New  struct {
		Status string `json:"status"`
	} `json:"new_chat_member"`
}

type callbackQuery struct {
	ID      string   `json:"id"`
	From    *user    `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	User   *user  `json:"user"`
	URL    string `json:"url"` // behind the words of a "text_link"
}

type origin struct {
	SenderUser *user     `json:"sender_user"`
	SenderName string    `json:"sender_user_name"`
	SenderChat *chatInfo `json:"sender_chat"`
	Chat       *chatInfo `json:"chat"`
}

type textQuote struct {
	Text string `json:"text"`
}

type file struct {
	ID       string `json:"file_id"`
	Name     string `json:"file_name"`
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"file_size"`
	Emoji    string `json:"emoji"`
	Animated bool   `json:"is_animated"`
	Video    bool   `json:"is_video"`
}

type message struct {
	ID              int       `json:"message_id"`
	Thread          int       `json:"message_thread_id"`
	TopicMessage    bool      `json:"is_topic_message"`
	From            *user     `json:"from"`
	SenderChat      *chatInfo `json:"sender_chat"`
	Chat            chatInfo  `json:"chat"`
	Date            int64     `json:"date"`
	MigrateTo       int64     `json:"migrate_to_chat_id"`
	MigrateFrom     int64     `json:"migrate_from_chat_id"`
	Text            string    `json:"text"`
	Entities        []entity  `json:"entities"`
	Caption         string    `json:"caption"`
	CaptionEntities []entity  `json:"caption_entities"`

	ForwardOrigin *origin    `json:"forward_origin"`
	ViaBot        *user      `json:"via_bot"` // the inline bot that made it
	ReplyTo       *message   `json:"reply_to_message"`
	Quote         *textQuote `json:"quote"`
	ExternalReply *message   `json:"external_reply"` // what it replies to, in another chat or topic
	Origin        *origin    `json:"origin"`         // of that

	Album     string `json:"media_group_id"` // several messages that were sent as one
	Photo     []file `json:"photo"`
	Document  *file  `json:"document"`
	Animation *file  `json:"animation"`
	Audio     *file  `json:"audio"`
	Video     *file  `json:"video"`
	VideoNote *file  `json:"video_note"`
	Voice     *file  `json:"voice"`
	Sticker   *file  `json:"sticker"`

	// Content whose form may change; see shown.
	RichMessage json.RawMessage `json:"rich_message"`
	Contact     json.RawMessage `json:"contact"`
	Location    json.RawMessage `json:"location"`
	Venue       json.RawMessage `json:"venue"`
	Poll        json.RawMessage `json:"poll"`
	Dice        json.RawMessage `json:"dice"`
	Game        json.RawMessage `json:"game"`
	Story       json.RawMessage `json:"story"`
	Checklist   json.RawMessage `json:"checklist"`
	PaidMedia   json.RawMessage `json:"paid_media"`

	TopicCreated json.RawMessage `json:"forum_topic_created"`
}

// updateID reads the id of an update that may be malformed otherwise.
func updateID(raw []byte) (int64, bool) {
	var u struct {
		ID json.RawMessage `json:"update_id"`
	}
	// The rest may be of the wrong type or cut off; the id is what was read
	// before that.
	_ = json.Unmarshal(raw, &u)
	return parseUpdateID(u.ID)
}

func parseUpdateID(raw json.RawMessage) (int64, bool) {
	id, err := strconv.ParseInt(strings.Trim(string(bytes.TrimSpace(raw)), `"`), 10, 64)
	// The offset that confirms an update is its id plus one and must not be
	// negative: that would make Telegram forget everything.
	if err != nil || id < 0 || id >= 1<<62 {
		return 0, false
	}
	return id, true
}

func eventID(id int64) messages.EventID { return messages.EventID(strconv.FormatInt(id, 10)) }

var errNoUpdateID = errors.New("the update has no usable update_id")

// wordsOf collects the words of a rich message, whatever its blocks are, or of what shown
// lists, whose numbers it names.
func wordsOf(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var parts []string
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case string:
			parts = append(parts, v)
		case float64:
			parts = append(parts, key+": "+strconv.FormatFloat(v, 'f', -1, 64))
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case map[string]any:
			for _, key := range []string{
				"first_name", "last_name", "phone_number", "title", "address", "question", "options", "tasks", "emoji", "value",
				"summary", "header", "text", "texts", "voter_count", "completion_date", "location", "latitude", "longitude",
				"blocks", "items", "cells", "rows", "credit", "caption",
			} {
				if e, ok := v[key]; ok {
					walk(key, e)
				}
			}
		}
	}
	walk("", v)
	return strings.TrimSpace(strings.Join(parts, "\n"))
}
