package pages

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/live"
)

// frame writes pages with what is around all of them.
type frame struct {
	show    *renderer
	version string
	assets  assets
	changes *live.Hub // nil: pages that are open stay as they are
	log     *slog.Logger
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
		html.El("h1", html.Text(http.StatusText(status))),
		html.El("p", html.Text(why)),
		more,
		html.El("p", html.El("a", html.Href("/"), html.Text("Go to the overview"))),
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
		html.El("h1", html.Text("Answer")),
		html.El("div", html.Attr("role", "status"), f.show.limited(done.said, html.MaxMarkdown)),
		html.El("p", html.El("a", html.Class("button"), html.Href(localPath(done.to)), html.Text("Go on"))),
	}}
}

// refuse says why a form came to nothing. What was written in it is shown again, to be
// sent anew.
func (f *frame) refuse(w http.ResponseWriter, r *request, err error) {
	if r.PostForm == nil {
		_ = readForm(r.Request) // of somebody who is not signed in any more; err says so
	}
	text := r.PostForm.Get("text")
	if text == "" || len(text) > maxMessage {
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
