package github

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
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

// reader reads the context of one request.
type reader struct {
	a      *Adapter
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
func (a *Adapter) Context(ctx context.Context, in messages.Inbound) ([]messages.Quote, error) {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return nil, err
	}
	r := &reader{a: a, at: at, in: in, access: make(map[int64]string)}
	if r.me, err = a.whoami(ctx); err != nil {
		return nil, err
	}
	if len(in.Raw) > 0 {
		_ = lenient(in.Raw, &r.event) // what can be read of it
	}
	var now issue
	if _, err := a.inRepo(ctx, at.repo, request{route: routeIssue, args: repoArgs(at.repo, at.number), idempotent: true}, &now); err != nil {
		return nil, err
	}
	var p *pull
	if now.Pull != nil {
		found, err := a.askPull(ctx, at)
		if err != nil {
			return nil, err
		}
		p = &found
	}
	body := r.subject(ctx, now, p)
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return r.comments(ctx, now.Comments) },
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
			a.log.WarnContext(ctx, "could not read all that an issue is about", "conversation", in.Conversation, "error", err)
		}
	}
	return r.quotes, nil
}

// share returns a part of the budget in bytes.
func (r *reader) share(eighths int) int { return r.a.cfg.ContextBytes * eighths / 8 }

func (r *reader) quote(relation, author, text string) {
	r.quotes = append(r.quotes, messages.Quote{Relation: relation, Author: author, Text: text})
}

// subject quotes the issue or pull request itself, and returns its text.
func (r *reader) subject(ctx context.Context, now issue, p *pull) string {
	title, body, pinned := now.Title, now.Body, false
	switch {
	case r.event.Issue != nil && r.event.Issue.Number == r.at.number:
		title, body, pinned = r.event.Issue.Title, r.event.Issue.Body, true
	case r.event.Pull != nil && r.event.Pull.Number == r.at.number:
		title, body, pinned = r.event.Pull.Title, r.event.Pull.Body, true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Title: %s\nState: %s\n", oneLine(title, 256), oneLine(now.State, 20))
	var labels []string
	for _, l := range now.Labels {
		labels = append(labels, oneLine(l.Name, 60))
	}
	if len(labels) > 0 {
		fmt.Fprintf(&b, "Labels: %s\n", cut(strings.Join(labels, ", "), 500))
	}
	relation := "issue"
	if p != nil {
		relation = "pull request"
		r.branches(&b, p)
	}
	body = Sanitize(cut(body, 4*maxText))
	switch {
	case r.in.Message == (post{kind: postBody, id: int64(r.at.number)}).message():
		b.WriteString("\n(Its text is the request itself.)")
	case strings.TrimSpace(body) == "":
		b.WriteString("\n(It has no text.)")
	default:
		if !pinned {
			b.WriteString("\n(This is its text now; it may have been changed after the request.)")
		}
		b.WriteString("\n" + clip(body, r.share(2)))
	}
	r.quote(fmt.Sprintf("%s %s#%d", relation, r.at.repo, r.at.number), r.author(ctx, now.User), b.String())
	return body
}

func (r *reader) branches(b *strings.Builder, p *pull) {
	head := oneLine(p.Head.Ref, 250)
	if p.Head.Repo == nil {
		head += " (of a repository that was deleted)"
	} else if home, _ := repoName(p.Head.Repo.FullName); home != r.at.repo {
		head += " of the fork " + oneLine(p.Head.Repo.FullName, 150)
	}
	draft := ""
	if p.Draft {
		draft = ", a draft"
	}
	fmt.Fprintf(b, "Branches: %s into %s%s\nHead: %s\nChanges: %d files, +%d -%d, in %d commits\n",
		head, oneLine(p.Base.Ref, 250), draft, oneLine(p.Head.SHA, 64), p.Files, p.Additions, p.Deletions, p.Commits)
}

// author names who wrote something and what they may do. Only a few are asked
// for; of the others it is not known.
func (r *reader) author(ctx context.Context, u user) string {
	name := "@" + oneLine(u.Login, 100)
	switch {
	case r.a.cfg.AppID != "" && u.Login == r.me.login:
		return name + " (this bot)"
	case u.Type != "User":
		return name + " (a bot)"
	}
	access, known := r.access[u.ID]
	if !known {
		access = "access not known"
		if r.asked < maxAuthors {
			r.asked++
			switch may, err := r.a.mayWrite(ctx, r.at.repo, u.ID, u.Login); {
			case err != nil:
				r.asked = maxAuthors // it is only a remark
			case may:
				access = "may write to the repository"
			default:
				access = "may not write to the repository"
			}
		}
		r.access[u.ID] = access
	}
	return name + " (" + access + ")"
}

// stale reports whether something was written or changed after the request.
func (r *reader) stale(created, updated time.Time) bool {
	return !r.in.SentAt.IsZero() && (created.After(r.in.SentAt) || updated.After(r.in.SentAt))
}

// comments quotes the last comments before the request, oldest first.
func (r *reader) comments(ctx context.Context, total int) error {
	var last []comment
	own, _ := parsePost(r.in.Message)
	// GitHub lists them oldest first: begin at the end.
	for page := max(1, (total+pageSize-1)/pageSize); page > 0 && len(last) < maxComments; page-- {
		q := url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)}}
		var out many[comment]
		if _, err := r.a.inRepo(ctx, r.at.repo, request{route: routeComments, args: repoArgs(r.at.repo, r.at.number), query: q, idempotent: true}, &out); err != nil {
			return err
		}
		last = append(out.all, last...)
	}
	last = slices.DeleteFunc(last, func(c comment) bool {
		updated := c.Updated.Time
		if r.a.isOurs(r.me, c) && marked(c.Body) {
			updated = c.Created.Time // its edits are ours
		}
		return own.kind == postComment && own.id == c.ID || r.stale(c.Created.Time, updated)
	})
	last = last[max(0, len(last)-maxComments):]
	budget := r.share(2)
	from := len(last)
	texts := make([]string, len(last))
	for i, c := range slices.Backward(last) {
		texts[i] = clip(Sanitize(cut(c.Body, maxText)), maxOneComment)
		if budget -= len(texts[i]); budget < 0 {
			break
		}
		from = i
	}
	for i, c := range last[from:] {
		if text := texts[from+i]; strings.TrimSpace(text) != "" {
			r.quote("comment", r.author(ctx, c.User), text)
		}
	}
	return nil
}

