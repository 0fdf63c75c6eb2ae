package pages

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// tab is one of the views of a session.
type tab struct {
	name, label string // the name is what its address says
	show        func(p *sessionPages, r *request, row store.SessionRow) (html.Group, error)
}

// tabs are all of them; the first one needs no name in the address.
func tabs() []tab {
	return []tab{
		{"", "Transcript", (*sessionPages).said},
		{"timeline", "Timeline", (*sessionPages).timeline},
		{"changes", "Changes", (*sessionPages).changes},
		{"plan", "Plan", (*sessionPages).plans},
		{"events", "Events", (*sessionPages).events},
		{"cost", "Cost", (*sessionPages).cost},
	}
}

// session shows a session: what it is, what can be done with it, and one view of it.
func (p *sessionPages) session(r *request) (view, error) {
	if err := r.plain("tab, before"); err != nil {
		return view{}, err
	}
	name := r.URL.Query().Get("tab")
	row, err := sessionOf(r.Context(), p.storage, r, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	links, names := html.Group{}, []string{}
	var chosen *tab
	for _, t := range tabs() {
		to := "/sessions/" + row.ID
		if t.name != "" {
			to += "?tab=" + t.name
			names = append(names, t.name)
		}
		if t.name == name {
			chosen = &t
		}
		links = append(links, html.El("li", html.El("a", html.Href(to), html.If(t.name == name, html.Attr("aria-current", "page")), html.Text(t.label))))
	}
	if chosen == nil {
		return view{}, fault.Newf(fault.Invalid, "There is no tab %q: choose %s, or none for the transcript.", wording.Head(name, 40), strings.Join(names, ", "))
	}
	content, err := chosen.show(p, r, row)
	if err != nil {
		return view{}, err
	}
	body := html.Group{
		html.Tag("h1", p.show.title(row.Session)),
		meta(sessionState(row.Session), chatName(string(row.Key.Platform), row.Key.ID), row.Assistant, p.show.head200(row.Model), p.show.when(row.StartedAt)),
		p.sessionActions(r, row),
	}
	if row.Error != "" && r.owner() { // its text is for operators
		body = append(body, html.Styled("p", "problem", p.show.head200(row.Error)))
	}
	body = append(body, html.El("nav", html.Class("views"), html.Attr("aria-label", "Session"), html.El("ul", links)), content)
	title, badge := p.show.title(row.Session), ""
	if name != "" {
		title = chosen.label + ": " + title
	}
	if row.Status == sessions.Running {
		badge = "◐"
	}
	v := view{title: title, body: body, badge: badge}
	if !r.URL.Query().Has("before") {
		v.live = liveSession + row.ID
	}
	return v, nil
}

// earlierIn leads to what is before a number in a tab.
func earlierIn(row store.SessionRow, tab string, before int64, label string) html.Node {
	q := url.Values{"tab": {tab}, "before": {fmt.Sprint(before)}}
	return html.El("p", linkButton("/sessions/"+row.ID+"?"+q.Encode(), label))
}

const (
	maxVersions = 20       // of plans, on a page
	maxPlan     = 12 << 10 // bytes of a version that are shown
)

// plans shows the plans that a session made, and the one that it began with, as they
// stand and as they were.
func (p *sessionPages) plans(r *request, row store.SessionRow) (body html.Group, err error) {
	known := make(names)
	list, err := store.Within(r.Context(), p.storage.InRead, func(tx *store.Tx) ([]plan.Plan, error) {
		list, err := tx.Pages().SessionPlans(r.Context(), row.ID, executedPlan(row.UserPrompt), maxVersions+1)
		for i := 0; err == nil && i < len(list); i++ {
			err = p.show.look(r.Context(), tx, known, list[i].Requester, list[i].Author, list[i].DecidedBy)
		}
		return list, err
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return html.Group{emptyText("This session has no plan. Start a message with /plan to get one. It appears here and in the chat, where you can edit, approve or reject it.")}, nil
	}
	more := len(list) > maxVersions
	earlier := html.Group{} // versions of the plan that is shown last
	flush := func() {
		if len(earlier) > 0 {
			body = append(body, html.El("details", html.Tag("summary", "Earlier versions"), earlier))
		}
		earlier = nil
	}
	number := int64(0)
	for _, pl := range list[:min(len(list), maxVersions)] {
		if pl.Number == number {
			earlier = append(earlier, p.show.planVersion(pl, known, "h3"))
			continue
		}
		flush()
		number = pl.Number
		body = append(body, p.show.planVersion(pl, known, "h2"))
		if pl.Open(p.show.now()) {
			body = append(body, html.El("p", linkButton("/approvals/"+pl.Name(), "Decide on the plan")))
		}
	}
	flush()
	if more {
		body = append(body, html.Styled("p", "muted", fmt.Sprintf("The newest %d versions are shown.", maxVersions)))
	}
	return body, nil
}

// executedPlan returns the number of the plan that the first request of a session names,
// such as "/execute p-3", or 0.
func executedPlan(request string) int64 {
	words := strings.Fields(request)
	if len(words) < 2 || !strings.HasPrefix(words[0], "/") {
		return 0
	}
	n, _ := plan.ParseName(words[1])
	return n
}

// planVersion is one version of a plan, with who had to do with it.
func (re *renderer) planVersion(pl plan.Plan, by names, heading string) html.Node {
	about := []any{planState(pl, re.now()), "requested by " + by[pl.Requester], "written by " + by[pl.Author], re.when(pl.CreatedAt)}
	if pl.DecidedBy != "" {
		about = append(about, html.Group{html.Text("decided by " + by[pl.DecidedBy] + " "), re.when(pl.DecidedAt)})
	}
	return html.El("section",
		html.Tag(heading, fmt.Sprintf("%s, version %d: %s", pl.Name(), pl.Version, re.head200(pl.Goal))),
		meta(about...),
		html.If(pl.Note != "", html.Tag("p", "Note: "+re.head200(pl.Note))),
		re.bounded(pl.Text, maxPlan, re.markdown.Markdown))
}

func planState(pl plan.Plan, now time.Time) html.Node {
	stands := pl.State
	if (stands == plan.Proposed || stands == plan.Approved) && !now.Before(pl.ExpiresAt) {
		stands = plan.Expired
	}
	switch stands {
	case plan.Proposed:
		return state("waiting", "☰", "waits for a decision")
	case plan.Approved:
		return state("waiting", "✔", "approved, not run yet")
	case plan.Executing:
		return state("running", "◐", "running")
	case plan.Done:
		return state("ok", "✔", "done")
	case plan.Rejected:
		return state("error", "✖", "rejected")
	case plan.Superseded:
		return state("muted", "○", "replaced by a later version")
	case plan.Expired:
	}
	return state("muted", "○", "expired")
}

const maxCosts = 200 // rows of a session

// cost shows what a session used, turn by turn and model by model.
func (p *sessionPages) cost(r *request, of store.SessionRow) (html.Group, error) {
	var list []store.TurnUsage
	var sum spend.Sum
	ctx, known := r.Context(), make(names)
	err := p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if sum, err = tx.Spending().SumUsage(ctx, store.UsageFilter{SessionID: of.ID}); err != nil {
			return err
		}
		list, err = tx.Pages().SessionUsage(ctx, of.ID, maxCosts+1)
		for i := 0; err == nil && i < len(list); i++ {
			err = p.show.look(ctx, tx, known, list[i].Actor)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return html.Group{emptyText("Nothing was used here yet. Each turn appears here with its model, its tokens and, if the price of the model is known, its cost.")}, nil
	}
	more := len(list) > maxCosts
	body := html.Group{
		html.El("p", spentIn(sum)),
		table([]string{"Turn", "For", "Model", "Requests", "Tokens in", "of which cached", "Tokens out", "Cost"}, html.Map(list[:min(len(list), maxCosts)], func(u store.TurnUsage) html.Node {
			model := cmp.Or(u.Model, u.Assistant)
			return row(p.show.when(u.At), html.Text(known[u.Actor]), html.Text(p.show.head200(model)), html.Textf("%d", u.Requests),
				html.Textf("%d", u.Input), html.Textf("%d", u.Cached), html.Textf("%d", u.Output), html.Text(costText(u)))
		})),
	}
	if more {
		body = append(body, html.Styled("p", "muted", fmt.Sprintf("The newest %d rows are shown; the total covers all.", maxCosts)))
	}
	return body, nil
}

// costText is what is known of a price.
func costText(u store.TurnUsage) string {
	switch {
	case u.Micros == 0 && u.Unpriced > 0:
		return "no price data"
	case u.Unpriced > 0:
		return spend.Dollars(u.Micros) + " and tokens without price data"
	}
	return spend.Dollars(u.Micros)
}
