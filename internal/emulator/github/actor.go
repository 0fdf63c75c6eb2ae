package github

import (
	"cmp"
	"slices"
	"time"
)

// actor is who does something: a person, or the bot with its token. What an actor
// does is told to those who watch and to the hooks; methods return the GUIDs of what
// the hooks are sent. The lock must be held.
type actor struct {
	world  *world
	hooks  *webhooks
	user   *user
	viaApp bool
}

// note notes a change for OnChange; c may be nil.
func (a actor) note(kind ChangeKind, i *issue, c *comment) {
	w := a.world
	if w.opts.OnChange == nil {
		return
	}
	change := Change{Kind: kind}
	if c != nil {
		change.Comment = w.viewComment(c)
	}
	w.changes = append(w.changes, change)
}

// write makes what issues, comments and reviews have in common.
func (a actor) write(body string) post {
	now := a.world.now()
	return post{id: a.world.id(), author: a.user, viaApp: a.viaApp, body: body, created: now, updated: now}
}

// newIssue makes an issue. Nobody is told yet.
func (a actor) newIssue(r *repo, title, body string) *issue {
	i := &issue{post: a.write(body), repo: r, number: len(r.issues) + 1, title: title}
	r.issues = append(r.issues, i)
	return i
}

// open opens an issue with labels.
func (a actor) open(r *repo, title, body string, labels []string) (*issue, []string) {
	i := a.newIssue(r, title, body)
	i.label(labels...)
	a.note(ChangeOpened, i, nil)
	return i, a.tellIssue(i, "opened", nil)
}

// retitle changes title and text of an issue or pull request.
func (a actor) retitle(i *issue, title, body string) []string {
	changes := obj{}
	if title != i.title {
		changes["title"] = obj{"from": i.title}
		i.title = title
	}
	if body != i.body {
		changes["body"] = obj{"from": i.edit(body, a.world.now())}
	}
	if len(changes) == 0 {
		return nil
	}
	i.updated = a.world.now()
	a.note(ChangeUpdated, i, nil)
	return a.tellIssue(i, "edited", obj{"changes": changes})
}

// setState closes or reopens an issue or pull request.
func (a actor) setState(i *issue, closed bool, reason string) []string {
	if closed == i.closed {
		return nil
	}
	now := a.world.now()
	i.closed, i.updated = closed, now
	action := "reopened"
	if closed {
		action = "closed"
		i.closedAt, i.closedBy, i.reason = now, a.user, cmp.Or(reason, "completed")
	} else {
		i.closedAt, i.closedBy, i.reason = time.Time{}, nil, "reopened"
	}
	a.note(ChangeUpdated, i, nil)
	return a.tellIssue(i, action, nil)
}

// label puts a label on.
func (a actor) label(i *issue, name string) []string {
	i.label(name)
	i.updated = a.world.now()
	a.note(ChangeUpdated, i, nil)
	return a.tellIssue(i, "labeled", obj{"label": a.hooks.show.label(i.repo, name)})
}

// comment comments on an issue or pull request.
func (a actor) comment(i *issue, body string) (*comment, []string) {
	c := &comment{post: a.write(body), issue: i}
	i.comments = append(i.comments, c)
	i.updated = c.created
	a.world.comments[c.id] = c
	a.note(ChangeCommented, i, c)
	return c, a.tellComment(c, "created", nil)
}

// edit gives a comment another text. One that changes nothing is no edit.
func (a actor) edit(c *comment, body string) []string {
	if body == c.body {
		return nil
	}
	old := c.edit(body, a.world.now())
	c.issue.updated = c.updated
	a.note(ChangeEdited, c.issue, c)
	return a.tellComment(c, "edited", obj{"changes": obj{"body": obj{"from": old}}})
}

