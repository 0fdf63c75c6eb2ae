package pages

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Connection is how this process is connected to a platform.
type Connection struct {
	Light

	Receives string    // how events come in, in a few words
	Since    time.Time // when it began to receive; zero: it does not

	Measured bool      // the three below are known
	Left     float64   // of the limit that is used up most: 1 is all of it
	Silent   int       // chats, methods or accounts for which the platform demanded a silence
	Until    time.Time // when the last of these silences ends

	Error   string // the last one, for people; empty: there was none
	ErrorAt time.Time

	Hooks          []Hook // the last calls of its webhook, the newest first
	Taken, Refused int    // all calls since the start
}

// Hook is a call of a webhook.
type Hook struct {
	At     time.Time
	Status int
}

// platformTest is how long the checks of a platform may take.
const platformTest = 30 * time.Second

// systemPages are how the program stands: its platforms, its configuration, and what its
// checks find. The functions are those of About.
type systemPages struct {
	storage     Storage
	show        *renderer
	jobs        *jobs
	connections func() []Connection
	options     func() (list []Setting, warnings []string)
	examine     func(ctx context.Context, area string) doctor.Report
}

func (p *systemPages) routes(to *Pages) {
	to.page("GET /platforms", ownersSee(p.platforms))
	to.act("POST /platforms/test", ownersDo(p.testPlatform))
	to.page("GET /settings", ownersSee(p.settings))
	to.act("POST /settings/check", ownersDo(p.runChecks))
}

// platforms shows how each platform stands.
func (p *systemPages) platforms(r *request) (view, error) {
	if p.connections == nil {
		return view{}, fault.New(fault.Unsupported, "The platforms are not known here.")
	}
	troubled := make(map[string]store.QueuedDelivery)
	ctx := r.Context()
	err := p.storage.InRead(ctx, func(tx *store.Tx) error {
		waiting, err := tx.Queue().WaitingDeliveries(ctx, maxQueued)
		if err != nil {
			return err
		}
		failed, err := tx.Queue().FailedDeliveries(ctx, "", deadPage)
		for _, d := range slices.Concat(waiting, failed) {
			name := string(d.Key.Platform)
			if known, ok := troubled[name]; d.Error != "" && (!ok || d.CreatedAt.After(known.CreatedAt)) {
				troubled[name] = d
			}
		}
		return err
	})
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.Tag("h1", "Platforms")}
	all := p.connections()
	for _, c := range all {
		body = append(body, p.platform(r, c, troubled[c.Name]))
	}
	if len(all) == 0 {
		body = append(body, emptyText("This program knows no platforms."))
	}
	body = append(body, html.Styled("p", "muted", "Connections, calls and errors cover this process since it started."))
	return view{title: "Platforms", body: body}, nil
}

// platform is the card of one.
func (p *systemPages) platform(r *request, c Connection, trouble store.QueuedDelivery) html.Node {
	if !c.On {
		return html.El("section", html.Class("card"), html.ID(c.Name), html.El("h2", html.Text(c.Name), html.Text(" "), state("muted", "○", "off")),
			empty(html.Text("Off: "+strings.ReplaceAll(p.show.head200(c.Detail), "`", ""))))
	}
	mark := state("ok", "●", "on")
	if !c.Works {
		mark = state("warn", "▲", "no answer")
	}
	facts := html.Group{fact("Account", html.Text(p.show.head200(c.Detail))), fact("Events", html.Text(c.Receives)), fact("Connected", p.since(c)), fact("Limits", html.Text(limits(c)))}
	if c.Error == "" {
		facts = append(facts, fact("Last error", html.Text("none since the start")))
	} else {
		facts = append(facts, fact("Last error", html.Text(p.show.head200(c.Error)+" "), p.show.when(c.ErrorAt)))
	}
	if trouble.Error != "" {
		facts = append(facts, fact("Last answer that failed", html.Text(p.show.head200(trouble.Error)+" "), p.show.when(trouble.CreatedAt), html.Text(" "), html.Link("/queue#deliveries", "See the queue")))
	}
	return html.El("section", html.Class("card"), html.ID(c.Name), html.El("h2", html.Text(c.Name), html.Text(" "), mark), html.El("dl", facts),
		p.hooks(c), form(r, "/platforms/test", hidden("name", c.Name), button("Test "+c.Name, "")), p.checked("platform/"+c.Name))
}

