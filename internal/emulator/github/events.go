package github

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// allEvents are the events that there are, besides those about the App itself.
var allEvents = []string{
	"issue_comment", "issues", "member", "pull_request", "pull_request_review", "pull_request_review_comment", "push",
}

// events are the events that the App subscribed to.
func (a App) events() []string {
	if a.Events != nil {
		return slices.Clone(a.Events)
	}
	return slices.Clone(allEvents)
}

// needed are the permissions of which an installation needs one to be told.
var needed = map[string][]string{
	"issues": {"issues"}, "issue_comment": {"issues", "pull_requests"}, "pull_request": {"pull_requests"},
	"pull_request_review": {"pull_requests"}, "pull_request_review_comment": {"pull_requests"}, "push": {"contents"},
	"member": {"members", "metadata"},
}

// tell sends an event about a repository to the App, if it is installed there,
// and to the repository's own hooks. It returns the GUIDs.
func (a actor) tell(r *repo, event, action string, fields obj) []string {
	h := a.hooks
	body := obj{"repository": h.show.repo(r), "sender": h.show.user(a.user)}
	if action != "" {
		body["action"] = action
	}
	if r.owner.kind == typeOrg {
		body["organization"] = h.show.org(r.owner)
	}
	maps.Copy(body, fields)
	var ids []string
	i := a.world.findInstallation(r)
	if i != nil && slices.Contains(a.world.opts.App.events(), event) &&
		slices.ContainsFunc(needed[event], func(p string) bool { return i.permissions[p] != "" }) {
		ofApp := maps.Clone(body)
		ofApp["installation"] = obj{"id": i.id, "node_id": node("MDIzOk", i.id)}
		ids = append(ids, h.enlist(h.app, event, action, r, ofApp))
	}
	for _, to := range r.hooks {
		ids = append(ids, h.enlist(to, event, action, r, body))
	}
	return ids
}

// tellIssue tells about an issue, or about a pull request with the event for
// those.
func (a actor) tellIssue(i *issue, action string, extra obj) []string {
	event, fields := "issues", obj{}
	if i.pull == nil {
		fields["issue"] = a.hooks.show.issue(i)
	} else {
		event = "pull_request"
		fields["number"], fields["pull_request"] = i.number, a.hooks.show.pull(i, true)
	}
	maps.Copy(fields, extra)
	return a.tell(i.repo, event, action, fields)
}

// tellComment tells about a comment of a conversation or of a line.
func (a actor) tellComment(c *comment, action string, extra obj) []string {
	event, fields := "issue_comment", obj{"comment": a.hooks.show.comment(c)}
	if c.review == nil {
		fields["issue"] = a.hooks.show.issue(c.issue)
	} else {
		event = "pull_request_review_comment"
		fields["pull_request"] = a.hooks.show.pull(c.issue, false)
	}
	maps.Copy(fields, extra)
	return a.tell(c.issue.repo, event, action, fields)
}

func (a actor) tellReview(v *review) []string {
	return a.tell(v.issue.repo, "pull_request_review", "submitted", obj{
		"review": a.hooks.show.review(v, true), "pull_request": a.hooks.show.pull(v.issue, false),
	})
}

func (a actor) tellPush(r *repo, branch, before, after string) []string {
	zero := strings.Repeat("0", 40)
	gone := after == ""
	before, after = cmp.Or(before, zero), cmp.Or(after, zero)
	return a.tell(r, "push", "", fields{
		{"ref", "refs/heads/" + branch}, {"before", before}, {"after", after}, {"created", before == zero}, {"deleted", gone}, {"forced", false},
		{"base_ref", nil}, {"compare", a.hooks.show.page(r.fullName()) + "/compare/" + before[:12] + "..." + after[:12]}, {"commits", []any{}},
		{"head_commit", nil}, {"pusher", obj{"name": a.user.login, "email": a.user.login + "@users.noreply.github.com"}},
	}.Object())
}
