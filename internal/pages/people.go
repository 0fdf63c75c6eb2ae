package pages

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// Directory is who may use the bot. Changes are those of the chat commands: they hold on
// all replicas at once and are in the audit log, and who makes them has to be an owner in
// the transaction that does it. They return what to say.
type Directory interface {
	// List returns people by account.
	List(ctx context.Context) ([]Person, error)
	// Waiting returns who requests access, the oldest first.
	Waiting(ctx context.Context) ([]sessions.Pairing, error)
	// Answer decides on a request, once: with sessions.Stranger it is refused.
	Answer(ctx context.Context, by signin.Account, number int64, role sessions.Role) (said string, err error)
	// Change gives an account, such as "telegram/42", another standing.
	Change(ctx context.Context, by signin.Account, account string, to Standing) (said string, err error)
}

// Person is somebody who was given a role, was removed, or is an owner by the
// configuration.
type Person struct {
	Account signin.Account
	Name    string // as last seen; may be empty
	Role    sessions.Role
	Why     string // who gave it and when
	Removed bool   // shut out, whatever the configuration says
}

// Standing is what an owner makes of somebody.
type Standing string

// The standings.
const (
	AsMember Standing = "member"
	AsViewer Standing = "viewer"
	AsOwner  Standing = "owner"
	NoOwner  Standing = "no-owner"
	Out      Standing = "removed"
)

const peoplePage = 50

// peoplePages are who may use the bot and who asks to.
type peoplePages struct {
	storage   Storage
	show      *renderer
	directory Directory // nil: it is not known
	budget    func() spend.Budget
}

func (p *peoplePages) routes(to *Pages) {
	to.page("GET /people", ownersSee(p.people))
	to.act("POST /people/request", ownersDo(p.answerRequest))
	to.act("POST /people/change", ownersDo(p.changePerson))
}

// figures are what is known of somebody besides.
type figures struct {
	seen   time.Time
	today  spend.Sum
	linked []string // other accounts of the same person
}

// people shows who may use the bot and who asks to, to be changed.
func (p *peoplePages) people(r *request) (view, error) {
	if p.directory == nil {
		return view{}, fault.New(fault.Unsupported, "People cannot be listed here.")
	}
	q := r.URL.Query()
	if err := r.plain("q, after"); err != nil {
		return view{}, err
	}
	if len(q.Get("q")) > 200 {
		return view{}, fault.New(fault.Invalid, "The search text is too long.")
	}
	ctx := r.Context()
	waiting, err := p.directory.Waiting(ctx)
	if err != nil {
		return view{}, err
	}
	all, err := p.directory.List(ctx)
	if err != nil {
		return view{}, err
	}
	words, none := strings.ToLower(q.Get("q")), len(all) == 0
	all = slices.DeleteFunc(all, func(who Person) bool {
		name := who.Account.String()
		return name <= q.Get("after") || !strings.Contains(strings.ToLower(name+" "+who.Name), words)
	})
	list := all[:min(len(all), peoplePage)]
	known, err := p.figuresOf(ctx, list)
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.Tag("h1", "People"), p.requests(r, waiting),
		html.Tag("h2", "Who may use the bot"), allowForm(r),
		html.El("form", html.Class("filters"), html.Attr("action", "/people"), field("q", "Name or account", "text", q.Get("q"), ""), button("Filter", ""))}
	switch {
	case len(list) > 0:
		body = append(body, html.El("ul", html.Class("list"), html.Map(list, func(who Person) html.Node { return p.personLine(r, who, known[who.Account]) })))
	case none:
		body = append(body, emptyText("Nobody has been given a role here; the configuration decides who can use the bot. People without access who write to the bot in private appear above, so you can let them in."))
	default:
		body = append(body, empty(html.Text("Nobody matches. "), html.Link("/people", "Show all")))
	}
	if len(all) > len(list) {
		body = append(body, older(r, "after", list[len(list)-1].Account.String(), "", "More people"))
	}
	badge := ""
	if len(waiting) > 0 {
		badge = "◆" + strconv.Itoa(len(waiting))
	}
	return view{title: "People", body: body, badge: badge}, nil
}

func (p *peoplePages) figuresOf(ctx context.Context, list []Person) (map[signin.Account]figures, error) {
	all := make(map[signin.Account]figures, len(list))
	today := spend.Today(p.show.now())
	err := p.storage.InRead(ctx, func(tx *store.Tx) error {
		for _, who := range list {
			var f figures
			var err error
			if f.seen, err = tx.SignIn().LastSeen(ctx, who.Account); err != nil {
				return err
			}
			if f.today, err = tx.Spending().SumUsage(ctx, store.UsageFilter{Actor: who.Account.String(), Since: today}); err != nil {
				return err
			}
			accounts, err := tx.Persons().Accounts(ctx, who.Account.String())
			if err != nil {
				return err
			}
			for _, a := range accounts {
				if a.Name != who.Account.String() {
					f.linked = append(f.linked, a.Name)
				}
			}
			all[who.Account] = f
		}
		return nil
	})
	return all, err
}

