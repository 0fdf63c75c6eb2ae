package slack

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/emulator/platformapi"
)

// tell returns the events about a message of the person.
func (p Person) tell(c *channel, m *Message) []*delivery {
	w := p.ws
	plan := p.copies
	if plan == nil {
		if w.mentioned(m.Text) && c.hears("app_mention") && c.info.Kind != Direct && (m.Subtype == "" || m.Subtype == "file_share" || m.Subtype == "thread_broadcast") {
			plan = append(plan, Copy{Type: "app_mention"})
		}
		if c.hears("message") {
			plan = append(plan, Copy{Type: "message"})
		}
	}
	inner := c.wire(m, false)
	maps.Copy(inner, map[string]any{"channel": c.info.ID, "event_ts": m.TS})
	if len(m.Files) > 0 {
		inner["upload"] = false
	}
	var out []*delivery
	first := map[string]*delivery{}
	for _, planned := range plan {
		earlier := first[planned.Type]
		if earlier != nil && !planned.NewTS && !planned.NewID {
			out = append(out, &delivery{Delivery: earlier.Delivery, repeated: true, lost: planned.Lost})
			continue
		}
		event := maps.Clone(inner)
		event["type"] = planned.Type
		if planned.NewTS {
			event["ts"] = w.server.ts()
			event["event_ts"] = event["ts"]
		}
		if planned.Type == "app_mention" {
			delete(event, "subtype")
		} else {
			event["channel_type"] = c.info.Kind
		}
		d := w.event(event, nil)
		d.lost = planned.Lost
		out = append(out, d)
		if earlier == nil {
			first[planned.Type] = d
		}
	}
	return out
}

// mentioned reports whether a text mentions the bot.
func (w *Workspace) mentioned(text string) bool {
	return strings.Contains(text, "<@"+w.team.BotUserID+">") || strings.Contains(text, "<@"+w.team.BotUserID+"|")
}

// hears reports whether the bot gets an event about a conversation. The lock
// must be held.
func (c *channel) hears(kind string) bool {
	w := c.ws
	if w.refusal != "" {
		return false
	}
	granted := func(scope string) bool { return slices.Contains(w.team.Scopes, scope) }
	if kind != "message" {
		return w.server.opts.subscribed(kind) && (kind != "app_mention" || granted("app_mentions:read"))
	}
	scope := c.info.Kind.scope("history")
	name, _, _ := strings.Cut(scope, ":")
	return granted(scope) && w.server.opts.subscribed("message."+name)
}

// echo tells the bot about a message that changed, or about one of its own. The
// lock must be held.
func (c *channel) echo(subtype string, m, old *Message) {
	s := c.ws.server
	if m.FromBot && s.opts.NoEcho || !c.hears("message") {
		return
	}
	s.deliver(false, c.ws.event(c.changeEvent(subtype, m, old), nil))
}

// changeEvent returns the message event for a new, edited or deleted message.
func (c *channel) changeEvent(subtype string, m, old *Message) map[string]any {
	inner := c.wire(m, true)
	if subtype != "" {
		ts := c.ws.server.ts()
		inner = fields{
			{"type", "message"}, {"subtype", subtype}, {"hidden", true}, {"ts", ts}, {"event_ts", ts}, {"previous_message", c.wire(old, true)},
		}.Object()
		if subtype == "message_deleted" {
			inner["deleted_ts"] = m.TS
		} else {
			inner["message"] = c.wire(m, true)
		}
	}
	inner["channel"], inner["channel_type"] = c.info.ID, c.info.Kind
	setAbsent(inner, "event_ts", m.TS)
	return inner
}

// event returns a delivery of an inner event; outer fields are added to what is
// around it. The lock must be held.
func (w *Workspace) event(inner, outer map[string]any) *delivery {
	s, t := w.server, w.team
	id := s.id("Ev")
	now := s.opts.Now()
	setAbsent(inner, "event_ts", tsAt(now))
	shared := false
	if c := w.channels[text(inner["channel"])]; c != nil {
		shared = c.info.Shared
	}
	body := fields{
		{"token", verificationToken}, {"team_id", t.ID}, {"context_team_id", t.ID}, {"context_enterprise_id", nil},
		{"api_app_id", s.opts.AppID}, {"event", inner}, {"type", "event_callback"}, {"event_id", id}, {"event_time", now.Unix()},
		{"authorizations", []any{fields{
			{"enterprise_id", nil}, {"team_id", t.ID}, {"user_id", t.BotUserID}, {"is_bot", true}, {"is_enterprise_install", false},
		}.Object()}},
		{"is_ext_shared_channel", shared}, {"event_context", "4-" + id},
	}.Object()
	maps.Copy(body, outer)
	return &delivery{
		Delivery: Delivery{Kind: Events, Type: text(inner["type"]), EventID: id, Payload: platformapi.MustJSON(body)},
		repeated: true,
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func setAbsent(m map[string]any, name string, value any) {
	if _, ok := m[name]; !ok {
		m[name] = value
	}
}

// DeliverEvent sends any inner event and returns the id of the delivery. Fields
// of outer are added to what is around it, or replace it.
func (w *Workspace) DeliverEvent(inner, outer map[string]any) string {
	s := w.server
	s.mu.Lock()
	defer s.unlock()
	return s.deliver(false, w.event(maps.Clone(inner), outer))[0]
}

// DeliverRaw sends any bytes, correctly signed, and returns the id of the
// delivery. For commands over HTTP it is the form; over Socket Mode it becomes
// the payload and must be JSON. Events are repeated like any other.
func (w *Workspace) DeliverRaw(kind Kind, body []byte) string {
	s := w.server
	s.mu.Lock()
	defer s.unlock()
	return s.deliver(false, &delivery{
		Delivery: Delivery{Kind: kind, Payload: bytes.Clone(body)}, repeated: kind == Events,
	})[0]
}
