package slack

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/pattern"
)

// content is what a message shows, read from a call.
type content struct {
	text        string
	blocks      json.RawMessage
	attachments json.RawMessage
	plain       string
	pings       []string
	hasText     bool
	hasBlocks   bool
}

// readContent reads the arguments that make up a message. An update has a
// smaller limit for the text.
func readContent(p params, update bool) (c content, refused *apiError) {
	if p.get("markdown_text") != "" {
		return readMarkdown(p)
	}
	c.text = p.get("text")
	n := utf8.RuneCountInString(c.text)
	switch {
	case update && n > maxUpdateText:
		return c, refuse("msg_too_long")
	case n > maxPostText:
		c.text = string([]rune(c.text)[:maxPostText])
	}
	blocks, refused := checkBlocks(p.get("blocks"), inMessage)
	if refused != nil {
		return c, refused
	}
	c.hasText, c.hasBlocks = strings.TrimSpace(c.text) != "", len(blocks) > 0
	if c.hasBlocks {
		c.blocks = json.RawMessage(p.get("blocks"))
		c.plain = plainBlocks(blocks)
	} else {
		c.plain = plainMrkdwn(c.text)
		if mrkdwn := p.flag("mrkdwn"); mrkdwn != nil && !*mrkdwn {
			c.plain = c.text
		}
	}
	c.pings = pingsOf(c.text, blocks)
	if raw := p.get("attachments"); raw != "" && raw != "[]" {
		var list []json.RawMessage
		if json.Unmarshal([]byte(raw), &list) != nil {
			return c, refuse("invalid_attachments")
		}
		if len(list) > maxAttachments {
			return c, refuse("too_many_attachments")
		}
		c.attachments = json.RawMessage(raw)
	}
	return c, nil
}

func readMarkdown(p params) (content, *apiError) {
	text := p.get("markdown_text")
	if p.get("text") != "" || p.get("blocks") != "" {
		return content{}, refuse("markdown_text_conflict")
	}
	if utf8.RuneCountInString(text) > maxMarkdown {
		return content{}, refuse("msg_too_long")
	}
	return content{text: text, plain: text, pings: pingsIn(text, true), hasText: strings.TrimSpace(text) != ""}, nil
}

func (c content) empty() bool { return !c.hasText && !c.hasBlocks && c.attachments == nil }

// put copies the content into a message.
func (c content) put(m *Message) {
	m.Text, m.Blocks, m.Attachments, m.Plain, m.Pings = c.text, c.blocks, c.attachments, c.plain, c.pings
}

var tsPattern = pattern.Lazy(`^[0-9]{1,12}\.[0-9]{6}$`)

// root checks thread_ts: it must be the root of a thread. The timestamp of an
// answer and one that never was are refused with thread_not_found; for a root
// that was deleted and left nothing behind it returns nothing, and the message
// becomes one of the channel, which is what happens on the real platform.
func (c *channel) root(ts string) (string, *apiError) {
	if ts == "" {
		return "", nil
	}
	if !tsPattern.MatchString(ts) {
		return "", refuse("invalid_thread_ts")
	}
	m := c.byTS[ts]
	switch {
	case m == nil && c.gone[ts]:
		return "", nil
	case m == nil || m.ThreadTS != "":
		return "", refuse("thread_not_found")
	case m.Subtype == "channel_join" || m.Subtype == "channel_leave":
		return "", refuse("cannot_reply_to_message")
	}
	return ts, nil
}

// botMessage returns a message of the bot that is not in a channel yet.
func (w *Workspace) botMessage() *Message {
	return &Message{User: w.team.BotUserID, BotID: w.team.BotID, FromBot: true}
}