// files quotes which files a pull request changes, and the diff.
func (r *reader) files(ctx context.Context, p *pull) error {
	list := request{route: routeFiles, args: repoArgs(r.at.repo, r.at.number), idempotent: true}
	var names, diff strings.Builder
	n, left := 0, 0
	budget := r.share(2)
	for f, err := range pages[changedFile](ctx, r.a, r.at.repo, list, maxFiles/pageSize) {
		if err != nil {
			return err
		}
		n++
		name := oneLine(f.Name, 300)
		if names.Len() < budget/2 {
			fmt.Fprintf(&names, "%s (%s, +%d -%d)\n", name, oneLine(f.Status, 20), f.Additions, f.Deletions)
		}
		patch := visible(normal(f.Patch))
		if f.Patch == "" || diff.Len()+len(patch) > budget {
			left++
			continue
		}
		fmt.Fprintf(&diff, "--- %s\n%s\n", name, patch)
	}
	if n == 0 {
		return nil
	}
	author := r.author(ctx, p.User)
	r.quote("changed files", author, strings.TrimRight(names.String(), "\n"))
	if pinned := r.pinnedHead(); pinned != "" && pinned != p.Head.SHA {
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
	list := request{route: routeReviews, args: repoArgs(r.at.repo, r.at.number), idempotent: true}
	own, _ := parsePost(r.in.Message)
	var last []review
	for v, err := range pages[review](ctx, r.a, r.at.repo, list, 5) {
		if err != nil {
			return err
		}
		itself := own.kind == postReview && own.id == v.ID
		if strings.TrimSpace(v.Body) != "" && !itself && !r.stale(v.Submitted.Time, v.Updated.Time) {
			last = append(last, v)
		}
	}
	budget := r.share(1)
	for _, v := range last[max(0, len(last)-maxReviews):] {
		text := clip(Sanitize(cut(v.Body, maxText)), min(maxOneComment, budget))
		if budget -= len(text); text == "" {
			continue
		}
		r.quote("review ("+strings.ToLower(strings.ReplaceAll(oneLine(v.State, 30), "_", " "))+")", r.author(ctx, v.User), text)
	}
	return nil
}

// lines quotes the newest comments on lines of the diff, by thread, with the
// piece of the diff that each thread is about.
func (r *reader) lines(ctx context.Context) error {
	q := url.Values{"sort": {"created"}, "direction": {"desc"}, "per_page": {strconv.Itoa(maxLines)}}
	var out many[comment]
	if _, err := r.a.inRepo(ctx, r.at.repo, request{route: routeLines, args: repoArgs(r.at.repo, r.at.number), query: q, idempotent: true}, &out); err != nil {
		return err
	}
	own, _ := parsePost(r.in.Message)
	slices.SortFunc(out.all, func(a, b comment) int { return a.Created.Compare(b.Created.Time) })
	if c := r.event.Comment; own.kind == postLine && c != nil && c.ID == own.id && c.Hunk != "" {
		r.quote("lines that the request is about", "", where(*c)+"\n"+hunk(c.Hunk))
	}
	budget := r.share(1)
	shown := make(map[int64]bool)
	for _, c := range out.all {
		if own.kind == postLine && own.id == c.ID || r.stale(c.Created.Time, c.Updated.Time) && !r.a.isOurs(r.me, c) {
			continue
		}
		text := clip(Sanitize(cut(c.Body, maxText)), maxOneComment)
		thread := post{id: c.ID, root: c.ReplyTo}.thread()
		if !shown[thread] && own.thread() != thread {
			text = hunk(c.Hunk) + "\n\n" + text
		}
		// The name of a file is a stranger's, so it is not part of the label.
		text = where(c) + "\n" + text
		if budget -= len(text); budget < 0 {
			break
		}
		shown[thread] = true
		r.quote("review comment", r.author(ctx, c.User), text)
	}
	return nil
}

func where(c comment) string {
	line := c.Line
	if line == 0 {
		line = c.OldLine
	}
	return oneLine(c.Path, 300) + ":" + strconv.Itoa(line)
}

// hunk returns the end of a piece of a diff: the line that is meant is its last.
func hunk(diff string) string {
	all := strings.Split(strings.TrimRight(visible(normal(diff)), "\n"), "\n")
	return cut(strings.Join(all[max(0, len(all)-maxHunk):], "\n"), maxOneComment)
}

var issueNumber = regexp.MustCompile(`(?:^|[\s(,;:])#([1-9][0-9]{0,8})\b`)

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
		var out issue
		_, err := r.a.inRepo(ctx, r.at.repo, request{route: routeIssue, args: repoArgs(r.at.repo, n), idempotent: true}, &out)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
			continue
		}
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Title: %s\nState: %s\n", oneLine(out.Title, 256), oneLine(out.State, 20))
		if r.stale(out.Created.Time, out.Updated.Time) {
			text += "(Its text is left out: it may have been changed after the request.)"
		} else {
			text += clip(Sanitize(cut(out.Body, maxText)), maxOneLinked)
		}
		if budget -= len(text); budget < 0 {
			break
		}
		r.quote("linked issue #"+strconv.Itoa(n), r.author(ctx, out.User), strings.TrimSpace(text))
	}
	return nil
}

// oneLine returns at most n bytes of a stranger's text in one line.
func oneLine(s string, n int) string {
	return cut(strings.TrimSpace(blanks.ReplaceAllString(visible(normal(cut(s, 4*n))), " ")), n)
}

// clip returns at most about n bytes of s and says so if that is not all.
func clip(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(cut(s, max(n, 0))) + "\n(cut: the rest is longer than is read)"
}
