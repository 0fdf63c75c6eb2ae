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

// views are the modals and home tabs, and the triggers with which the bot may
// open more.
type views struct {
	*platform

	byID     map[string]*view
	triggers map[string]*trigger
}

// trigger is what a trigger_id stands for.
type trigger struct {
	ws   *Workspace
	user string
	at   time.Time
	used bool
	view string // the view in which the user was, for views.push
}

// newTrigger returns a trigger_id. The lock must be held.
func (v *views) newTrigger(w *Workspace, user, viewID string) string {
	id := v.id("trigger.")
	v.triggers[id] = &trigger{ws: w, user: user, at: v.opts.Now(), view: viewID}
	return id
}

// view is a modal or a home tab.
type view struct {
	ViewState
	ws     *Workspace
	kind   string
	hash   string
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
	Title           string
	Blocks          json.RawMessage
	Plain           string
	Open            bool
	Errors          map[string]string // by block, as the bot answered the last submission
	Parent          string            // of a view that was pushed
	Updates         int
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

// Buttons returns the buttons in the view.
func (v ViewState) Buttons() []Button { return buttonsIn(v.Blocks) }

// readView checks a view.
func readView(raw, kind string) (*view, *apiError) {
	v := &view{kind: kind}
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
	if json.Unmarshal([]byte(raw), &head) != nil || head.Type != kind {
		return nil, refuse("invalid_arguments", "[ERROR] must be a "+kind+" [json-pointer:/view/type]")
	}
	where := inHome
	if kind == "modal" {
		where = inModal
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
	}
	if utf8.RuneCountInString(head.PrivateMetadata) > maxViewMetadata || utf8.RuneCountInString(head.CallbackID) > maxID {
		return nil, refuse("invalid_arguments", "[ERROR] private_metadata or callback_id is too long")
	}
	blocks, refused := checkBlocks(string(v.fields["blocks"]), where)
	if refused != nil {
		return nil, refused
	}
	if len(blocks) == 0 {
		return nil, refuse("invalid_arguments", "[ERROR] missing required field: blocks [json-pointer:/view/blocks]")
	}
	if where == inModal && head.Submit == nil && slices.ContainsFunc(blocks, func(b block) bool { return b.Type == "input" }) {
		return nil, refuse("invalid_arguments", "[ERROR] a view with an input needs submit [json-pointer:/view/submit]")
	}
	v.blocks = blocks
	v.ViewState = ViewState{
		CallbackID: head.CallbackID, PrivateMetadata: head.PrivateMetadata, ExternalID: head.ExternalID,
		Blocks: v.fields["blocks"], Plain: plainBlocks(blocks),
	}
	if head.Title != nil {
		v.Title = head.Title.Text
	}
	return v, nil
}

// trigger returns what the trigger_id of a call stands for, if it is good.
func (v *views) trigger(r *request) (*trigger, *apiError) {
	t := v.triggers[r.p.get("trigger_id")]
	switch {
	case t == nil || t.ws != r.ws:
		return nil, refuse("invalid_trigger_id")
	case t.used:
		return nil, refuse("exchanged_trigger_id")
	case v.opts.Now().Sub(t.at) > v.opts.TriggerLifetime:
		return nil, refuse("expired_trigger_id")
	}
	return t, nil
}

// open opens a modal, views.push above the one in which the user is.
func (v *views) open(r *request) (map[string]any, *apiError) {
	next, refused := readView(r.p.get("view"), "modal")
	if refused != nil {
		return nil, refused
	}
	t, refused := v.trigger(r)
	if refused != nil {
		return nil, refused
	}
	if r.method == "views.push" {
		parent := v.byID[t.view]
		if parent == nil || !parent.Open {
			return nil, refuse("not_found")
		}
		next.Parent = parent.ID
	}
	for _, other := range v.byID {
		if next.ExternalID != "" && other.ExternalID == next.ExternalID && other.ws == r.ws && other.Open {
			return nil, refuse("duplicate_external_id")
		}
	}
	t.used = true
	v.add(r.ws, t.user, next)
	return map[string]any{"view": next.wire(nil)}, nil
}

// add opens a view for a user.
func (v *views) add(w *Workspace, user string, next *view) {
	next.ID, next.Team, next.User, next.Open, next.ws = v.id("V"), w.team.ID, user, true, w
	next.hash = v.ts() + ".hash"
	v.byID[next.ID] = next
}

func (v *views) update(r *request) (map[string]any, *apiError) {
	old := v.byID[r.p.get("view_id")]
	if external := r.p.get("external_id"); old == nil && external != "" {
		for _, other := range v.byID {
			if other.ExternalID == external && other.ws == r.ws {
				old = other
			}
		}
	}
	if old == nil || old.ws != r.ws || !old.Open {
		return nil, refuse("not_found")
	}
	if hash := r.p.get("hash"); hash != "" && hash != old.hash {
		return nil, refuse("hash_conflict")
	}
	next, refused := readView(r.p.get("view"), old.kind)
	if refused != nil {
		return nil, refused
	}
	v.replace(old, next)
	return map[string]any{"view": next.wire(nil)}, nil
}

func (v *views) replace(old, next *view) {
	next.ID, next.Team, next.User, next.Open, next.ws, next.Parent = old.ID, old.Team, old.User, true, old.ws, old.Parent
	next.Updates, next.hash = old.Updates+1, v.ts()+".hash"
	v.byID[next.ID] = next
}

func (v *views) publish(r *request) (map[string]any, *apiError) {
	user := r.p.get("user_id")
	if _, known := r.ws.users[user]; !known {
		return nil, refuse("user_not_found")
	}
	next, refused := readView(r.p.get("view"), "home")
	if refused != nil {
		return nil, refused
	}
	for _, old := range v.byID {
		if old.kind == "home" && old.User == user && old.ws == r.ws {
			v.replace(old, next)
			return map[string]any{"view": next.wire(nil)}, nil
		}
	}
	v.add(r.ws, user, next)
	return map[string]any{"view": next.wire(nil)}, nil
}

// wire returns a view as Slack shows it, with the values that were typed.
func (v *view) wire(values map[string]any) map[string]any {
	out := map[string]any{}
	for name, raw := range v.fields {
		out[name] = raw
	}
	if values == nil {
		values = map[string]any{}
	}
	root := v.ID
	if v.Parent != "" {
		root = v.Parent
		out["previous_view_id"] = v.Parent
	}
	maps.Copy(out, map[string]any{
		"id": v.ID, "team_id": v.Team, "state": map[string]any{"values": values}, "hash": v.hash, "root_view_id": root,
		"app_id": v.ws.server.opts.AppID, "bot_id": v.ws.team.BotID, "app_installed_team_id": v.Team,
		"callback_id": v.CallbackID, "private_metadata": v.PrivateMetadata, "external_id": v.ExternalID,
	})
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

// respond carries out what the bot answered to a submission. The lock must be
// held.
func (v *views) respond(id string, body []byte) {
	var answer struct {
		Action string            `json:"response_action"`
		View   json.RawMessage   `json:"view"`
		Errors map[string]string `json:"errors"`
	}
	_ = json.Unmarshal(body, &answer)
	old := v.byID[id]
	switch answer.Action {
	case "errors":
		old.Errors = answer.Errors
	case "update", "push":
		next, refused := readView(string(answer.View), "modal")
		if refused != nil {
			old.Errors = map[string]string{"": refused.code}
			return
		}
		if answer.Action == "push" {
			next.Parent = id
			v.add(old.ws, old.User, next)
			return
		}
		v.replace(old, next)
	case "clear":
		for ; old != nil; old = v.byID[old.Parent] {
			old.Open = false
		}
	default:
		old.Open, old.Errors = false, nil
	}
}

// Views returns the modals that are open for a user, oldest first.
func (w *Workspace) Views(user string) []ViewState {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var out []ViewState
	for _, v := range w.server.views.byID {
		if v.ws == w && v.kind == "modal" && v.User == user && v.Open {
			out = append(out, v.ViewState)
		}
	}
	order.By(out, func(a, b ViewState) int { return strings.Compare(a.ID, b.ID) })
	return out
}
