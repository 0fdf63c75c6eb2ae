package slack

import (
	"cmp"
	"fmt"
	"slices"

	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/pattern"
)

// Sent tells what became of something that a person did.
type Sent struct {
	Channel string
	TS      string // of the message
	Thread  string // root of the thread in which an answer to it belongs

	// Deliveries are the ids of what the bot is sent because of it, in order;
	// none if the bot does not get to know.
	Deliveries []string

	TriggerID   string // of commands and interactions
	ResponseURL string
}

// Person is someone who does things in a conversation. The methods that return a
// Person leave the receiver as it is.
type Person struct {
	ws      *Workspace
	user    string
	channel string
	thread  string
	home    string // workspace where they are at home, if elsewhere
	bot     string // bot id, if it is one
	copies  []Copy
	atOnce  bool
}

// User returns a user in their direct conversation with the bot.
func (w *Workspace) User(id string) Person {
	return Person{ws: w, user: id, channel: w.DM(id)}
}

// In returns the person in another conversation.
func (p Person) In(channelID string) Person { p.channel, p.thread = channelID, ""; return p }

// InThread returns the person in a thread, by the timestamp of its root.
func (p Person) InThread(root string) Person { p.thread = root; return p }

// From returns the person as somebody of another organization, who is in a
// channel that both share.
func (p Person) From(teamID string) Person { p.home = teamID; return p }

// AsBot returns the person as a bot with an id.
func (p Person) AsBot(botID string) Person { p.bot = botID; return p }

// Copy is one event about a message.
type Copy struct {
	Type string // "message" or "app_mention"

	// Lost is how many attempts get lost before they reach the bot, so that a
	// retry is the first that it sees.
	Lost int

	// NewTS makes it an event with another timestamp and the same
	// client_msg_id, as Slack sometimes sends.
	NewTS bool

	// NewID gives an event that repeats an earlier one another event_id.
	NewID bool
}

// Delivered returns the person whose messages reach the bot as exactly these
// events, in this order: each is sent after the one before has been answered.
// Without it a mention in a channel is an app_mention and then a message, and
// everything else a message; and only what the app subscribed to and may read is
// sent. Events of the same type are repetitions with the same event_id.
func (p Person) Delivered(copies ...Copy) Person { p.copies = slices.Clone(copies); return p }

// AtOnce returns the person whose events are all sent at the same time.
func (p Person) AtOnce() Person { p.atOnce = true; return p }

// Says posts a text, which is in Slack's encoding: users are "<@U1>", channels
// "<#C1>", and what Escape escapes is escaped.
func (p Person) Says(text string) Sent { return p.send(text, nil, nil) }

// Mentions posts a text with a mention of the bot in front.
func (p Person) Mentions(text string) Sent {
	return p.Says("<@" + p.ws.BotUser() + "> " + text)
}

// Broadcasts answers in the thread and shows the answer in the channel too.
func (p Person) Broadcasts(text string) Sent {
	return p.send(text, nil, func(m *Message) { m.Subtype, m.Broadcast = "thread_broadcast", true })
}

// Shares posts files with a text, which may be empty.
func (p Person) Shares(text string, files ...File) Sent {
	return p.send(text, files, func(m *Message) { m.Subtype = "file_share" })
}

// Joins lets the person enter the channel, which shows a message.
func (p Person) Joins() Sent {
	return p.send("<@"+p.user+"> has joined the channel", nil, func(m *Message) { m.Subtype = "channel_join" })
}

// enter makes the person known and a member. The lock must be held.
func (p Person) enter() *channel {
	w := p.ws
	w.know(p.user, p.home)
	if p.home != "" {
		u := w.users[p.user]
		u.TeamID = p.home
		w.users[p.user] = u
	}
	c := w.open(p.channel)
	c.enter(p.user)
	if p.home != "" && p.home != w.team.ID {
		c.info.Shared = true
	}
	return c
}

func (p Person) send(text string, files []File, shape func(*Message)) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	c := p.enter()
	m := &Message{
		User: p.user, BotID: p.bot, ThreadTS: p.thread, Text: text, Plain: plainMrkdwn(text),
		ClientMsgID: s.id("client-"),
	}
	if text != "" {
		m.Blocks = richText(text)
	}
	for _, f := range files {
		f.Title = cmp.Or(f.Title, f.Name)
		m.Files = append(m.Files, s.files.add(&file{File: f, complete: true}).File)
	}
	if shape != nil {
		shape(m)
	}
	c.add(ChangeReceived, m)
	return Sent{
		Channel: c.info.ID, TS: m.TS, Thread: cmp.Or(m.ThreadTS, m.TS),
		Deliveries: s.deliver(p.atOnce, p.tell(c, m)...),
	}
}

// Deletes takes a message away. The root of a thread with answers leaves a
// tombstone, and the bot is told that it was changed.
func (p Person) Deletes(ts string) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	c := p.ws.open(p.channel)
	sent := Sent{Channel: p.channel, TS: ts}
	m := c.byTS[ts]
	if m == nil {
		return sent
	}
	c.remove(m)
	s.change(ChangeDeleted, m)
	event := c.changeEvent("message_deleted", m, m)
	if grave := c.byTS[ts]; grave != nil {
		event = c.changeEvent("message_changed", grave, m)
	}
	if c.hears("message") {
		sent.Deliveries = s.deliver(false, p.ws.event(event, nil))
	}
	return sent
}

// DeleteThread takes a thread with all its messages away, without telling the
// bot, as retention does.
func (w *Workspace) DeleteThread(channelID, root string) {
	w.server.mu.Lock()
	defer w.server.unlock()
	c := w.open(channelID)
	for _, ts := range slices.Clone(c.thread(root).replies) {
		c.remove(c.byTS[ts])
	}
	if m := c.byTS[root]; m != nil {
		c.remove(m)
	}
}

// Stops presses Slack's own stop button in a thread: running streams end and the
// bot is told. It does nothing if no session works and nothing streams.
func (p Person) Stops(root string) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	c := p.enter()
	sent := Sent{Channel: p.channel, Thread: root}
	t := c.thread(root)
	stopped := []string{}
	for _, ts := range t.replies {
		if m := c.byTS[ts]; m.Stream == Streaming {
			p.ws.end(m, StoppedByUser)
			stopped = append(stopped, ts)
		}
	}
	if len(stopped) == 0 && t.session.Status != "processing" {
		return sent
	}
	if c.hears("agent_session_stopped") {
		sent.Deliveries = s.deliver(false, p.ws.event(map[string]any{
			"type": "agent_session_stopped", "user": p.user, "channel": c.info.ID, "thread_ts": root, "streaming_message_ts": stopped,
		}, nil))
	}
	return sent
}

var userMention = pattern.Lazy(`<@([UW][A-Z0-9]+)(?:\|[^>]*)?>`)

// richText returns the block that Slack makes of what people type.
func richText(text string) []byte {
	var elements []any
	plain := func(part string) {
		if part != "" {
			elements = append(elements, map[string]any{"type": "text", "text": plainMrkdwn(part)})
		}
	}
	rest := 0
	for _, found := range userMention.FindAllStringSubmatchIndex(text, -1) {
		plain(text[rest:found[0]])
		elements = append(elements, map[string]any{"type": "user", "user_id": text[found[2]:found[3]]})
		rest = found[1]
	}
	plain(text[rest:])
	return platformapi.MustJSON([]any{map[string]any{
		"type": "rich_text", "block_id": fmt.Sprintf("b%d", len(text)),
		"elements": []any{map[string]any{"type": "rich_text_section", "elements": elements}},
	}})
}
