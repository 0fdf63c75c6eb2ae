package pages

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/sessions"
	"remote-agent/internal/setup"
	"remote-agent/internal/store"
)

const (
	// setupPatience bounds the checks of one form, below what a request may take.
	setupPatience = 45 * time.Second

	attemptLife = 15 * time.Minute
	maxAttempts = 100 // of everybody

	fieldPrefix = "f:" // before the name of a field, and dropPrefix before that of one to take out
	dropPrefix  = "drop:"
)

// setupPages change the configuration, step by step.
type setupPages struct {
	storage       Storage
	show          *renderer
	frame         *frame
	site          site
	configuration func() (setup.Service, error) // nil: nothing can be changed
	log           *slog.Logger
	attempts      attempts
}

func (p *setupPages) routes(to *Pages) {
	to.page("GET /setup", ownersSee(p.setupList))
	to.page("GET /setup/{step}", ownersSee(p.setupStep))
	to.act("POST /setup/{step}", ownersDo(p.setUp))
	to.file("GET /setup/{step}/back", p.setupBack)
}

// attempt is what somebody entered into a step, and what came of it. It lives here and not
// in the page because of its secrets, until it is over.
type attempt struct {
	id, session string
	step, way   string
	began       time.Time
	values      map[string]string // all, secrets included
	typed       map[string]string // those without a secret, to be shown again

	out    setup.Outcome
	wrong  []string    // what was refused, a line each
	said   []string    // what was kept; empty: nothing was
	form   *setup.Form // for a service that gives the values
	state  string      // that the service brings back
	proves bool        // it only looked at what is kept
	next   string      // where the person goes on
	aside  string      // where values are that a service gives only once
}

// attempts are those of everybody. It is safe for concurrent use.
type attempts struct {
	mu  sync.Mutex // guards all
	all map[string]attempt
}

// keep keeps an attempt, and drops those that are over.
func (a *attempts) keep(t attempt, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = make(map[string]attempt)
	}
	maps.DeleteFunc(a.all, func(_ string, old attempt) bool { return now.Sub(old.began) > attemptLife })
	if len(a.all) >= maxAttempts {
		oldest := slices.MinFunc(slices.Collect(maps.Values(a.all)), func(x, y attempt) int { return x.began.Compare(y.began) })
		delete(a.all, oldest.id)
	}
	a.all[t.id] = t
}

// of returns an attempt of a session at a step.
func (a *attempts) of(session, step, id string, now time.Time) (attempt, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.all[id]
	return t, ok && t.session == session && t.step == step && now.Sub(t.began) <= attemptLife
}

// back returns the attempt of a session to which a service brings a state back.
func (a *attempts) back(session, step, state string, now time.Time) (attempt, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.all {
		if t.state != "" && sameText(t.state, state) && t.session == session && t.step == step && now.Sub(t.began) <= attemptLife {
			return t, true
		}
	}
	return attempt{}, false
}

// service returns what changes the configuration, as it is now.
func (p *setupPages) service() (setup.Service, error) {
	if p.configuration == nil {
		return nil, fault.New(fault.Unsupported, "The configuration cannot be changed here: use bot setup on the server.")
	}
	return p.configuration()
}

// findStep returns the step of a request.
func (p *setupPages) findStep(r *request) (setup.Service, setup.Step, error) {
	s, err := p.service()
	if err != nil {
		return nil, setup.Step{}, err
	}
	for _, step := range s.Steps(r.Context()) {
		if step.Name == r.PathValue("step") {
			return s, step, nil
		}
	}
	return nil, setup.Step{}, errNoPage
}

