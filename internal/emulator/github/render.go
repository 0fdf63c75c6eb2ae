package github

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"
)

// These functions render the state as the API and webhooks show it. The lock
// must be held.

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func node(kind string, id int64) string {
	return kind + "_" + base64.RawURLEncoding.EncodeToString([]byte(kind+itoa64(id)))
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s *Server) renderUser(u *user) any {
	if u == nil {
		return nil
	}
	api := s.URL() + "/users/" + u.login
	return obj{
		"login": u.login, "id": u.id, "node_id": node("U", u.id), "gravatar_id": "",
		"avatar_url": "https://avatars.githubusercontent.com/u/" + itoa64(u.id) + "?v=4",
		"url":        api, "html_url": s.opts.WebURL + "/" + strings.TrimSuffix(u.login, "[bot]"),
		"followers_url": api + "/followers", "following_url": api + "/following{/other_user}", "gists_url": api + "/gists{/gist_id}",
		"starred_url": api + "/starred{/owner}{/repo}", "subscriptions_url": api + "/subscriptions", "organizations_url": api + "/orgs",
		"repos_url": api + "/repos", "events_url": api + "/events{/privacy}", "received_events_url": api + "/received_events",
		"type": u.kind, "user_view_type": "public", "site_admin": false,
	}
}

func (s *Server) renderOrg(u *user) any {
	api := s.URL() + "/orgs/" + u.login
	return obj{
		"login": u.login, "id": u.id, "node_id": node("O", u.id), "url": api, "repos_url": api + "/repos",
		"events_url": api + "/events", "hooks_url": api + "/hooks", "issues_url": api + "/issues",
		"members_url": api + "/members{/member}", "public_members_url": api + "/public_members{/member}",
		"avatar_url": "https://avatars.githubusercontent.com/u/" + itoa64(u.id) + "?v=4", "description": "",
	}
}

