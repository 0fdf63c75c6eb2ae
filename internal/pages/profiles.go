package pages

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/order"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	profilesPage = 100
	maxEditable  = 150 << 10 // bytes of HTML that the text of a profile may become

	// keptValue stands for a value of an MCP server, which may be a secret: pages never
	// show it, and leave it as it is where this stands.
	keptValue = "(hidden; stays as it is)"
)

// profilePages are the agent profiles.
type profilePages struct {
	storage Storage
	show    *renderer
	frame   *frame
	parse   func(text []byte) (profile.Profile, error) // nil: they cannot be changed
}

func (p *profilePages) routes(to *Pages) {
	to.page("GET /agents", p.profiles)
	to.page("GET /agents/new", ownersSee(p.newProfile))
	to.act("POST /agents/new", ownersDo(p.saveProfile))
	to.page("GET /agents/{id}", ownersSee(p.profile))
	to.act("POST /agents/{id}", ownersDo(p.saveProfile))
	to.act("POST /agents/{id}/delete", ownersDo(p.deleteProfile))
}

// profiles lists the agent profiles.
func (p *profilePages) profiles(r *request) (view, error) {
	if err := r.plain("after"); err != nil {
		return view{}, err
	}
	after, ctx := r.URL.Query().Get("after"), r.Context()
	list, err := store.Within(ctx, p.storage.InRead, func(tx *store.Tx) ([]profile.Profile, error) { return tx.Profiles().List(ctx, "") })
	if err != nil {
		return view{}, err
	}
	place := func(a profile.Profile) string { return a.Group + "/" + a.Name }
	order.By(list, func(a, b profile.Profile) int { return strings.Compare(place(a), place(b)) })
	for after != "" && len(list) > 0 && place(list[0]) <= after {
		list = list[1:]
	}
	more := len(list) > profilesPage
	list = list[:min(len(list), profilesPage)]
	body := html.Group{html.Tag("h1", "Agent profiles"),
		html.If(r.owner(), html.El("p", linkButton("/agents/new", "New profile")))}
	body = append(body, listed(html.Map(list, func(a profile.Profile) html.Node {
		name := html.Tag("strong", a.Title())
		if r.owner() {
			name = html.Link("/agents/"+a.ID, a.Title())
		}
		return html.El("li", html.El("span", html.Class("what"), name), meta(profileFacts(a)...), html.Styled("p", "meta wide", p.show.head200(a.Description)),
			html.If(r.owner(), linkButton("/agents/new?from="+a.ID, "Duplicate")))
	}), "There are no profiles yet, so the default is used. A profile is a prompt with its tools, model and memory for one job. Owners create profiles here or with bot agent create, and /agent NAME has a chat use one."))
	if more {
		body = append(body, older(r, "after", place(list[len(list)-1]), "", "More profiles"))
	}
	return view{title: "Agent profiles", body: body}, nil
}

// profileFacts is what a list says of a profile.
func profileFacts(a profile.Profile) []any {
	facts := []any{string(a.Mode), "version " + strconv.FormatInt(a.Version, 10)}
	if model := a.ModelTier + a.Model; model != "" {
		facts = append(facts, model)
	}
	if n := len(a.Plugins); n > 0 {
		facts = append(facts, wording.Count(n, "tool", "tools"))
	}
	if n := len(a.MCPServers); n > 0 {
		facts = append(facts, wording.Count(n, "MCP server", "MCP servers"))
	}
	if a.Interval > 0 {
		facts = append(facts, a.Often())
	}
	return facts
}

// profileOf returns a profile with its picture.
func (p *profilePages) profileOf(ctx context.Context, id string) (profile.Profile, error) {
	return store.Within(ctx, p.storage.InRead, func(tx *store.Tx) (profile.Profile, error) { return tx.Profiles().Agent(ctx, id) })
}

// profileText returns a profile as YAML for a page: without its picture and the values
// of MCP servers. It reports false for one that cannot be changed there.
func (p *profilePages) profileText(a profile.Profile) (text string, editable bool, err error) {
	a.AvatarImage, a.AvatarType = nil, ""
	a.MCPServers = mapServers(a.MCPServers, func(_, _, _ string) string { return keptValue })
	encoded, err := profile.Format(a)
	text = string(encoded)
	return text, p.show.redact(text) == text && len(html.String(html.Text(text))) <= maxEditable, err
}

// mapServers returns the servers with other values of their variables and headers.
func mapServers(servers map[string]mcpserver.Server, value func(server, key, old string) string) map[string]mcpserver.Server {
	out := make(map[string]mcpserver.Server, len(servers))
	for name, s := range servers {
		for _, values := range []*map[string]string{&s.Env, &s.Headers} {
			*values = maps.Clone(*values)
			for key, old := range *values {
				(*values)[key] = value(name, key, old)
			}
		}
		out[name] = s
	}
	return out
}