// setupList shows all steps and how they stand.
func (p *setupPages) setupList(r *request) (view, error) {
	s, err := p.service()
	if err != nil {
		return view{}, err
	}
	ctx := r.Context()
	var list html.Group
	for _, step := range s.Steps(ctx) {
		now := s.State(ctx, step)
		mark := state("muted", "○", "open")
		if now.On {
			mark = state("ok", "✔", "done")
		}
		list = append(list, html.El("li", mark, html.El("span", html.Class("what"),
			html.Link("/setup/"+step.Name, step.Title), html.Text(" "), html.Styled("span", "meta", p.show.head200(now.Line)))))
	}
	return view{title: "Setup", body: html.Group{
		html.Tag("h1", "Setup"),
		html.El("p", html.Text("Each step says where to click, checks what you enter with the service itself, saves it in the options file and applies it to this bot. It is the same as "),
			html.Tag("code", "bot setup"), html.Text(" on the server.")),
		html.El("ul", html.Class("list"), list),
	}}, nil
}

// setupStep shows one step: its ways, and the form of the one that was chosen.
func (p *setupPages) setupStep(r *request) (view, error) {
	s, step, err := p.findStep(r)
	if err != nil {
		return view{}, err
	}
	w := step.Ways[0]
	last, tried := p.attempts.of(r.session.ID, step.Name, r.URL.Query().Get("attempt"), p.show.now())
	name := r.URL.Query().Get("way")
	if tried {
		name = last.way
	}
	if name != "" {
		var ok bool
		if w, ok = step.Way(name); !ok {
			return view{}, fault.New(fault.Invalid, "This step cannot be done that way. Go back and choose another way.")
		}
	}
	body := html.Group{html.El("p", html.Link("/setup", "All steps")), html.Tag("h1", step.Title)}
	now := s.State(r.Context(), step)
	body = append(body, html.Tag("p", "Now: "+p.show.head200(now.Line)+"."), p.setValues(now.Values))
	if len(step.Ways) > 1 {
		body = append(body, html.El("nav", html.Attr("aria-label", "Ways"), html.El("ul", html.Class("tabs"), html.Map(step.Ways, func(other setup.Way) html.Node {
			return html.El("li", html.El("a", html.Class("button"), html.Href("/setup/"+step.Name+"?way="+queryEscape(other.Name)), html.If(other.Name == w.Name, html.Attr("aria-current", "page")), html.Text(other.Title)))
		}))))
	}
	v := view{title: step.Title}
	if tried {
		part, to := p.triedStep(r, step, last)
		body, v.formTo = append(body, part), to
	}
	if !tried || len(last.said) == 0 && last.form == nil {
		body = append(body, p.wayForm(r, s, step, w, last))
	}
	if now.On && w.Asks() && len(w.Proof.Areas) > 0 {
		body = append(body, form(r, "/setup/"+step.Name, hidden("way", w.Name), decision("Check what is set", "do", "prove", "")))
	}
	v.body = body
	return v, nil
}

