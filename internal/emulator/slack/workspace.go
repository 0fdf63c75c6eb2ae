package slack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Team is a workspace in which the app is installed. Fields that are not set get
// defaults that differ from workspace to workspace.
type Team struct {
	ID           string // default "T1", "T2", ...
	Name         string
	Domain       string
	EnterpriseID string // of the organization; empty for none

	// EnterpriseInstall says that the app is installed in the whole
	// organization. Workspaces of one organization may then share a BotToken.
	EnterpriseInstall bool

	BotToken  string // default "xoxb-1-test", ...
	BotUserID string // default "UBOT1", ...
	BotID     string // default "BBOT1", ...
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
	BotLeft  bool // the bot is not a member
	Shared   bool // with another organization (Slack Connect)
}

// User is a person's account.
type User struct {
	ID         string
	TeamID     string // of the workspace where they are at home; empty for this one
	Name       string
	RealName   string
	IsBot      bool
	Deleted    bool
	Restricted bool // a guest
	Admin      bool
}

// Workspace is the state of one workspace and the hands of a test in it.
type Workspace struct {
	server *Server

	// All that follows is guarded by the server.
	team     Team
	token    tokenState
	users    map[string]User
	channels map[string]*channel
}

// tokenState is what became of a token.
type tokenState struct{ refusal string }

func newWorkspace(s *Server, t Team, n int) *Workspace {
	number := fmt.Sprint(n + 1)
	t.ID = cmp.Or(t.ID, "T"+number)
	t.Name = cmp.Or(t.Name, "Team "+number)
	t.Domain = cmp.Or(t.Domain, "team"+number)
	t.BotToken = cmp.Or(t.BotToken, "xoxb-"+number+"-test")
	t.BotUserID = cmp.Or(t.BotUserID, "UBOT"+number)
	t.BotID = cmp.Or(t.BotID, "BBOT"+number)
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

// SetScopes changes what was granted.
func (w *Workspace) SetScopes(scopes ...string) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.team.Scopes = scopes
}

// RefuseToken makes every call with the bot's token fail with a code such as
// "token_revoked", "account_inactive" or "invalid_auth". Empty ends it.
func (w *Workspace) RefuseToken(code string) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.token.refusal = code
}

// Uninstall revokes the token and tells the app: first tokens_revoked, then
// app_uninstalled.
func (w *Workspace) Uninstall() []string {
	s := w.server
	s.mu.Lock()
	defer s.unlock()
	w.token.refusal = "token_revoked"
	return s.deliverCopies([]*delivery{
		w.event(map[string]any{"type": "tokens_revoked", "tokens": map[string]any{"bot": []string{w.team.BotUserID}}}, nil),
		w.event(map[string]any{"type": "app_uninstalled"}, nil),
	}, false)
}

// RefuseAppToken makes apps.connections.open fail with a code. Empty ends it.
func (s *Server) RefuseAppToken(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appToken.refusal = code
}

func (s *Server) authenticateApp(token string) *apiError {
	switch {
	case token == "":
		return refuse("not_authed")
	case s.appToken.refusal != "":
		return refuse(s.appToken.refusal)
	case token == s.opts.AppToken:
		return nil
	case len(s.ofToken(token)) > 0:
		return refuse("not_allowed_token_type")
	}
	return refuse("invalid_auth")
}

// authenticate returns the workspace of a call. A token of an organization is
// good for several: team_id or the channel tells which.
func (s *Server) authenticate(p params) (*Workspace, *apiError) {
	if p.token == "" {
		return nil, refuse("not_authed")
	}
	if p.token == s.opts.AppToken {
		return nil, refuse("not_allowed_token_type")
	}
	candidates := s.ofToken(p.token)
	if len(candidates) == 0 {
		return nil, refuse("invalid_auth")
	}
	ws := candidates[0]
	if id := p.get("team_id"); id != "" && len(candidates) > 1 {
		n := slices.IndexFunc(candidates, func(w *Workspace) bool { return w.team.ID == id })
		if n < 0 {
			return nil, refuse("team_access_not_granted")
		}
		ws = candidates[n]
	} else if n := slices.IndexFunc(candidates, func(w *Workspace) bool { return w.channels[p.channel()] != nil }); n >= 0 {
		ws = candidates[n]
	}
	if ws.token.refusal != "" {
		return nil, refuse(ws.token.refusal)
	}
	return ws, nil
}

func (s *Server) ofToken(token string) []*Workspace {
	var out []*Workspace
	for _, w := range s.teams {
		if w.team.BotToken == token {
			out = append(out, w)
		}
	}
	return out
}

