package pages

import (
	"context"
	"io"
	"strings"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/html"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// About are facts that only the program as a whole knows. Members may be nil.
type About struct {
	// Platforms says how each platform stands.
	Platforms func() []Light

	// Connections says more of each platform than Platforms does.
	Connections func() []Connection

	// Check runs the checks of doctor: those of an area, or all of them if it is empty.
	Check func(ctx context.Context, area string) doctor.Report

	// Background runs fn beside the request and ends its context when the program stops;
	// false if it stops already.
	Background func(fn func(ctx context.Context)) bool

	// Backups is what can be done with backups; nil: nothing.
	Backups *Backups

	// Repository is what the workspace of this process knows of a repository; nil: nothing.
	Repository func(ctx context.Context, c sessions.Codebase) (Repository, error)

	// ParseProfile reads a profile in YAML. Its error, a fault.Invalid, has a line for all
	// that is wrong with it.
	ParseProfile func(text []byte) (profile.Profile, error)

	// Settings returns all options with their values, and what is doubtful about them.
	Settings func() (list []Setting, warnings []string)

	// Budget is what may be spent.
	Budget func() spend.Budget

	// RemoveChat deletes a conversation in the browser of an account.
	RemoveChat func(ctx context.Context, account, id string) error

	// RemoveSession deletes a session for somebody who is named as in the audit log.
	RemoveSession func(ctx context.Context, id, by string) error

	// Export writes the transcript of a session as Markdown: all of it, or what could be
	// read in its conversation. It writes nothing if there is none.
	Export func(ctx context.Context, out io.Writer, id string, all bool) error

	// Changes returns what a conversation has changed on its branch, as it stands; ok is
	// false if it has no files at this moment.
	Changes func(ctx context.Context, conv sessions.Conversation) (c Changes, ok bool, err error)

	// People is who may use the bot; nil: owners cannot change that here.
	People Directory

	// Memories is what is remembered of people; nil: nothing is.
	Memories Memories

	// AuditSound verifies the chain of the audit log and says what it found; the error
	// names the row where it does not hold.
	AuditSound func(ctx context.Context) (said string, err error)

	// Ring has a conversation looked after at once; without it that takes seconds.
	Ring func(ctx context.Context, conversationID string)
}

// Light is how a platform stands.
type Light struct {
	Name   string
	On     bool
	Works  bool   // it answered last
	Detail string // one line
}

const (
	maxOpen   = 50 // messages that wait or run, on a page
	maxFailed = 5
	maxRecent = 10

	failedFor = 7 * 24 * time.Hour // how long a failed session needs somebody
)

// overviewPages are the first page.
type overviewPages struct {
	storage   Storage
	show      *renderer
	budget    func() spend.Budget
	platforms func() []Light // nil: they are not shown
}

func (p *overviewPages) routes(to *Pages) { to.page("GET /{$}", p.overview) }

// overview is the first page: what needs a person, then what runs.
func (p *overviewPages) overview(r *request) (view, error) {
	var (
		entries        []store.OpenEntry
		failed, recent []store.SessionRow
		today          spend.Sum
		service        sessions.ServiceState
	)
	open, err := openQuestions(r, p.storage, p.show)
	if err != nil {
		return view{}, err
	}
	ctx, now := r.Context(), p.show.now()
	err = p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if service, err = halt(ctx, tx); err != nil {
			return err
		}
		if entries, err = tx.Queue().OpenEntries(ctx, r.viewer(), maxOpen+1); err != nil {
			return err
		}
		if failed, err = tx.Lists().Sessions(ctx, store.SessionFilter{Viewer: r.viewer(), Status: sessions.Failed, Since: now.Add(-failedFor), Limit: maxFailed}); err != nil {
			return err
		}
		if recent, err = tx.Lists().Sessions(ctx, store.SessionFilter{Viewer: r.viewer(), Limit: maxRecent}); err != nil {
			return err
		}
		f := store.UsageFilter{Since: spend.Today(now)}
		if !r.owner() {
			f.Actor = r.actor()
		}
		today, err = tx.Spending().SumUsage(ctx, f)
		return err
	})
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.Tag("h1", "Overview"), p.show.halted(service), p.needsYou(r, open, failed)}
	body = append(body, p.atWork(r, entries)...)
	body = append(body, p.today(r, today), p.lights(), html.El("h2", html.ID("recent"), html.Text("Recent")), p.show.sessionList(recent))
	badge := ""
	if n := open.count(); n > 0 {
		badge = "◆" + html.String(html.Textf("%d", n))
	}
	return view{title: "Overview", body: body, badge: badge, live: liveAll}, nil
}