// readProfile reads what somebody wrote, with what pages do not show of the profile that
// it began with.
func (p *profilePages) readProfile(text string, from profile.Profile) (profile.Profile, error) {
	if p.parse == nil {
		return profile.Profile{}, fault.New(fault.Unsupported, "Profiles cannot be changed here. Use bot agent edit on the server.")
	}
	a, err := p.parse([]byte(strings.ReplaceAll(text, "\r\n", "\n")))
	if err != nil {
		return a, err
	}
	var unknown []string
	a.MCPServers = mapServers(a.MCPServers, func(server, key, old string) string {
		if old != keptValue {
			return old
		}
		s, now := from.MCPServers[server], a.MCPServers[server]
		for _, values := range []map[string]string{s.Env, s.Headers} {
			known, ok := values[key]
			switch {
			case ok && s.Command == now.Command && slices.Equal(s.Args, now.Args) && s.URL == now.URL:
				return known
			case ok: // whoever does not see it does not send it somewhere
				unknown = append(unknown, "mcp_servers: "+server+" points elsewhere now; enter the value of "+key+".")
				return old
			}
		}
		unknown = append(unknown, "mcp_servers: "+server+" has no "+key+" yet; enter its value.")
		return old
	})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return a, fault.New(fault.Invalid, strings.Join(unknown, "\n"))
	}
	if len(a.AvatarImage) == 0 {
		a.AvatarImage, a.AvatarType = from.AvatarImage, from.AvatarType
	}
	return a, nil
}

// newProfile shows the form of a new profile, which may begin as a copy.
func (p *profilePages) newProfile(r *request) (view, error) {
	if err := r.plain("from"); err != nil {
		return view{}, err
	}
	a := profile.New("my-profile")
	from := r.URL.Query().Get("from")
	if from != "" {
		var err error
		if a, err = p.profileOf(r.Context(), from); err != nil {
			return view{}, err
		}
		a.Name = cut(a.Name, 58) + "-copy"
	}
	text, editable, err := p.profileText(a)
	if err != nil {
		return view{}, err
	}
	return p.profileForm(r, "New profile", "/agents/new", text, editable, nil, hidden("from", from)), nil
}

