package slack

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Team is a workspace in which the app is installed.
type Team struct {
	ID     string // default "T1"
	Name   string
	Domain string

	BotToken  string // default "xoxb-1-test"
	BotUserID string // default "UBOT1"
	BotID     string // default "BBOT1"
	BotName   string // default "agent"

	// Scopes are what was granted; default AllScopes.
	Scopes []string
}

// AllScopes returns the scopes that the emulated methods and events need.
func AllScopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
		"mpim:history", "mpim:read", "mpim:write", "reactions:read", "reactions:write", "users:read",
	}
}

// ChannelKind is the kind of a conversation.
type ChannelKind string

// The kinds of conversations.
const (
	Public  ChannelKind = "channel"
	Private ChannelKind = "group"
	Direct  ChannelKind = "im"
	Group   ChannelKind = "mpim"
)

// Channel describes a conversation.
type Channel struct {
	ID       string
	Name     string
	Kind     ChannelKind
	User     string   // the other side of a direct conversation
	Members  []string // users that are known to be in it, without the bot
	Archived bool
	Shared   bool // with another organization (Slack Connect)
}

// User is a person's account.
type User struct {
	ID       string
	TeamID   string // of the workspace where they are at home; empty for this one
	Name     string
	RealName string
	IsBot    bool
}

// Workspace is the state of one workspace and the hands of a test in it.
type Workspace struct {
	server *Server

	// All that follows is guarded by the server.
	team     Team
	refusal  string // with which calls with the token are refused
	users    map[string]User
	channels map[string]*channel
}

func newWorkspace(s *Server, t Team) *Workspace {
	t.ID = cmp.Or(t.ID, "T1")
	t.Name = cmp.Or(t.Name, "Team 1")
	t.Domain = cmp.Or(t.Domain, "team1")
	t.BotToken = cmp.Or(t.BotToken, "xoxb-1-test")
	t.BotUserID = cmp.Or(t.BotUserID, "UBOT1")
	t.BotID = cmp.Or(t.BotID, "BBOT1")
	t.BotName = cmp.Or(t.BotName, "agent")
	if t.Scopes == nil {
		t.Scopes = AllScopes()
	}
	return &Workspace{server: s, team: t, users: map[string]User{}, channels: map[string]*channel{}}
}

// Info returns the description of the workspace.
func (w *Workspace) Info() Team {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.team
}

// BotToken returns the token that the bot must use in this workspace.
func (w *Workspace) BotToken() string { return w.Info().BotToken }

// BotUser returns the user id of the bot.
func (w *Workspace) BotUser() string { return w.Info().BotUserID }

// RefuseToken makes every call with the bot's token fail with a code such as
// "token_revoked", "account_inactive" or "invalid_auth". Empty ends it.
func (w *Workspace) RefuseToken(code string) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.refusal = code
}

// AddUser introduces an account, or changes it. Users that are not introduced
// are called "user <id>".
func (w *Workspace) AddUser(u User) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.users[u.ID] = u
}

// user returns an account. The lock must be held.
func (w *Workspace) user(id string) User {
	u, ok := w.users[id]
	if !ok {
		u.ID = id
	}
	u.TeamID = cmp.Or(u.TeamID, w.team.ID)
	u.Name = cmp.Or(u.Name, "user "+id)
	u.RealName = cmp.Or(u.RealName, u.Name)
	return u
}

// know remembers that a user exists. The lock must be held.
func (w *Workspace) know(id, home string) {
	if _, ok := w.users[id]; !ok {
		w.users[id] = User{ID: id, TeamID: home}
	}
}

// AddChannel introduces a conversation, or changes its description. Those that
// are not introduced come into being when somebody does something there, with
// the bot as a member: a direct conversation for an id with "D", a private
// channel for one with "G", else a public channel.
func (w *Workspace) AddChannel(c Channel) {
	w.server.mu.Lock()
	defer w.server.unlock()
	known := w.open(c.ID)
	c.Kind = cmp.Or(c.Kind, known.info.Kind)
	c.Name = cmp.Or(c.Name, known.info.Name)
	if c.Kind == Direct && c.User == "" {
		c.User = strings.TrimPrefix(c.ID, "D")
	}
	known.info = c
}

// ChangeChannel changes the description of a conversation.
func (w *Workspace) ChangeChannel(id string, change func(*Channel)) {
	w.server.mu.Lock()
	defer w.server.unlock()
	change(&w.open(id).info)
}

// Archive archives a channel.
func (w *Workspace) Archive(id string) { w.ChangeChannel(id, func(c *Channel) { c.Archived = true }) }

// DM returns the id of a user's direct conversation with the bot.
func (w *Workspace) DM(userID string) string { return "D" + userID }

