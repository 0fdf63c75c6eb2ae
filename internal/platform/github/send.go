package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
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

// sender posts comments, changes them and takes them back.
type sender struct {
	client  *client
	me      *account
	render  *renderer
	guard   *loopGuard
	sent    *platform.Recent[messages.MessageID, string] // comment -> the delivery that made it
	observe func(string)

	// pause waits; tests replace it.
	pause func(ctx context.Context, d time.Duration) error
}

// Send implements platform.Adapter with a comment, or, if it answers a comment
// on lines of a diff, with an answer in that thread. With out.Again the
// conversation is searched for the delivery before anything is posted, twice.
func (s *sender) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	at, err := parseKey(out.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	delivery := markOf(out.Delivery)
	body, err := s.render.compose(out.Text, out.Buttons, delivery)
	if err != nil {
		return messages.Ref{}, err
	}
	to, _ := parsePost(out.ReplyTo)
	if out.Again {
		found, err := s.lookupTwice(ctx, at, to, delivery)
		if err != nil {
			return messages.Ref{}, err
		}
		if found.id != 0 {
			return s.madeBy(at, found, delivery), nil
		}
	}
	made, err := s.post(ctx, at, to, body, out.Optional)
	if err != nil {
		return messages.Ref{}, err
	}
	s.observe("sent")
	return s.madeBy(at, made, delivery), nil
}

// madeBy notes what a delivery became.
func (s *sender) madeBy(at place, p post, delivery string) messages.Ref {
	ref := messages.Ref{Conversation: at.key(), Message: p.message()}
	s.sent.Put(ref.Message, delivery)
	s.guard.spoke(ref.Conversation.ID, s.client.clock.At(time.Now()))
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
func (s *sender) post(ctx context.Context, at place, to post, body string, optional bool) (post, error) {
	made := post{kind: postComment}
	if to.kind == postLine {
		made = post{kind: postLine, root: to.thread()}
	}
	id, _, err := inRepo(ctx, s.client, at.repo, op{name: "adding a comment", once: true, shed: optional}, func(g api) (int64, *github.Response, error) {
		if to.kind == postLine {
			c, resp, err := g.PullRequests.CreateCommentInReplyTo(g.ctx, g.owner, g.repo, at.number, body, to.thread())
			return c.GetID(), resp, err
		}
		c, resp, err := g.Issues.CreateComment(g.ctx, g.owner, g.repo, at.number, &github.IssueComment{Body: &body})
		return c.GetID(), resp, err
	})
	if to.kind == postLine && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid)) {
		// The thread is gone, not the pull request: answer below it.
		return s.post(ctx, at, post{}, body, optional)
	}
	switch {
	case err == nil && id < 1:
		return made, &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: errNoID}
	case fault.Is(err, fault.NotFound):
		// Deleted, moved, or taken from us: all of them answer so.
		return made, &fault.Error{Kind: fault.Gone, Public: "The issue no longer exists, or the bot has no access to it.", Err: err}
	case refusedWith(err, 403, "locked"), refusedWith(err, 403, "archived"):
		s.client.locked.Put(at, true)
		return made, &fault.Error{Kind: fault.Gone, Public: fault.Public(err), Err: err}
	}
	made.id = id
	return made, err
}

// Edit implements platform.Editor. The mark of the delivery stays.
func (s *sender) Edit(ctx context.Context, e platform.Edit) error {
	at, p, err := parseOwn(e.Ref)
	if err != nil {
		return err
	}
	delivery, err := s.deliveryOf(ctx, at, p, e)
	if err != nil {
		return err
	}
	body, err := s.render.compose(e.Text, e.Buttons, delivery)
	if err != nil {
		return err
	}
	_, err = s.client.inRepo(ctx, at.repo, op{name: "editing a comment", shed: e.Progress}, func(g api) (*github.Response, error) {
		if p.kind == postLine {
			_, resp, err := g.PullRequests.EditComment(g.ctx, g.owner, g.repo, p.id, &github.PullRequestComment{Body: &body})
			return resp, err
		}
		_, resp, err := g.Issues.EditComment(g.ctx, g.owner, g.repo, p.id, &github.IssueComment{Body: &body})
		return resp, err
	})
	if err == nil {
		s.guard.spoke(e.Ref.Conversation.ID, s.client.clock.At(time.Now()))
	}
	return err
}

