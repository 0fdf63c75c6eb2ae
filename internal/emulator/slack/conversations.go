package slack

import (
	"encoding/base64"
	"slices"
	"strings"

	"remote-agent/internal/lists"
)

// conversation returns the channel that a call is about, if the bot may know of
// it. The lock must be held.
func (r *request) conversation(id string) (*channel, *apiError) {
	c := r.ws.channels[id]
	if c == nil {
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
	}
	return c, nil
}

// readable is conversation for calls that read messages.
func (r *request) readable(id string) (*channel, *apiError) {
	c, refused := r.conversation(id)
	if refused == nil {
		refused = r.need(c.info.Kind.scope("history"))
	}
	return c, refused
}

// page is what conversations.replies and history share: bounds and a cursor.
type page struct {
	oldest, latest string
	inclusive      bool
	limit          int
	after          string // timestamp that the cursor names
	metadata       bool
}

func readPage(p params, limit, most int) (page, *apiError) {
	out := page{
		oldest: p.get("oldest"), latest: p.get("latest"), inclusive: p.bool("inclusive"),
		limit: p.int("limit", limit), metadata: p.bool("include_all_metadata"),
	}
	if out.limit < 1 || out.limit > most {
		return out, refuse("invalid_limit")
	}
	for _, bound := range []string{out.oldest, out.latest} {
		if bound != "" && bound != "0" && bound != "now" && strings.Trim(bound, "0123456789.") != "" {
			return out, refuse("invalid_ts_" + map[bool]string{true: "oldest", false: "latest"}[bound == out.oldest])
		}
	}
	if cursor := p.get("cursor"); cursor != "" {
		raw, err := base64.StdEncoding.DecodeString(cursor)
		after, ok := strings.CutPrefix(string(raw), "next_ts:")
		if err != nil || !ok {
			return out, refuse("invalid_cursor")
		}
		out.after = after
	}
	return out, nil
}

// in reports whether a timestamp is within the bounds. Timestamps have the same
// number of digits before the dot, so they compare as text.
func (p page) in(ts string) bool {
	if p.inclusive && (ts == p.oldest || ts == p.latest) {
		return true
	}
	return (p.oldest == "" || p.oldest == "0" || ts > p.oldest) && (p.latest == "" || p.latest == "now" || ts < p.latest)
}

// answer returns the first messages of list and a cursor for the rest.
func (p page) answer(c *channel, list []string) map[string]any {
	more := len(list) > p.limit
	if more {
		list = list[:p.limit]
	}
	messages := []any{}
	for _, ts := range list {
		messages = append(messages, c.wire(c.byTS[ts], p.metadata))
	}
	out := map[string]any{"messages": messages, "has_more": more}
	if more {
		cursor := base64.StdEncoding.EncodeToString([]byte("next_ts:" + list[len(list)-1]))
		out["response_metadata"] = map[string]any{"next_cursor": cursor}
	}
	return out
}