// profile shows the form of a profile, and how it is deleted.
func (p *profilePages) profile(r *request) (view, error) {
	ctx := r.Context()
	a, err := p.profileOf(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	text, editable, err := p.profileText(a)
	if err != nil {
		return view{}, err
	}
	v := p.profileForm(r, a.Title(), "/agents/"+a.ID, text, editable, nil, hidden("version", strconv.FormatInt(a.Version, 10)))
	goes, err := store.Within(ctx, p.storage.InRead, func(tx *store.Tx) (store.AgentsRemoved, error) { return tx.Profiles().MeasureAgent(ctx, a.ID) })
	v.body = html.Group{v.body, html.Tag("h2", "Duplicate or delete"),
		html.El("p", linkButton("/agents/new?from="+a.ID, "Duplicate")),
		form(r, "/agents/"+a.ID+"/delete",
			html.El("p", html.Textf("This also deletes %s and %s that it saved itself; %s to the default. Nothing that was said is deleted.",
				wording.Count(int(goes.Schedules), "standing task", "standing tasks"), wording.Count(int(goes.Memories), "memory", "memories"), wording.Count(int(goes.Conversations), "conversation returns", "conversations return"))),
			html.El("label", html.El("input", html.Attr("type", "checkbox"), html.Attr("name", "sure"), html.Attr("value", "yes"), html.On("required", true)), html.Text(" Yes, delete this profile")),
			button("Delete the profile", "danger"))}
	return v, err
}

// profileForm is where a profile is written, with what is wrong with it beside.
func (p *profilePages) profileForm(r *request, title, action, text string, editable bool, wrong error, fields html.Node) view {
	body := html.Group{html.El("p", html.Link("/agents", "Agent profiles")), html.Tag("h1", title)}
	if !editable {
		return view{title: title, body: append(body, html.Styled("p", "problem", "This profile is too long for a page, or contains a secret from the configuration. Change it on the server: bot agent edit."),
			p.show.output(text, maxText))}
	}
	problems := html.Node(nil)
	if wrong != nil {
		lines := strings.Split(strings.TrimSpace(p.show.redact(fault.Public(wrong))), "\n")
		problems = html.El("div", html.Class("problem"), html.ID("problems"), html.Attr("role", "alert"), html.Tag("p", "Nothing was saved:"),
			html.El("ul", html.Map(lines[:min(len(lines), 50)], func(line string) html.Node { return html.Tag("li", line) })))
	}
	return view{title: title, body: append(body,
		html.El("p", html.Class("muted"), html.Text("In YAML. Values of MCP servers are hidden, and stay as they are where the text says so; the picture stays, too. The next turn uses what you save. "),
			html.Link("/docs/assistants", "The manual describes the fields.")),
		html.El("div", html.Class("beside"), form(r, action, fields,
			html.El("label", html.Text("Profile"), html.El("textarea", html.Class("code"), html.Attr("name", "text"), html.Attr("rows", "24"), html.Attr("spellcheck", "false"), html.On("required", true),
				html.If(wrong != nil, html.Attr("aria-describedby", "problems")), html.If(wrong != nil, html.Attr("aria-invalid", "true")), html.Text(text))),
			button("Save", "primary")), problems))}
}

// saveProfile stores what somebody wrote: a new profile, or the next version of one.
func (p *profilePages) saveProfile(w http.ResponseWriter, r *request) (outcome, error) {
	ctx, form, id := r.Context(), r.PostForm, r.PathValue("id")
	from, action, fields := profile.Profile{}, "/agents/new", hidden("from", form.Get("from"))
	if named := id + form.Get("from"); named != "" {
		var err error
		if from, err = p.profileOf(ctx, named); err != nil {
			return outcome{}, err
		}
	}
	title, did := "New profile", "agent.create"
	if id != "" {
		title, did, action, fields = from.Title(), "agent.edit", "/agents/"+id, hidden("version", form.Get("version"))
	}
	a, err := p.readProfile(form.Get("text"), from)
	if err == nil && id != "" {
		a.ID = id
		if a.Version, err = strconv.ParseInt(form.Get("version"), 10, 64); err != nil {
			return outcome{}, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
		}
	}
	if err == nil && id != "" && a.Same(from) && a.Version == from.Version {
		return outcome{to: "/agents", said: title + " is the same as before; nothing was changed."}, nil
	}
	if err == nil {
		err = p.storage.InTx(ctx, func(tx *store.Tx) (err error) {
			if id == "" {
				_, err = tx.Profiles().Create(ctx, a)
			} else {
				_, err = tx.Profiles().Update(ctx, a)
			}
			if err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: did, Target: a.Title()})
		})
	}
	if fault.Is(err, fault.Conflict) && p.stands(ctx, a) {
		err = nil
	}
	switch {
	case (fault.Is(err, fault.Invalid) || fault.Is(err, fault.Conflict)) && len(html.String(html.Text(form.Get("text")))) <= maxEditable: // what was written is kept on the page
		p.frame.write(w, r, statusOf(err), p.profileForm(r, title, action, strings.ToValidUTF8(form.Get("text"), "\uFFFD"), true, err, fields))
		return outcome{}, errAnswered
	case err != nil:
		return outcome{}, err
	}
	return outcome{to: "/agents", said: "Saved " + a.Title() + ". In a chat, /agent " + a.Title() + " uses it."}, nil
}

// stands reports whether a profile is there as somebody wrote it, although it could not be
// saved: their form came twice, as without JavaScript, and the first one did what it asks.
func (p *profilePages) stands(ctx context.Context, a profile.Profile) bool {
	named, err := store.Within(ctx, p.storage.InRead, func(tx *store.Tx) ([]profile.Profile, error) { return tx.Profiles().Named(ctx, a.Name) })
	return err == nil && slices.ContainsFunc(named, func(b profile.Profile) bool {
		return (a.ID == "" || a.ID == b.ID) && a.Prepare().Same(b.Prepare())
	})
}

// deleteProfile deletes a profile, once that was confirmed. One that is gone is what was
// asked for, as if the form comes twice.
func (p *profilePages) deleteProfile(_ http.ResponseWriter, r *request) (outcome, error) {
	if r.PostForm.Get("sure") != "yes" {
		return outcome{}, fault.New(fault.Invalid, "Nothing was deleted: tick the box to confirm.")
	}
	ctx, title := r.Context(), ""
	err := p.storage.InTx(ctx, func(tx *store.Tx) error {
		a, err := tx.Profiles().Agent(ctx, r.PathValue("id"))
		if err != nil {
			return err
		}
		title = a.Title()
		if _, err := tx.Profiles().Delete(ctx, a.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: "agent.remove", Target: title})
	})
	if fault.Is(err, fault.NotFound) {
		return outcome{to: "/agents", said: "The profile was already deleted."}, nil
	}
	return outcome{to: "/agents", said: "Deleted " + title + "."}, err
}