// requests are who requests access.
func (p *peoplePages) requests(r *request, waiting []sessions.Pairing) html.Node {
	lines := html.Map(waiting[:min(len(waiting), peoplePage)], func(w sessions.Pairing) html.Node {
		choice := func(label, role, class string) html.Node {
			return form(r, "/people/request", hidden("number", strconv.FormatInt(w.Number, 10)), decision(label, "role", role, class))
		}
		return html.El("li", state("waiting", "◆", w.Code), html.Styled("span", "what", p.show.who(w.Name, w.Account())), meta("requests access", p.show.when(w.AskedAt)),
			choice("Allow", "member", "primary"), choice("Allow, read only", "viewer", ""), choice("No", "none", "danger"))
	})
	return section("requests", heading("Requests", len(waiting)), lines, "Nobody is requesting access. Strangers who write to the bot in private get a code and appear here for a day; owners are also asked in their chats.")
}

// allowForm lets somebody in by account.
func allowForm(r *request) html.Node {
	option := func(s Standing, label string) html.Node {
		return html.El("option", html.Attr("value", string(s)), html.Text(label))
	}
	return html.El("details", html.Tag("summary", "Allow somebody by account"), form(r, "/people/change", html.Class("filters"),
		html.El("label", html.Text("Account; /whoami shows it"), html.El("br"), html.El("input", html.Attr("name", "account"), html.Attr("placeholder", "telegram/42"), html.Attr("maxlength", "300"), html.On("required", true))),
		html.El("label", html.Text("Role"), html.El("br"), html.El("select", html.Attr("name", "to"), option(AsMember, "member"), option(AsViewer, "viewer (read only)"), option(AsOwner, "owner"))),
		button("Allow", "primary")))
}

// personLine is somebody in the list, with what an owner can make of them.
func (p *peoplePages) personLine(r *request, who Person, f figures) html.Node {
	account := who.Account.String()
	mark := state("ok", "✔", roleName(who.Role))
	switch {
	case who.Removed:
		mark = state("error", "✖", "removed")
	case who.Role == sessions.Stranger:
		mark = state("muted", "○", "no access")
	}
	about := []any{p.show.head200(who.Why)}
	if len(f.linked) > 0 {
		about = append(about, "same person as "+strings.Join(f.linked, ", "))
	}
	today := f.today.String() + " today"
	if most := p.budget().PersonMicros; most > 0 {
		today += " of " + spend.Dollars(most)
	}
	about = append(about, today)
	if f.seen.IsZero() {
		about = append(about, "never seen")
	} else {
		about = append(about, html.Group{html.Text("seen "), p.show.when(f.seen)})
	}
	line := html.Group{mark, html.Styled("span", "what", p.show.who(who.Name, account)), meta(about...)}
	if who.Account == r.session.Account {
		return html.El("li", append(line, html.Styled("span", "muted", "you"))...)
	}
	change := func(to Standing, label, class string, more ...html.Node) html.Node {
		return form(r, "/people/change", hidden("account", account), hidden("to", string(to)), html.Group(more), button(label, class))
	}
	actions := html.Group{}
	if who.Role == sessions.Owner {
		actions = append(actions, change(NoOwner, "Remove as owner", "danger", sure("Yes, "+account+" is no longer an owner")))
	} else {
		actions = append(actions, html.If(who.Role != sessions.User, change(AsMember, "Make member", "")), html.If(who.Role != sessions.Reader, change(AsViewer, "Make viewer", "")),
			change(AsOwner, "Make owner", "", sure("Yes, "+account+" may do everything")))
	}
	if !who.Removed {
		actions = append(actions, change(Out, "Remove", "danger", sure("Yes, lock "+account+" out, in the browser as well")))
	}
	return html.El("li", append(line, html.El("details", html.Class("wide"), html.El("summary", html.Text("Change"), html.Styled("span", "skip", " "+account)), html.El("div", html.Class("actions"), actions)))...)
}

// answerRequest decides on a request, as the buttons of its card in the chats of owners.
func (p *peoplePages) answerRequest(_ http.ResponseWriter, r *request) (outcome, error) {
	roles := map[string]sessions.Role{"member": sessions.User, "viewer": sessions.Reader, "none": sessions.Stranger}
	role, ok := roles[r.PostForm.Get("role")]
	number, err := strconv.ParseInt(r.PostForm.Get("number"), 10, 64)
	if !ok || err != nil || number <= 0 || p.directory == nil {
		return outcome{}, fault.New(fault.Invalid, "The form is not complete. Reload the page and try again.")
	}
	said, err := p.directory.Answer(r.Context(), r.session.Account, number, role)
	if fault.Is(err, fault.Conflict) { // somebody was faster, or it is the same form again
		said, err = fault.Public(err), nil
	}
	return outcome{to: "/people", said: said}, err
}

// changePerson gives somebody another role, or takes it.
func (p *peoplePages) changePerson(_ http.ResponseWriter, r *request) (outcome, error) {
	account, to := strings.TrimSpace(r.PostForm.Get("account")), Standing(r.PostForm.Get("to"))
	confirmed := r.PostForm.Get("sure") == "yes"
	switch to {
	case AsMember, AsViewer, AsOwner:
	case NoOwner, Out:
		if !confirmed {
			return outcome{}, fault.New(fault.Invalid, "Nothing was changed: tick the box to confirm.")
		}
	default:
		return outcome{}, fault.New(fault.Invalid, "Choose a role: member, viewer or owner.")
	}
	if p.directory == nil {
		return outcome{}, fault.New(fault.Unsupported, "People cannot be changed here.")
	}
	said, err := p.directory.Change(r.Context(), r.session.Account, account, to)
	return outcome{to: "/people", said: said}, err
}
