package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/order"
)

// trigger is what a trigger_id stands for.
type trigger struct {
	ws   *Workspace
	user string
	at   time.Time
	used bool
	view string // the view in which the user was, for views.push
}

// newTrigger returns a trigger_id. The lock must be held.
func (s *Server) newTrigger(w *Workspace, user, viewID string) string {
	id := s.id("trigger.")
	s.triggers[id] = &trigger{ws: w, user: user, at: s.opts.Now(), view: viewID}
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

func (r *request) useTrigger() (*trigger, *apiError) {
	s := r.ws.server
	t := s.triggers[r.p.get("trigger_id")]
	switch {
	case t == nil || t.ws != r.ws:
		return nil, refuse("invalid_trigger_id")
	case t.used:
		return nil, refuse("exchanged_trigger_id")
	case s.opts.Now().Sub(t.at) > s.opts.TriggerLifetime:
		return nil, refuse("expired_trigger_id")
	}
	return t, nil
}

func (s *Server) openView(r *request) (map[string]any, *apiError) { return s.show(r, false) }

func (s *Server) pushView(r *request) (map[string]any, *apiError) { return s.show(r, true) }

func (s *Server) show(r *request, push bool) (map[string]any, *apiError) {
	v, refused := readView(r.p.get("view"), "modal")
	if refused != nil {
		return nil, refused
	}
	t, refused := r.useTrigger()
	if refused != nil {
		return nil, refused
	}
	parent := s.views[t.view]
	if push && (parent == nil || !parent.Open) {
		return nil, refuse("not_found")
	}
	for _, other := range s.views {
		if v.ExternalID != "" && other.ExternalID == v.ExternalID && other.ws == r.ws && other.Open {
			return nil, refuse("duplicate_external_id")
		}
	}
	t.used = true
	if push {
		v.Parent = parent.ID
	}
	s.keepView(r.ws, t.user, v)
	return map[string]any{"view": v.wire(nil)}, nil
}

// keepView opens a view for a user.
func (s *Server) keepView(w *Workspace, user string, v *view) {
	v.ID, v.Team, v.User, v.Open, v.ws = s.id("V"), w.team.ID, user, true, w
	v.hash = s.ts() + ".hash"
	s.views[v.ID] = v
}

func (s *Server) updateView(r *request) (map[string]any, *apiError) {
	old := s.views[r.p.get("view_id")]
	if external := r.p.get("external_id"); old == nil && external != "" {
		for _, v := range s.views {
			if v.ExternalID == external && v.ws == r.ws {
				old = v
			}
		}
	}
	if old == nil || old.ws != r.ws || !old.Open {
		return nil, refuse("not_found")
	}
	if hash := r.p.get("hash"); hash != "" && hash != old.hash {
		return nil, refuse("hash_conflict")
	}
	v, refused := readView(r.p.get("view"), old.kind)
	if refused != nil {
		return nil, refused
	}
	s.replaceView(old, v)
	return map[string]any{"view": v.wire(nil)}, nil
}

func (s *Server) replaceView(old, v *view) {
	v.ID, v.Team, v.User, v.Open, v.ws, v.Parent = old.ID, old.Team, old.User, true, old.ws, old.Parent
	v.Updates, v.hash = old.Updates+1, s.ts()+".hash"
	s.views[v.ID] = v
}

func (s *Server) publishView(r *request) (map[string]any, *apiError) {
	user := r.p.get("user_id")
	if _, known := r.ws.users[user]; !known {
		return nil, refuse("user_not_found")
	}
	v, refused := readView(r.p.get("view"), "home")
	if refused != nil {
		return nil, refused
	}
	for _, old := range s.views {
		if old.kind == "home" && old.User == user && old.ws == r.ws {
			s.replaceView(old, v)
			return map[string]any{"view": v.wire(nil)}, nil
		}
	}
	s.keepView(r.ws, user, v)
	return map[string]any{"view": v.wire(nil)}, nil
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
	s := v.ws.server
	maps.Copy(out, map[string]any{
		"id": v.ID, "team_id": v.Team, "state": map[string]any{"values": values}, "hash": v.hash, "root_view_id": root,
		"app_id": s.opts.AppID, "bot_id": v.ws.team.BotID, "app_installed_team_id": v.Team,
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
		id := b.BlockID
		id = cmp.Or(id, fmt.Sprintf("block%d", i))
		out[id] = map[string]any{e.ActionID: one}
	}
	return out
}

// respond carries out what the bot answered to a submission. The lock must be
// held.
func (s *Server) respond(v *view, body []byte) {
	var answer struct {
		Action string            `json:"response_action"`
		View   json.RawMessage   `json:"view"`
		Errors map[string]string `json:"errors"`
	}
	_ = json.Unmarshal(body, &answer)
	v = s.views[v.ID]
	switch answer.Action {
	case "errors":
		v.Errors = answer.Errors
	case "update", "push":
		next, refused := readView(string(answer.View), "modal")
		if refused != nil {
			v.Errors = map[string]string{"": refused.code}
			return
		}
		if answer.Action == "push" {
			next.Parent = v.ID
			s.keepView(v.ws, v.User, next)
			return
		}
		s.replaceView(v, next)
	case "clear":
		for id := v.ID; s.views[id] != nil; id = s.views[id].Parent {
			s.views[id].Open = false
		}
	default:
		v.Open, v.Errors = false, nil
	}
}

// Views returns the modals that are open for a user, oldest first.
func (w *Workspace) Views(user string) []ViewState {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var out []ViewState
	for _, v := range w.server.views {
		if v.ws == w && v.kind == "modal" && v.User == user && v.Open {
			out = append(out, v.ViewState)
		}
	}
	order.By(out, func(a, b ViewState) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// responseURL is where the bot may answer a command or an interaction.
type responseURL struct {
	ws      *Workspace
	user    string
	channel string
	message *Message // to which the interaction belongs; nil for commands
	at      time.Time
	uses    int
}

const maxResponses = 5

// newResponseURL returns a URL. The lock must be held.
func (s *Server) newResponseURL(w *Workspace, user, channelID string, m *Message) string {
	id := s.id("R")
	s.responses[id] = &responseURL{ws: w, user: user, channel: channelID, message: m, at: s.opts.Now()}
	return s.URL() + "/response/" + id
}

func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	p, refused := parseParams(r)
	id := r.PathValue("id")
	call := Call{Method: ResponseURL, Params: p.values, At: s.opts.Now()}
	s.answer(w, r, call, func() (map[string]any, *apiError, []string) { //nolint:contextcheck // what the call makes Slack deliver outlives it
		if refused != nil {
			return nil, refused, nil
		}
		s.mu.Lock()
		defer s.unlock()
		u := s.responses[id]
		switch {
		case u == nil:
			return nil, &apiError{code: "invalid_url", status: http.StatusNotFound}, nil
		case s.opts.Now().Sub(u.at) > s.opts.ResponseURLLifetime:
			return nil, &apiError{code: "expired_url", status: http.StatusNotFound}, nil
		case u.uses >= maxResponses:
			return nil, &apiError{code: "used_url", status: http.StatusNotFound}, nil
		}
		refused := s.reply(u, p)
		if refused == nil {
			u.uses++
		}
		return nil, refused, nil
	}, params{})
}

// reply carries out a post to a response URL, or the body of an acknowledgement.
// The lock must be held.
func (s *Server) reply(u *responseURL, p params) *apiError {
	c := u.ws.open(u.channel)
	if p.bool("delete_original") && u.message != nil {
		if m := c.byTS[u.message.TS]; m != nil {
			c.remove(m)
			s.change(ChangeDeleted, m)
		}
		return nil
	}
	body, refused := readContent(p, false)
	if refused != nil {
		return &apiError{code: refused.code, status: http.StatusBadRequest, messages: refused.messages}
	}
	if body.empty() {
		return &apiError{code: "no_text", status: http.StatusBadRequest}
	}
	if p.bool("replace_original") && u.message != nil {
		if old := c.byTS[u.message.TS]; old != nil {
			m := *old
			body.put(&m)
			c.supersede(old, &m)
			s.change(ChangeEdited, &m)
		}
		return nil
	}
	m := u.ws.botMessage()
	body.put(m)
	root := p.get("thread_ts")
	if p.get("response_type") == "in_channel" {
		if c.byTS[root] != nil {
			m.ThreadTS = root
		}
		s.post(c, m)
		return nil
	}
	s.whisper(c, m, u.user, root)
	return nil
}
