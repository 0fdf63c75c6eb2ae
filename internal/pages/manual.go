package pages

import (
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"remote-agent/docs"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
)

const (
	manualEnd  = ".md"
	openAPI    = "openapi" // the name of the page with the document of the API
	openAPIEnd = ".yaml"
)

// manualOrder is how the pages of the manual are read; those that are not in it follow.
var manualOrder = []string{"commands", "assistants", "operations", "telegram", "slack", "github", "api"} //nolint:gochecknoglobals // a constant

// manualNames returns the names of all pages.
func manualNames() []string {
	files, err := fs.Glob(docs.Manual, "*"+manualEnd)
	if err != nil {
		panic(err) // the pattern is ours
	}
	names := slices.Clone(manualOrder)
	for _, f := range files {
		if name := strings.TrimSuffix(f, manualEnd); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// manualLink says where a link of the manual leads.
func manualLink(to string) string {
	file, fragment, found := strings.Cut(to, "#")
	if found {
		fragment = "#" + fragment
	}
	name, isPage := strings.CutSuffix(file, manualEnd)
	switch {
	case file == "":
		return fragment
	case isPage && slices.Contains(manualNames(), name):
		return "/docs/" + name + fragment
	case file == openAPI+openAPIEnd:
		return "/docs/" + openAPI
	}
	return ""
}

func readManual(name string) (string, error) {
	text, err := docs.Manual.ReadFile(name + manualEnd)
	if err != nil {
		return "", fault.New(fault.NotFound, "The manual has no such page.")
	}
	return string(text), nil
}

// sectionsOf cuts a page before each heading of the second level: the parser takes no
// longer texts.
func sectionsOf(text string) (sections []string) {
	from, fenced := 0, false
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && at > 0 && strings.HasPrefix(line, "## ") {
			sections, from = append(sections, text[from:at]), at
		}
		at += len(line) + 1
	}
	return append(sections, text[from:])
}

// titleOf returns the heading of a page, without what else is in it.
func titleOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(line, "# ")
}

// manualPages are the manual, which is in the program.
type manualPages struct {
	version  string
	markdown func() *html.Renderer // made when it is first used
}

func (p *manualPages) routes(to *Pages) {
	to.page("GET /docs", p.manualContents)
	to.page("GET /docs/{page}", p.manualPage)
	to.file("GET /docs/openapi.yaml", openAPIFile)
}

// manualContents lists the pages of the manual.
func (p *manualPages) manualContents(*request) (view, error) {
	items := html.Group{}
	for _, name := range manualNames() {
		text, err := readManual(name)
		if err != nil {
			return view{}, err
		}
		parts := html.Group{}
		for _, s := range sectionsOf(text)[1:] {
			heading, _, _ := strings.Cut(strings.TrimPrefix(s, "## "), "\n")
			parts = append(parts, html.El("li", html.Link("/docs/"+name+"#"+html.Fragment(heading), strings.ReplaceAll(heading, "`", ""))))
		}
		items = append(items, html.El("section", html.Class("card"), html.El("h2", html.Link("/docs/"+name, titleOf(text))), html.El("ul", parts)))
	}
	items = append(items, html.El("section", html.Class("card"), html.El("h2", html.Link("/docs/"+openAPI, "The HTTP API as OpenAPI")),
		html.El("p", html.Link("/docs/"+openAPI+openAPIEnd, "The document itself, for programs"))))
	return view{title: "Manual", body: html.Group{html.Tag("h1", "Manual"),
		html.Styled("p", "muted", fmt.Sprintf("For version %s. It is built into the program; nothing is downloaded.", p.version)), html.El("div", html.Class("cards"), items)}}, nil
}

// manualPage shows a page of the manual.
func (p *manualPages) manualPage(r *request) (view, error) {
	name := r.PathValue("page")
	if name == openAPI {
		return openAPIView(), nil
	}
	text, err := readManual(name)
	if err != nil {
		return view{}, err
	}
	body := html.Group{html.El("p", html.Link("/docs", "Manual"))}
	for _, s := range sectionsOf(text) {
		body = append(body, p.markdown().Markdown(s))
	}
	return view{title: titleOf(text), body: html.El("article", html.Class("manual"), body)}, nil
}

// openAPI shows the document of the API, path by path.
func openAPIView() view {
	about, rest, _ := strings.Cut(string(docs.OpenAPI()), "\npaths:\n")
	paths, components, _ := strings.Cut(rest, "\ncomponents:\n")
	code := func(text string) html.Node {
		return html.El("pre", html.Attr("tabindex", "0"), html.Text(text))
	}
	items, lines := html.Group{}, []string{}
	end := func() {
		if len(lines) > 0 {
			items = append(items, html.El("details", html.El("summary", html.Tag("code", strings.Trim(lines[0], " :")), html.Text(summaries(lines))), code(strings.Join(lines, "\n"))))
		}
		lines = nil
	}
	for line := range strings.Lines(paths) {
		if strings.HasPrefix(line, "  /") {
			end()
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	end()
	return view{title: "The HTTP API", body: html.Group{
		html.El("p", html.Link("/docs", "Manual")), html.Tag("h1", "The HTTP API as OpenAPI"),
		html.El("p", linkButton("/docs/"+openAPI+openAPIEnd, "Download the document")), code(about),
		html.Tag("h2", "Paths"), items, html.Tag("h2", "Components"), html.El("details", html.Tag("summary", "Schemas, parameters and answers"), code(components))}}
}

// summaries are what can be done with a path: the lines that say so.
func summaries(lines []string) string {
	var found []string
	for _, line := range lines {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "summary: "); ok {
			found = append(found, strings.Trim(text, `"`))
		}
	}
	return " " + strings.Join(found, " ")
}

// openAPIFile sends the document of the API.
func openAPIFile(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(docs.OpenAPI()) // a browser that left needs no answer
	return nil
}