// teamOf returns the id of the workspace of a call, for the log.
func (s *Server) teamOf(p params) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, refused := s.authenticate(p); refused == nil {
		return w.team.ID
	}
	return ""
}

// need refuses a call if none of the scopes was granted.
func (r *request) need(scopes ...string) *apiError {
	for _, scope := range scopes {
		if slices.Contains(r.scopes, scope) {
			return nil
		}
	}
	return &apiError{code: "missing_scope", extra: map[string]any{
		"needed": strings.Join(scopes, ","), "provided": strings.Join(r.scopes, ","),
	}}
}

func (s *Server) authTest(r *request) (map[string]any, *apiError) {
	t := r.ws.team
	out := map[string]any{
		"url": "https://" + t.Domain + ".slack.com/", "team": t.Name, "user": t.BotName,
		"team_id": t.ID, "user_id": t.BotUserID, "bot_id": t.BotID, "is_enterprise_install": t.EnterpriseInstall,
	}
	if t.EnterpriseID != "" {
		out["enterprise_id"] = t.EnterpriseID
	}
	return out, nil
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

// conversation returns the channel that a call is about, if the bot may know of
// it. The lock must be held.
func (r *request) conversation(id string) (*channel, *apiError) {
	if id == "" {
		return nil, refuse("channel_not_found")
	}
	c := r.ws.channels[id]
	if c == nil || c.info.BotLeft && c.info.Kind != Public {
		return nil, refuse("channel_not_found")
	}
	return c, nil
}

// writable is conversation for calls that post something.
func (r *request) writable(id string) (*channel, *apiError) {
	if strings.HasPrefix(id, "U") || strings.HasPrefix(id, "W") {
		if _, known := r.ws.users[id]; !known {
			return nil, refuse("channel_not_found")
		}
		id = "D" + id
		r.ws.open(id)
	}
	c, refused := r.conversation(id)
	switch {
	case refused != nil:
		return nil, refused
	case c.info.Archived:
		return nil, refuse("is_archived")
	case c.info.BotLeft:
		return nil, refuse("not_in_channel")
	}
	return c, nil
}

// readable is conversation for calls that read messages.
func (r *request) readable(id string) (*channel, *apiError) {
	c, refused := r.conversation(id)
	if refused != nil {
		return nil, refused
	}
	if refused := r.need(c.info.Kind.scope("history")); refused != nil {
		return nil, refused
	}
	if c.info.BotLeft {
		return nil, refuse("not_in_channel")
	}
	return c, nil
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
	replies  []string // timestamps
	status   Status
	title    string
	prompts  []Prompt
	session  Session
	statuses int
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
func (c *channel) add(m *Message) {
	s := c.ws.server
	m.Team, m.Channel, m.TS = c.ws.team.ID, c.info.ID, s.ts()
	m.CreatedAt = s.opts.Now()
	m.UpdatedAt = m.CreatedAt
	c.order = append(c.order, m.TS)
	c.byTS[m.TS] = m
	if m.ThreadTS != "" {
		t := c.thread(m.ThreadTS)
		t.replies = append(t.replies, m.TS)
	}
}

// replace puts m in the place of the message with its timestamp.
func (c *channel) replace(m *Message) { c.byTS[m.TS] = m }

// supersede is replace for a change that people see, which keeps the old text.
func (c *channel) supersede(old, m *Message) {
	s := c.ws.server
	m.Edits++
	m.UpdatedAt = s.opts.Now()
	if keep := s.opts.KeepEdits; keep >= 0 {
		m.History = append(slices.Clone(m.History), Version{Plain: old.Plain, At: old.UpdatedAt})
		if keep > 0 && len(m.History) > keep {
			m.History = slices.Clone(m.History[len(m.History)-keep:])
		}
	}
	c.replace(m)
}

// remove takes a message away. The root of a thread with answers leaves a
// tombstone.
func (c *channel) remove(m *Message) {
	c.deleted = append(c.deleted, m)
	if len(c.thread(m.TS).replies) > 0 {
		grave := *m
		grave.Subtype, grave.Plain, grave.Text, grave.Blocks = "tombstone", "This message was deleted.", "This message was deleted.", nil
		grave.User, grave.BotID, grave.FromBot, grave.Metadata, grave.Files = "USLACKBOT", "", false, nil, nil
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

// Prompt is a suggested prompt.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Session is the state of an agent session.
type Session struct {
	Status string // empty if there is none
	Title  string
}
