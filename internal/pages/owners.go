package pages

import (
	"net/http"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
)

func ownersSee(show func(r *request) (view, error)) func(r *request) (view, error) {
	return func(r *request) (view, error) {
		if !r.owner() {
			return view{}, fault.New(fault.Forbidden, "Only owners can see this page.")
		}
		return show(r)
	}
}

func ownersDo(do func(w http.ResponseWriter, r *request) (outcome, error)) func(w http.ResponseWriter, r *request) (outcome, error) {
	return func(w http.ResponseWriter, r *request) (outcome, error) {
		if !r.owner() {
			return outcome{}, fault.New(fault.Forbidden, "Only owners can do this.")
		}
		return do(w, r)
	}
}

// section is a heading with what is below it, or with what would be there.
func section(id, heading string, list html.Group, teach string) html.Node {
	if len(list) == 0 {
		return html.Group{html.El("h2", html.ID(id), html.Text(heading)), empty(html.Text(teach))}
	}
	return html.Group{html.El("h2", html.ID(id), html.Text(heading)), html.El("ul", html.Class("list"), list)}
}