// open returns a conversation and creates it if needed. The lock must be held.
func (w *Workspace) open(id string) *channel {
	if c := w.channels[id]; c != nil {
		return c
	}
	info := Channel{ID: id, Kind: Public, Name: strings.ToLower("chan-" + id)}
	switch {
	case strings.HasPrefix(id, "D"):
		info.Kind, info.User, info.Name = Direct, strings.TrimPrefix(id, "D"), ""
		w.know(info.User, "")
	case strings.HasPrefix(id, "G"):
		info.Kind = Private
	}
	c := &channel{ws: w, info: info, byTS: map[string]*Message{}, threads: map[string]*thread{}, gone: map[string]bool{}}
	w.channels[id] = c
	return c
}

// scope returns the scope for a right on conversations of this kind.
func (k ChannelKind) scope(right string) string {
	switch k {
	case Private:
		return "groups:" + right
	case Direct:
		return "im:" + right
	case Group:
		return "mpim:" + right
	default:
		return "channels:" + right
	}
}

// thread is what is known of a thread besides its messages.
type thread struct {
	replies []string // timestamps
	status  Status
	session Session
}

// channel is the state of a conversation. Messages are never changed but
// replaced, so that views can share them.
type channel struct {
	ws         *Workspace
	info       Channel
	order      []string // timestamps of visible messages
	byTS       map[string]*Message
	threads    map[string]*thread
	deleted    []*Message
	gone       map[string]bool // timestamps of messages that left nothing behind
	ephemerals []*Message
}

// thread returns what is known of a thread, and creates it if needed.
func (c *channel) thread(root string) *thread {
	t := c.threads[root]
	if t == nil {
		t = &thread{}
		c.threads[root] = t
	}
	return t
}

// add appends a message under a new timestamp.
func (c *channel) add(kind ChangeKind, m *Message) {
	s := c.ws.server
	m.Channel, m.TS = c.info.ID, s.ts()
	m.CreatedAt = s.opts.Now()
	m.UpdatedAt = m.CreatedAt
	c.order = append(c.order, m.TS)
	c.byTS[m.TS] = m
	if m.ThreadTS != "" {
		t := c.thread(m.ThreadTS)
		t.replies = append(t.replies, m.TS)
	}
	s.change(kind, m)
}

// replace puts m in the place of the message with its timestamp.
func (c *channel) replace(m *Message) { c.byTS[m.TS] = m }

// show is replace for a change that is told.
func (c *channel) show(kind ChangeKind, m *Message) {
	c.replace(m)
	c.ws.server.change(kind, m)
}

// supersede is show for an edit, which keeps the old text.
func (c *channel) supersede(old, m *Message) {
	s := c.ws.server
	m.Edits++
	m.UpdatedAt = s.opts.Now()
	if keep := s.opts.KeepEdits; keep >= 0 {
		m.History = append(slices.Clone(m.History), Version{Plain: old.Plain})
		if keep > 0 && len(m.History) > keep {
			m.History = slices.Clone(m.History[len(m.History)-keep:])
		}
	}
	c.show(ChangeEdited, m)
}

// remove takes a message away. The root of a thread with answers leaves a
// tombstone.
func (c *channel) remove(m *Message) {
	c.deleted = append(c.deleted, m)
	if len(c.thread(m.TS).replies) > 0 {
		grave := *m
		grave.Subtype, grave.Plain, grave.Text, grave.Blocks = "tombstone", "This message was deleted.", "This message was deleted.", nil
		grave.User, grave.BotID, grave.FromBot, grave.Edited, grave.Metadata, grave.Files = "USLACKBOT", "", false, false, nil, nil
		c.replace(&grave)
		return
	}
	c.gone[m.TS] = true
	delete(c.byTS, m.TS)
	c.order = slices.DeleteFunc(c.order, func(ts string) bool { return ts == m.TS })
	if t := c.threads[m.ThreadTS]; m.ThreadTS != "" && t != nil {
		t.replies = slices.DeleteFunc(t.replies, func(ts string) bool { return ts == m.TS })
	}
}

// member reports whether a user is known to be in a conversation.
func (c *channel) member(user string) bool {
	return c.info.User == user || slices.Contains(c.info.Members, user)
}

// enter makes a user a member.
func (c *channel) enter(user string) {
	if c.info.Kind != Direct && !slices.Contains(c.info.Members, user) {
		c.info.Members = append(slices.Clone(c.info.Members), user)
	}
}

// Status is what assistant.threads.setStatus shows.
type Status struct {
	Text            string
	LoadingMessages []string
	At              time.Time
}

// statusTimeout is how long a status stays if nothing is posted.
const statusTimeout = 2 * time.Minute

// Session is the state of an agent session.
type Session struct {
	Status string // empty if there is none
	Title  string
}
