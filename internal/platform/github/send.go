package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/go-github/v62/github"
	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// maxPages bounds a lookup: 2000 comments since the delivery was made.
	maxPages = 20

	// lag is how long a comment may be missing from lists after it was made
	// (contract C17).
	lag = 5 * time.Second
)

var errNoID = errors.New("the answer has no id")

// Send implements platform.Adapter with a comment, or, if it answers a comment
// on lines of a diff, with an answer in that thread. With out.Again the
// conversation is searched for the delivery before anything is posted, twice.
func (a *Adapter) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	at, err := parseKey(out.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	delivery := markOf(out.Delivery)
	body, err := a.compose(out.Text, out.Buttons, delivery)
	if err != nil {
		return messages.Ref{}, err
	}
	to, _ := parsePost(out.ReplyTo)
	if out.Again {
		found, err := a.lookupTwice(ctx, at, to, delivery)
		if err != nil {
			return messages.Ref{}, err
		}
		if found.id != 0 {
			return a.madeBy(at, found, delivery), nil
		}
	}
	made, err := a.post(ctx, at, to, body, out.Optional)
	if err != nil {
		return messages.Ref{}, err
	}
	a.observe("sent")
	return a.madeBy(at, made, delivery), nil
}

// madeBy notes what a delivery became.
func (a *Adapter) madeBy(at place, p post, delivery string) messages.Ref {
	ref := messages.Ref{Conversation: at.key(), Message: p.message()}
	a.sent.Put(ref.Message, delivery)
	a.guard.spoke(ref.Conversation.ID, time.Now())
	return ref
}

// markOf returns how a delivery is written into a comment.
func markOf(id messages.DeliveryID) string {
	if id == "" || deliveryID.MatchString(string(id)) {
		return string(id)
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// post makes one comment.
func (a *Adapter) post(ctx context.Context, at place, to post, body string, optional bool) (post, error) {
	made := post{kind: postComment}
	if to.kind == postLine {
		made = post{kind: postLine, root: to.thread()}
	}
	id, _, err := inRepo(ctx, a, at.repo, op{name: "adding a comment", once: true, shed: optional}, func(g api) (int64, *github.Response, error) {
		if to.kind == postLine {
			c, resp, err := g.PullRequests.CreateCommentInReplyTo(g.ctx, g.owner, g.repo, at.number, body, to.thread())
			return c.GetID(), resp, err
		}
		c, resp, err := g.Issues.CreateComment(g.ctx, g.owner, g.repo, at.number, &github.IssueComment{Body: &body})
		return c.GetID(), resp, err
	})
	if to.kind == postLine && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid)) {
		// The thread is gone, not the pull request: answer below it.
		return a.post(ctx, at, post{}, body, optional)
	}
	switch {
	case err == nil && id < 1:
		return made, &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: errNoID}
	case fault.Is(err, fault.NotFound):
		// Deleted, moved, or taken from us: all of them answer so.
		return made, &fault.Error{Kind: fault.Gone, Public: "The issue no longer exists, or the bot has no access to it.", Err: err}
	case refusedWith(err, 403, "locked"), refusedWith(err, 403, "archived"):
		return made, &fault.Error{Kind: fault.Gone, Public: fault.Public(err), Err: err}
	}
	made.id = id
	return made, err
}

// Edit implements platform.Editor. The mark of the delivery stays.
func (a *Adapter) Edit(ctx context.Context, e platform.Edit) error {
	at, p, err := parseRef(e.Ref)
	if err != nil {
		return err
	}
	if p.kind != postComment && p.kind != postLine {
		return fault.Newf(fault.NotFound, "%q is not a comment of the bot.", e.Ref.Message)
	}
	delivery, err := a.deliveryOf(ctx, at, p, e)
	if err != nil {
		return err
	}
	body, err := a.compose(e.Text, e.Buttons, delivery)
	if err != nil {
		return err
	}
	_, _, err = inRepo(ctx, a, at.repo, op{name: "editing a comment", shed: e.Progress}, func(g api) (nothing, *github.Response, error) {
		if p.kind == postLine {
			_, resp, err := g.PullRequests.EditComment(g.ctx, g.owner, g.repo, p.id, &github.PullRequestComment{Body: &body})
			return nothing{}, resp, err
		}
		_, resp, err := g.Issues.EditComment(g.ctx, g.owner, g.repo, p.id, &github.IssueComment{Body: &body})
		return nothing{}, resp, err
	})
	if err == nil {
		a.guard.spoke(e.Ref.Conversation.ID, time.Now())
	}
	return err
}

// deliveryOf returns the mark of a comment. After a restart the comment is asked.
func (a *Adapter) deliveryOf(ctx context.Context, at place, p post, e platform.Edit) (string, error) {
	if delivery, ok := a.sent.Get(e.Ref.Message); ok {
		return delivery, nil
	}
	body, _, err := inRepo(ctx, a, at.repo, op{name: "reading a comment", shed: e.Progress}, func(g api) (string, *github.Response, error) {
		if p.kind == postLine {
			c, resp, err := g.PullRequests.GetComment(g.ctx, g.owner, g.repo, p.id)
			return c.GetBody(), resp, err
		}
		c, resp, err := g.Issues.GetComment(g.ctx, g.owner, g.repo, p.id)
		return c.GetBody(), resp, err
	})
	if err != nil {
		return "", err
	}
	delivery := deliveryIn(body)
	a.sent.Put(e.Ref.Message, delivery)
	return delivery, nil
}

