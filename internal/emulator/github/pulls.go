package github

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (s *Server) listPulls(r *request) (*reply, *apiError) {
	state, head, base := r.query.Get("state"), r.query.Get("head"), r.query.Get("base")
	state = cmp.Or(state, "open")
	var out []*issue
	for _, i := range r.repo.issues {
		switch {
		case i == nil, i.pull == nil, state != "all" && i.state() != state:
		case base != "" && i.pull.base.ref != base:
		// GitHub ignores a head without an owner, which then matches everything.
		case strings.Contains(head, ":") && !sameName(i.pull.head.label(), head):
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
	if direction := r.query.Get("direction"); direction == "desc" || direction == "" && r.query.Get("sort") != "updated" {
		slices.Reverse(out)
	}
	return paged(r, out, func(i *issue) any { return s.renderPull(i, false) })
}

// headOf finds the branch that a pull request shall merge.
func (s *Server) headOf(base *repo, head string) (side, bool) {
	at := side{repo: base, ref: head}
	if owner, branch, named := strings.Cut(head, ":"); named {
		at.ref = branch
		if !sameName(owner, base.owner.login) {
			at.repo = nil
			for _, r := range s.repos {
				if sameName(r.owner.login, owner) && r.parent == base {
					at.repo = r
				}
			}
		}
	}
	if at.repo == nil || at.ref == "" {
		return at, false
	}
	sha, exists := at.repo.find(at.ref)
	at.sha = sha
	return at, exists
}

func (s *Server) createPull(r *request) (*reply, *apiError) {
	head, base := r.in.need("head"), r.in.need("base")
	title, _ := r.in.text("title")
	body, _ := r.in.text("body")
	draft, _ := r.in.flag("draft")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if r.in.has("issue") {
		return nil, invalid("PullRequest", "issue", "custom", "the emulator does not convert issues")
	}
	if refused := s.mayPropose(r, head); refused != nil {
		return nil, refused
	}
	from, into, refused := s.sidesOf(r.repo, head, base)
	if refused != nil {
		return nil, refused
	}
	if refused := checkText("PullRequest", title, body); refused != nil {
		return nil, refused
	}
	i := s.open(r.repo, r.who.user, r.who.viaApp(), title, body, from, into, draft)
	s.tellIssue(i, "opened", r.who.user, nil)
	return created(s.renderPull(i, true))
}

// mayPropose checks that the caller can read the head and, in the same
// repository, write to it.
func (s *Server) mayPropose(r *request, head string) *apiError {
	if r.who.kind == asInstallation && !s.granted(r.who, "contents", "read") {
		return notAccessible(r.who)
	}
	if r.who.kind == personal && !strings.Contains(head, ":") && !r.repo.role(r.who.user).atLeast(Write) {
		return refuse(http.StatusForbidden, "Must have push access to repository")
	}
	return nil
}

func (s *Server) sidesOf(r *repo, head, base string) (from, into side, refused *apiError) {
	from, exists := s.headOf(r, head)
	if !exists {
		return from, into, invalid("PullRequest", "head", "invalid", "")
	}
	into = side{repo: r, ref: base}
	if into.sha, exists = r.find(base); !exists {
		return from, into, invalid("PullRequest", "base", "invalid", "")
	}
	for _, i := range r.issues {
		if i != nil && i.pull != nil && !i.closed && i.pull.head.label() == from.label() && i.pull.base.ref == base {
			return from, into, invalid("PullRequest", "", "custom", "A pull request already exists for "+from.label()+".")
		}
	}
	if from.sha == into.sha {
		return from, into, invalid("PullRequest", "", "custom", "No commits between "+into.refFor(r)+" and "+from.refFor(r))
	}
	return from, into, nil
}

func (at side) refFor(r *repo) string {
	if at.repo == r {
		return at.ref
	}
	return at.label()
}

// open makes a pull request. Nobody is told yet.
func (s *Server) open(r *repo, by *user, viaApp bool, title, body string, head, base side, draft bool) *issue {
	i := s.add(r, by, viaApp, title, body)
	i.pull = &pull{id: s.id(), head: head, base: base, draft: draft, commits: 1}
	s.publish(i)
	s.change(ChangeOpened, i, nil, by)
	return i
}

func (s *Server) getPull(r *request) (*reply, *apiError) {
	if r.wants("diff") || r.wants("patch") {
		return &reply{raw: []byte(s.diffOf(r.issue)), contentType: "application/vnd.github.diff; charset=utf-8"}, nil
	}
	return ok(s.renderPull(r.issue, true))
}

func (s *Server) updatePull(r *request) (*reply, *apiError) {
	base, hasBase := r.in.text("base")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if hasBase {
		sha, exists := r.repo.find(base)
		if !exists {
			return nil, invalid("PullRequest", "base", "invalid", "")
		}
		r.issue.pull.base = side{repo: r.repo, ref: base, sha: sha}
	}
	if refused := s.applyIssue(r, "PullRequest"); refused != nil {
		return nil, refused
	}
	return ok(s.renderPull(r.issue, true))
}

func (s *Server) listFiles(r *request) (*reply, *apiError) {
	repoAPI, web := s.URL()+"/repos/"+r.repo.fullName(), s.opts.WebURL+"/"+r.repo.fullName()
	sha := r.issue.pull.head.sha
	return paged(r, s.filesOf(r.issue), func(f File) any {
		f.Status = cmp.Or(f.Status, "modified")
		out := obj{
			"sha": fakeSHA(sha + f.Path), "filename": f.Path, "status": f.Status, "additions": f.Additions, "deletions": f.Deletions,
			"changes": f.Additions + f.Deletions, "blob_url": web + "/blob/" + sha + "/" + f.Path, "raw_url": web + "/raw/" + sha + "/" + f.Path,
			"contents_url": repoAPI + "/contents/" + f.Path + "?ref=" + sha,
		}
		if f.Patch != "" {
			out["patch"] = f.Patch
		}
		if f.Previous != "" {
			out["previous_filename"] = f.Previous
		}
		return out
	})
}

func (s *Server) listReviews(r *request) (*reply, *apiError) {
	return paged(r, r.issue.pull.reviews, func(v *review) any { return s.renderReview(v, false) })
}

func (i *issue) review(id int64) *review {
	for _, v := range i.pull.reviews {
		if v.id == id {
			return v
		}
	}
	return nil
}

func (s *Server) getReview(r *request) (*reply, *apiError) {
	v := r.issue.review(r.id("review"))
	if v == nil {
		return nil, notFound()
	}
	return ok(s.renderReview(v, false))
}

func (s *Server) listReviewComments(r *request) (*reply, *apiError) {
	switch {
	case r.issue == nil:
		return s.pageComments(r, s.all(r.repo, func(i *issue) []*comment {
			if i.pull == nil {
				return nil
			}
			return i.pull.comments
		}))
	case r.vars["review"] != "":
		v := r.issue.review(r.id("review"))
		if v == nil {
			return nil, notFound()
		}
		return s.pageComments(r, slices.DeleteFunc(slices.Clone(r.issue.pull.comments), func(c *comment) bool { return c.review != v }))
	}
	return s.pageComments(r, slices.Clone(r.issue.pull.comments))
}

// states are those that a review's event leads to.
var states = map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}

func (s *Server) createReview(r *request) (*reply, *apiError) {
	body, _ := r.in.text("body")
	event, _ := r.in.text("event")
	list, _ := read[[]map[string]any](r.in, "comments", "an array of objects")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	state, known := states[event]
	switch {
	case !known:
		return nil, invalid("PullRequestReview", "event", "invalid", "the emulator knows no pending reviews")
	case state != "APPROVED" && body == "" && len(list) == 0:
		return nil, refuse(http.StatusUnprocessableEntity, "Unprocessable Entity: a body is required for this event")
	case state != "COMMENTED" && r.who.user == r.issue.author:
		return nil, refuse(http.StatusUnprocessableEntity, "Unprocessable Entity: Can not approve or request changes on your own pull request")
	}
	if body != "" {
		if refused := checkBody("PullRequestReview", body); refused != nil {
			return nil, refused
		}
	}
	var lines []LineComment
	for _, fields := range list {
		path, _ := fields["path"].(string)
		text, _ := fields["body"].(string)
		line, _ := fields["line"].(float64)
		left := fields["side"] == "LEFT"
		if refused := s.checkLine(r.issue, path, int(line), left, text); refused != nil {
			return nil, refused
		}
		lines = append(lines, LineComment{Path: path, Line: int(line), Left: left, Body: text})
	}
	v, _ := s.submit(r.issue, r.who.user, r.who.viaApp(), state, body, lines)
	return ok(s.renderReview(v, false))
}

// checkLine refuses a comment on what is not in the diff.
func (s *Server) checkLine(i *issue, path string, line int, left bool, body string) *apiError {
	if refused := checkBody("PullRequestReviewComment", body); refused != nil {
		return refused
	}
	at := slices.IndexFunc(s.filesOf(i), func(f File) bool { return f.Path == path })
	if at < 0 {
		return invalid("PullRequestReviewComment", "pull_request_review_thread.path", "invalid", "path could not be resolved")
	}
	if _, inside := hunkOf(s.filesOf(i)[at].Patch, line, left); !inside {
		return invalid("PullRequestReviewComment", "pull_request_review_thread.line", "invalid", "line must be part of the diff")
	}
	return nil
}

// LineComment is a comment on a line of a diff.
type LineComment struct {
	Path string
	Line int
	Left bool // of the old file
	Body string
}

// submit adds a review with comments of lines and tells about it. It returns the
// deliveries.
func (s *Server) submit(i *issue, by *user, viaApp bool, state, body string, lines []LineComment) (*review, []string) {
	s.refresh(i.pull)
	v := s.newReview(i, by, viaApp, state, body)
	ids := s.tellReview(v, by)
	for _, l := range lines {
		c := s.addLine(v, l)
		s.change(ChangeCommented, i, c, by)
		ids = append(ids, s.tellComment(c, "created", by, nil)...)
	}
	if body != "" || len(lines) == 0 {
		s.change(ChangeCommented, i, nil, by)
	}
	return v, ids
}

func (s *Server) newReview(i *issue, by *user, viaApp bool, state, body string) *review {
	now := s.opts.Now()
	v := &review{
		post:  post{id: s.id(), author: by, viaApp: viaApp, body: body, created: now, updated: now},
		issue: i, state: state, commit: i.pull.head.sha,
	}
	i.pull.reviews = append(i.pull.reviews, v)
	i.updated = now
	return v
}

// addLine adds a comment of a line to a review.
func (s *Server) addLine(v *review, l LineComment) *comment {
	now := s.opts.Now()
	c := &comment{
		post:  post{id: s.id(), author: v.author, viaApp: v.viaApp, body: l.Body, created: now, updated: now},
		issue: v.issue, review: v, path: l.Path, line: l.Line, side: "RIGHT", commit: v.commit, ofFile: l.Line == 0,
	}
	if l.Left {
		c.side = "LEFT"
	}
	for _, f := range s.filesOf(v.issue) {
		if f.Path == l.Path {
			c.hunk, _ = hunkOf(f.Patch, l.Line, l.Left)
		}
	}
	v.issue.pull.comments = append(v.issue.pull.comments, c)
	s.comments[c.id] = c
	return c
}

func (s *Server) createReviewComment(r *request) (*reply, *apiError) {
	body := r.in.need("body")
	if replyTo, given := r.in.int("in_reply_to"); given {
		return s.reply(r, r.issue.reviewComment(replyTo), body)
	}
	commit, path := r.in.need("commit_id"), r.in.need("path")
	line, _ := r.in.int("line")
	kind, _ := r.in.text("subject_type")
	left, _ := r.in.text("side")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	s.refresh(r.issue.pull)
	if commit != r.issue.pull.head.sha {
		return nil, invalid("PullRequestReviewComment", "commit_id", "invalid", "commit_id is not part of the pull request")
	}
	if kind != "file" {
		if refused := s.checkLine(r.issue, path, int(line), left == "LEFT", body); refused != nil {
			return nil, refused
		}
	} else if refused := checkBody("PullRequestReviewComment", body); refused != nil {
		return nil, refused
	}
	s.submit(r.issue, r.who.user, r.who.viaApp(), "COMMENTED", "", []LineComment{{Path: path, Line: int(line), Left: left == "LEFT", Body: body}})
	return created(s.renderComment(r.issue.pull.comments[len(r.issue.pull.comments)-1]))
}

func (s *Server) createReply(r *request) (*reply, *apiError) {
	return s.reply(r, r.comment, r.in.need("body"))
}

func (s *Server) reply(r *request, to *comment, body string) (*reply, *apiError) {
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if to == nil {
		return nil, notFound()
	}
	if refused := checkBody("PullRequestReviewComment", body); refused != nil {
		return nil, refused
	}
	c, _ := s.replyTo(to, r.who.user, r.who.viaApp(), body)
	return created(s.renderComment(c))
}

// replyTo answers in the thread of a line. A thread has one level: an answer to
// an answer is one to the first comment.
func (s *Server) replyTo(to *comment, by *user, viaApp bool, body string) (*comment, []string) {
	s.refresh(to.issue.pull)
	v := s.newReview(to.issue, by, viaApp, "COMMENTED", "")
	ids := s.tellReview(v, by)
	now := s.opts.Now()
	c := &comment{
		post:  post{id: s.id(), author: by, viaApp: viaApp, body: body, created: now, updated: now},
		issue: to.issue, review: v, path: to.path, line: to.line, startLine: to.startLine, side: to.side, hunk: to.hunk,
		commit: to.commit, replyTo: to.id, ofFile: to.ofFile,
	}
	if to.replyTo != 0 {
		c.replyTo = to.replyTo
	}
	to.issue.pull.comments = append(to.issue.pull.comments, c)
	s.comments[c.id] = c
	s.change(ChangeCommented, to.issue, c, by)
	return c, append(ids, s.tellComment(c, "created", by, nil)...)
}

// merge merges a pull request and closes the issues that it says it closes.
func (s *Server) merge(i *issue, by *user) []string {
	s.refresh(i.pull)
	now := s.opts.Now()
	i.pull.merged, i.pull.mergedAt, i.pull.mergedBy = true, now, by
	if i.pull.base.repo.git.Dir == "" && i.pull.base.repo.git.Ref == nil {
		i.pull.base.repo.branches[i.pull.base.ref] = fakeSHA(i.pull.base.sha + i.pull.head.sha)
	}
	i.closed, i.closedAt, i.closedBy, i.updated = true, now, by, now
	s.change(ChangeUpdated, i, nil, by)
	ids := s.tellIssue(i, "closed", by, nil)
	for _, n := range Closes(i.body) {
		if other := i.repo.issue(int64(n)); other != nil && other.pull == nil && i.pull.base.ref == i.repo.branch {
			ids = append(ids, s.setState(other, true, "completed", by)...)
		}
	}
	return ids
}

// moved notes that a branch was pushed to, and tells about it.
func (s *Server) moved(r *repo, branch string, by *user, before string) []string {
	after, _ := r.find(branch)
	ids := s.tellPush(r, branch, by, before, after)
	for _, base := range s.repos {
		for _, i := range base.issues {
			if i == nil || i.pull == nil || i.closed || i.pull.head.repo != r || i.pull.head.ref != branch {
				continue
			}
			old := i.pull.head.sha
			s.refresh(i.pull)
			s.publish(i)
			i.updated = s.opts.Now().Truncate(time.Nanosecond)
			i.pull.commits++
			ids = append(ids, s.tellIssue(i, "synchronize", by, obj{"before": old, "after": i.pull.head.sha})...)
		}
	}
	return ids
}