func postMessage(r *request) (map[string]any, *apiError) {
	body, refused := readContent(r.p, false)
	if refused != nil {
		return nil, refused
	}
	metadata, _, refused := checkMetadata(r.p)
	if refused != nil {
		return nil, refused
	}
	c, refused := r.writable(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	if body.empty() {
		return nil, refuse("no_text")
	}
	root, refused := c.root(r.p.get("thread_ts"))
	if refused != nil {
		return nil, refused
	}
	m := r.ws.botMessage()
	body.put(m)
	m.Metadata, m.ThreadTS = metadata, root
	m.UnfurlLinks, m.UnfurlMedia = r.p.flag("unfurl_links"), r.p.flag("unfurl_media")
	m.ClientMsgID = r.p.get("client_msg_id")
	if root != "" && r.p.bool("reply_broadcast") {
		m.Broadcast, m.Subtype = true, "thread_broadcast"
	}
	c.post(m)
	out := map[string]any{"channel": c.info.ID, "ts": m.TS, "message": c.wire(m, true)}
	if len([]rune(r.p.get("text"))) > maxPostText {
		out["warning"] = "message_truncated"
		out["response_metadata"] = map[string]any{"warnings": []string{"message_truncated"}}
	}
	return out, nil
}

// post puts a message of the bot into a channel.
func (c *channel) post(m *Message) {
	c.add(ChangeSent, m)
	if m.ThreadTS != "" {
		c.thread(m.ThreadTS).status = Status{}
	}
	c.echo("", m, nil)
}

// own returns a message of the bot that a call wants to change.
func (c *channel) own(ts, otherwise string) (*Message, *apiError) {
	m := c.byTS[ts]
	switch {
	case m == nil || m.Subtype == "tombstone":
		return nil, refuse("message_not_found")
	case !m.FromBot:
		return nil, refuse(otherwise)
	}
	c.ws.expire(m)
	return c.byTS[ts], nil
}

func update(r *request) (map[string]any, *apiError) {
	body, refused := readContent(r.p, true)
	if refused != nil {
		return nil, refused
	}
	metadata, givenMetadata, refused := checkMetadata(r.p)
	if refused != nil {
		return nil, refused
	}
	c, refused := r.conversation(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	old, refused := c.own(r.p.get("ts"), "cant_update_message")
	switch {
	case refused != nil:
		return nil, refused
	case c.info.Archived:
		return nil, refuse("is_inactive")
	case old.Stream == Streaming:
		return nil, refuse("streaming_state_conflict")
	case body.empty() && r.p.get("blocks") == "" && !givenMetadata:
		return nil, refuse("no_text")
	}
	m := *old
	switch {
	case body.empty() && givenMetadata:
	case body.hasBlocks && !body.hasText:
		body.text = old.Text
		body.put(&m)
	case body.empty() && strings.TrimSpace(old.Text) == "":
		return nil, refuse("no_text") // blocks=[] would leave nothing
	case body.empty():
		m.Blocks, m.Plain = nil, plainMrkdwn(old.Text)
	default:
		body.put(&m)
		m.Edited = !body.hasBlocks
	}
	if givenMetadata {
		m.Metadata = metadata
	}
	c.supersede(old, &m)
	c.echo("message_changed", &m, old)
	return map[string]any{"channel": c.info.ID, "ts": m.TS, "text": m.Text, "message": c.wire(&m, true)}, nil
}

func deleteMessage(r *request) (map[string]any, *apiError) {
	c, refused := r.conversation(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	m, refused := c.own(r.p.get("ts"), "cant_delete_message")
	if refused != nil {
		return nil, refused
	}
	c.remove(m)
	c.ws.server.change(ChangeDeleted, m)
	c.echo("message_deleted", m, m)
	return map[string]any{"channel": c.info.ID, "ts": m.TS}, nil
}

// postEphemeral refuses users that the conversation does not have: unlike the
// real platform it knows only members that acted there or were introduced.
func postEphemeral(r *request) (map[string]any, *apiError) {
	body, refused := readContent(r.p, false)
	if refused != nil {
		return nil, refused
	}
	c, refused := r.writable(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	user := r.p.get("user")
	_, known := r.ws.users[user]
	switch {
	case body.empty():
		return nil, refuse("no_text")
	case user == "" || !known:
		return nil, refuse("user_not_found")
	case !c.member(user):
		return nil, refuse("user_not_in_channel")
	}
	root, refused := c.root(r.p.get("thread_ts"))
	if refused != nil {
		return nil, refused
	}
	m := r.ws.botMessage()
	body.put(m)
	c.whisper(m, user, root)
	return map[string]any{"message_ts": m.TS}, nil
}

// whisper shows a message to one user.
func (c *channel) whisper(m *Message, user, root string) {
	s := c.ws.server
	m.Channel, m.TS, m.ThreadTS, m.EphemeralTo = c.info.ID, s.ts(), root, user
	m.CreatedAt = s.opts.Now()
	m.UpdatedAt = m.CreatedAt
	c.ephemerals = append(c.ephemerals, m)
	s.change(ChangeEphemeral, m)
}

func getPermalink(r *request) (map[string]any, *apiError) {
	c, refused := r.conversation(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	ts := r.p.get("message_ts")
	if c.byTS[ts] == nil {
		return nil, refuse("message_not_found")
	}
	link := "https://" + r.ws.team.Domain + ".slack.com/archives/" + c.info.ID + "/p" + strings.Replace(ts, ".", "", 1)
	return map[string]any{"channel": c.info.ID, "permalink": link}, nil
}

// wire returns a message as the API shows it.
func (c *channel) wire(m *Message, metadata bool) map[string]any {
	w := c.ws
	out := map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "team": w.team.ID}
	if m.Text == "" {
		out["text"] = m.Plain
	}
	if m.User != "" {
		out["user"] = m.User
		if home := w.user(m.User).TeamID; home != w.team.ID {
			out["user_team"], out["source_team"], out["team"] = home, home, home
		}
	}
	if m.BotID != "" {
		out["bot_id"] = m.BotID
	}
	if m.FromBot {
		out["app_id"] = w.server.opts.AppID
		out["bot_profile"] = fields{
			{"id", w.team.BotID}, {"app_id", w.server.opts.AppID}, {"name", w.team.BotName}, {"team_id", w.team.ID}, {"deleted", false},
		}.Object()
	}
	for name, value := range map[string]string{"subtype": m.Subtype, "client_msg_id": m.ClientMsgID} {
		if value != "" {
			out[name] = value
		}
	}
	for name, raw := range map[string]json.RawMessage{"blocks": m.Blocks, "attachments": m.Attachments} {
		if raw != nil {
			out[name] = raw
		}
	}
	if metadata && m.Metadata != nil {
		out["metadata"] = m.Metadata
	}
	if m.Edited {
		out["edited"] = map[string]any{"user": m.User, "ts": tsAt(m.UpdatedAt)}
	}
	if len(m.Reactions) > 0 {
		out["reactions"] = wireReactions(m)
	}
	if len(m.Files) > 0 {
		out["files"] = wireFiles(w, m.Files)
	}
	c.wireThread(m, out)
	return out
}

// wireThread adds what a message says about its thread.
func (c *channel) wireThread(m *Message, out map[string]any) {
	if m.ThreadTS != "" {
		out["thread_ts"] = m.ThreadTS
		if root := c.byTS[m.ThreadTS]; root != nil {
			out["parent_user_id"] = root.User
			if m.Broadcast {
				out["root"] = c.wire(root, false)
			}
		}
		return
	}
	t := c.threads[m.TS]
	if t == nil || len(t.replies) == 0 {
		return
	}
	var users []string
	for _, ts := range t.replies {
		if u := c.byTS[ts].User; !slices.Contains(users, u) {
			users = append(users, u)
		}
	}
	out["thread_ts"], out["reply_count"], out["reply_users"] = m.TS, len(t.replies), users
	out["reply_users_count"], out["latest_reply"] = len(users), t.replies[len(t.replies)-1]
}
