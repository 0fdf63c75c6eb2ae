//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remote-agent/docs"
)

var (
	anyLink = regexp.MustCompile(`href="([^"]*)"`)
	anyID   = regexp.MustCompile(` id="([^"]*)"`)
	aSource = regexp.MustCompile(`(src|href)="(?:https?:)?//[^"]*"`)
)

func TestTheManualIsWholeAndItsLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		if w.Dialect() != "sqlite" {
			t.Skip("nothing of it is in the database")
		}
		b := w.as(cat)
		files, err := fs.Glob(docs.Manual, "*.md")
		if err != nil || len(files) < 10 {
			t.Fatalf("the manual: %v, %v", files, err)
		}
		pages, ids := map[string]string{"/docs": b.get("/docs"), "/docs/openapi": b.get("/docs/openapi")}, map[string][]string{}
		for _, f := range files {
			path := "/docs/" + strings.TrimSuffix(f, ".md")
			wants(t, pages["/docs"], `href="`+path+`"`)
			pages[path] = b.get(path)
		}
		for path, page := range pages {
			for _, m := range anyID.FindAllStringSubmatch(page, -1) {
				ids[path] = append(ids[path], m[1])
			}
			clean(t, path, page)
			if strings.Count(page, "<h1") != 1 || len(page) > 300<<10 || strings.Contains(page, "## ") && path != "/docs/openapi" {
				t.Errorf("%s: %d bytes, %d first headings", path, len(page), strings.Count(page, "<h1"))
			}
		}
		links := 0
		for path, page := range pages {
			for _, m := range anyLink.FindAllStringSubmatch(page, -1) {
				u, err := url.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
				if err != nil || u.Host != "" {
					continue // to the web, for people to follow
				}
				to := u.Path
				if to == "" {
					to = path
				}
				if !strings.HasPrefix(to, "/docs") || to == "/docs/openapi.yaml" || u.Fragment == "main" {
					continue
				}
				links++
				if _, ok := pages[to]; !ok || u.Fragment != "" && !slices.Contains(ids[to], u.Fragment) {
					t.Errorf("%s links to %s", path, m[1])
				}
			}
			for _, m := range aSource.FindAllString(page, -1) {
				if strings.HasPrefix(m, "src") || strings.Contains(page, "<link rel=\"stylesheet\" "+m) {
					t.Errorf("%s fetches %s", path, m)
				}
			}
		}
		if links < 100 {
			t.Errorf("the manual has %d links of its own", links)
		}
		wants(t, pages["/docs/operations"], `<h2 id="web-pages">Web pages</h2>`, "<table>")
		wants(t, pages["/docs/openapi"], "<code>/v1/conversations</code>", "Conversations, the newest first.")
		if r := b.send("GET", "/docs/openapi.yaml", nil); r.Body.String() != string(docs.OpenAPI()) {
			t.Errorf("the document: %d", r.Code)
		}
		for _, path := range []string{"/docs/none", "/docs/..%2fREADME", "/docs/texts", "/docs/" + url.PathEscape(evilName)} {
			if r := b.send("GET", path, nil); r.Code != http.StatusNotFound {
				t.Errorf("GET %s: %d", path, r.Code)
			}
		}
		if r := w.browser().send("GET", "/docs/operations", nil); r.Code != http.StatusSeeOther {
			t.Errorf("the manual without a session: %d", r.Code)
		}
	})
}
