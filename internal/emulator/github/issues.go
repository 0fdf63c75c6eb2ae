package github

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/order"
)

// The limits of texts, in characters.
const (
	maxBody  = 65536
	maxTitle = 256
)

// checkBody refuses a text that is empty or too long.
func checkBody(resource, body string) *apiError {
	switch {
	case strings.TrimSpace(body) == "":
		return invalid(resource, "data", "unprocessable", "Body cannot be blank")
	case utf8.RuneCountInString(body) > maxBody:
		return invalid(resource, "data", "unprocessable", "Body is too long (maximum is 65536 characters)")
	}
	return nil
}

func checkText(resource, title, body string) *apiError {
	switch {
	case strings.TrimSpace(title) == "":
		return invalid(resource, "title", "missing_field", "")
	case utf8.RuneCountInString(title) > maxTitle:
		return invalid(resource, "title", "custom", "title is too long (maximum is 256 characters)")
	case utf8.RuneCountInString(body) > maxBody:
		return invalid(resource, "body", "custom", "body is too long (maximum is 65536 characters)")
	}
	return nil
}

// issueCalls are the operations on issues.
type issueCalls struct{ show renderer }

func (c issueCalls) list(r *request) (*reply, *apiError) {
	since, refused := r.since()
	if refused != nil {
		return nil, refused
	}
	out := r.issues(func(i *issue) bool { return !i.updated.Truncate(time.Second).Before(since) })
	if r.query.Get("direction") != "asc" {
		slices.Reverse(out)
	}
	return paged(r, out, c.show.issue)
}

// issues returns the issues and pull requests in the state that the query asks for
// and that keep agrees to, in the order that the query asks for, from the first.
func (r *request) issues(keep func(*issue) bool) []*issue {
	state := cmp.Or(r.query.Get("state"), "open")
	var out []*issue
	for _, i := range r.repo.issues {
		if (state == "all" || i.state() == state) && keep(i) {
			out = append(out, i)
		}
	}
	if r.query.Get("sort") == "updated" {
		order.By(out, func(a, b *issue) int { return a.updated.Compare(b.updated) })
	}
	return out
}

func (i *issue) label(names ...string) {
	for _, name := range names {
		if !slices.Contains(i.labels, name) {
			i.labels = append(i.labels, name)
		}
		if !slices.Contains(i.repo.labels, name) {
			i.repo.labels = append(i.repo.labels, name)
		}
	}
}

func (c issueCalls) get(r *request) (*reply, *apiError) { return ok(c.show.issue(r.issue)) }

// applyIssue changes title, text, state and labels of an issue or pull request as
// the arguments say.
func (r *request) applyIssue(resource string) *apiError {
	i := r.issue
	title, hasTitle := r.in.text("title")
	body, hasBody := r.in.text("body")
	state, hasState := r.in.text("state")
	reason, _ := r.in.text("state_reason")
	labels, hasLabels := r.in.list("labels")
	if !hasTitle {
		title = i.title
	}
	if !hasBody {
		body = i.body
	}
	refused := cmp.Or(r.in.refused(), checkText(resource, title, body))
	switch {
	case refused != nil:
		return refused
	case hasState && state != "open" && state != "closed":
		return invalid(resource, "state", "invalid", "")
	}
	r.by.retitle(i, title, body)
	if hasLabels {
		i.labels = nil
		i.label(labels...)
	}
	if hasState {
		r.by.setState(i, state == "closed", reason)
	}
	return nil
}