// remove deletes a comment.
func (a actor) remove(c *comment) []string {
	i := c.issue
	list := &i.comments
	if c.review != nil {
		list = &i.pull.comments
	}
	*list = slices.DeleteFunc(*list, func(other *comment) bool { return other == c })
	i.gone = append(i.gone, c)
	delete(a.world.comments, c.id)
	a.note(ChangeDeleted, i, c)
	return a.tellComment(c, "deleted", nil)
}

// react adds a reaction to an issue, or to one of its comments, unless the actor
// gave it before. Hooks are not told: there are no events for reactions.
func (a actor) react(i *issue, c *comment, content string) (added *reaction, isNew bool) {
	p := postOf(i, c)
	for _, x := range p.reactions {
		if x.user == a.user && x.content == content {
			return x, false
		}
	}
	x := &reaction{id: a.world.id(), user: a.user, content: content, created: a.world.now()}
	p.reactions = append(p.reactions, x)
	a.note(ChangeReacted, i, c)
	return x, true
}

// propose opens a pull request between two branches.
func (a actor) propose(head, base side, p Pull) (*issue, []string) {
	i := a.newIssue(base.repo, p.Title, p.Body)
	i.pull = &pull{id: a.world.id(), head: head, base: base, draft: p.Draft, files: p.Files, commits: 1}
	i.publish()
	a.note(ChangeOpened, i, nil)
	return i, a.tellIssue(i, "opened", nil)
}

// review submits a review with comments of lines.
func (a actor) review(i *issue, state, body string, lines []LineComment) (*review, []string) {
	v := a.newReview(i, state, body)
	told := a.tellReview(v)
	for _, l := range lines {
		c := &comment{issue: i, review: v, path: l.Path, line: l.Line, commit: v.commit, ofFile: l.Line == 0}
		for _, f := range i.files() {
			if f.Path == l.Path {
				c.hunk, _ = hunkOf(f.Patch, l.Line)
			}
		}
		told = append(told, a.addLine(c, l.Body)...)
	}
	if body != "" || len(lines) == 0 {
		a.note(ChangeCommented, i, nil)
	}
	return v, told
}

func (a actor) newReview(i *issue, state, body string) *review {
	i.pull.refresh()
	v := &review{post: a.write(body), issue: i, state: state, commit: i.pull.head.sha}
	i.pull.reviews = append(i.pull.reviews, v)
	i.updated = v.created
	return v
}

// addLine adds a comment of a line to its review.
func (a actor) addLine(c *comment, body string) []string {
	c.post = a.write(body)
	c.issue.pull.comments = append(c.issue.pull.comments, c)
	a.world.comments[c.id] = c
	a.note(ChangeCommented, c.issue, c)
	return a.tellComment(c, "created", nil)
}

// reply answers in the thread of a line, which is a review of its own. A thread has
// one level: an answer to an answer is one to the first comment.
func (a actor) reply(to *comment, body string) (*comment, []string) {
	v := a.newReview(to.issue, "COMMENTED", "")
	told := a.tellReview(v)
	c := &comment{
		issue: to.issue, review: v, path: to.path, line: to.line, hunk: to.hunk,
		commit: to.commit, replyTo: cmp.Or(to.replyTo, to.id), ofFile: to.ofFile,
	}
	return c, append(told, a.addLine(c, body)...)
}

// push tells that a branch moved, and synchronizes its pull requests.
func (a actor) push(r *repo, branch, before string) []string {
	after, _ := r.find(branch)
	told := a.tellPush(r, branch, before, after)
	for _, base := range a.world.repos {
		for _, i := range base.issues {
			if i.pull == nil || i.closed || i.pull.head.repo != r || i.pull.head.ref != branch {
				continue
			}
			old := i.pull.head.sha
			i.pull.refresh()
			i.publish()
			i.updated = a.world.now()
			i.pull.commits++
			told = append(told, a.tellIssue(i, "synchronize", obj{"before": old, "after": i.pull.head.sha})...)
		}
	}
	return told
}
