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

// appEvents are the events that the App subscribed to.
func (s *Server) appEvents() []string {
	if s.opts.App.Events != nil {
		return slices.Clone(s.opts.App.Events)
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
// and to the repository's own hooks. It returns the GUIDs. The lock must be held.
func (s *Server) tell(r *repo, event, action string, by *user, fields obj) []string {
	body := obj{"repository": s.renderRepo(r), "sender": s.renderUser(by)}
	if action != "" {
		body["action"] = action
	}
	if r.owner.kind == typeOrg {
		body["organization"] = s.renderOrg(r.owner)
	}
	maps.Copy(body, fields)
	var ids []string
	i := s.findInstallation(r)
	if i != nil && !i.suspended && slices.Contains(s.appEvents(), event) &&
		slices.ContainsFunc(needed[event], func(p string) bool { return i.permissions[p] != "" }) {
		ofApp := maps.Clone(body)
		ofApp["installation"] = obj{"id": i.id, "node_id": node("MDIzOk", i.id)}
		ids = append(ids, s.enlist(s.appHook, event, action, r, ofApp))
	}
	for _, h := range r.hooks {
		if h.events == nil || slices.Contains(h.events, event) || slices.Contains(h.events, "*") {
			ids = append(ids, s.enlist(h, event, action, r, body))
		}
	}
	return ids
}

// tellIssue tells about an issue, or about a pull request with the event for
// those.
func (s *Server) tellIssue(i *issue, action string, by *user, extra obj) []string {
	fields := maps.Clone(extra)
	if fields == nil {
		fields = obj{}
	}
	if i.pull == nil {
		fields["issue"] = s.renderIssue(i)
		return s.tell(i.repo, "issues", action, by, fields)
	}
	fields["number"], fields["pull_request"] = i.number, s.renderPull(i, true)
	return s.tell(i.repo, "pull_request", action, by, fields)
}

// tellComment tells about a comment of a conversation or of a line.
func (s *Server) tellComment(c *comment, action string, by *user, extra obj) []string {
	fields := maps.Clone(extra)
	if fields == nil {
		fields = obj{}
	}
	fields["comment"] = s.renderComment(c)
	if c.review != nil {
		fields["pull_request"] = s.renderPull(c.issue, false)
		return s.tell(c.issue.repo, "pull_request_review_comment", action, by, fields)
	}
	fields["issue"] = s.renderIssue(c.issue)
	return s.tell(c.issue.repo, "issue_comment", action, by, fields)
}

func (s *Server) tellReview(v *review, by *user) []string {
	return s.tell(v.issue.repo, "pull_request_review", "submitted", by, obj{
		"review": s.renderReview(v, true), "pull_request": s.renderPull(v.issue, false),
	})
}

func (s *Server) tellPush(r *repo, branch string, by *user, before, after string) []string {
	zero := strings.Repeat("0", 40)
	before = cmp.Or(before, zero)
	gone := after == ""
	after = cmp.Or(after, zero)
	pusher := obj{"name": by.login, "email": by.login + "@users.noreply.github.com"}
	web := s.opts.WebURL + "/" + r.fullName()
	return s.tell(r, "push", "", by, obj{
		"ref": "refs/heads/" + branch, "before": before, "after": after, "created": before == zero, "deleted": gone, "forced": false,
		"base_ref": nil, "compare": web + "/compare/" + before[:12] + "..." + after[:12], "commits": []any{}, "head_commit": nil, "pusher": pusher,
	})
}

// Install adds repositories to the App's installation in their account, as its
// administrator does, and makes the installation if there is none.
func (s *Server) Install(repoNames ...string) Sent {
	s.mu.Lock()
	defer s.unlock()
	var sent Sent
	for _, name := range repoNames {
		r := s.mustRepo(name)
		isNew := !slices.ContainsFunc(s.installations, func(i *installation) bool { return i.account == r.owner })
		i := s.installationOf(r.owner)
		i.add(r)
		list := []any{shortRepo(r)}
		if isNew {
			sent.Deliveries = append(sent.Deliveries, s.tellApp(i, "installation", "created", obj{"repositories": list}))
		} else {
			sent.Deliveries = append(sent.Deliveries, s.tellApp(i, "installation_repositories", "added", obj{
				"repositories_added": list, "repositories_removed": []any{}, "repository_selection": "selected",
			}))
		}
	}
	return sent
}

// Uninstall takes the App out of an account. Its tokens are worthless at once.
func (s *Server) Uninstall(account string) Sent {
	s.mu.Lock()
	defer s.unlock()
	var sent Sent
	u := s.know(account)
	for _, i := range s.installations {
		if i.account == u {
			list := []any{}
			for _, r := range i.repos {
				list = append(list, shortRepo(r))
			}
			sent.Deliveries = append(sent.Deliveries, s.tellApp(i, "installation", "deleted", obj{"repositories": list}))
		}
	}
	s.installations = slices.DeleteFunc(s.installations, func(i *installation) bool { return i.account == u })
	return sent
}

// RemoveFromInstallation takes a repository out of the App's installation.
func (s *Server) RemoveFromInstallation(repoName string) Sent {
	s.mu.Lock()
	defer s.unlock()
	r := s.mustRepo(repoName)
	i := s.findInstallation(r)
	if i == nil {
		return Sent{}
	}
	i.repos = slices.DeleteFunc(i.repos, func(other *repo) bool { return other == r })
	return Sent{Deliveries: []string{s.tellApp(i, "installation_repositories", "removed", obj{
		"repositories_added": []any{}, "repositories_removed": []any{shortRepo(r)}, "repository_selection": "selected",
	})}}
}

func shortRepo(r *repo) any {
	return obj{"id": r.id, "node_id": node("R", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private}
}

// tellApp sends an event about an installation, which no App can unsubscribe
// from.
func (s *Server) tellApp(i *installation, event, action string, fields obj) string {
	body := obj{"action": action, "installation": s.renderInstallation(i), "requester": nil, "sender": s.renderUser(i.account)}
	maps.Copy(body, fields)
	return s.enlist(s.appHook, event, action, nil, body)
}

// Ping sends what GitHub sends when the hook of the App is made.
func (s *Server) Ping() Sent {
	s.mu.Lock()
	defer s.unlock()
	return Sent{Deliveries: []string{s.enlist(s.appHook, "ping", "", nil, obj{
		"zen": "Keep it logically awesome.", "hook_id": s.appHook.id, "hook": s.renderHook(s.appHook),
	})}}
}

// DeliverRaw sends any body as an event, correctly signed, and returns its GUID.
// An empty guid gets a new one.
func (s *Server) DeliverRaw(event, guid string, body []byte) string {
	s.mu.Lock()
	defer s.unlock()
	return s.enlistRaw(s.appHook, event, "", guid, nil, body)
}
