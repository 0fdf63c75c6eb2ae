package github

import (
	"crypto/sha1" //nolint:gosec // what git uses
	"encoding/hex"
	"strings"
	"time"

	"remote-agent/internal/pattern"
)

// post is what issues, comments and reviews have in common.
type post struct {
	id        int64
	author    *user
	viaApp    bool
	body      string
	created   time.Time
	updated   time.Time
	history   []string // the texts before the edits
	reactions []*reaction
}

// edit gives a post another text and reports the old one.
func (p *post) edit(body string, now time.Time) (old string) {
	old = p.body
	p.history = append(p.history, old)
	p.body, p.updated = body, now
	return old
}

type reaction struct {
	id      int64
	user    *user
	content string
	created time.Time
}

type issue struct {
	post
	repo     *repo
	number   int
	title    string
	closed   bool
	locked   bool   // only people with write access may comment
	reason   string // completed, not_planned, reopened
	closedAt time.Time
	closedBy *user
	labels   []string
	comments []*comment // of the conversation, oldest first, without deleted ones
	gone     []*comment // deleted
	pull     *pull      // nil for an issue
}

func (i *issue) state() string {
	if i.closed {
		return "closed"
	}
	return "open"
}

// comment is a comment of an issue or pull request, or of a line of a diff.
type comment struct {
	post
	issue  *issue
	unseen int // lists that did not show it, while there is a lag

	// Of a line of a diff:
	review  *review // nil for comments of the conversation
	path    string
	line    int
	hunk    string
	commit  string
	replyTo int64
	ofFile  bool
}

type side struct {
	repo *repo
	ref  string
	sha  string // when it was last looked at
}

type pull struct {
	id       int64
	head     side
	base     side
	draft    bool
	reviews  []*review
	comments []*comment // of lines, oldest first
	files    []File     // given by the test
	commits  int
}

type review struct {
	post
	issue  *issue
	state  string // APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED
	commit string
}

// fakeSHA returns an object name for something that has no repository.
func fakeSHA(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// refresh looks up what the branches of a pull request are at.
func (p *pull) refresh() {
	for _, at := range []*side{&p.head, &p.base} {
		if at.repo == nil {
			continue
		}
		if sha, ok := at.repo.find(at.ref); ok {
			at.sha = sha
		}
	}
}

// label returns head or base as "owner:branch".
func (at side) label() string {
	if at.repo == nil {
		return "unknown:" + at.ref
	}
	return at.repo.owner.login + ":" + at.ref
}

var task = pattern.Lazy(`(?m)^([ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[)([ xX])(\][ \t])`)

// tick turns the nth task of a list over, counted from 1, and reports whether
// there is one. Lists in code blocks do not count.
func tick(body string, n int) (string, bool) {
	if n < 1 {
		return body, false
	}
	for _, at := range task.FindAllStringSubmatchIndex(body, -1) {
		if inFence(body[:at[0]]) {
			continue
		}
		if n--; n > 0 {
			continue
		}
		box := "x"
		if body[at[4]:at[5]] != " " {
			box = " "
		}
		return body[:at[4]] + box + body[at[5]:], true
	}
	return body, false
}

// inFence reports whether a code block is open at the end of a text.
func inFence(text string) bool {
	var f fence
	for line := range strings.Lines(text) {
		f.step(line)
	}
	return f != ""
}

// fence is what began the code block that is open, or nothing.
type fence string

// step reads a line and reports whether it belongs to a code block, its fences
// included.
func (f *fence) step(line string) bool {
	open := *f != ""
	line = strings.TrimLeft(line, " ")
	for _, mark := range []string{"`", "~"} {
		run := line[:len(line)-len(strings.TrimLeft(line, mark))]
		switch {
		case len(run) < 3:
		case !open:
			*f = fence(run)
			return true
		case strings.HasPrefix(run, string(*f)) && strings.TrimSpace(line[len(run):]) == "":
			*f = ""
			return true
		}
	}
	return open
}
