package pages

import (
	"net/http"
	"strings"

	"remote-agent/internal/html"
)

// answer is a page with what was answered to a form.
func (p *Pages) answer(done outcome) view {
	return view{title: "Answer", body: html.Group{
		html.El("h1", html.Text("Answer")),
		html.El("div", html.Attr("role", "status"), p.limited(done.said, html.MaxMarkdown)),
		html.El("p", html.El("a", html.Class("button"), html.Href(localPath(done.to)), html.Text("Go on"))),
	}}
}

// refuse says why a form came to nothing. What was written in it is shown again, to be
// sent anew.
func (p *Pages) refuse(w http.ResponseWriter, r *request, err error) {
	if r.PostForm == nil {
		_ = readForm(r.Request) // of somebody who is not signed in any more; err says so
	}
	text := r.PostForm.Get("text")
	if text == "" || len(text) > maxMessage {
		p.fail(w, r, err)
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
		again = p.form(r, r.URL.Path, kept, button("Send again", "primary"))
	}
	p.failWith(w, r, err, again)
}

// typed is the text of a form as a person wrote it: browsers end lines in their own way, and
// what is no text goes nowhere.
func (r *request) typed() string {
	text := strings.ReplaceAll(strings.ToValidUTF8(r.PostForm.Get("text"), "\uFFFD"), "\x00", "")
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}
