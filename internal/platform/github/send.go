package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	pageSize = 100

	// maxPages bounds a lookup: 2000 comments since the delivery was made.
	maxPages = 20

	// clockSkew is how far GitHub's clock and ours may differ in a lookup.
	clockSkew = 2 * time.Minute

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

type bodyOnly struct {
	Body string `json:"body"`
}

// post makes one comment.
func (a *Adapter) post(ctx context.Context, at place, to post, body string, optional bool) (post, error) {
	made := post{kind: postComment}
	r := request{route: routeAddComment, args: repoArgs(at.repo, at.number), body: bodyOnly{body}}
	if to.kind == postLine {
		made = post{kind: postLine, root: to.thread()}
		r.route, r.args = routeReply, repoArgs(at.repo, at.number, to.thread())
	}
	var out comment
	err := a.inRepoOrShed(ctx, at.repo, r, &out, optional)
	if to.kind == postLine && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid)) {
		// The thread is gone, not the pull request: answer below it.
		return a.post(ctx, at, post{}, body, optional)
	}
	switch {
	case err == nil && out.ID < 1:
		return made, &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: errNoID}
	case fault.Is(err, fault.NotFound):
		// Deleted, moved, or taken from us: all of them answer so.
		return made, &fault.Error{Kind: fault.Gone, Public: "The issue is not there any more, or I may not see it.", Err: err}
	case refusedWith(err, 403, "locked"), refusedWith(err, 403, "archived"):
		return made, &fault.Error{Kind: fault.Gone, Public: fault.Public(err), Err: err}
	}
	made.id = out.ID
	return made, err
}

// Edit implements platform.Editor. The mark of the delivery stays.
func (a *Adapter) Edit(ctx context.Context, e platform.Edit) error {
	at, p, err := parseRef(e.Ref)
	if err != nil {
		return err
	}
	if p.kind != postComment && p.kind != postLine {
		return fault.Newf(fault.NotFound, "%q is not a comment of mine.", e.Ref.Message)
	}
	delivery, err := a.deliveryOf(ctx, at, p, e)
	if err != nil {
		return err
	}
	body, err := a.compose(e.Text, e.Buttons, delivery)
	if err != nil {
		return err
	}
	r := request{route: routeEditComment, args: repoArgs(at.repo, p.id), body: bodyOnly{body}, idempotent: true}
	if p.kind == postLine {
		r.route = routeEditLine
	}
	if err = a.inRepoOrShed(ctx, at.repo, r, nil, e.Progress); err == nil {
		a.guard.spoke(e.Ref.Conversation.ID, time.Now())
	}
	return err
}

// inRepoOrShed makes a call in a repository; one that is worth nothing later
// does not wait for its turn.
func (a *Adapter) inRepoOrShed(ctx context.Context, repo string, r request, out any, progress bool) error {
	if !progress {
		_, err := a.inRepo(ctx, repo, r, out)
		return err
	}
	who, err := a.callerFor(ctx, repo)
	if err != nil {
		return err
	}
	return a.shed(ctx, who, r, out)
}

// deliveryOf returns the mark of a comment. After a restart the comment is asked.
func (a *Adapter) deliveryOf(ctx context.Context, at place, p post, e platform.Edit) (string, error) {
	if delivery, ok := a.sent.Get(e.Ref.Message); ok {
		return delivery, nil
	}
	r := request{route: routeComment, args: repoArgs(at.repo, p.id), idempotent: true}
	if p.kind == postLine {
		r.route = routeLine
	}
	var out comment
	if err := a.inRepoOrShed(ctx, at.repo, r, &out, e.Progress); err != nil {
		return "", err
	}
	delivery := deliveryIn(out.Body)
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
	r := request{route: routeComments, args: repoArgs(at.repo, at.number), idempotent: true}
	r.query = url.Values{}
	if id, err := uuid.Parse(delivery); err == nil && id.Version() == 7 {
		r.query.Set("since", time.Unix(id.Time().UnixTime()).Add(-clockSkew).UTC().Format(time.RFC3339))
	}
	found, err := a.search(ctx, at.repo, r, me, delivery, postComment)
	if err != nil || found.id != 0 || to.kind != postLine {
		return found, err
	}
	r.route = routeLines
	return a.search(ctx, at.repo, r, me, delivery, postLine)
}

func (a *Adapter) search(ctx context.Context, repo string, r request, me identity, delivery string, kind postKind) (post, error) {
	for c, err := range pages[comment](ctx, a, repo, r, maxPages) {
		if err != nil {
			return post{}, err
		}
		if a.isOurs(me, c) && deliveryIn(c.Body) == delivery {
			return post{kind: kind, id: c.ID, root: c.ReplyTo}, nil
		}
	}
	return post{}, nil
}

// isOurs reports whether the bot wrote a comment.
func (a *Adapter) isOurs(me identity, c comment) bool {
	if a.cfg.AppID == "" {
		return c.User.ID == me.id
	}
	return a.isOurApp(c.ViaApp) || c.User.Type == "Bot" && c.User.Login == me.login
}

// pages yields the elements of a list in GitHub's order, page by page.
func pages[T any](ctx context.Context, a *Adapter, repo string, r request, limit int) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		r.query = cloneQuery(r.query)
		for page := 1; page <= limit; page++ {
			r.query.Set("per_page", strconv.Itoa(pageSize))
			r.query.Set("page", strconv.Itoa(page))
			var out many[T]
			if _, err := a.inRepo(ctx, repo, r, &out); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range out.all {
				if !yield(v, nil) {
					return
				}
			}
			if len(out.all) < pageSize {
				return
			}
		}
	}
}

func cloneQuery(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = slices.Clone(v)
	}
	return out
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
	if p.Changes.Body == nil || p.Sender.ID < 1 || p.Sender.Type != "User" {
		return nil, nil
	}
	before, after := buttonsOf(p.Changes.Body.From), buttonsOf(p.Comment.Body)
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
	in.Message = post{kind: postComment, id: p.Comment.ID}.message()
	in.Sender = a.senderOf(p.Sender)
	in.SentAt = p.Comment.Updated.Time
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
	if a.isOurApp(c.ViaApp) {
		return true
	}
	me := a.self.Load()
	return me != nil && a.isOurs(*me, c)
}