func (s *Server) renderRepo(r *repo) obj {
	api, web := s.URL()+"/repos/"+r.fullName(), s.opts.WebURL+"/"+r.fullName()
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	clone := r.git.CloneURL
	clone = cmp.Or(clone, web+".git")
	open := 0
	for _, i := range r.issues {
		if i != nil && !i.closed {
			open++
		}
	}
	out := obj{
		"id": r.id, "node_id": node("R", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private,
		"owner": s.renderUser(r.owner), "html_url": web, "description": nullable(r.description), "fork": r.parent != nil, "url": api,
		"issues_url": api + "/issues{/number}", "issue_comment_url": api + "/issues/comments{/number}", "pulls_url": api + "/pulls{/number}",
		"comments_url": api + "/comments{/number}", "branches_url": api + "/branches{/branch}", "hooks_url": api + "/hooks",
		"labels_url": api + "/labels{/name}", "collaborators_url": api + "/collaborators{/collaborator}",
		"created_at": stamp(r.created), "updated_at": stamp(r.created), "pushed_at": stamp(r.created),
		"git_url": "git://github.com/" + r.fullName() + ".git", "ssh_url": "git@github.com:" + r.fullName() + ".git", "clone_url": clone,
		"size": 1, "stargazers_count": 0, "watchers_count": 0, "language": "Go", "has_issues": !r.noIssues, "has_projects": true,
		"has_downloads": true, "has_wiki": false, "has_pages": false, "has_discussions": false, "forks_count": 0, "mirror_url": nil,
		"archived": r.archived, "disabled": false, "open_issues_count": open, "license": nil, "allow_forking": true, "is_template": false,
		"topics": []string{}, "visibility": visibility, "forks": 0, "open_issues": open, "watchers": 0, "default_branch": r.branch,
	}
	return out
}

// renderRepoFor adds what the caller may do, and the parent of a fork.
func (s *Server) renderRepoFor(r *repo, who *principal) obj {
	out := s.renderRepo(r)
	role := None
	if who.kind == personal {
		role = r.role(who.user)
	}
	out["permissions"] = rights(role)
	if r.parent != nil {
		out["parent"], out["source"] = s.renderRepo(r.parent), s.renderRepo(r.parent)
	}
	if r.owner.kind == typeOrg {
		out["organization"] = s.renderUser(r.owner)
	}
	return out
}

func rights(p Permission) obj {
	return obj{
		"admin": p.atLeast(Admin), "maintain": p.atLeast(Maintain), "push": p.atLeast(Write),
		"triage": p.atLeast(Triage), "pull": p.atLeast(Read),
	}
}

func (s *Server) renderApp() obj {
	a := s.opts.App
	return obj{
		"id": a.ID, "client_id": a.ClientID, "slug": a.Slug, "node_id": node("A", a.ID), "owner": s.renderUser(s.know(a.Owner)),
		"name": a.Name, "description": "", "external_url": "https://example.com", "html_url": s.opts.WebURL + "/apps/" + a.Slug,
		"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "permissions": maps.Clone(a.Permissions), "events": s.appEvents(),
		"installations_count": len(s.installations),
	}
}

// performed is the mark on what an App wrote.
func (s *Server) performed(p post) any {
	if !p.viaApp {
		return nil
	}
	return s.renderApp()
}

func (s *Server) renderInstallation(i *installation) obj {
	api := s.URL() + "/app/installations/" + itoa64(i.id)
	out := obj{
		"id": i.id, "client_id": s.opts.App.ClientID, "account": s.renderUser(i.account), "repository_selection": "selected",
		"access_tokens_url": api + "/access_tokens", "repositories_url": s.URL() + "/installation/repositories",
		"html_url": s.opts.WebURL + "/settings/installations/" + itoa64(i.id), "app_id": s.opts.App.ID, "app_slug": s.opts.App.Slug,
		"target_id": i.account.id, "target_type": i.account.kind, "permissions": maps.Clone(i.permissions), "events": s.appEvents(),
		"created_at": stamp(i.created), "updated_at": stamp(i.created), "single_file_name": nil, "has_multiple_single_files": false,
		"single_file_paths": []string{}, "suspended_by": nil, "suspended_at": nil,
	}
	if i.suspended {
		out["suspended_by"], out["suspended_at"] = s.renderUser(i.account), stamp(s.opts.Now())
	}
	return out
}

func (s *Server) renderLabels(r *repo, names []string) []any {
	out := []any{}
	for _, name := range names {
		out = append(out, s.renderLabel(r, name))
	}
	return out
}

func (s *Server) renderLabel(r *repo, name string) any {
	id := int64(9000 + slices.Index(r.labels, name))
	return obj{
		"id": id, "node_id": node("LA", id), "url": s.URL() + "/repos/" + r.fullName() + "/labels/" + strings.ReplaceAll(name, " ", "%20"),
		"name": name, "color": "ededed", "default": true, "description": nil,
	}
}

// kinds are the reactions that there are, with the names in rollups.
var kinds = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

func rollup(url string, list []*reaction) obj {
	out := obj{"url": url, "total_count": len(list)}
	for _, kind := range kinds {
		n := 0
		for _, r := range list {
			if r.content == kind {
				n++
			}
		}
		out[kind] = n
	}
	return out
}

func (s *Server) renderReaction(r *reaction) any {
	return obj{"id": r.id, "node_id": node("REA", r.id), "user": s.renderUser(r.user), "content": r.content, "created_at": stamp(r.created)}
}

func (s *Server) renderIssue(i *issue) obj {
	full := i.repo.fullName()
	repoAPI := s.URL() + "/repos/" + full
	api, page := repoAPI+"/issues/"+itoa(i.number), "issues"
	if i.pull != nil {
		page = "pull"
	}
	web := s.opts.WebURL + "/" + full + "/" + page + "/" + itoa(i.number)
	out := obj{
		"url": api, "repository_url": repoAPI, "labels_url": api + "/labels{/name}", "comments_url": api + "/comments", "events_url": api + "/events",
		"html_url": web, "id": i.id, "node_id": node("I", i.id), "number": i.number, "title": i.title, "user": s.renderUser(i.author),
		"labels": s.renderLabels(i.repo, i.labels), "state": i.state(), "locked": i.locked, "assignee": nil, "assignees": []any{}, "milestone": nil,
		"comments": len(i.comments), "created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": stamp(i.closedAt),
		"author_association": i.repo.association(i.author), "active_lock_reason": nil, "body": nullable(i.body), "closed_by": s.renderUser(i.closedBy),
		"reactions": rollup(api+"/reactions", i.reactions), "timeline_url": api + "/timeline", "performed_via_github_app": s.performed(i.post),
		"state_reason": nullable(i.reason),
	}
	if i.pull != nil {
		out["draft"] = i.pull.draft
		out["pull_request"] = obj{
			"url": repoAPI + "/pulls/" + itoa(i.number), "html_url": web, "diff_url": web + ".diff", "patch_url": web + ".patch",
			"merged_at": stamp(i.pull.mergedAt),
		}
	}
	return out
}

func (s *Server) renderComment(c *comment) obj {
	if c.review != nil {
		return s.renderReviewComment(c)
	}
	i := c.issue
	issueURL := s.URL() + "/repos/" + i.repo.fullName() + "/issues/" + itoa(i.number)
	api := s.URL() + "/repos/" + i.repo.fullName() + "/issues/comments/" + itoa64(c.id)
	page := "issues"
	if i.pull != nil {
		page = "pull"
	}
	return obj{
		"url": api, "html_url": s.opts.WebURL + "/" + i.repo.fullName() + "/" + page + "/" + itoa(i.number) + "#issuecomment-" + itoa64(c.id),
		"issue_url": issueURL, "id": c.id, "node_id": node("IC", c.id), "user": s.renderUser(c.author), "created_at": stamp(c.created),
		"updated_at": stamp(c.updated), "author_association": i.repo.association(c.author), "body": c.body,
		"reactions": rollup(api+"/reactions", c.reactions), "performed_via_github_app": s.performed(c.post),
	}
}

func (s *Server) renderReviewComment(c *comment) obj {
	i := c.issue
	repoAPI := s.URL() + "/repos/" + i.repo.fullName()
	api, pullAPI := repoAPI+"/pulls/comments/"+itoa64(c.id), repoAPI+"/pulls/"+itoa(i.number)
	web := s.opts.WebURL + "/" + i.repo.fullName() + "/pull/" + itoa(i.number) + "#discussion_r" + itoa64(c.id)
	out := obj{
		"url": api, "pull_request_review_id": c.review.id, "id": c.id, "node_id": node("PRRC", c.id), "diff_hunk": c.hunk, "path": c.path,
		"commit_id": c.commit, "original_commit_id": c.commit, "user": s.renderUser(c.author), "body": c.body, "created_at": stamp(c.created),
		"updated_at": stamp(c.updated), "html_url": web, "pull_request_url": pullAPI, "author_association": i.repo.association(c.author),
		"_links": obj{
			"self": obj{"href": api}, "html": obj{"href": web}, "pull_request": obj{"href": pullAPI},
		},
		"reactions": rollup(api+"/reactions", c.reactions), "start_line": nil, "original_start_line": nil, "start_side": nil, "line": nil,
		"original_line": nil, "side": c.side, "position": nil, "original_position": nil, "subject_type": "line",
	}
	if c.ofFile {
		out["subject_type"] = "file"
		return withReply(out, c)
	}
	out["line"], out["original_line"] = c.line, c.line
	out["position"], out["original_position"] = strings.Count(c.hunk, "\n"), strings.Count(c.hunk, "\n")
	if c.startLine != 0 {
		out["start_line"], out["original_start_line"], out["start_side"] = c.startLine, c.startLine, c.side
	}
	return withReply(out, c)
}

func withReply(out obj, c *comment) obj {
	if c.replyTo != 0 {
		out["in_reply_to_id"] = c.replyTo
	}
	return out
}

func (s *Server) renderReview(v *review, webhook bool) obj {
	i := v.issue
	pullAPI := s.URL() + "/repos/" + i.repo.fullName() + "/pulls/" + itoa(i.number)
	web := s.opts.WebURL + "/" + i.repo.fullName() + "/pull/" + itoa(i.number) + "#pullrequestreview-" + itoa64(v.id)
	out := obj{
		"id": v.id, "node_id": node("PRR", v.id), "user": s.renderUser(v.author), "body": v.body, "state": v.state, "html_url": web,
		"pull_request_url": pullAPI, "author_association": i.repo.association(v.author), "submitted_at": stamp(v.created), "commit_id": v.commit,
		"_links": obj{"html": obj{"href": web}, "pull_request": obj{"href": pullAPI}},
	}
	if webhook { // as GitHub sends it
		out["state"], out["body"], out["updated_at"] = strings.ToLower(v.state), nullable(v.body), stamp(v.updated)
	}
	return out
}

func (s *Server) renderSide(at side) obj {
	out := obj{"label": at.label(), "ref": at.ref, "sha": at.sha, "user": nil, "repo": nil}
	if at.repo != nil {
		out["user"], out["repo"] = s.renderUser(at.repo.owner), s.renderRepo(at.repo)
	}
	return out
}

// renderPull shows a pull request, with the counts if it is shown alone.
func (s *Server) renderPull(i *issue, alone bool) obj {
	p := i.pull
	s.refresh(p)
	issue := s.renderIssue(i)
	repoAPI := s.URL() + "/repos/" + i.repo.fullName()
	api := repoAPI + "/pulls/" + itoa(i.number)
	links := issue["pull_request"].(obj)
	out := obj{
		"url": api, "id": p.id, "node_id": node("PR", p.id), "html_url": issue["html_url"], "diff_url": links["diff_url"], "patch_url": links["patch_url"],
		"issue_url": issue["url"], "commits_url": api + "/commits", "review_comments_url": api + "/comments", "comments_url": issue["comments_url"],
		"review_comment_url": repoAPI + "/pulls/comments{/number}", "statuses_url": repoAPI + "/statuses/" + p.head.sha,
		"head": s.renderSide(p.head), "base": s.renderSide(p.base), "merged_at": stamp(p.mergedAt), "merge_commit_sha": nil,
		"requested_reviewers": []any{}, "requested_teams": []any{}, "draft": p.draft, "auto_merge": nil,
		"_links": obj{"self": obj{"href": api}, "html": obj{"href": issue["html_url"]}, "issue": obj{"href": issue["url"]}, "comments": obj{"href": issue["comments_url"]}},
	}
	for _, name := range []string{
		"number", "state", "locked", "title", "user", "body", "created_at", "updated_at", "closed_at", "assignee", "assignees", "labels", "milestone",
		"active_lock_reason", "author_association",
	} {
		out[name] = issue[name]
	}
	if !alone {
		return out
	}
	files := s.filesOf(i)
	added, removed := 0, 0
	for _, f := range files {
		added, removed = added+f.Additions, removed+f.Deletions
	}
	maps.Copy(out, obj{
		"merged": p.merged, "mergeable": !p.merged, "rebaseable": false, "mergeable_state": "clean", "merged_by": s.renderUser(p.mergedBy),
		"comments": len(i.comments), "review_comments": len(p.comments), "maintainer_can_modify": p.head.repo != p.base.repo,
		"commits": max(1, p.commits), "additions": added, "deletions": removed, "changed_files": len(files),
	})
	return out
}