// replies returns a thread, oldest first, with its root on every first page. The
// timestamp of an answer gives only that answer.
func replies(r *request) (map[string]any, *apiError) {
	c, refused := r.readable(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	p, refused := readPage(r.p, 1000, 1000)
	if refused != nil {
		return nil, refused
	}
	root := c.byTS[r.p.get("ts")]
	if root == nil {
		return nil, refuse("thread_not_found")
	}
	var list []string
	if p.after == "" {
		list = append(list, root.TS)
	}
	if t := c.threads[root.TS]; t != nil {
		for _, ts := range t.replies {
			if p.in(ts) && ts > p.after {
				list = append(list, ts)
			}
		}
	}
	return p.answer(c, list), nil
}

// history returns what shows in the channel, newest first.
func history(r *request) (map[string]any, *apiError) {
	c, refused := r.readable(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	p, refused := readPage(r.p, 100, 999)
	if refused != nil {
		return nil, refused
	}
	var list []string
	for _, ts := range slices.Backward(c.order) {
		m := c.byTS[ts]
		if (m.ThreadTS == "" || m.Broadcast) && p.in(ts) && (p.after == "" || ts < p.after) {
			list = append(list, ts)
		}
	}
	return p.answer(c, list), nil
}

func userInfo(r *request) (map[string]any, *apiError) {
	id := r.p.get("user")
	if id == r.ws.team.BotUserID {
		t := r.ws.team
		u := User{ID: id, TeamID: t.ID, Name: t.BotName, RealName: t.BotName, IsBot: true}
		return map[string]any{"user": wireUser(r.ws, u)}, nil
	}
	if _, known := r.ws.users[id]; !known {
		return nil, refuse("user_not_found")
	}
	return map[string]any{"user": wireUser(r.ws, r.ws.user(id))}, nil
}

func wireUser(w *Workspace, u User) map[string]any {
	out := fields{
		{"id", u.ID}, {"team_id", u.TeamID}, {"name", u.Name}, {"real_name", u.RealName}, {"deleted", false},
		{"is_bot", u.IsBot}, {"is_app_user", false}, {"is_restricted", false}, {"is_ultra_restricted", false},
		{"is_admin", false}, {"is_owner", false}, {"is_primary_owner", false}, {"tz", "Europe/London"}, {"updated", 1_700_000_000},
		{"profile", fields{
			{"real_name", u.RealName}, {"real_name_normalized", u.RealName}, {"display_name", u.Name},
			{"display_name_normalized", u.Name}, {"team", u.TeamID},
		}.Object()},
	}.Object()
	if u.TeamID != w.team.ID {
		out["is_stranger"] = true
	}
	return out
}

// reacted returns the message that a call about reactions names.
func (r *request) reacted() (*channel, *Message, *apiError) {
	if r.p.channel() == "" || r.p.get("timestamp") == "" {
		return nil, nil, refuse("no_item_specified")
	}
	c, refused := r.conversation(r.p.channel())
	if refused != nil {
		return nil, nil, refused
	}
	m := c.byTS[r.p.get("timestamp")]
	switch {
	case m == nil || m.Subtype == "tombstone":
		return nil, nil, refuse("message_not_found")
	case c.info.Archived:
		return nil, nil, refuse("is_archived")
	}
	return c, m, nil
}

func validEmoji(name string) bool {
	return name != "" && len(name) <= 100 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_+-:'") == ""
}

func addReaction(r *request) (map[string]any, *apiError) {
	c, old, refused := r.reacted()
	if refused != nil {
		return nil, refused
	}
	name, bot := strings.Trim(r.p.get("name"), ":"), r.ws.team.BotUserID
	switch {
	case !validEmoji(name):
		return nil, refuse("invalid_name")
	case old.HasReaction(name, bot):
		return nil, refuse("already_reacted")
	case len(old.ReactionsOf(bot)) >= 23:
		return nil, refuse("too_many_reactions")
	}
	c.react(old, name, bot)
	return nil, nil
}

// react puts an emoji on a message.
func (c *channel) react(old *Message, name, user string) {
	m := *old
	m.Reactions = slices.Clone(old.Reactions)
	n := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == name })
	if n < 0 {
		m.Reactions = append(m.Reactions, Reaction{Name: name, Users: []string{user}})
	} else {
		m.Reactions[n].Users = append(slices.Clone(m.Reactions[n].Users), user)
	}
	c.show(ChangeReacted, &m)
}

func removeReaction(r *request) (map[string]any, *apiError) {
	c, old, refused := r.reacted()
	if refused != nil {
		return nil, refused
	}
	name, bot := strings.Trim(r.p.get("name"), ":"), r.ws.team.BotUserID
	if !old.HasReaction(name, bot) {
		return nil, refuse("no_reaction")
	}
	m := *old
	m.Reactions = nil
	for _, one := range old.Reactions {
		if one.Name == name {
			one.Users = slices.DeleteFunc(slices.Clone(one.Users), func(u string) bool { return u == bot })
		}
		if len(one.Users) > 0 {
			m.Reactions = append(m.Reactions, one)
		}
	}
	c.show(ChangeReacted, &m)
	return nil, nil
}

func wireReactions(m *Message) []any {
	return lists.Map(m.Reactions, func(r Reaction) any { return map[string]any{"name": r.Name, "users": r.Users, "count": len(r.Users)} })
}