// deliveryIn returns the delivery that a comment is marked with.
func deliveryIn(body string) string {
	if m := deliveryMark.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return ""
}

// lookupTwice searches for a delivery, and if it is not there once more when it
// would be, had it been made a moment ago.
func (a *Adapter) lookupTwice(ctx context.Context, at place, to post, delivery string) (post, error) {
	for second := false; ; second = true {
		found, err := a.lookup(ctx, at, to, delivery)
		switch {
		case fault.Is(err, fault.Gone), fault.Is(err, fault.NotFound):
			return found, &fault.Error{Kind: fault.Gone, Err: err}
		case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.Canceled):
			return found, err
		case err != nil:
			return found, unsure(err)
		case found.id != 0:
			a.observe("found_sent")
			return found, nil
		case second:
			return found, nil
		}
		if err := a.pause(ctx, lag); err != nil {
			return found, fault.Wrap(err, fault.KindOf(err), "looking for a comment")
		}
	}
}

// lookup returns the comment that brought a delivery, if it is there.
func (a *Adapter) lookup(ctx context.Context, at place, to post, delivery string) (post, error) {
	me, err := a.whoami(ctx)
	if err != nil {
		return post{}, err
	}
	var since time.Time
	if id, err := uuid.Parse(delivery); err == nil && id.Version() == 7 {
		since = a.clock.Since(time.Unix(id.Time().UnixTime())).UTC()
	}
	list := op{name: "looking for a comment"}
	found, err := a.search(me, delivery, postComment, pages(ctx, a, at.repo, list, maxPages, func(g api, p github.ListOptions) ([]comment, *github.Response, error) {
		opts := &github.IssueListCommentsOptions{ListOptions: p}
		if !since.IsZero() {
			opts.Since = &since
		}
		return asComments(g.Issues.ListComments(g.ctx, g.owner, g.repo, at.number, opts))
	}))
	if err != nil || found.id != 0 || to.kind != postLine {
		return found, err
	}
	return a.search(me, delivery, postLine, pages(ctx, a, at.repo, list, maxPages, func(g api, p github.ListOptions) ([]comment, *github.Response, error) {
		return asLines(g.PullRequests.ListComments(g.ctx, g.owner, g.repo, at.number, &github.PullRequestListCommentsOptions{Since: since, ListOptions: p}))
	}))
}

func (a *Adapter) search(me identity, delivery string, kind postKind, all iter.Seq2[comment, error]) (post, error) {
	for c, err := range all {
		if err != nil {
			return post{}, err
		}
		if a.isOurs(me, c) && deliveryIn(c.GetBody()) == delivery {
			return post{kind: kind, id: c.GetID(), root: c.GetInReplyTo()}, nil
		}
	}
	return post{}, nil
}

// isOurs reports whether the bot wrote a comment.
func (a *Adapter) isOurs(me identity, c comment) bool {
	if a.cfg.AppID == "" {
		return c.GetUser().GetID() == me.id
	}
	return a.isOurApp(c.Via) || c.GetUser().GetType() == "Bot" && c.GetUser().GetLogin() == me.login
}

// buttonsOf returns the tasks at the end of a comment of ours, with whether each
// is done.
func buttonsOf(body string) map[string]bool {
	body = normal(body)
	if m := deliveryMark.FindStringIndex(body); m != nil {
		body = body[:m[0]]
	}
	states := make(map[string]bool)
	for _, line := range slices.Backward(splitLines(body)) {
		m := buttonLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		states[m[2]] = m[1] != " "
	}
	return states
}

// ticked turns the ticking of a task in a comment of the bot into the press of a
// button. What else somebody changes there means nothing.
func (a *Adapter) ticked(ctx context.Context, p payload, in messages.Inbound) ([]messages.Inbound, error) {
	if p.Changes.GetBody() == nil || p.Sender.GetID() < 1 || p.Sender.GetType() != "User" {
		return nil, nil
	}
	before, after := buttonsOf(p.Changes.Body.GetFrom()), buttonsOf(p.Comment.GetBody())
	var pressed []string
	for id, done := range after {
		if was, had := before[id]; done && had && !was {
			pressed = append(pressed, id)
		}
	}
	if len(pressed) == 0 || !a.wroteButtons(ctx, *p.Comment) {
		return nil, nil
	}
	slices.Sort(pressed)
	s := ofIssue(p)
	in.Kind = messages.KindAction
	in.Conversation = s.place().key()
	in.Message = post{kind: postComment, id: p.Comment.GetID()}.message()
	in.Sender = a.senderOf(p.Sender)
	in.SentAt = p.Comment.GetUpdatedAt().Time
	in.Repository, in.Reference = a.repositoryOf(s), reference(s)
	var events []messages.Inbound
	for i, id := range pressed {
		one := in
		one.Action = id
		if i > 0 {
			one.Event = messages.EventID(fmt.Sprintf("%s:%d", in.Event, i))
		}
		events = append(events, one)
	}
	return events, nil
}

// wroteButtons reports whether a comment with buttons is the bot's own. With a
// personal token that takes knowing who we are; before that is known nothing is
// pressed.
func (a *Adapter) wroteButtons(_ context.Context, c comment) bool {
	if a.isOurApp(c.Via) {
		return true
	}
	me := a.self.Load()
	return me != nil && a.isOurs(*me, c)
}
