package github

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	// What is read of a conversation at most.
	maxComments = 20
	maxReviews  = 10
	maxLines    = 30
	maxFiles    = 300
	maxLinked   = 5
	maxHunk     = 12 // lines
	maxAuthors  = 10 // whose access is asked for

	maxOneComment = 4000
	maxOneLinked  = 2000
)

// history reads what a conversation is about.
type history struct {
	client *client
	me     *account
	gate   *gate
	site   *site
	limit  int // in bytes
	log    *slog.Logger
}

// reader reads the context of one request.
type reader struct {
	h      *history
	at     place
	in     messages.Inbound
	event  payload // what came with the request, as far as it is known
	me     identity
	asked  int
	access map[int64]string
	quotes []messages.Quote
}

// Context implements platform.Contexter: the issue or pull request with its
// branches, changed files and diff, reviews, the last comments and linked
// issues, each with who wrote it and whether they may write to the repository,
// without what a page does not show. Words that were changed after the request
// are left out: title and text are those that came with it (contract C11). If
// part of it cannot be read the rest is returned.
func (h *history) Context(ctx context.Context, in messages.Inbound) ([]messages.Quote, error) {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return nil, err
	}
	r := &reader{h: h, at: at, in: in, access: make(map[int64]string)}
	if r.me, err = h.me.whoami(ctx); err != nil {
		return nil, err
	}
	if len(in.Raw) > 0 {
		_ = lenient(in.Raw, &r.event) // what can be read of it
	}
	now, err := h.client.askIssue(ctx, at)
	if err != nil {
		return nil, err
	}
	var p *github.PullRequest
	if now.PullRequestLinks != nil {
		if p, err = h.client.askPull(ctx, at); err != nil {
			return nil, err
		}
	}
	body := r.subject(ctx, now, p)
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return r.comments(ctx, now.GetComments()) },
		func(ctx context.Context) error { return r.linked(ctx, body) },
	}
	if p != nil {
		parts = append(parts,
			func(ctx context.Context) error { return r.files(ctx, p) },
			r.reviews, r.lines)
	}
	for _, read := range parts {
		if err := read(ctx); ctx.Err() != nil {
			return nil, fault.Wrap(ctx.Err(), fault.KindOf(ctx.Err()), "reading what an issue is about")
		} else if err != nil {
			h.log.WarnContext(ctx, "could not read all that an issue is about", "conversation", in.Conversation, "err", err)
		}
	}
	return r.quotes, nil
}

// share returns a part of the budget in bytes.
func (r *reader) share(eighths int) int { return r.h.limit * eighths / 8 }

func (r *reader) quote(relation, author, text string) {
	r.quotes = append(r.quotes, messages.Quote{Relation: relation, Author: author, Text: text})
}

// said quotes what somebody wrote, with the files that were dropped into body, its source,
// whose pictures text does not show.
func (r *reader) said(relation, author, text, body string) {
	q := messages.Quote{Relation: relation, Author: author, Text: text, Files: r.h.site.attachments(r.at.repo, body)}
	for _, a := range q.Files {
		q.Text = strings.TrimSpace(q.Text + "\n[" + oneLine(a.Name, 200) + "]")
	}
	r.quotes = append(r.quotes, q)
}

