package slack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"remote-agent/internal/platform"
)

// The wire types hold what is read of Slack's payloads and no more. They are
// decoded with platform.Lenient: a field of another type than expected is empty, and
// what is essential is checked after that. Where the library has a type for the
// same, it says why that is not used.

// envelope is the outer part of an event (Events API, event wrapper).
// slackevents.ParseEvent refuses it as a whole for one block that it cannot decode.
type envelope struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	TeamID         string `json:"team_id"`
	ContextTeamID  string `json:"context_team_id"`
	EnterpriseID   string `json:"enterprise_id"`
	EventID        string `json:"event_id"`
	Authorizations []struct {
		EnterpriseID string `json:"enterprise_id"`
		TeamID       string `json:"team_id"`
		UserID       string `json:"user_id"`
		IsBot        bool   `json:"is_bot"`
		OrgWide      bool   `json:"is_enterprise_install"`
	} `json:"authorizations"`
	External bool            `json:"is_ext_shared_channel"`
	Event    json.RawMessage `json:"event"`
}

// event is the inner part. slackevents has another type for each, which refuse a
// message for a malformed block or file, and none for what is new.
type event struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Hidden      bool            `json:"hidden"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	Parent      string          `json:"parent_user_id"`
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	EventTS     string          `json:"event_ts"`
	ThreadTS    string          `json:"thread_ts"`
	ClientID    string          `json:"client_msg_id"`
	Team        string          `json:"team"`
	UserTeam    string          `json:"user_team"`
	SourceTeam  string          `json:"source_team"`
	Profile     profile         `json:"user_profile"`
	Files       json.RawMessage `json:"files"`
	Attachments json.RawMessage `json:"attachments"`
	Message     json.RawMessage `json:"message"`              // of message_changed
	Previous    json.RawMessage `json:"previous_message"`     // of message_deleted
	Streams     json.RawMessage `json:"streaming_message_ts"` // of agent_session_stopped
	Edited      struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Tokens struct {
		Bot []string `json:"bot"`
	} `json:"tokens"` // of tokens_revoked
}

// profile is how somebody is called. slack.Msg has no user_profile.
type profile struct {
	DisplayName string `json:"display_name"`
	RealName    string `json:"real_name"`
	Name        string `json:"name"`
}

func (p profile) name() string {
	return platform.Cut(cmp.Or(strings.TrimSpace(p.DisplayName), strings.TrimSpace(p.RealName), strings.TrimSpace(p.Name)), 80)
}

// file is an attachment of a message. slack.File has some eighty fields, of which one
// of another type refuses the file and the message.
type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Type     string `json:"mimetype"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"`
	Download string `json:"url_private_download"`
	Private  string `json:"url_private"`
}

// kind returns the media type of what Slack hands out. A canvas comes as HTML.
func (f file) kind() string {
	if f.Type == "application/vnd.slack-docs" {
		return "text/html"
	}
	return f.Type
}

// shared is a message that somebody shared, or what a link shows. slack.Attachment
// does not tell the two apart and decodes their blocks.
type shared struct {
	Share    bool            `json:"is_share"`
	Unfurl   bool            `json:"is_msg_unfurl"`
	Text     string          `json:"text"`
	Fallback string          `json:"fallback"` // with the author and the time of what was said
	Author   string          `json:"author_name"`
	Files    json.RawMessage `json:"files"`
	Blocks   []struct {
		Message struct {
			Blocks any `json:"blocks"`
		} `json:"message"`
	} `json:"message_blocks"`
}

// said returns what a shared message says, which for one of an app may be in its blocks only.
func (s shared) said() string {
	text := s.Text
	for _, b := range s.Blocks {
		text = cmp.Or(text, ofBlock(b.Message.Blocks))
	}
	if len(list[file](s.Files)) == 0 {
		text = cmp.Or(text, s.Fallback)
	}
	return text
}

// elements returns the elements of a JSON array, or none of what is not one.
func elements(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// list decodes a JSON array whose elements may be malformed: those are left out.
func list[T any](raw json.RawMessage) []T {
	var out []T
	for _, e := range elements(raw) {
		var v T
		if platform.Lenient(e, &v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// slash is what a slash command sends, as a form over HTTP and as JSON over
// Socket Mode. slack.SlashCommand takes a flag in JSON only as a string.
type slash struct {
	Text         string `json:"text"`
	Trigger      string `json:"trigger_id"`
	ResponseURL  string `json:"response_url"`
	TeamID       string `json:"team_id"`
	EnterpriseID string `json:"enterprise_id"`
	OrgWide      flag   `json:"is_enterprise_install"`
	ChannelID    string `json:"channel_id"`
	UserID       string `json:"user_id"`
	UserName     string `json:"user_name"`
	SSLCheck     string `json:"ssl_check"` // "1": Slack only looks at the certificate
}

// interaction is what a button or a dialog sends. slack.InteractionCallback decodes
// the message and the view with all their blocks, and refuses all for one.
type interaction struct {
	Type        string `json:"type"`
	Trigger     string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
	Team        struct {
		ID           string `json:"id"`
		EnterpriseID string `json:"enterprise_id"`
	} `json:"team"`
	Enterprise struct {
		ID string `json:"id"`
	} `json:"enterprise"`
	OrgWide flag `json:"is_enterprise_install"`
	User    struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Username string `json:"username"`
		TeamID   string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		MessageTS string `json:"message_ts"`
		ChannelID string `json:"channel_id"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions json.RawMessage `json:"actions"`
	View    struct {
		Metadata string          `json:"private_metadata"`
		State    json.RawMessage `json:"state"`
	} `json:"view"`
}

// pressed is a button that was pressed; it is taken without slack.BlockAction, so
// that one that is malformed does not hold up the others.
type pressed struct {
	Type     string `json:"type"`
	Block    string `json:"block_id"`
	ActionID string `json:"action_id"`
	Value    string `json:"value"`
}

// flag is a boolean that Slack writes as a boolean or as a string.
type flag bool

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (f *flag) UnmarshalJSON(raw []byte) error {
	*f = flag(bytes.Equal(raw, []byte("true")) || bytes.Equal(raw, []byte(strconv.Quote("true"))))
	return nil
}

// counts reports whether a message of this subtype is something that a person
// says (contract B1.11).
func counts(subtype string) bool {
	switch subtype {
	case "", "thread_broadcast", "file_share", "me_message":
		return true
	}
	return false
}
