package github

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"
)

// renderer shows what there is as the API and webhooks do. The lock must be held.
type renderer struct{ world *world }

// url returns the address at which the API has something.
func (s renderer) url(path string) string { return s.world.core.URL() + path }

// repoURL returns the address of a repository at the API.
func (s renderer) repoURL(r *repo) string { return s.url("/repos/" + r.fullName()) }

// page returns the address of a page that people open.
func (s renderer) page(path string) string { return s.world.opts.WebURL + "/" + path }

// issuePage returns the address of the page of an issue or pull request.
func (s renderer) issuePage(i *issue) string {
	kind := "/issues/"
	if i.pull != nil {
		kind = "/pull/"
	}
	return s.page(i.repo.fullName() + kind + itoa(i.number))
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func node(kind string, id int64) string {
	return kind + "_" + base64.RawURLEncoding.EncodeToString([]byte(kind+itoa64(id)))
}

// rendered shows each element of a list; it is never null.
func rendered[T, V any](list []T, show func(T) V) []any {
	out := make([]any, 0, len(list))
	for _, item := range list {
		out = append(out, show(item))
	}
	return out
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s renderer) user(u *user) any {
	if u == nil {
		return nil
	}
	api := s.url("/users/" + u.login)
	return fields{
		{"login", u.login}, {"id", u.id}, {"node_id", node("U", u.id)}, {"gravatar_id", ""},
		{"avatar_url", "https://avatars.githubusercontent.com/u/" + itoa64(u.id) + "?v=4"},
		{"url", api}, {"html_url", s.page(strings.TrimSuffix(u.login, "[bot]"))},
		{"followers_url", api + "/followers"}, {"following_url", api + "/following{/other_user}"}, {"gists_url", api + "/gists{/gist_id}"},
		{"starred_url", api + "/starred{/owner}{/repo}"}, {"subscriptions_url", api + "/subscriptions"}, {"organizations_url", api + "/orgs"},
		{"repos_url", api + "/repos"}, {"events_url", api + "/events{/privacy}"}, {"received_events_url", api + "/received_events"},
		{"type", u.kind}, {"user_view_type", "public"}, {"site_admin", false},
	}.Object()
}

func (s renderer) org(u *user) any {
	api := s.url("/orgs/" + u.login)
	return fields{
		{"login", u.login}, {"id", u.id}, {"node_id", node("O", u.id)}, {"url", api}, {"repos_url", api + "/repos"},
		{"events_url", api + "/events"}, {"hooks_url", api + "/hooks"}, {"issues_url", api + "/issues"},
		{"members_url", api + "/members{/member}"}, {"public_members_url", api + "/public_members{/member}"},
		{"avatar_url", "https://avatars.githubusercontent.com/u/" + itoa64(u.id) + "?v=4"}, {"description", ""},
	}.Object()
}

func (s renderer) repo(r *repo) obj {
	api, web := s.repoURL(r), s.page(r.fullName())
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	open := 0
	for _, i := range r.issues {
		if !i.closed {
			open++
		}
	}
	return fields{
		{"id", r.id}, {"node_id", node("R", r.id)}, {"name", r.name}, {"full_name", r.fullName()}, {"private", r.private},
		{"owner", s.user(r.owner)}, {"html_url", web}, {"description", nil}, {"fork", r.parent != nil}, {"url", api},
		{"issues_url", api + "/issues{/number}"}, {"issue_comment_url", api + "/issues/comments{/number}"}, {"pulls_url", api + "/pulls{/number}"},
		{"comments_url", api + "/comments{/number}"}, {"branches_url", api + "/branches{/branch}"}, {"hooks_url", api + "/hooks"},
		{"labels_url", api + "/labels{/name}"}, {"collaborators_url", api + "/collaborators{/collaborator}"},
		{"created_at", stamp(r.created)}, {"updated_at", stamp(r.created)}, {"pushed_at", stamp(r.created)},
		{"git_url", "git://github.com/" + r.fullName() + ".git"}, {"ssh_url", "git@github.com:" + r.fullName() + ".git"}, {"clone_url", cmp.Or(r.git.CloneURL, web+".git")},
		{"size", 1}, {"stargazers_count", 0}, {"watchers_count", 0}, {"language", "Go"}, {"has_issues", true}, {"has_projects", true},
		{"has_downloads", true}, {"has_wiki", false}, {"has_pages", false}, {"has_discussions", false}, {"forks_count", 0}, {"mirror_url", nil},
		{"archived", r.archived}, {"disabled", false}, {"open_issues_count", open}, {"license", nil}, {"allow_forking", true}, {"is_template", false},
		{"topics", []string{}}, {"visibility", visibility}, {"forks", 0}, {"open_issues", open}, {"watchers", 0}, {"default_branch", defaultBranch},
	}.Object()
}

// repoFor adds what the caller may do, and the parent of a fork.
func (s renderer) repoFor(r *repo, who *principal) obj {
	out := s.repo(r)
	role := None
	if who.kind == personal {
		role = r.role(who.user)
	}
	out["permissions"] = rights(role)
	if r.parent != nil {
		out["parent"], out["source"] = s.repo(r.parent), s.repo(r.parent)
	}
	if r.owner.kind == typeOrg {
		out["organization"] = s.user(r.owner)
	}
	return out
}

func rights(p Permission) obj {
	return fields{
		{"admin", p.atLeast(Admin)}, {"maintain", p.atLeast(Maintain)}, {"push", p.atLeast(Write)},
		{"triage", p.atLeast(Triage)}, {"pull", p.atLeast(Read)},
	}.Object()
}

func (s renderer) app() obj {
	a := s.world.opts.App
	return fields{
		{"id", a.ID}, {"client_id", a.ClientID}, {"slug", a.Slug}, {"node_id", node("A", a.ID)}, {"owner", s.user(s.world.know(a.Owner))},
		{"name", a.Name}, {"description", ""}, {"external_url", "https://example.com"}, {"html_url", s.page("apps/" + a.Slug)},
		{"created_at", "2026-01-01T00:00:00Z"}, {"updated_at", "2026-01-01T00:00:00Z"}, {"permissions", maps.Clone(a.Permissions)}, {"events", a.events()},
		{"installations_count", len(s.world.installations)},
	}.Object()
}

// performed is the mark on what an App wrote.
func (s renderer) performed(p post) any {
	if !p.viaApp {
		return nil
	}
	return s.app()
}

func (s renderer) installation(i *installation) obj {
	app, api := s.world.opts.App, s.url("/app/installations/"+itoa64(i.id))
	out := fields{
		{"id", i.id}, {"client_id", app.ClientID}, {"account", s.user(i.account)}, {"repository_selection", "selected"},
		{"access_tokens_url", api + "/access_tokens"}, {"repositories_url", s.url("/installation/repositories")},
		{"html_url", s.page("settings/installations/" + itoa64(i.id))}, {"app_id", app.ID}, {"app_slug", app.Slug},
		{"target_id", i.account.id}, {"target_type", i.account.kind}, {"permissions", maps.Clone(i.permissions)}, {"events", app.events()},
		{"created_at", stamp(i.created)}, {"updated_at", stamp(i.created)}, {"single_file_name", nil}, {"has_multiple_single_files", false},
		{"single_file_paths", []string{}}, {"suspended_by", nil}, {"suspended_at", nil},
	}.Object()
	return out
}

func (s renderer) labels(r *repo, names []string) []any {
	return rendered(names, func(name string) any { return s.label(r, name) })
}

func (s renderer) label(r *repo, name string) any {
	id := int64(9000 + slices.Index(r.labels, name))
	return fields{
		{"id", id}, {"node_id", node("LA", id)}, {"url", s.repoURL(r) + "/labels/" + strings.ReplaceAll(name, " ", "%20")},
		{"name", name}, {"color", "ededed"}, {"default", true}, {"description", nil},
	}.Object()
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

func (s renderer) reaction(r *reaction) any {
	return fields{{"id", r.id}, {"node_id", node("REA", r.id)}, {"user", s.user(r.user)}, {"content", r.content}, {"created_at", stamp(r.created)}}.Object()
}

func (s renderer) issue(i *issue) obj {
	repoAPI, web := s.repoURL(i.repo), s.issuePage(i)
	api := repoAPI + "/issues/" + itoa(i.number)
	out := fields{
		{"url", api}, {"repository_url", repoAPI}, {"labels_url", api + "/labels{/name}"}, {"comments_url", api + "/comments"}, {"events_url", api + "/events"},
		{"html_url", web}, {"id", i.id}, {"node_id", node("I", i.id)}, {"number", i.number}, {"title", i.title}, {"user", s.user(i.author)},
		{"labels", s.labels(i.repo, i.labels)}, {"state", i.state()}, {"locked", i.locked}, {"assignee", nil}, {"assignees", []any{}}, {"milestone", nil},
		{"comments", len(i.comments)}, {"created_at", stamp(i.created)}, {"updated_at", stamp(i.updated)}, {"closed_at", stamp(i.closedAt)},
		{"author_association", i.repo.association(i.author)}, {"active_lock_reason", nil}, {"body", nullable(i.body)}, {"closed_by", s.user(i.closedBy)},
		{"reactions", rollup(api+"/reactions", i.reactions)}, {"timeline_url", api + "/timeline"}, {"performed_via_github_app", s.performed(i.post)},
		{"state_reason", nullable(i.reason)},
	}.Object()
	if i.pull != nil {
		out["draft"] = i.pull.draft
		out["pull_request"] = fields{
			{"url", repoAPI + "/pulls/" + itoa(i.number)}, {"html_url", web}, {"diff_url", web + ".diff"}, {"patch_url", web + ".patch"},
			{"merged_at", nil},
		}.Object()
	}
	return out
}

func (s renderer) comment(c *comment) obj {
	if c.review != nil {
		return s.reviewComment(c)
	}
	i := c.issue
	issues := s.repoURL(i.repo) + "/issues/"
	api := issues + "comments/" + itoa64(c.id)
	return fields{
		{"url", api}, {"html_url", s.issuePage(i) + "#issuecomment-" + itoa64(c.id)},
		{"issue_url", issues + itoa(i.number)}, {"id", c.id}, {"node_id", node("IC", c.id)}, {"user", s.user(c.author)}, {"created_at", stamp(c.created)},
		{"updated_at", stamp(c.updated)}, {"author_association", i.repo.association(c.author)}, {"body", c.body},
		{"reactions", rollup(api+"/reactions", c.reactions)}, {"performed_via_github_app", s.performed(c.post)},
	}.Object()
}

func (s renderer) reviewComment(c *comment) obj {
	i := c.issue
	pulls, web := s.repoURL(i.repo)+"/pulls/", s.issuePage(i)+"#discussion_r"+itoa64(c.id)
	api, pullAPI := pulls+"comments/"+itoa64(c.id), pulls+itoa(i.number)
	out := fields{
		{"url", api}, {"pull_request_review_id", c.review.id}, {"id", c.id}, {"node_id", node("PRRC", c.id)}, {"diff_hunk", c.hunk}, {"path", c.path},
		{"commit_id", c.commit}, {"original_commit_id", c.commit}, {"user", s.user(c.author)}, {"body", c.body}, {"created_at", stamp(c.created)},
		{"updated_at", stamp(c.updated)}, {"html_url", web}, {"pull_request_url", pullAPI}, {"author_association", i.repo.association(c.author)},
		{"_links", obj{
			"self": obj{"href": api}, "html": obj{"href": web}, "pull_request": obj{"href": pullAPI},
		}},
		{"reactions", rollup(api+"/reactions", c.reactions)}, {"start_line", nil}, {"original_start_line", nil}, {"start_side", nil}, {"line", nil},
		{"original_line", nil}, {"side", "RIGHT"}, {"position", nil}, {"original_position", nil}, {"subject_type", "line"},
	}.Object()
	if c.replyTo != 0 {
		out["in_reply_to_id"] = c.replyTo
	}
	if c.ofFile {
		out["subject_type"] = "file"
		return out
	}
	out["line"], out["original_line"] = c.line, c.line
	out["position"], out["original_position"] = strings.Count(c.hunk, "\n"), strings.Count(c.hunk, "\n")
	return out
}

func (s renderer) review(v *review, webhook bool) obj {
	i := v.issue
	pullAPI, web := s.repoURL(i.repo)+"/pulls/"+itoa(i.number), s.issuePage(i)+"#pullrequestreview-"+itoa64(v.id)
	out := fields{
		{"id", v.id}, {"node_id", node("PRR", v.id)}, {"user", s.user(v.author)}, {"body", v.body}, {"state", v.state}, {"html_url", web},
		{"pull_request_url", pullAPI}, {"author_association", i.repo.association(v.author)}, {"submitted_at", stamp(v.created)}, {"commit_id", v.commit},
		{"_links", obj{"html": obj{"href": web}, "pull_request": obj{"href": pullAPI}}},
	}.Object()
	if webhook { // as GitHub sends it
		out["state"], out["body"], out["updated_at"] = strings.ToLower(v.state), nullable(v.body), stamp(v.updated)
	}
	return out
}

func (s renderer) side(at side) obj {
	out := fields{{"label", at.label()}, {"ref", at.ref}, {"sha", at.sha}, {"user", nil}, {"repo", nil}}.Object()
	if at.repo != nil {
		out["user"], out["repo"] = s.user(at.repo.owner), s.repo(at.repo)
	}
	return out
}

// pull shows a pull request, with the counts if it is shown alone.
func (s renderer) pull(i *issue, alone bool) obj {
	p := i.pull
	p.refresh()
	issue := s.issue(i)
	repoAPI := s.repoURL(i.repo)
	api := repoAPI + "/pulls/" + itoa(i.number)
	links := issue["pull_request"].(obj)
	out := fields{
		{"url", api}, {"id", p.id}, {"node_id", node("PR", p.id)}, {"html_url", issue["html_url"]}, {"diff_url", links["diff_url"]}, {"patch_url", links["patch_url"]},
		{"issue_url", issue["url"]}, {"commits_url", api + "/commits"}, {"review_comments_url", api + "/comments"}, {"comments_url", issue["comments_url"]},
		{"review_comment_url", repoAPI + "/pulls/comments{/number}"}, {"statuses_url", repoAPI + "/statuses/" + p.head.sha},
		{"head", s.side(p.head)}, {"base", s.side(p.base)}, {"merged_at", nil}, {"merge_commit_sha", nil},
		{"requested_reviewers", []any{}}, {"requested_teams", []any{}}, {"draft", p.draft}, {"auto_merge", nil},
		{"_links", obj{"self": obj{"href": api}, "html": obj{"href": issue["html_url"]}, "issue": obj{"href": issue["url"]}, "comments": obj{"href": issue["comments_url"]}}},
	}.Object()
	for _, name := range []string{
		"number", "state", "locked", "title", "user", "body", "created_at", "updated_at", "closed_at", "assignee", "assignees", "labels", "milestone",
		"active_lock_reason", "author_association",
	} {
		out[name] = issue[name]
	}
	if !alone {
		return out
	}
	files := i.files()
	added, removed := 0, 0
	for _, f := range files {
		added, removed = added+f.Additions, removed+f.Deletions
	}
	maps.Copy(out, fields{
		{"merged", false}, {"mergeable", true}, {"rebaseable", false}, {"mergeable_state", "clean"}, {"merged_by", nil},
		{"comments", len(i.comments)}, {"review_comments", len(p.comments)}, {"maintainer_can_modify", p.head.repo != p.base.repo},
		{"commits", max(1, p.commits)}, {"additions", added}, {"deletions", removed}, {"changed_files", len(files)},
	}.Object())
	return out
}

func (s renderer) member(r *repo, u *user) obj {
	out, _ := s.user(u).(obj)
	out["permissions"], out["role_name"] = rights(r.role(u)), string(r.role(u))
	return out
}