// Delete implements platform.Deleter.
func (s *sender) Delete(ctx context.Context, ref messages.Ref) error {
	at, p, err := parseOwn(ref)
	if err != nil {
		return err
	}
	_, err = s.client.inRepo(ctx, at.repo, op{name: "deleting a comment"}, func(g api) (*github.Response, error) {
		if p.kind == postLine {
			return g.PullRequests.DeleteComment(g.ctx, g.owner, g.repo, p.id)
		}
		return g.Issues.DeleteComment(g.ctx, g.owner, g.repo, p.id)
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// deliveryOf returns the mark of a comment. After a restart the comment is asked.
func (s *sender) deliveryOf(ctx context.Context, at place, p post, e platform.Edit) (string, error) {
	if delivery, ok := s.sent.Get(e.Ref.Message); ok {
		return delivery, nil
	}
	body, err := s.client.askComment(ctx, at, p, e.Progress)
	if err != nil {
		return "", err
	}
	delivery := deliveryIn(body)
	s.sent.Put(e.Ref.Message, delivery)
	return delivery, nil
}

// askComment returns the text of a comment, on an issue or on lines.
func (c *client) askComment(ctx context.Context, at place, p post, shed bool) (string, error) {
	body, _, err := inRepo(ctx, c, at.repo, op{name: "reading a comment", shed: shed}, func(g api) (string, *github.Response, error) {
		if p.kind == postLine {
			c, resp, err := g.PullRequests.GetComment(g.ctx, g.owner, g.repo, p.id)
			return c.GetBody(), resp, err
		}
		c, resp, err := g.Issues.GetComment(g.ctx, g.owner, g.repo, p.id)
		return c.GetBody(), resp, err
	})
	return body, err
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
func (s *sender) lookupTwice(ctx context.Context, at place, to post, delivery string) (post, error) {
	for second := false; ; second = true {
		found, err := s.lookup(ctx, at, to, delivery)
		switch {
		case fault.Is(err, fault.Gone), fault.Is(err, fault.NotFound):
			return found, &fault.Error{Kind: fault.Gone, Err: err}
		case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.Canceled):
			return found, err
		case err != nil:
			return found, unsure(err)
		case found.id != 0:
			s.observe("found_sent")
			return found, nil
		case second:
			return found, nil
		}
		if err := s.pause(ctx, lag); err != nil {
			return found, fault.Wrap(err, fault.KindOf(err), "looking for a comment")
		}
	}
}

// lookup returns the comment that brought a delivery, if it is there.
func (s *sender) lookup(ctx context.Context, at place, to post, delivery string) (post, error) {
	me, err := s.me.whoami(ctx)
	if err != nil {
		return post{}, err
	}
	var since time.Time
	if id, err := uuid.Parse(delivery); err == nil && id.Version() == 7 {
		since = s.client.clock.Since(time.Unix(id.Time().UnixTime())).UTC()
	}
	list := op{name: "looking for a comment"}
	found, err := s.search(me, delivery, postComment, pages(ctx, s.client, at.repo, list, maxPages, func(g api, p github.ListOptions) ([]*comment, *github.Response, error) {
		opts := &github.IssueListCommentsOptions{ListOptions: p}
		if !since.IsZero() {
			opts.Since = &since
		}
		return asComments(g.Issues.ListComments(g.ctx, g.owner, g.repo, at.number, opts))
	}))
	if err != nil || found.id != 0 || to.kind != postLine {
		return found, err
	}
	return s.search(me, delivery, postLine, pages(ctx, s.client, at.repo, list, maxPages, func(g api, p github.ListOptions) ([]*comment, *github.Response, error) {
		return asLines(g.PullRequests.ListComments(g.ctx, g.owner, g.repo, at.number, &github.PullRequestListCommentsOptions{Since: since, ListOptions: p}))
	}))
}

func (s *sender) search(me identity, delivery string, kind postKind, all iter.Seq2[*comment, error]) (post, error) {
	for c, err := range all {
		if err != nil {
			return post{}, err
		}
		if s.me.isOurs(me, c) && deliveryIn(c.GetBody()) == delivery {
			return post{kind: kind, id: c.GetID(), root: c.GetInReplyTo()}, nil
		}
	}
	return post{}, nil
}
