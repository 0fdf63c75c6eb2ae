package slack

import (
	"cmp"
	"maps"
	"net/url"
	"strconv"

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
	sent := Sent{Team: p.ws.team.ID, Channel: c.info.ID}
	if p.thread != "" {
		c.slackbot(p.user, p.thread, command+" is not supported in threads. Sorry!")
		return sent
	}
	sent.TriggerID = s.views.newTrigger(p.ws, p.user, "")
	where := s.responses.add(p.ws, p.user, c.info.ID, nil)
	sent.ResponseURL = where.url
	fields := map[string]string{
		"token": verificationToken, "team_id": p.ws.team.ID, "team_domain": p.ws.team.Domain,
		"channel_id": c.info.ID, "channel_name": c.shownName(), "user_id": p.user, "user_name": p.ws.user(p.user).Name,
		"command": command, "text": text, "api_app_id": s.opts.AppID, "trigger_id": sent.TriggerID,
		"response_url": sent.ResponseURL, "is_enterprise_install": strconv.FormatBool(p.ws.team.EnterpriseInstall),
	}
	if p.ws.team.EnterpriseID != "" {
		fields["enterprise_id"], fields["enterprise_name"] = p.ws.team.EnterpriseID, "Enterprise"
	}
	form := url.Values{}
	payload := map[string]any{}
	for name, value := range fields {
		form.Set(name, value)
		payload[name] = value
	}
	payload["is_enterprise_install"] = p.ws.team.EnterpriseInstall // over Socket Mode it is a boolean
	sent.Deliveries = s.deliver(false, &delivery{
		Delivery: Delivery{Kind: Commands, Team: p.ws.team.ID, Type: command, Payload: platformapi.MustJSON(payload)},
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
	team := map[string]any{"id": t.ID, "domain": t.Domain}
	var enterprise any
	if t.EnterpriseID != "" {
		enterprise = map[string]any{"id": t.EnterpriseID, "name": "Enterprise"}
		team["enterprise_id"], team["enterprise_name"] = t.EnterpriseID, "Enterprise"
	}
	u := p.ws.user(p.user)
	return map[string]any{
		"type": kind, "token": verificationToken, "api_app_id": p.ws.server.opts.AppID, "team": team, "enterprise": enterprise,
		"is_enterprise_install": t.EnterpriseInstall,
		"user":                  map[string]any{"id": p.user, "username": u.Name, "name": u.Name, "team_id": u.TeamID},
	}
}

// act sends an interaction. The lock must be held.
func (p Person) act(sent Sent, payload map[string]any, taken func([]byte), failed func(string)) Sent {
	sent.Deliveries = p.ws.server.deliver(false, &delivery{
		Delivery: Delivery{Kind: Interactions, Team: p.ws.team.ID, Type: text(payload["type"]), Payload: platformapi.MustJSON(payload)},
		taken:    taken, failed: failed,
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
	return Sent{Team: p.ws.team.ID, Channel: p.channel, TS: ts}
}

// Forges sends the click of a button that the message need not have.
func (p Person) Forges(ts, actionID, value string) Sent {
	m, _ := p.message(ts)
	m.TS = ts
	return p.click(m, Button{BlockID: "forged", ActionID: actionID, Value: value, Text: "Forged"})
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
		Team: p.ws.team.ID, Channel: p.channel, TS: m.TS, Thread: cmp.Or(m.ThreadTS, m.TS),
		TriggerID: s.views.newTrigger(p.ws, p.user, ""), ResponseURL: s.responses.add(p.ws, p.user, p.channel, m).url,
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
	return p.act(sent, payload, nil, nil)
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
	sent := Sent{Team: p.ws.team.ID}
	v := s.views.byID[viewID]
	if v == nil || v.ws != p.ws || !v.Open || v.User != p.user {
		return sent
	}
	v.Errors = nil
	sent.TriggerID = s.views.newTrigger(p.ws, p.user, v.ID)
	payload := p.interaction("view_submission")
	payload["trigger_id"], payload["view"] = sent.TriggerID, v.wire(v.values(typed))
	payload["response_urls"] = []any{}
	return p.act(sent, payload,
		func(answer []byte) { s.views.respond(v.ID, answer) },
		func(string) {
			s.views.byID[v.ID].Errors = map[string]string{"": "We had some trouble connecting. Try again?"}
		})
}

// Shortcut uses a shortcut of the app that is about nothing in particular.
func (p Person) Shortcut(callbackID string) Sent {
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	p.enter()
	sent := Sent{Team: p.ws.team.ID, TriggerID: s.views.newTrigger(p.ws, p.user, "")}
	payload := p.interaction("shortcut")
	maps.Copy(payload, map[string]any{
		"callback_id": callbackID, "trigger_id": sent.TriggerID, "action_ts": tsAt(s.opts.Now()),
	})
	return p.act(sent, payload, nil, nil)
}

// ShortcutOn uses a shortcut of the app on a message.
func (p Person) ShortcutOn(ts, callbackID string) Sent {
	m, ok := p.message(ts)
	if !ok {
		return Sent{Team: p.ws.team.ID, Channel: p.channel, TS: ts}
	}
	s := p.ws.server
	s.mu.Lock()
	defer s.unlock()
	c := p.enter()
	sent := p.about(&m)
	payload := p.interaction("message_action")
	maps.Copy(payload, map[string]any{
		"callback_id": callbackID, "trigger_id": sent.TriggerID, "response_url": sent.ResponseURL, "message_ts": ts,
		"channel": map[string]any{"id": c.info.ID, "name": c.shownName()}, "message": c.wire(&m, true),
		"action_ts": tsAt(s.opts.Now()),
	})
	return p.act(sent, payload, nil, nil)
}
