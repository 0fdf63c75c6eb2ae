package github

import (
	"cmp"
	"fmt"
)

// Sent tells what became of something that a person did.
type Sent struct {
	Repo    string
	Number  int   // of the issue or pull request
	Comment int64 // id of the comment, also of a line
	Review  int64

	// Deliveries are the GUIDs of what hooks are sent because of it, in order.
	Deliveries []string
}

// Person is someone who does things in a repository. Nothing is refused: the
// emulator does not check what people may do, because tests choose people who
// may. Naming what does not exist is a mistake in the test and panics.
type Person struct {
	s    *Server
	user string
	repo string
}

// Person returns a person by their login.
func (s *Server) Person(login string) Person {
	s.UserOf(login)
	return Person{s: s, user: login}
}

// In returns the person in a repository.
func (p Person) In(repoName string) Person { p.repo = repoName; return p }

// do does something with the lock.
func (p Person) do(act func(me actor, r *repo, sent *Sent)) Sent {
	w := p.s.world
	defer w.writing()()
	r := w.mustRepo(p.repo)
	sent := Sent{Repo: r.fullName()}
	act(p.s.actor(w.know(p.user), false), r, &sent)
	return sent
}

func (r *repo) mustIssue(number int) *issue {
	i := r.issue(int64(number))
	if i == nil {
		panic(fmt.Sprintf("github emulator: there is no issue %s#%d", r.fullName(), number))
	}
	return i
}

func (r *repo) mustPull(number int) *issue {
	i := r.mustIssue(number)
	if i.pull == nil {
		panic(fmt.Sprintf("github emulator: %s#%d is not a pull request", r.fullName(), number))
	}
	return i
}

// OpenIssue opens an issue with labels.
func (p Person) OpenIssue(title, body string, labels ...string) Sent {
	return p.do(func(me actor, r *repo, sent *Sent) {
		i, told := me.open(r, title, body, labels)
		sent.Number, sent.Deliveries = i.number, told
	})
}

// EditIssue changes title and text of an issue or pull request.
func (p Person) EditIssue(number int, title, body string) Sent {
	return p.onIssue(number, func(me actor, i *issue) []string { return me.retitle(i, title, body) })
}

// CloseIssue closes an issue, or a pull request without merging it.
func (p Person) CloseIssue(number int) Sent {
	return p.onIssue(number, func(me actor, i *issue) []string { return me.setState(i, true, "completed") })
}

// LockIssue locks the conversation of an issue or pull request: only people with write
// access can comment there, and no App can.
func (p Person) LockIssue(number int) Sent {
	return p.onIssue(number, func(me actor, i *issue) []string {
		i.locked, i.updated = true, me.world.now()
		return me.tellIssue(i, "locked", nil)
	})
}

// Label puts a label on.
func (p Person) Label(number int, name string) Sent {
	return p.onIssue(number, func(me actor, i *issue) []string { return me.label(i, name) })
}

func (p Person) onIssue(number int, act func(actor, *issue) []string) Sent {
	return p.do(func(me actor, r *repo, sent *Sent) {
		sent.Number, sent.Deliveries = number, act(me, r.mustIssue(number))
	})
}

// Comment comments on an issue or pull request.
func (p Person) Comment(number int, body string) Sent {
	return p.do(func(me actor, r *repo, sent *Sent) {
		c, told := me.comment(r.mustIssue(number), body)
		sent.Number, sent.Comment, sent.Deliveries = number, c.id, told
	})
}

// EditComment changes a comment, also one of a line or of somebody else. One that
// changes nothing tells nobody.
func (p Person) EditComment(id int64, body string) Sent {
	return p.onComment(id, func(me actor, c *comment) []string { return me.edit(c, body) })
}

// DeleteComment deletes a comment, also one of a line or of somebody else.
func (p Person) DeleteComment(id int64) Sent {
	return p.onComment(id, actor.remove)
}

