package pages

import (
	"remote-agent/internal/html"
)

// About are facts that only the program as a whole knows. Members may be nil.
type About struct{}

// overview is the first page: what needs a person, then what runs.
func (p *Pages) overview(r *request) (view, error) {
	return view{title: "Overview", body: html.El("h1", html.Text("Overview"))}, nil
}