// subject quotes the issue or pull request itself, and returns its text.
func (r *reader) subject(ctx context.Context, now *github.Issue, p *github.PullRequest) string {
	title, body, pinned := now.GetTitle(), now.GetBody(), false
	switch {
	case r.event.Issue != nil && r.event.Issue.GetNumber() == r.at.number:
		title, body, pinned = r.event.Issue.GetTitle(), r.event.Issue.GetBody(), true
	case r.event.Pull.GetNumber() == r.at.number:
		title, body, pinned = r.event.Pull.GetTitle(), r.event.Pull.GetBody(), true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Title: %s\nState: %s\n", oneLine(title, 256), oneLine(now.GetState(), 20))
	labels := lists.Map(now.Labels, func(l *github.Label) string { return oneLine(l.GetName(), 60) })
	if len(labels) > 0 {
		fmt.Fprintf(&b, "Labels: %s\n", platform.Cut(strings.Join(labels, ", "), 500))
	}
	relation := "issue"
	if p != nil {
		relation = "pull request"
		r.branches(&b, p)
	}
	raw := body
	body = Sanitize(platform.Cut(body, 4*maxText))
	switch {
	case r.in.Message == (post{kind: postBody, id: int64(r.at.number)}).message():
		b.WriteString("\n(Its text is the request itself.)")
		raw = "" // and so are its files
	case strings.TrimSpace(body) == "":
		b.WriteString("\n(It has no text.)")
	default:
		if !pinned {
			b.WriteString("\n(This is its text now; it may have been changed after the request.)")
		}
		b.WriteString("\n" + clip(body, r.share(2)))
	}
	r.said(fmt.Sprintf("%s %s#%d", relation, r.at.repo, r.at.number), r.author(ctx, now.GetUser()), b.String(), raw)
	return body
}

func (r *reader) branches(b *strings.Builder, p *github.PullRequest) {
	head := oneLine(p.GetHead().GetRef(), 250)
	from := p.GetHead().GetRepo()
	if from == nil {
		head += " (of a repository that was deleted)"
	} else if home, _ := repoName(from.GetFullName()); home != r.at.repo {
		head += " of the fork " + oneLine(from.GetFullName(), 150)
	}
	draft := ""
	if p.GetDraft() {
		draft = ", a draft"
	}
	fmt.Fprintf(b, "Branches: %s into %s%s\nHead: %s\nChanges: %d files, +%d -%d, in %d commits\n",
		head, oneLine(p.GetBase().GetRef(), 250), draft, oneLine(p.GetHead().GetSHA(), 64), p.GetChangedFiles(), p.GetAdditions(), p.GetDeletions(), p.GetCommits())
}

// author names who wrote something and what they may do. Only a few are asked
// for; of the others it is not known.
func (r *reader) author(ctx context.Context, u *github.User) string {
	name := "@" + oneLine(u.GetLogin(), 100)
	switch {
	case r.h.client.appID != "" && u.GetLogin() == r.me.login:
		return name + " (this bot)"
	case u.GetType() != "User":
		return name + " (a bot)"
	}
	access, known := r.access[u.GetID()]
	if !known {
		access = "access not known"
		if r.asked < maxAuthors {
			r.asked++
			switch may, err := r.h.gate.mayWrite(ctx, r.at.repo, u.GetID(), u.GetLogin()); {
			case err != nil:
				r.asked = maxAuthors // it is only a remark
			case may:
				access = "may write to the repository"
			default:
				access = "may not write to the repository"
			}
		}
		r.access[u.GetID()] = access
	}
	return name + " (" + access + ")"
}

// stale reports whether something was written or changed after the request.
func (r *reader) stale(created, updated time.Time) bool {
	return !r.in.SentAt.IsZero() && (created.After(r.in.SentAt) || updated.After(r.in.SentAt))
}

// comments quotes the last comments before the request, oldest first.
func (r *reader) comments(ctx context.Context, total int) error {
	var last []*comment
	own, _ := parsePost(r.in.Message)
	// GitHub lists them oldest first: begin at the end.
	for page := max(1, (total+pageSize-1)/pageSize); page > 0 && len(last) < maxComments; page-- {
		some, _, err := inRepo(ctx, r.h.client, r.at.repo, op{name: "reading comments"}, func(g api) ([]*comment, *github.Response, error) {
			return asComments(g.Issues.ListComments(g.ctx, g.owner, g.repo, r.at.number, &github.IssueListCommentsOptions{
				ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
			}))
		})
		if err != nil {
			return err
		}
		last = append(some, last...)
	}
	last = slices.DeleteFunc(last, func(c *comment) bool {
		updated := c.GetUpdatedAt().Time
		if r.h.me.isOurs(r.me, c) && marked(c.GetBody()) {
			updated = c.GetCreatedAt().Time // its edits are ours
		}
		return own.kind == postComment && own.id == c.GetID() || r.stale(c.GetCreatedAt().Time, updated)
	})
	last = last[max(0, len(last)-maxComments):]
	budget := r.share(2)
	from := len(last)
	texts := make([]string, len(last))
	for i, c := range slices.Backward(last) {
		texts[i] = clip(Sanitize(platform.Cut(c.GetBody(), maxText)), maxOneComment)
		if budget -= len(texts[i]); budget < 0 {
			break
		}
		from = i
	}
	for i, c := range last[from:] {
		if text := texts[from+i]; strings.TrimSpace(text) != "" {
			r.said("comment", r.author(ctx, c.GetUser()), text, c.GetBody())
		}
	}
	return nil
}

// files quotes which files a pull request changes, and the diff.
func (r *reader) files(ctx context.Context, p *github.PullRequest) error {
	all := pages(ctx, r.h.client, r.at.repo, op{name: "reading changed files"}, maxFiles/pageSize, func(g api, p github.ListOptions) ([]*github.CommitFile, *github.Response, error) {
		return g.PullRequests.ListFiles(g.ctx, g.owner, g.repo, r.at.number, &p)
	})
	var names, diff strings.Builder
	n, left := 0, 0
	budget := r.share(2)
	for f, err := range all {
		if err != nil {
			return err
		}
		n++
		name := oneLine(f.GetFilename(), 300)
		if names.Len() < budget/2 {
			fmt.Fprintf(&names, "%s (%s, +%d -%d)\n", name, oneLine(f.GetStatus(), 20), f.GetAdditions(), f.GetDeletions())
		}
		patch := visible(normal(f.GetPatch()))
		if patch == "" || diff.Len()+len(patch) > budget {
			left++
			continue
		}
		fmt.Fprintf(&diff, "--- %s\n%s\n", name, patch)
	}
	if n == 0 {
		return nil
	}
	author := r.author(ctx, p.GetUser())
	r.quote("changed files", author, strings.TrimRight(names.String(), "\n"))
	if pinned := r.pinnedHead(); pinned != "" && pinned != p.GetHead().GetSHA() {
		r.quote("diff", author, "(Commits were pushed after the request, so the diff is left out. The request is about "+pinned+".)")
		return nil
	}
	if left > 0 {
		fmt.Fprintf(&diff, "(%d files are not shown: too long, or not text.)\n", left)
	}
	r.quote("diff", author, strings.TrimRight(diff.String(), "\n"))
	return nil
}

// pinnedHead returns the commit that the request is about, if it is known.
func (r *reader) pinnedHead() string {
	if r.in.Repository != nil {
		return r.in.Repository.Head
	}
	return ""
}

func (r *reader) reviews(ctx context.Context) error {
	own, _ := parsePost(r.in.Message)
	var last []*github.PullRequestReview
	for v, err := range r.h.client.reviewsOf(ctx, r.at) {
		if err != nil {
			return err
		}
		itself := own.kind == postReview && own.id == v.GetID()
		if strings.TrimSpace(v.GetBody()) != "" && !itself && !r.stale(v.GetSubmittedAt().Time, time.Time{}) {
			last = append(last, v)
		}
	}
	budget := r.share(1)
	for _, v := range last[max(0, len(last)-maxReviews):] {
		text := clip(Sanitize(platform.Cut(v.GetBody(), maxText)), min(maxOneComment, budget))
		if budget -= len(text); text == "" {
			continue
		}
		r.said("review ("+strings.ToLower(strings.ReplaceAll(oneLine(v.GetState(), 30), "_", " "))+")", r.author(ctx, v.GetUser()), text, v.GetBody())
	}
	return nil
}

// lines quotes the newest comments on lines of the diff, by thread, with the
// piece of the diff that each thread is about.
func (r *reader) lines(ctx context.Context) error {
	all, _, err := inRepo(ctx, r.h.client, r.at.repo, op{name: "reading comments on lines"}, func(g api) ([]*comment, *github.Response, error) {
		return asLines(g.PullRequests.ListComments(g.ctx, g.owner, g.repo, r.at.number, &github.PullRequestListCommentsOptions{
			Sort: "created", Direction: "desc", ListOptions: github.ListOptions{PerPage: maxLines},
		}))
	})
	if err != nil {
		return err
	}
	own, _ := parsePost(r.in.Message)
	sort.Slice(all, func(i, k int) bool { return all[i].GetCreatedAt().Before(all[k].GetCreatedAt().Time) })
	if c := r.event.Comment; own.kind == postLine && c != nil && c.GetID() == own.id && c.GetDiffHunk() != "" {
		r.quote("lines that the request is about", "", where(c)+"\n"+hunk(c.GetDiffHunk()))
	}
	budget := r.share(1)
	shown := make(map[int64]bool)
	for _, c := range all {
		if own.kind == postLine && own.id == c.GetID() || r.stale(c.GetCreatedAt().Time, c.GetUpdatedAt().Time) && !r.h.me.isOurs(r.me, c) {
			continue
		}
		text := clip(Sanitize(platform.Cut(c.GetBody(), maxText)), maxOneComment)
		thread := post{id: c.GetID(), root: c.GetInReplyTo()}.thread()
		if !shown[thread] && own.thread() != thread {
			text = hunk(c.GetDiffHunk()) + "\n\n" + text
		}
		// The name of a file is a stranger's, so it is not part of the label.
		text = where(c) + "\n" + text
		if budget -= len(text); budget < 0 {
			break
		}
		shown[thread] = true
		r.said("review comment", r.author(ctx, c.GetUser()), text, c.GetBody())
	}
	return nil
}

func where(c *comment) string {
	return oneLine(c.GetPath(), 300) + ":" + strconv.Itoa(cmp.Or(c.GetLine(), c.GetOriginalLine()))
}

// hunk returns the end of a piece of a diff: the line that is meant is its last.
func hunk(diff string) string {
	all := strings.Split(strings.TrimRight(visible(normal(diff)), "\n"), "\n")
	return platform.Cut(strings.Join(all[max(0, len(all)-maxHunk):], "\n"), maxOneComment)
}

var issueNumber = pattern.Lazy(`(?:^|[\s(,;:])#([1-9][0-9]{0,8})\b`)

// linked quotes the issues of the same repository that a text names. Those of
// others are not read: their words have no business here.
func (r *reader) linked(ctx context.Context, body string) error {
	var numbers []int
	for _, m := range issueNumber.FindAllStringSubmatch(body, 50) {
		n, err := strconv.Atoi(m[1])
		if err == nil && n != r.at.number && !slices.Contains(numbers, n) && len(numbers) < maxLinked {
			numbers = append(numbers, n)
		}
	}
	budget := r.share(1)
	for _, n := range numbers {
		out, err := r.h.client.askIssue(ctx, place{repo: r.at.repo, number: n})
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
			continue
		}
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Title: %s\nState: %s\n", oneLine(out.GetTitle(), 256), oneLine(out.GetState(), 20))
		if r.stale(out.GetCreatedAt().Time, out.GetUpdatedAt().Time) {
			text += "(Its text is left out: it may have been changed after the request.)"
		} else {
			text += clip(Sanitize(platform.Cut(out.GetBody(), maxText)), maxOneLinked)
		}
		if budget -= len(text); budget < 0 {
			break
		}
		r.quote("linked issue #"+strconv.Itoa(n), r.author(ctx, out.GetUser()), strings.TrimSpace(text))
	}
	return nil
}

// oneLine returns at most n bytes of a stranger's text in one line.
func oneLine(s string, n int) string {
	return platform.Cut(strings.TrimSpace(blanks.ReplaceAllString(visible(normal(platform.Cut(s, 4*n))), " ")), n)
}

// clip returns at most about n bytes of s and says so if that is not all.
func clip(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(platform.Cut(s, max(n, 0))) + "\n(cut: the rest is longer than is read)"
}