func fact(name string, parts ...html.Node) html.Node {
	return html.Group{html.Tag("dt", name), html.El("dd", html.Group(parts))}
}

func (p *systemPages) since(c Connection) html.Node {
	if c.Since.IsZero() {
		return html.Text("not by this process: another one is connected, or this one is still trying")
	}
	return html.Group{html.Text("since "), html.Text(wording.Moment(c.Since)), html.Text(", "), p.show.when(c.Since)}
}

// limits says how much of what the platform allows is left.
func limits(c Connection) string {
	switch {
	case !c.Measured:
		return "not measured"
	case c.Silent > 0:
		return fmt.Sprintf("the platform asked to wait in %s, until %s; %d%% left elsewhere",
			wording.Count(c.Silent, "place", "places"), wording.Moment(c.Until), int(c.Left*100))
	}
	return fmt.Sprintf("%d%% left of the most used limit", int(c.Left*100))
}

// hooks are the last calls of a webhook.
func (p *systemPages) hooks(c Connection) html.Node {
	if c.Taken+c.Refused == 0 {
		return nil
	}
	return html.El("details", html.Tag("summary", fmt.Sprintf("Webhook: %s accepted, %d refused", wording.Count(c.Taken, "delivery", "deliveries"), c.Refused)),
		table([]string{"When", "Answer"}, html.Map(c.Hooks, func(h Hook) html.Node {
			answer := state("ok", "✔", strconv.Itoa(h.Status))
			if h.Status >= http.StatusBadRequest {
				answer = state("error", "✖", strconv.Itoa(h.Status))
			}
			return row(p.show.when(h.At), answer)
		})))
}

// testPlatform runs the checks of doctor for one platform, with real calls.
func (p *systemPages) testPlatform(_ http.ResponseWriter, r *request) (outcome, error) {
	name := r.PostForm.Get("name")
	if p.connections == nil || !slices.ContainsFunc(p.connections(), func(c Connection) bool { return c.On && c.Name == name }) {
		return outcome{}, fault.New(fault.Invalid, "There is no platform of that name that is on.")
	}
	return p.check(r, "platform/"+name, name, platformTest, "/platforms#"+name)
}

// check runs the checks of an area, or all of them, and goes to a page.
func (p *systemPages) check(r *request, job, area string, patience time.Duration, to string) (outcome, error) {
	if p.examine == nil {
		return outcome{}, fault.New(fault.Unsupported, "The checks are not available here. Use bot doctor on the server.")
	}
	err := p.jobs.work(r, job, reporting(p.examine, area, patience))
	done := outcome{to: to, said: "The checks are running; reload the page to see what they find."}
	if j, ok := p.jobs.of(job); ok && j.Report != nil {
		done.said = "Checked: " + j.Report.Sum() + "."
	}
	return done, err
}

func reporting(check func(ctx context.Context, area string) doctor.Report, area string, patience time.Duration) func(ctx context.Context, j *job) {
	return func(ctx context.Context, j *job) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		report := check(ctx, area)
		j.Report = &report
	}
}

// checked shows what checks found when they last ran.
func (p *systemPages) checked(name string) html.Node {
	j, ok := p.jobs.of(name)
	switch {
	case !ok:
		return nil
	case j.Ended.IsZero():
		return html.El("p", html.Attr("role", "status"), state("running", "◐", "running"), html.Text(" for "+clock(p.show.now().Sub(j.Began))+". Reload the page to see what the checks find."))
	case j.Report == nil:
		return html.Styled("p", "problem", fault.Public(j.Err))
	}
	return html.Group{html.El("p", html.Class("meta"), html.Text(j.Report.Sum()+", "), p.show.when(j.Ended)), html.El("ul", html.Class("list"), html.Map(j.Report.Findings, p.show.finding))}
}