// setValues are the options of a step that are set.
func (p *setupPages) setValues(values []setup.Value) html.Node {
	var rows html.Group
	for _, v := range values {
		if v.Set || v.Pinned {
			rows = append(rows, row(html.Tag("code", v.Name), html.Text(p.show.head200(v.Text)), html.Text(v.Origin)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return table([]string{"Option", "Value", "From"}, rows)
}

// wayForm guides through a way and asks for its values.
func (p *setupPages) wayForm(r *request, s setup.Service, step setup.Step, w setup.Way, last attempt) html.Node {
	if why := s.Blocked(w); why != "" {
		return html.Styled("p", "problem", "✖ "+why)
	}
	parts := html.Group{html.Tag("h2", "To do"), html.El("ol", html.Map(w.Guide, func(line string) html.Node { return html.Tag("li", line) }))}
	if w.Link != "" {
		parts = append(parts, html.El("p", html.El("a", html.Href(w.Link), html.Attr("rel", "noopener noreferrer"), html.Text("Open "+hostOfLink(w.Link)))))
	}
	fields := html.Group{hidden("way", w.Name)}
	for _, f := range w.Fields {
		fields = append(fields, p.field(s, w, f, last.typed[f.Name]))
	}
	label := "Check and save"
	switch {
	case w.Act != nil:
		label = "Do it"
	case w.Obtain != nil:
		label = "Continue"
	}
	return append(parts, form(r, "/setup/"+step.Name, fields, button(label, "primary")))
}

// field asks for a value.
func (p *setupPages) field(s setup.Service, w setup.Way, f setup.Field, typed string) html.Node {
	var known setup.Value
	if w.Asks() {
		known = s.Value(f.Name)
	}
	if known.Pinned {
		return html.Tag("p", fmt.Sprintf("%s: %s, which only the %s can change.", f.Label, p.show.head200(known.Text), known.Origin))
	}
	note, needed := "", false
	switch {
	case known.Set && !setup.Moved(s, w, f, nil):
		note = "Leave it empty to keep what is set."
		if f.For != "" {
			note = "Leave it empty to keep what is set, if " + f.For + " stays."
		}
	case f.Default != "":
		note = "Leave it empty for " + f.Default + "."
	case f.Optional:
		note = "Leave it empty for none."
	default:
		needed = true
	}
	name := html.Attr("name", fieldPrefix+f.Name)
	var input html.Node
	switch {
	case f.File:
		input = html.El("textarea", html.Class("code"), name, html.Attr("rows", "6"), html.Attr("spellcheck", "false"), html.Attr("autocomplete", "off"), html.On("required", needed))
		note = strings.TrimSpace("Paste what the file holds. " + note)
	case f.Secret:
		input = html.El("input", html.Attr("type", "password"), name, html.Attr("autocomplete", "off"), html.On("required", needed))
	default:
		input = html.El("input", html.Attr("type", "text"), name, html.Attr("value", typed), html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false"), html.On("required", needed))
	}
	parts := html.Group{html.El("label", html.Text(f.Label), input, html.If(note != "", html.Styled("span", "meta", note)))}
	if known.Set && f.Optional {
		parts = append(parts, html.El("label", html.El("input", html.Attr("type", "checkbox"), html.Attr("name", dropPrefix+f.Name), html.Attr("value", "yes")), html.Text(" Remove the one that is set")))
	}
	return html.El("div", html.Class("field"), parts)
}

// triedStep shows what came of an attempt. formTo is where a form in it leads; empty: here.
func (p *setupPages) triedStep(r *request, step setup.Step, t attempt) (shown html.Node, formTo string) {
	parts := html.Group{html.Tag("h2", "Result")}
	for _, line := range slices.Concat(t.wrong, t.out.Problems) {
		parts = append(parts, html.Styled("p", "problem", "✖ "+p.show.head200(line)))
	}
	for _, line := range t.out.Warnings {
		parts = append(parts, html.Styled("p", "problem", "⚠ "+p.show.head200(line)))
	}
	if len(t.out.Findings) > 0 {
		parts = append(parts, html.El("ul", html.Class("list"), html.Map(t.out.Findings, p.show.finding)))
	}
	for _, line := range t.said {
		parts = append(parts, html.Tag("p", p.show.head200(line)))
	}
	if t.aside != "" && len(t.said) == 0 {
		parts = append(parts, html.Tag("p", p.show.head200(t.aside)))
	}
	again := func(do, label, class string) html.Node {
		return form(r, "/setup/"+step.Name, hidden("way", t.way), hidden("attempt", t.id), decision(label, "do", do, class))
	}
	switch {
	case t.form != nil:
		parts = append(parts, html.El("form", html.Attr("method", "post"), html.Attr("action", t.form.Action),
			html.Map(slices.Sorted(maps.Keys(t.form.Fields)), func(name string) html.Node { return hidden(name, t.form.Fields[name]) }),
			button("Continue to "+hostOfLink(t.form.Action), "primary")))
		formTo = originOf(t.form.Action)
	case len(t.said) > 0, t.proves:
		if t.next != "" {
			parts = append(parts, html.El("p", html.El("a", html.Class("button primary"), html.Href(t.next), html.Attr("rel", "noopener noreferrer"), html.Text("Continue to "+hostOfLink(t.next)))))
		}
	case t.out.Verdict == setup.Doubtful && len(t.wrong) == 0:
		parts = append(parts, html.Tag("p", "Nothing was changed yet."), again("keep", "Keep it as it is", ""), again("try", "Check again", ""))
	case t.values != nil && t.state != "": // a service has made them: they are not made a second time
		parts = append(parts, html.Tag("p", "Nothing was changed yet."), again("try", "Try again", ""))
	default:
		parts = append(parts, html.Tag("p", "Nothing was changed."))
	}
	return parts, formTo
}

// setUp does what a form of a step asks for.
func (p *setupPages) setUp(_ http.ResponseWriter, r *request) (outcome, error) {
	s, step, err := p.findStep(r)
	if err != nil {
		return outcome{}, err
	}
	w, ok := step.Way(r.PostForm.Get("way"))
	if !ok {
		return outcome{}, fault.New(fault.Invalid, "This step cannot be done that way. Go back and choose another way.")
	}
	if why := s.Blocked(w); why != "" {
		return outcome{}, fault.New(fault.Conflict, why)
	}
	ctx, cancel := context.WithTimeout(r.Context(), setupPatience)
	defer cancel()
	t := attempt{id: rand.Text(), session: r.session.ID, step: step.Name, way: w.Name, began: p.show.now()}
	switch do := r.PostForm.Get("do"); {
	case do == "prove":
		t.out, t.proves = s.Prove(ctx, w), true
	case do != "":
		if t, ok = p.attempts.of(r.session.ID, step.Name, r.PostForm.Get("attempt"), p.show.now()); !ok || t.way != w.Name || t.values == nil {
			return outcome{}, fault.New(fault.Gone, "This was started too long ago, so nothing was done. Enter the values again.")
		}
		p.goOn(ctx, r, s, step, w, &t, do)
	default:
		if t.values, t.typed, t.wrong = answers(s, w, r.PostForm); len(t.wrong) == 0 {
			p.enterStep(ctx, r, s, step, w, &t)
		}
	}
	if len(t.said) > 0 { // a restart would forget the attempt
		return outcome{to: "/setup/" + step.Name + "?way=" + queryEscape(w.Name), said: strings.Join(t.said, " ")}, nil
	}
	p.attempts.keep(t, p.show.now())
	return outcome{to: "/setup/" + step.Name + "?attempt=" + t.id}, nil
}

// answers reads what was entered into the fields of a way. typed has what may be shown
// again.
func answers(s setup.Service, w setup.Way, form url.Values) (values, typed map[string]string, wrong []string) {
	values, typed = make(map[string]string), make(map[string]string)
	for _, f := range w.Fields {
		value := strings.TrimSpace(strings.ReplaceAll(form.Get(fieldPrefix+f.Name), "\r\n", "\n"))
		if !f.Secret && !f.File {
			typed[f.Name] = value
		}
		var known setup.Value
		if w.Asks() {
			known = s.Value(f.Name)
		}
		switch {
		case known.Pinned:
			continue
		case f.Optional && form.Get(dropPrefix+f.Name) != "":
			value = ""
		case value == "" && known.Set && !setup.Moved(s, w, f, values):
			continue // what is set stays
		case value == "":
			value = f.Default
		}
		if value == "" && !f.Optional {
			wrong = append(wrong, f.Label+" is needed.")
			continue
		}
		if value != "" && w.Asks() {
			if problem := s.CheckValue(f.Name, value); problem != "" {
				wrong = append(wrong, problem)
				continue
			}
		}
		values[f.Name] = value
	}
	return values, typed, wrong
}

// enterStep does what a way is for, with values that are right by themselves.
func (p *setupPages) enterStep(ctx context.Context, r *request, s setup.Service, step setup.Step, w setup.Way, t *attempt) {
	switch {
	case w.Act != nil:
		said, err := w.Act(ctx, t.values)
		if err != nil {
			t.wrong = append(t.wrong, fault.Public(err))
			return
		}
		p.auditSetup(ctx, r, t)
		t.said = append(strings.Split(strings.TrimSpace(said), "\n"), w.Opens)
	case w.Obtain != nil:
		t.state = rand.Text()
		form, err := w.Obtain.Form(t.values, p.site.base(r.Request)+"/setup/"+step.Name+"/back", t.state)
		if err != nil {
			t.wrong, t.state = append(t.wrong, fault.Public(err)), ""
			return
		}
		t.form, t.values = &form, nil
	default:
		p.goOn(ctx, r, s, step, w, t, "try")
	}
}

// goOn tries the values of an attempt, and keeps them if they are good, or the person
// wants that.
func (p *setupPages) goOn(ctx context.Context, r *request, s setup.Service, step setup.Step, w setup.Way, t *attempt, do string) {
	t.wrong = nil
	if do != "keep" || t.out.Verdict != setup.Doubtful {
		if t.out = s.Try(ctx, step, w, t.values); t.out.Verdict != setup.Good {
			return
		}
	}
	said, err := s.Keep(ctx, step, w, t.values)
	if err != nil {
		t.wrong = append(t.wrong, fault.Public(err))
		return
	}
	p.auditSetup(ctx, r, t)
	t.said = slices.Concat(said, []string{w.Opens})
	if t.next != "" {
		t.said = append(t.said, "Continue at "+t.next)
	}
}

// auditSetup notes who has changed which options; their values are nobody's business.
func (p *setupPages) auditSetup(ctx context.Context, r *request, t *attempt) {
	detail, _ := json.Marshal(map[string]any{"way": t.way, "values": slices.Sorted(maps.Keys(t.values))}) //nolint:errchkjson // texts
	err := p.storage.InTx(ctx, func(tx *store.Tx) error {
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: "setup.keep", Target: t.step, Detail: string(detail)})
	})
	if err != nil {
		p.log.WarnContext(ctx, "a change of the configuration is not in the audit log", "step", t.step, "err", err)
	}
}

// putAside keeps what a service gives only once and what is not in effect, and says where.
func putAside(s setup.Service, w setup.Way, values map[string]string) string {
	path, err := s.PutAside(w, values)
	if err != nil {
		return "What the service returned could not be saved: " + fault.Public(err)
	}
	return "What the service returned is in " + path + ", which only the bot's user can read. Nothing uses that file."
}

// setupBack takes what a service gives to the browser of whoever asked for it.
func (p *setupPages) setupBack(w http.ResponseWriter, r *request) error {
	if !r.owner() {
		return fault.New(fault.Forbidden, "Only owners can do this.")
	}
	s, step, err := p.findStep(r)
	if err != nil {
		return err
	}
	t, ok := p.attempts.back(r.session.ID, step.Name, r.URL.Query().Get("state"), p.show.now())
	way, found := step.Way(t.way)
	if !ok || !found || way.Obtain == nil {
		return fault.New(fault.Invalid, "This was not started in this browser, or too long ago. Start again.")
	}
	// What is given only once is taken, also if the browser is closed meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), setupPatience)
	defer cancel()
	if t.form == nil {
		return fault.New(fault.Conflict, "This page was loaded again: its work is done, or waits on the page of the step.")
	}
	values, next, err := way.Obtain.Exchange(ctx, r.URL.Query())
	if err != nil {
		return err
	}
	t.values, t.next, t.form = values, next, nil
	p.attempts.keep(t, p.show.now()) // before anything can fail: the service does not make them again
	if p.goOn(ctx, r, s, step, way, &t, "try"); len(t.said) == 0 {
		t.aside = putAside(s, way, values) // a restart would forget the attempt
	}
	p.attempts.keep(t, p.show.now())
	shown, _ := p.triedStep(r, step, t) // at once: a restart would forget it
	p.frame.write(w, r, http.StatusOK, view{title: step.Title, body: html.Group{html.Tag("h1", step.Title), shown, html.El("p", html.Link("/setup", "All steps"))}})
	return nil
}
