package github

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
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

func (s *Server) listIssues(r *request) (*reply, *apiError) {
	since, refused := r.since()
	if refused != nil {
		return nil, refused
	}
	if r.repo.noIssues {
		return nil, refuse(http.StatusGone, "Issues are disabled for this repo")
	}
	state, labels := r.query.Get("state"), r.query.Get("labels")
	state = cmp.Or(state, "open")
	var out []*issue
	for _, i := range r.repo.issues {
		switch {
		case i == nil, state != "all" && i.state() != state, i.updated.Truncate(time.Second).Before(since):
		case r.query.Get("creator") != "" && !sameName(i.author.login, r.query.Get("creator")):
		case labels != "" && slices.ContainsFunc(strings.Split(labels, ","), func(l string) bool { return !slices.Contains(i.labels, l) }):
		default:
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b *issue) int {
		if r.query.Get("sort") == "updated" {
			return a.updated.Compare(b.updated)
		}
		return a.number - b.number
	})
	if r.query.Get("direction") != "asc" {
		slices.Reverse(out)
	}
	return paged(r, out, func(i *issue) any { return s.renderIssue(i) })
}

func (s *Server) createIssue(r *request) (*reply, *apiError) {
	title := r.in.need("title")
	body, _ := r.in.text("body")
	labels, _ := r.in.list("labels")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if r.repo.noIssues {
		return nil, refuse(http.StatusGone, "Issues are disabled for this repo")
	}
	if refused := checkText("Issue", title, body); refused != nil {
		return nil, refused
	}
	i := s.add(r.repo, r.who.user, r.who.viaApp(), title, body)
	i.label(labels...)
	s.change(ChangeOpened, i, nil, r.who.user)
	s.tellIssue(i, "opened", r.who.user, nil)
	return created(s.renderIssue(i))
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

func (s *Server) getIssue(r *request) (*reply, *apiError) { return ok(s.renderIssue(r.issue)) }

func (s *Server) updateIssue(r *request) (*reply, *apiError) {
	if refused := s.applyIssue(r, "Issue"); refused != nil {
		return nil, refused
	}
	return ok(s.renderIssue(r.issue))
}

// applyIssue changes title, text, state and labels as the arguments say.
func (s *Server) applyIssue(r *request, resource string) *apiError {
	i, by := r.issue, r.who.user
	title, hasTitle := r.in.text("title")
	body, hasBody := r.in.text("body")
	state, hasState := r.in.text("state")
	reason, _ := r.in.text("state_reason")
	labels, hasLabels := r.in.list("labels")
	if refused := r.in.refused(); refused != nil {
		return refused
	}
	if !hasTitle {
		title = i.title
	}
	if !hasBody {
		body = i.body
	}
	if refused := checkText(resource, title, body); refused != nil {
		return refused
	}
	if hasState && state != "open" && state != "closed" {
		return invalid(resource, "state", "invalid", "")
	}
	if hasState && state == "open" && i.pull != nil && i.pull.merged {
		return invalid(resource, "state", "custom", "state cannot be changed. The pull request was merged.")
	}
	s.retitle(i, title, body, by)
	if hasLabels {
		i.labels = nil
		i.label(labels...)
	}
	if hasState {
		s.setState(i, state == "closed", reason, by)
	}
	return nil
}

// retitle changes title and text and tells about it. It returns the deliveries.
func (s *Server) retitle(i *issue, title, body string, by *user) []string {
	changes := obj{}
	if title != i.title {
		changes["title"] = obj{"from": i.title}
		i.title = title
	}
	if body != i.body {
		changes["body"] = obj{"from": i.edit(body, s.opts.Now())}
	}
	if len(changes) == 0 {
		return nil
	}
	i.updated = s.opts.Now()
	s.change(ChangeUpdated, i, nil, by)
	return s.tellIssue(i, "edited", by, obj{"changes": changes})
}

// setState closes or reopens and tells about it. It returns the deliveries.
func (s *Server) setState(i *issue, closed bool, reason string, by *user) []string {
	if closed == i.closed {
		return nil
	}
	now := s.opts.Now()
	i.closed, i.updated = closed, now
	action := "reopened"
	if closed {
		action = "closed"
		reason = cmp.Or(reason, "completed")
		i.closedAt, i.closedBy, i.reason = now, by, reason
	} else {
		i.closedAt, i.closedBy, i.reason = time.Time{}, nil, "reopened"
	}
	s.change(ChangeUpdated, i, nil, by)
	return s.tellIssue(i, action, by, nil)
}

// lag makes lists of comments late.
type lag struct {
	age   time.Duration
	lists int
}

// SetListLag makes new comments missing in lists until they are of an age and as
// many lists have not shown them. Reading one by its id is not late. Zeros end
// it.
func (s *Server) SetListLag(age time.Duration, lists int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag{age: age, lists: lists}
}

// shown filters the comments that a list shows now.
func (s *Server) shown(list []*comment) []*comment {
	now := s.opts.Now()
	var out []*comment
	for _, c := range list {
		if c.unseen < s.lag.lists {
			c.unseen++
			continue
		}
		if s.lag.age == 0 || now.Sub(c.created) >= s.lag.age { // also if the clock was set back since
			out = append(out, c)
		}
	}
	return out
}

func (s *Server) listComments(r *request) (*reply, *apiError) {
	if r.issue != nil {
		return s.pageComments(r, slices.Clone(r.issue.comments))
	}
	return s.pageComments(r, s.all(r.repo, func(i *issue) []*comment { return i.comments }))
}

// all collects the comments of a repository.
func (s *Server) all(r *repo, of func(*issue) []*comment) []*comment {
	var out []*comment
	for _, i := range r.issues {
		if i != nil {
			out = append(out, of(i)...)
		}
	}
	slices.SortFunc(out, func(a, b *comment) int { return int(a.id - b.id) })
	return out
}

func (s *Server) pageComments(r *request, list []*comment) (*reply, *apiError) {
	since, refused := r.since()
	if refused != nil {
		return nil, refused
	}
	list = slices.DeleteFunc(s.shown(list), func(c *comment) bool { return c.updated.Truncate(time.Second).Before(since) })
	if by := r.query.Get("sort"); by != "" && r.issue == nil || by != "" && r.vars["review"] == "" && r.route.name == ListReviewComments {
		slices.SortStableFunc(list, func(a, b *comment) int {
			if by == "updated" {
				return a.updated.Compare(b.updated)
			}
			return a.created.Compare(b.created)
		})
		// The default depends on the list; the stricter reading is the less handy.
		if r.query.Get("direction") == "desc" {
			slices.Reverse(list)
		}
	}
	return paged(r, list, func(c *comment) any { return s.renderComment(c) })
}

func (s *Server) createComment(r *request) (*reply, *apiError) {
	body := r.in.need("body")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if r.issue.locked && (r.who.kind == asInstallation || !r.repo.role(r.who.user).atLeast(Write)) {
		return nil, refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	if refused := checkBody("IssueComment", body); refused != nil {
		return nil, refused
	}
	c := s.addComment(r.issue, r.who.user, r.who.viaApp(), body)
	s.change(ChangeCommented, r.issue, c, r.who.user)
	s.tellComment(c, "created", r.who.user, nil)
	return created(s.renderComment(c))
}

func (s *Server) getComment(r *request) (*reply, *apiError) { return ok(s.renderComment(r.comment)) }

// mayChange reports whether the caller may edit or delete a comment: its author
// may, and who has write access.
func (r *request) mayChange() bool {
	return r.who.user == r.comment.author || r.who.kind == asInstallation || r.repo.role(r.who.user).atLeast(Write)
}

func (s *Server) updateComment(r *request) (*reply, *apiError) {
	body := r.in.need("body")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if !r.mayChange() {
		return nil, refuse(http.StatusForbidden, "Must have admin rights to Repository.")
	}
	resource := "IssueComment"
	if r.comment.review != nil {
		resource = "PullRequestReviewComment"
	}
	if refused := checkBody(resource, body); refused != nil {
		return nil, refused
	}
	s.editComment(r.comment, body, r.who.user)
	return ok(s.renderComment(r.comment))
}

// editComment gives a comment another text and tells about it. One that changes
// nothing is no edit. It returns the deliveries.
func (s *Server) editComment(c *comment, body string, by *user) []string {
	if body == c.body {
		return nil
	}
	old := c.edit(body, s.opts.Now())
	c.issue.updated = c.updated
	s.change(ChangeEdited, c.issue, c, by)
	return s.tellComment(c, "edited", by, obj{"changes": obj{"body": obj{"from": old}}})
}

func (s *Server) deleteComment(r *request) (*reply, *apiError) {
	if !r.mayChange() {
		return nil, refuse(http.StatusForbidden, "Must have admin rights to Repository.")
	}
	s.dropComment(r.comment, r.who.user)
	return noContent()
}

func (s *Server) dropComment(c *comment, by *user) []string {
	s.removeComment(c)
	s.change(ChangeDeleted, c.issue, c, by)
	return s.tellComment(c, "deleted", by, nil)
}

func (s *Server) listLabels(r *request) (*reply, *apiError) {
	return paged(r, r.issue.labels, func(name string) any { return s.renderLabel(r.repo, name) })
}

func (s *Server) listRepoLabels(r *request) (*reply, *apiError) {
	return paged(r, r.repo.labels, func(name string) any { return s.renderLabel(r.repo, name) })
}

func (s *Server) addLabels(r *request) (*reply, *apiError) {
	labels, given := r.in.list("labels")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if !given {
		return nil, refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n\"labels\" wasn't supplied.")
	}
	for _, name := range labels {
		if !slices.Contains(r.issue.labels, name) {
			s.setLabel(r.issue, name, true, r.who.user)
		}
	}
	return ok(s.renderLabels(r.repo, r.issue.labels))
}

func (s *Server) removeLabel(r *request) (*reply, *apiError) {
	if !slices.Contains(r.issue.labels, r.vars["label"]) {
		return nil, refuse(http.StatusNotFound, "Label does not exist")
	}
	s.setLabel(r.issue, r.vars["label"], false, r.who.user)
	return ok(s.renderLabels(r.repo, r.issue.labels))
}

// setLabel puts a label on or takes it off and tells about it.
func (s *Server) setLabel(i *issue, name string, on bool, by *user) []string {
	action := "labeled"
	if on {
		i.label(name)
	} else {
		action = "unlabeled"
		i.labels = slices.DeleteFunc(i.labels, func(l string) bool { return l == name })
	}
	i.updated = s.opts.Now()
	s.change(ChangeUpdated, i, nil, by)
	return s.tellIssue(i, action, by, obj{"label": s.renderLabel(i.repo, name)})
}
