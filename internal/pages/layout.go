package pages

import (
	"fmt"
	"time"

	"remote-agent/internal/html"
	"remote-agent/internal/wording"
)

// place is an entry of the navigation.
type place struct {
	path, name string
	owners     bool // others do not see it
}

var places = []place{ //nolint:gochecknoglobals // a constant
	{path: "/", name: "Overview"},
	{path: "/chat", name: "Chat"},
	{path: "/sessions", name: "Sessions"},
	{path: "/approvals", name: "Approvals"},
	{path: "/queue", name: "Queue", owners: true},
	{path: "/repos", name: "Repositories"},
	{path: "/agents", name: "Agents"},
	{path: "/costs", name: "Costs"},
	{path: "/memory", name: "Memory"},
	{path: "/people", name: "People", owners: true},
	{path: "/audit", name: "Audit", owners: true},
	{path: "/platforms", name: "Platforms", owners: true},
	{path: "/backups", name: "Backups", owners: true},
	{path: "/settings", name: "Settings", owners: true},
	{path: "/setup", name: "Set-up", owners: true},
	{path: "/docs", name: "Manual"},
}

// heading is what a browser shows of a page where it is not open.
func (v view) heading() html.Node {
	title := v.title + " · Remote Agent"
	if v.badge != "" {
		title = v.badge + " " + title
	}
	return html.El("title", html.Text(title))
}

// content is the page itself. Where its changes are told, it says how to learn of them.
func (f *frame) content(r *request, v view) html.Node {
	return html.El("main", html.ID("main"),
		html.If(v.live != "" && f.changes != nil, html.Group{html.Attr("data-live", "/events?topic="+queryEscape(v.live)), html.Attr("data-at", v.at)}),
		html.If(r.said != "", html.El("div", html.Class("said"), html.ID("said"), html.Attr("role", "status"), html.On("data-keep", true), f.show.limited(r.said, maxText))),
		v.body)
}

// part is a page without what is around all of them, for one that is open already.
func (f *frame) part(r *request, v view) html.Node {
	return html.Group{v.heading(), f.content(r, v)}
}

// layout puts a page into what is around all of them.
func (f *frame) layout(r *request, v view) html.Node {
	theme := ""
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		theme = c.Value
	}
	root := html.El("html", html.Attr("lang", "en"), html.If(theme != "", html.Attr("data-theme", theme)),
		html.El("head",
			html.El("meta", html.Attr("charset", "utf-8")),
			html.El("meta", html.Attr("name", "viewport"), html.Attr("content", "width=device-width, initial-scale=1")),
			html.El("meta", html.Attr("name", "color-scheme"), html.Attr("content", "light dark")),
			v.heading(),
			html.El("link", html.Attr("rel", "icon"), html.Href(f.assets["icon.svg"].path)),
			html.El("link", html.Attr("rel", "stylesheet"), html.Href(f.assets["style.css"].path)),
			html.El("script", html.Attr("src", f.assets["script.js"].path), html.On("defer", true))),
		html.El("body",
			html.El("a", html.Class("skip"), html.Href("#main"), html.Text("Skip to the content")),
			html.If(r.role != "", header(r, theme)),
			f.content(r, v),
			html.El("footer", html.Textf("Remote Agent %s", f.version))))
	return root
}

// head is the top of a page: where to go, and who is signed in.
func header(r *request, theme string) html.Node {
	links := html.Group{}
	for _, l := range places {
		if l.owners && !r.owner() {
			continue
		}
		current := r.URL.Path == l.path || l.path != "/" && len(r.URL.Path) > len(l.path) && r.URL.Path[:len(l.path)+1] == l.path+"/"
		links = append(links, html.El("li", html.El("a", html.Href(l.path), html.If(current, html.Attr("aria-current", "page")), html.Text(l.name))))
	}
	themes := html.Group{}
	for _, t := range []string{"auto", "light", "dark"} {
		themes = append(themes, html.El("button", html.Attr("type", "submit"), html.Attr("name", "theme"), html.Attr("value", t),
			html.Attr("aria-pressed", fmt.Sprint(t == theme || t == "auto" && theme == "")), html.Text(t)))
	}
	return html.El("header",
		html.El("a", html.Class("brand"), html.Href("/"), html.Text("Remote Agent")),
		html.El("form", html.Class("search"), html.Attr("role", "search"), html.Attr("action", "/sessions"),
			html.El("input", html.Attr("type", "search"), html.Attr("name", "q"), html.ID("search"), html.Attr("aria-label", "Search sessions"),
				html.Attr("placeholder", "Search sessions"), html.Attr("maxlength", "200"))),
		html.El("nav", html.Attr("aria-label", "Main"), html.El("ul", links)),
		html.El("div", html.Class("who"),
			html.El("a", html.Href("/account"), html.Text(r.actor())),
			form(r, "/theme", html.Class("themes"), html.Attr("aria-label", "Theme"), hidden("back", r.URL.RequestURI()), themes)))
}

// form is a form that does something.
func form(r *request, action string, parts ...html.Node) html.Node {
	return html.El("form", html.Attr("method", "post"), html.Attr("action", action), hidden("token", formToken(r.token)), hidden("nonce", newNonce()), html.Group(parts))
}

func hidden(name, value string) html.Node {
	return html.El("input", html.Attr("type", "hidden"), html.Attr("name", name), html.Attr("value", value))
}

// button is one that sends its form. class is how it looks; may be empty.
func button(label, class string) html.Node {
	return html.El("button", html.Attr("type", "submit"), html.If(class != "", html.Class(class)), html.Text(label))
}

// decision is a button that sends its form with a choice.
func decision(label, name, value, class string) html.Node {
	return html.El("button", html.Attr("type", "submit"), html.Attr("name", name), html.Attr("value", value), html.If(class != "", html.Class(class)), html.Text(label))
}

// table is a table with a heading; it scrolls sideways by itself where it has to.
func table(heads []string, rows html.Node) html.Node {
	return html.El("div", html.Class("table"), html.Attr("tabindex", "0"), html.Attr("role", "group"), html.El("table",
		html.El("thead", html.El("tr", html.Map(heads, func(h string) html.Node {
			if h == "" {
				return html.El("td")
			}
			return html.El("th", html.Attr("scope", "col"), html.Text(h))
		}))),
		html.El("tbody", rows)))
}

func row(cells ...html.Node) html.Node {
	return html.El("tr", html.Map(cells, func(c html.Node) html.Node { return html.El("td", c) }))
}

// when is a moment: how long ago, with the moment itself in its title.
func (re *renderer) when(t time.Time) html.Node {
	if t.IsZero() {
		return html.Text("–")
	}
	return html.El("time", html.On("data-ago", true), html.Attr("datetime", t.UTC().Format(time.RFC3339)), html.Attr("title", wording.Moment(t)), html.Text(wording.Ago(t, re.now())))
}

// empty says what would be here, and how it comes.
func empty(parts ...html.Node) html.Node {
	return html.El("p", html.Class("empty"), html.Group(parts))
}

// state is how something stands: a mark and a word, never a color alone.
func state(class, mark, word string) html.Node {
	return html.El("span", html.Class("state "+class), html.El("span", html.Attr("aria-hidden", "true"), html.Text(mark)), html.Text(" "+word))
}