// TickTask ticks the nth task in a comment's lists, counted from 1, or takes the
// tick away; that is an edit of the comment by the person.
func (p Person) TickTask(id int64, n int) Sent {
	return p.onComment(id, func(me actor, c *comment) []string {
		body, found := tick(c.body, n)
		if !found {
			panic(fmt.Sprintf("github emulator: comment %d has no task %d", id, n))
		}
		return me.edit(c, body)
	})
}

func (p Person) onComment(id int64, act func(actor, *comment) []string) Sent {
	return p.do(func(me actor, _ *repo, sent *Sent) {
		c := me.world.mustComment(id)
		sent.Number, sent.Comment, sent.Deliveries = c.issue.number, id, act(me, c)
	})
}

// React puts a reaction on a comment, also one of a line. GitHub sends nothing
// about reactions.
func (p Person) React(id int64, content string) Sent {
	return p.onComment(id, func(me actor, c *comment) []string {
		me.react(c.issue, c, content)
		return nil
	})
}

// Pull is a pull request that a person opens.
type Pull struct {
	Title, Body string
	Head        string // a branch, or owner:branch of a fork
	Base        string // default: the default branch
	Draft       bool

	// Files are what it changes; without them they are read from the repository
	// that AttachGit named.
	Files []File
}

// OpenPull opens a pull request. A head that does not exist is made up, unless
// AttachGit says which branches there are.
func (p Person) OpenPull(pull Pull) Sent {
	return p.do(func(me actor, r *repo, sent *Sent) {
		head, exists := me.world.headOf(r, pull.Head)
		switch {
		case head.repo == nil:
			panic(fmt.Sprintf("github emulator: there is no fork for %q", pull.Head))
		case !exists && head.repo.git.attached():
			panic(fmt.Sprintf("github emulator: there is no branch %q", pull.Head))
		case !exists:
			head.sha = fakeSHA(head.label() + itoa64(me.world.id()))
			head.repo.branches[head.ref] = head.sha
		}
		base := side{repo: r, ref: cmp.Or(pull.Base, defaultBranch)}
		base.sha, _ = r.find(base.ref)
		i, told := me.propose(head, base, pull)
		sent.Number, sent.Deliveries = i.number, told
	})
}

// Push pushes to a branch. Its new commit is the one that AttachGit leads to, or
// is made up. Pull requests of the branch are synchronized.
func (p Person) Push(branch string) Sent {
	return p.do(func(me actor, r *repo, sent *Sent) {
		before := r.branches[branch]
		if !r.git.attached() {
			r.branches[branch] = fakeSHA(branch + itoa64(me.world.id()))
		} else if sha, exists := r.find(branch); exists {
			r.branches[branch] = sha
		}
		sent.Deliveries = me.push(r, branch, before)
	})
}

// Review submits a review: APPROVE, REQUEST_CHANGES or COMMENT, with comments of
// lines.
func (p Person) Review(number int, event, body string, lines ...LineComment) Sent {
	return p.do(func(me actor, r *repo, sent *Sent) {
		i := r.mustPull(number)
		state, known := states[event]
		if !known {
			panic(fmt.Sprintf("github emulator: %q is no review", event))
		}
		v, told := me.review(i, state, body, lines)
		sent.Number, sent.Review, sent.Deliveries = number, v.id, told
		if len(lines) > 0 {
			sent.Comment = i.pull.comments[len(i.pull.comments)-1].id
		}
	})
}

// ReviewComment comments on a line of the new file, or with line 0 on the file.
// As at GitHub it is a review of its own, so there are two events.
func (p Person) ReviewComment(number int, path string, line int, body string) Sent {
	return p.Review(number, "COMMENT", "", LineComment{Path: path, Line: line, Body: body})
}

// ReplyToReviewComment answers in the thread of a comment of a line.
func (p Person) ReplyToReviewComment(id int64, body string) Sent {
	return p.do(func(me actor, _ *repo, sent *Sent) {
		to := me.world.mustComment(id)
		if to.review == nil {
			panic(fmt.Sprintf("github emulator: comment %d is not of a line", id))
		}
		c, told := me.reply(to, body)
		sent.Number, sent.Comment, sent.Review, sent.Deliveries = to.issue.number, c.id, c.review.id, told
	})
}
