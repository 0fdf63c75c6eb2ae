package github

import (
	"context"
	"net/url"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// The reactions that stand for marks. GitHub has eight.
const (
	reactSeen   = "eyes"
	reactDone   = "+1"
	reactFailed = "confused"
)

// reactables are the operations for reactions to one kind of post. What a review
// says as a whole takes none.
type reactables struct{ list, add, remove route }

var reactionsOf = map[postKind]reactables{
	postBody:    {routeIssueReactions, routeReactIssue, routeUnreactIssue},
	postComment: {routeCommentReactions, routeReactComment, routeUnreactComment},
	postLine:    {routeLineReactions, routeReactLine, routeUnreactLine},
}

// Mark implements platform.Marker with a reaction, which takes the place of the
// one before it. Adding one again changes nothing (contract C16). It does not
// wait for rate limits.
func (a *Adapter) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	at, p, err := parseRef(ref)
	if err != nil {
		return err
	}
	routes, ok := reactionsOf[p.kind]
	if !ok {
		return nil
	}
	want := ""
	switch mark {
	case platform.MarkSeen, platform.MarkQueued:
		want = reactSeen
	case platform.MarkDone:
		want = reactDone
	case platform.MarkFailed:
		want = reactFailed
	case platform.MarkNone:
	}
	who, err := a.callerFor(ctx, at.repo)
	if err != nil {
		return err
	}
	if want != "" {
		r := request{route: routes.add, args: repoArgs(at.repo, p.id), body: map[string]string{"content": want}, idempotent: true}
		if err := a.shed(ctx, who, r, nil); err != nil {
			return err
		}
	}
	if want == reactSeen {
		return nil // the first one; there is nothing before it
	}
	return a.takeBack(ctx, who, at, p, routes, want)
}

// takeBack removes the bot's reactions but keep.
func (a *Adapter) takeBack(ctx context.Context, who caller, at place, p post, routes reactables, keep string) error {
	me, err := a.whoami(ctx)
	if err != nil {
		return err
	}
	var all many[reaction]
	list := request{route: routes.list, args: repoArgs(at.repo, p.id), idempotent: true, query: url.Values{"per_page": {"100"}}}
	if err := a.shed(ctx, who, list, &all); err != nil {
		return err
	}
	for _, r := range all.all {
		mine := r.User.Login == me.login && (a.cfg.AppID != "" || r.User.ID == me.id)
		if !mine || r.Content == keep || !slices.Contains([]string{reactSeen, reactDone, reactFailed}, r.Content) {
			continue
		}
		remove := request{route: routes.remove, args: repoArgs(at.repo, p.id, r.ID), idempotent: true}
		if err := a.shed(ctx, who, remove, nil); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}
