package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/order"
)

// views are the modals, and the triggers with which the bot may open more.
type views struct {
	*platform

	byID     map[string]*view
	triggers map[string]*trigger
}

// trigger is what a trigger_id stands for.
type trigger struct {
	user string
	at   time.Time
	used bool
}

// newTrigger returns a trigger_id. The lock must be held.
func (v *views) newTrigger(user string) string {
	id := v.id("trigger.")
	v.triggers[id] = &trigger{user: user, at: v.opts.Now()}
	return id
}

// view is a modal.
type view struct {
	ViewState
	ws     *Workspace
	fields map[string]json.RawMessage
	blocks []block
}

// ViewState is a modal as its user sees it.
type ViewState struct {
	ID              string
	Team            string
	User            string
	CallbackID      string
	PrivateMetadata string
	ExternalID      string
	Blocks          json.RawMessage
	Open            bool
}

// Inputs returns the initial values of the text inputs, by action_id.
func (v ViewState) Inputs() map[string]string {
	var blocks []block
	_ = json.Unmarshal(v.Blocks, &blocks)
	out := map[string]string{}
	for _, b := range blocks {
		var e element
		if b.Type == "input" && json.Unmarshal(b.Element, &e) == nil {
			out[e.ActionID] = e.InitialValue
		}
	}
	return out
}

// readView checks a view.
func readView(raw string) (*view, *apiError) {
	v := &view{}
	if json.Unmarshal([]byte(raw), &v.fields) != nil {
		return nil, refuse("invalid_arguments", "[ERROR] view is not a JSON object")
	}
	if len(raw) > maxViewBytes {
		return nil, refuse("view_too_large")
	}
	var head struct {
		Type            string      `json:"type"`
		Title           *textObject `json:"title"`
		Submit          *textObject `json:"submit"`
		Close           *textObject `json:"close"`
		CallbackID      string      `json:"callback_id"`
		ExternalID      string      `json:"external_id"`
		PrivateMetadata string      `json:"private_metadata"`
	}
	if json.Unmarshal([]byte(raw), &head) != nil || head.Type != "modal" {
		return nil, refuse("invalid_arguments", "[ERROR] must be a modal [json-pointer:/view/type]")
	}
	c := &checker{}
	if head.Title == nil {
		c.fail("/view/title", "missing required field: title")
	}
	for name, t := range map[string]*textObject{"title": head.Title, "submit": head.Submit, "close": head.Close} {
		if t != nil {
			c.length("/view/"+name, *t, maxViewTitle, "plain_text")
		}
	}
	if len(c.problems) > 0 {
		return nil, refuse("invalid_arguments", c.problems...)
	}
	if utf8.RuneCountInString(head.PrivateMetadata) > maxViewMetadata || utf8.RuneCountInString(head.CallbackID) > maxID {
		return nil, refuse("invalid_arguments", "[ERROR] private_metadata or callback_id is too long")
	}
	blocks, refused := checkBlocks(string(v.fields["blocks"]), inModal)
	if refused != nil {
		return nil, refused
	}
	if len(blocks) == 0 {
		return nil, refuse("invalid_arguments", "[ERROR] missing required field: blocks [json-pointer:/view/blocks]")
	}
	if head.Submit == nil && slices.ContainsFunc(blocks, func(b block) bool { return b.Type == "input" }) {
		return nil, refuse("invalid_arguments", "[ERROR] a view with an input needs submit [json-pointer:/view/submit]")
	}
	v.blocks = blocks
	v.ViewState = ViewState{
		CallbackID: head.CallbackID, PrivateMetadata: head.PrivateMetadata, ExternalID: head.ExternalID, Blocks: v.fields["blocks"],
	}
	return v, nil
}

// trigger returns what the trigger_id of a call stands for, if it is good.
func (v *views) trigger(r *request) (*trigger, *apiError) {
	t := v.triggers[r.p.get("trigger_id")]
	switch {
	case t == nil:
		return nil, refuse("invalid_trigger_id")
	case t.used:
		return nil, refuse("exchanged_trigger_id")
	case v.opts.Now().Sub(t.at) > v.opts.TriggerLifetime:
		return nil, refuse("expired_trigger_id")
	}
	return t, nil
}

// open opens a modal.
func (v *views) open(r *request) (map[string]any, *apiError) {
	next, refused := readView(r.p.get("view"))
	if refused != nil {
		return nil, refused
	}
	t, refused := v.trigger(r)
	if refused != nil {
		return nil, refused
	}
	for _, other := range v.byID {
		if next.ExternalID != "" && other.ExternalID == next.ExternalID && other.Open {
			return nil, refuse("duplicate_external_id")
		}
	}
	t.used = true
	next.ID, next.Team, next.User, next.Open, next.ws = v.id("V"), r.ws.team.ID, t.user, true, r.ws
	v.byID[next.ID] = next
	return map[string]any{"view": next.wire(map[string]any{})}, nil
}

// wire returns a view as Slack shows it, with the values that were typed.
func (v *view) wire(values map[string]any) map[string]any {
	out := map[string]any{}
	for name, raw := range v.fields {
		out[name] = raw
	}
	maps.Copy(out, fields{
		{"id", v.ID}, {"team_id", v.Team}, {"state", map[string]any{"values": values}}, {"hash", v.ID + ".hash"}, {"root_view_id", v.ID},
		{"app_id", v.ws.server.opts.AppID}, {"bot_id", v.ws.team.BotID}, {"app_installed_team_id", v.Team},
		{"callback_id", v.CallbackID}, {"private_metadata", v.PrivateMetadata}, {"external_id", v.ExternalID},
	}.Object())
	return out
}

// values returns state.values for what a user typed, by action_id; inputs that
// are not named keep their initial value.
func (v *view) values(typed map[string]string) map[string]any {
	out := map[string]any{}
	for i, b := range v.blocks {
		var e element
		if b.Type != "input" || json.Unmarshal(b.Element, &e) != nil {
			continue
		}
		text, ok := typed[e.ActionID]
		if !ok {
			text = e.InitialValue
		}
		one := map[string]any{"type": e.Type, "value": text}
		if text == "" {
			one["value"] = nil
		}
		if e.Type == "static_select" || e.Type == "radio_buttons" {
			one = map[string]any{"type": e.Type, "selected_option": map[string]any{
				"text": map[string]any{"type": "plain_text", "text": text}, "value": text,
			}}
		}
		out[cmp.Or(b.BlockID, fmt.Sprintf("block%d", i))] = map[string]any{e.ActionID: one}
	}
	return out
}

// respond closes a modal whose submission the bot acknowledged, unless its answer says
// otherwise. The lock must be held.
func (v *views) respond(id string, body []byte) {
	var answer struct {
		Action string `json:"response_action"`
	}
	_ = json.Unmarshal(body, &answer)
	v.byID[id].Open = answer.Action != "" && answer.Action != "clear"
}

// Views returns the modals that are open for a user, oldest first.
func (w *Workspace) Views(user string) []ViewState {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var out []ViewState
	for _, v := range w.server.views.byID {
		if v.User == user && v.Open {
			out = append(out, v.ViewState)
		}
	}
	order.By(out, func(a, b ViewState) int { return strings.Compare(a.ID, b.ID) })
	return out
}