var marks = map[doctor.Status][2]string{ //nolint:gochecknoglobals // a constant
	doctor.OK: {"ok", "✔"}, doctor.Skip: {"muted", "–"}, doctor.Warn: {"warn", "⚠"}, doctor.Fail: {"error", "✖"},
}

// finding is the line of what one check found.
func (re *renderer) finding(f doctor.Finding) html.Node {
	mark := marks[f.Status]
	return html.El("li", state(mark[0], mark[1], string(f.Status)),
		html.El("span", html.Class("what"), html.Tag("strong", f.Area+", "+f.Check+": "), html.Text(re.head200(f.Detail))),
		html.If(f.Fix != "", html.El("p", html.Class("meta wide"), html.Text("Fix: "), html.Tag("code", re.head200(f.Fix)))))
}

// Setting is an option with its value, as bot config show prints it.
type Setting struct {
	Name, Group, Help string
	Text              string // of a secret only that there is one
	Origin            string // such as "environment"
	Live              bool   // a running process takes a change of it
	Set               bool   // it is not the default
}

const (
	doctorJob  = "doctor"
	doctorTime = time.Minute // for all checks
)

// settings shows what is configured, where each value comes from, and what bot doctor
// finds.
func (p *systemPages) settings(r *request) (view, error) {
	if err := r.plain("show"); err != nil {
		return view{}, err
	}
	show := r.URL.Query().Get("show")
	switch {
	case p.options == nil:
		return view{}, fault.New(fault.Unsupported, "The configuration is not known here. Use bot config show on the server.")
	case show != "" && show != "all":
		return view{}, fault.New(fault.Invalid, "\"show\" is all, or left out for the options that are set.")
	}
	list, warnings := p.options()
	body := html.Group{html.Tag("h1", "Settings"), html.El("h2", html.ID("checks"), html.Text("Checks")), form(r, "/settings/check", button("Run the checks", "primary"))}
	if found := p.checked(doctorJob); found != nil {
		body = append(body, found)
	} else {
		body = append(body, emptyText("Not run since the start. These are the checks of bot doctor: the machine, the database, models, platforms and access, with real calls. They take at most a minute."))
	}
	body = append(body, html.Tag("h2", "Configuration"),
		html.El("p", html.Text("Flags override environment variables, which override the .env file. Change values there, or with "), html.Tag("code", "bot setup"),
			html.Text("; those marked \"live\" apply after SIGHUP, the others after a restart. Secrets are never shown.")))
	for _, w := range warnings {
		body = append(body, html.Styled("p", "problem", "⚠ "+p.show.head200(w)))
	}
	body = append(body, p.settingList(list, show == "all")...)
	if show == "all" {
		body = append(body, html.El("p", linkButton("/settings", "Show only what is set")))
	} else {
		body = append(body, html.El("p", linkButton("/settings?show=all", "Show all options")))
	}
	return view{title: "Settings", body: body}, nil
}

// settingList is a table for each group of options.
func (p *systemPages) settingList(list []Setting, all bool) (parts html.Group) {
	for from := 0; from < len(list); {
		to, rows := from, html.Group{}
		for to < len(list) && list[to].Group == list[from].Group {
			if s := list[to]; all || s.Set {
				rows = append(rows, p.setting(s))
			}
			to++
		}
		if len(rows) > 0 {
			parts = append(parts, html.Tag("h3", list[from].Group), table([]string{"Option", "Value", "From", "Change"}, rows))
		}
		from = to
	}
	if len(parts) == 0 {
		parts = append(parts, emptyText("Everything is at its default. Set options in the environment or in a .env file, or let bot setup ask for them."))
	}
	return parts
}

func (p *systemPages) setting(s Setting) html.Node {
	change := "restart"
	if s.Live {
		change = "live"
	}
	return html.El("tr", html.El("th", html.Attr("scope", "row"), html.Tag("code", s.Name), html.Styled("div", "meta", s.Help)),
		html.Tag("td", p.show.head200(s.Text)), html.Tag("td", p.show.head200(s.Origin)), html.Tag("td", change))
}

// runChecks runs all checks of bot doctor.
func (p *systemPages) runChecks(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.check(r, doctorJob, "", doctorTime, "/settings#checks")
}