// needsYou is what waits for a person.
func (p *overviewPages) needsYou(r *request, open questions, failed []store.SessionRow) html.Node {
	items := html.Group{}
	item := func(mark html.Node, what, about, to, label string) {
		items = append(items, html.El("li", html.ID("need"+strings.NewReplacer("/", "-", "#", "-").Replace(to)), mark,
			html.El("span", html.Class("what"), html.Link(to, what)),
			html.Styled("span", "meta", about),
			linkButton(to, label)))
	}
	for _, a := range open.approvals {
		item(state("waiting", "◆", a.Name()), p.show.head200(a.Question()), "on behalf of "+open.names[a.Requester], "/approvals#"+a.Name(), "Decide")
	}
	for _, pl := range open.plans {
		item(state("waiting", "☰", pl.Name()), p.show.head200(pl.Goal), "requested by "+open.names[pl.Requester], "/approvals#"+pl.Name(), "Review")
	}
	if open.more > 0 {
		items = append(items, html.El("li", html.ID("need-more"), html.Textf("%s for a decision.", wording.Count(open.more, "more waits", "more wait"))))
	}
	for _, s := range failed {
		item(state("error", "✖", "failed"), p.show.title(s.Session), chatName(string(s.Key.Platform), s.Key.ID), "/sessions/"+s.ID, "Open")
	}
	return section("needed", "Needs you", items, "Nothing is waiting for you. Approvals, plans and failed turns appear here first.")
}

// atWork is what runs and what waits.
func (p *overviewPages) atWork(r *request, entries []store.OpenEntry) html.Group {
	var running, waiting html.Group
	now := p.show.now()
	for _, e := range entries[:min(len(entries), maxOpen)] {
		about := []any{chatName(string(e.Key.Platform), e.Key.ID)}
		parked := e.NextAt.After(now)
		switch {
		case e.State == sessions.EntryRunning && !parked:
			about = append(about, html.El("span", html.Attr("data-since", e.AcceptedAt.UTC().Format(time.RFC3339)), html.Text(clock(now.Sub(e.AcceptedAt)))))
			if e.LastTool != "" {
				about = append(about, "last: "+e.LastTool)
			}
		case parked:
			about = append(about, "tries again "+until(e.NextAt, now)+", at "+wording.Moment(e.NextAt))
		default:
			about = append(about, p.show.when(e.AcceptedAt))
		}
		what := html.Node(html.Text(p.show.saidIn(r, e)))
		var stop html.Node
		if e.SessionID != "" {
			what = html.El("a", html.Href("/sessions/"+e.SessionID), what)
			stop = form(r, "/sessions/"+e.SessionID+"/stop", hidden("back", "/"), button("Stop", "danger"))
		}
		mark := state("muted", "◦", "waiting")
		if e.State == sessions.EntryRunning {
			mark = state("running", "◐", "running")
		}
		if parked {
			mark = state("waiting", "⏳", "parked")
		}
		line := html.El("li", html.ID("e-"+e.ID), mark, html.El("span", html.Class("what"), what), meta(about...), stop)
		if e.State == sessions.EntryRunning {
			running = append(running, line)
		} else {
			waiting = append(waiting, line)
		}
	}
	body := html.Group{section("running", "Running", running, "Nothing is running.")}
	if len(waiting) > 0 {
		body = append(body, section("waiting", "Waiting", waiting, ""))
	}
	if len(entries) > maxOpen {
		body = append(body, html.El("p", html.Class("muted"), html.ID("open-more"), html.Textf("Only the first %d are shown.", maxOpen)))
	}
	return body
}

// today is what was spent since midnight UTC, against what may be.
func (p *overviewPages) today(r *request, sum spend.Sum) html.Node {
	title, most, parts := "Today, everyone", p.budget().DayMicros, html.Group{}
	if !r.owner() {
		title, most = "Today, you", p.budget().PersonMicros
	}
	parts = append(parts, html.El("h2", html.ID("today"), html.Text(title)), html.El("p", spentIn(sum)))
	if most > 0 {
		parts = append(parts, html.El("label", html.Textf("of %s a day", spend.Dollars(most)),
			html.El("progress", html.Attr("max", "100"), html.Attr("value", html.String(html.Textf("%d", min(100, sum.Micros*100/most)))))))
	}
	return parts
}

// spentIn says what was spent in how many turns.
func spentIn(sum spend.Sum) html.Node {
	return html.Textf("%s in %s", sum, wording.Count(sum.Turns, "turn", "turns"))
}

// lights are the platforms.
func (p *overviewPages) lights() html.Node {
	if p.platforms == nil {
		return nil
	}
	return section("platforms", "Platforms", html.Map(p.platforms(), func(l Light) html.Node {
		mark := state("muted", "○", "off")
		switch {
		case l.On && l.Works:
			mark = state("ok", "●", "on")
		case l.On:
			mark = state("warn", "▲", "no answer")
		}
		return html.El("li", mark, html.Tag("strong", l.Name), html.El("span", html.Class("what meta"), p.show.line(l.Detail)))
	}), "")
}
