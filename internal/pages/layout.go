package pages

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/live"
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
	{path: "/setup", name: "Setup", owners: true},
	{path: "/docs", name: "Manual"},
}

// heading is what a browser shows of a page where it is not open.
func (v view) heading() html.Node {
	title := v.title + " · Remote Agent"
	if v.badge != "" {
		title = v.badge + " " + title
	}
	return html.Tag("title", title)
}

// frame writes pages with what is around all of them.
type frame struct {
	show    *renderer
	version string
	assets  assets
	changes *live.Hub // nil: pages that are open stay as they are
	log     *slog.Logger
}

// content is the page itself. Where its changes are told, it says how to learn of them.
func (f *frame) content(r *request, v view) html.Node {
	return html.El("main", html.ID("main"),
		html.If(v.live != "" && f.changes != nil, html.Group{html.Attr("data-live", "/events?topic="+queryEscape(v.live)), html.Attr("data-at", v.at)}),
		f.show.answered(r),
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
			html.Tag("footer", fmt.Sprintf("Remote Agent %s", f.version))))
	return root
}

// fail shows an error by its public text.
func (f *frame) fail(w http.ResponseWriter, r *request, err error) { f.failWith(w, r, err, nil) }

func (f *frame) failWith(w http.ResponseWriter, r *request, err error, more html.Node) {
	status := statusOf(err)
	if status == http.StatusInternalServerError && r.Context().Err() == nil {
		f.log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "err", err)
	}
	f.explain(w, r, status, fault.Public(err), more)
}

// explain shows why there is nothing else to see.
func (f *frame) explain(w http.ResponseWriter, r *request, status int, why string, more html.Node) {
	f.write(w, r, status, view{title: http.StatusText(status), body: html.Group{
		html.Tag("h1", http.StatusText(status)),
		html.Tag("p", why),
		more,
		html.El("p", html.Link("/", "Go to the overview")),
	}})
}

// write writes a page.
func (f *frame) write(w http.ResponseWriter, r *request, status int, v view) {
	var out bytes.Buffer
	page := f.layout
	if isPart(r.Request) {
		page = f.part
	}
	if err := html.Write(&out, page(r, v)); err != nil {
		status = http.StatusInternalServerError
	}
	if v.formTo != "" {
		w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'self'", "form-action 'self' "+v.formTo, 1))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(out.Bytes()) // a browser that left needs no answer
	}
}

// answer is a page with what was answered to a form.
func (f *frame) answer(done outcome) view {
	return view{title: "Answer", body: html.Group{
		html.Tag("h1", "Answer"),
		html.El("div", html.Attr("role", "status"), f.show.limited(done.said, html.MaxMarkdown)),
		html.El("p", linkButton(localPath(done.to), "Continue")),
	}}
}

// refuse says why a form came to nothing. What was written in it is shown again, to be
// sent anew.
func (f *frame) refuse(w http.ResponseWriter, r *request, err error) {
	if r.PostForm == nil {
		_ = readForm(r.Request) // of somebody who is not signed in any more; err says so
	}
	text := r.PostForm.Get("text")
	if text == "" {
		f.fail(w, r, err)
		return
	}
	field := html.El("label", html.Text("What you wrote"), html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "8"), html.Text(text)))
	again := html.El("form", field) // to be copied: whoever is not signed in can send nothing
	if r.role != "" {
		kept := html.Group{field}
		for name, values := range r.PostForm {
			if name != "text" && name != "token" && name != "nonce" && len(values) == 1 {
				kept = append(kept, hidden(name, values[0]))
			}
		}
		again = form(r, r.URL.Path, kept, button("Send again", "primary"))
	}
	f.failWith(w, r, err, again)
}

// position is the last change that there was.
func (f *frame) position() string {
	if f.changes == nil {
		return ""
	}
	return f.changes.Position()
}

// header is the top of a page: where to go, and who is signed in.
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
			html.Link("/account", r.actor()),
			form(r, "/theme", html.Class("themes"), html.Attr("aria-label", "Theme"), html.If(r.Method == http.MethodGet, hidden("back", r.URL.RequestURI())), themes)))
}

// form is a form that does something.
func form(r *request, action string, parts ...html.Node) html.Node {
	return html.El("form", html.Attr("method", "post"), html.Attr("action", action), hidden("token", formToken(r.token)), hidden("nonce", newNonce()), html.Group(parts))
}

func hidden(name, value string) html.Node {
	return html.El("input", html.Attr("type", "hidden"), html.Attr("name", name), html.Attr("value", value))
}

// linkButton is a link that looks like a button.
//
//go:noinline
func linkButton(address, label string) html.Node {
	return html.El("a", html.Class("button"), html.Href(address), html.Text(label))
}

// button is one that sends its form. class is how it looks; may be empty. It, decision and
// field are called in many places, so they are not copied into each.
//
//go:noinline
func button(label, class string, more ...html.Node) html.Node {
	return html.El("button", html.Attr("type", "submit"), html.Group(more), html.If(class != "", html.Class(class)), html.Text(label))
}

// decision is a button that sends its form with a choice.
//
//go:noinline
func decision(label, name, value, class string) html.Node {
	return button(label, class, html.Attr("name", name), html.Attr("value", value))
}

// field is a field of a form that looks for something. An example of what to write may be empty.
//
//go:noinline
func field(name, label, kind, value, example string) html.Node {
	return html.El("label", html.Text(label), html.El("br"), html.El("input", html.Attr("name", name), html.Attr("type", kind), html.Attr("value", value),
		html.If(example != "", html.Attr("placeholder", example)), html.Attr("maxlength", "200"), html.Attr("size", "14")))
}

// table is a table with a heading; it scrolls sideways by itself where it has to. A head that
// begins with # is of a column of numbers.
func table(heads []string, rows html.Node) html.Node {
	return html.El("div", html.Class("table"), html.Attr("tabindex", "0"), html.Attr("role", "group"), html.Attr("aria-label", strings.ReplaceAll(strings.Join(heads, ", "), "#", "")), html.El("table",
		html.El("thead", html.El("tr", html.Map(heads, func(h string) html.Node {
			if h == "" {
				return html.El("td")
			}
			name, numbers := strings.CutPrefix(h, "#")
			return html.El("th", html.Attr("scope", "col"), html.If(numbers, html.Class("num")), html.Text(name))
		}))),
		html.El("tbody", rows)))
}

func row(cells ...html.Node) html.Node {
	return html.El("tr", html.Map(cells, func(c html.Node) html.Node { return html.El("td", c) }))
}

// empty says what would be here, and how it comes.
func empty(parts ...html.Node) html.Node {
	return html.El("p", html.Class("empty"), html.Group(parts))
}

func emptyText(text string) html.Node { return empty(html.Text(text)) }

// listed is a list, or what would be in it.
func listed(lines html.Group, teach string) html.Node {
	if len(lines) == 0 {
		return emptyText(teach)
	}
	return html.El("ul", html.Class("list"), lines)
}

// section is a list below a heading.
func section(id, heading string, lines html.Group, teach string) html.Node {
	return html.Group{html.El("h2", html.ID(id), html.Text(heading)), listed(lines, teach)}
}

// state is how something stands: a mark and a word, never a color alone.
func state(class, mark, word string) html.Node {
	return html.El("span", html.Class("state "+class), html.El("span", html.Attr("aria-hidden", "true"), html.Text(mark)), html.Text(" "+word))
}
