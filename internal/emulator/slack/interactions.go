package slack

import (
	"cmp"
	"maps"
	"net/url"

	"remote-agent/internal/emulator/platformapi"
)

// Slash types a command such as "/agent" with a text. In a thread Slack refuses
// it. What the bot acknowledges with is shown; a command that is not
// acknowledged in time shows an error to the person.
func (p Person) Slash(command, text string) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	c := p.enter()
	sent := Sent{Channel: c.info.ID}
	if p.thread != "" {
		c.slackbot(p.user, p.thread, command+" is not supported in threads. Sorry!")
		return sent
	}
	sent.TriggerID = s.views.newTrigger(p.user)
	where := s.responses.add(p.ws, p.user, c.info.ID, nil)
	sent.ResponseURL = where.url
	fields := map[string]string{
		"token": verificationToken, "team_id": p.ws.team.ID, "team_domain": p.ws.team.Domain,
		"channel_id": c.info.ID, "channel_name": c.shownName(), "user_id": p.user, "user_name": p.ws.user(p.user).Name,
		"command": command, "text": text, "api_app_id": s.opts.AppID, "trigger_id": sent.TriggerID,
		"response_url": sent.ResponseURL, "is_enterprise_install": "false",
	}
	form := url.Values{}
	payload := map[string]any{}
	for name, value := range fields {
		form.Set(name, value)
		payload[name] = value
	}
	payload["is_enterprise_install"] = false // over Socket Mode it is a boolean
	sent.Deliveries = s.deliver(false, &delivery{
		Delivery: Delivery{Kind: Commands, Type: command, Payload: platformapi.MustJSON(payload)},
		form:     form,
		taken:    where.acknowledged,
		failed: func(reason string) {
			what := "dispatch_failed"
			if reason == "http_timeout" || reason == "timeout" {
				what = "operation_timeout"
			}
			c.slackbot(p.user, "", command+" failed with the error \""+what+"\"")
		},
	})
	return sent
}

// shownName returns the name of a conversation as commands have it.
func (c *channel) shownName() string {
	switch c.info.Kind {
	case Direct:
		return "directmessage"
	case Private:
		return "privategroup"
	default:
		return c.info.Name
	}
}

// slackbot shows a person something that Slack itself says. The lock must be
// held.
func (c *channel) slackbot(user, root, text string) {
	c.whisper(&Message{User: "USLACKBOT", Text: text, Plain: text}, user, root)
}

// interaction returns what all interactions have.
func (p Person) interaction(kind string) map[string]any {
	t := p.ws.team
	u := p.ws.user(p.user)
	return map[string]any{
		"type": kind, "token": verificationToken, "api_app_id": p.ws.server.opts.AppID, "team": map[string]any{"id": t.ID, "domain": t.Domain},
		"enterprise": nil, "is_enterprise_install": false,
		"user": map[string]any{"id": p.user, "username": u.Name, "name": u.Name, "team_id": u.TeamID},
	}
}

// act sends an interaction. The lock must be held.
func (p Person) act(sent Sent, payload map[string]any, taken func([]byte)) Sent {
	sent.Deliveries = p.ws.server.deliver(false, &delivery{
		Delivery: Delivery{Kind: Interactions, Type: text(payload["type"]), Payload: platformapi.MustJSON(payload)},
		taken:    taken,
	})
	return sent
}

// Clicks clicks the first button of a message that has the action_id and, if it
// is given, the value. It does nothing if there is no such button. The message
// may be one that only this person sees.
func (p Person) Clicks(ts, actionID string, value ...string) Sent {
	m, _ := p.message(ts)
	for _, b := range m.Buttons() {
		if b.ActionID == actionID && (len(value) == 0 || value[0] == b.Value) {
			return p.click(m, b)
		}
	}
	return Sent{Channel: p.channel, TS: ts}
}

// message returns a message as the person sees it.
func (p Person) message(ts string) (Message, bool) {
	s := p.ws.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c := p.ws.open(p.channel)
	if m := c.byTS[ts]; m != nil {
		return *m, true
	}
	for _, m := range c.ephemerals {
		if m.TS == ts && m.EphemeralTo == p.user {
			return *m, true
		}
	}
	return Message{}, false
}

// about begins an interaction with a message: it may open a view, and be answered.
// The lock must be held.
func (p Person) about(m *Message) Sent {
	s := p.ws.server
	return Sent{
		Channel: p.channel, TS: m.TS, Thread: cmp.Or(m.ThreadTS, m.TS),
		TriggerID: s.views.newTrigger(p.user), ResponseURL: s.responses.add(p.ws, p.user, p.channel, m).url,
	}
}

func (p Person) click(m Message, b Button) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	c := p.enter()
	sent := p.about(&m)
	payload := p.interaction("block_actions")
	container := map[string]any{
		"type": "message", "message_ts": m.TS, "channel_id": c.info.ID, "is_ephemeral": m.EphemeralTo != "",
	}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	maps.Copy(payload, map[string]any{
		"container": container, "channel": map[string]any{"id": c.info.ID, "name": c.shownName()},
		"trigger_id": sent.TriggerID, "response_url": sent.ResponseURL, "state": map[string]any{"values": map[string]any{}},
		"actions": []any{b.wire(tsAt(s.opts.Now()))},
	})
	if m.EphemeralTo == "" {
		payload["message"] = c.wire(&m, true)
	}
	return p.act(sent, payload, nil)
}

// wire returns a click of the button.
func (b Button) wire(ts string) map[string]any {
	out := map[string]any{
		"action_id": b.ActionID, "block_id": b.BlockID, "type": "button", "value": b.Value,
		"text":      map[string]any{"type": "plain_text", "text": b.Text, "emoji": true},
		"action_ts": ts,
	}
	if b.Style != "" {
		out["style"] = b.Style
	}
	return out
}

// Submits submits a modal with what was typed into its inputs, by action_id;
// inputs that are not named keep their initial value. It does nothing if the
// modal is not open for this person.
func (p Person) Submits(viewID string, typed map[string]string) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	sent := Sent{}
	v := s.views.byID[viewID]
	if v == nil || !v.Open || v.User != p.user {
		return sent
	}
	sent.TriggerID = s.views.newTrigger(p.user)
	payload := p.interaction("view_submission")
	payload["trigger_id"], payload["view"] = sent.TriggerID, v.wire(v.values(typed))
	payload["response_urls"] = []any{}
	return p.act(sent, payload, func(answer []byte) { s.views.respond(v.ID, answer) })
}
