package pages

import (
	"net/http"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
)

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
	if err := r.plain(); err != nil {
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
	body := html.Group{html.El("h1", html.Text("Settings")), html.El("h2", html.ID("checks"), html.Text("Checks")), form(r, "/settings/check", button("Run the checks", "primary"))}
	if found := p.checked(doctorJob); found != nil {
		body = append(body, found)
	} else {
		body = append(body, empty(html.Text("Not run since the start. The checks of bot doctor examine the machine, the database, models, platforms, and who may get in, with real calls, in at most a minute.")))
	}
	body = append(body, html.El("h2", html.Text("Configuration")),
		html.El("p", html.Text("Flags count more than the environment, and that more than the .env file. Values are changed there, or with "), html.El("code", html.Text("bot setup")),
			html.Text("; those marked \"live\" hold after SIGHUP, the others after a restart. Secrets are never shown.")))
	for _, w := range warnings {
		body = append(body, html.El("p", html.Class("problem"), html.Text("⚠ "+p.show.head200(w))))
	}
	body = append(body, p.settingList(list, show == "all")...)
	if show == "all" {
		body = append(body, html.El("p", html.El("a", html.Class("button"), html.Href("/settings"), html.Text("Show only what is set"))))
	} else {
		body = append(body, html.El("p", html.El("a", html.Class("button"), html.Href("/settings?show=all"), html.Text("Show all options"))))
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
			parts = append(parts, html.El("h3", html.Text(list[from].Group)), table([]string{"Option", "Value", "From", "Change"}, rows))
		}
		from = to
	}
	if len(parts) == 0 {
		parts = append(parts, empty(html.Text("Everything has its default. Set options in the environment or in a .env file, or let bot setup ask for them.")))
	}
	return parts
}

func (p *systemPages) setting(s Setting) html.Node {
	change := "restart"
	if s.Live {
		change = "live"
	}
	return html.El("tr", html.El("th", html.Attr("scope", "row"), html.El("code", html.Text(s.Name)), html.El("div", html.Class("meta"), html.Text(s.Help))),
		html.El("td", html.Text(p.show.head200(s.Text))), html.El("td", html.Text(p.show.head200(s.Origin))), html.El("td", html.Text(change)))
}

// runChecks runs all checks of bot doctor.
func (p *systemPages) runChecks(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.check(r, doctorJob, "", doctorTime, "/settings#checks")
}
