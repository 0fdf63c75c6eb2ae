package github

import (
	"context"
	"slices"

	"github.com/google/go-github/v62/github"

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

// marks are the bot's reactions.
type marks struct {
	client *client
	me     *account
}

// Mark implements platform.Marker with a reaction, which takes the place of the
// one before it. Adding one again changes nothing (contract C16). It does not
// wait for rate limits.
func (m *marks) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	at, p, err := parseRef(ref)
	if err != nil {
		return err
	}
	if p.kind == postReview {
		return nil // what a review says as a whole takes none
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
	if want != "" {
		_, _, err := inRepo(ctx, m.client, at.repo, op{name: "adding a reaction", shed: true}, func(g api) (*github.Reaction, *github.Response, error) {
			switch p.kind {
			case postComment:
				return g.Reactions.CreateIssueCommentReaction(g.ctx, g.owner, g.repo, p.id, want)
			case postLine:
				return g.Reactions.CreatePullRequestCommentReaction(g.ctx, g.owner, g.repo, p.id, want)
			case postBody, postReview:
			}
			return g.Reactions.CreateIssueReaction(g.ctx, g.owner, g.repo, int(p.id), want)
		})
		if err != nil {
			return err
		}
	}
	if want == reactSeen {
		return nil // the first one; there is nothing before it
	}
	return m.takeBack(ctx, at, p, want)
}

// takeBack removes the bot's reactions but keep.
func (m *marks) takeBack(ctx context.Context, at place, p post, keep string) error {
	me, err := m.me.whoami(ctx)
	if err != nil {
		return err
	}
	all, _, err := inRepo(ctx, m.client, at.repo, op{name: "listing reactions", shed: true}, func(g api) ([]*github.Reaction, *github.Response, error) {
		page := &github.ListOptions{PerPage: pageSize}
		switch p.kind {
		case postComment:
			return g.Reactions.ListIssueCommentReactions(g.ctx, g.owner, g.repo, p.id, page)
		case postLine:
			return g.Reactions.ListPullRequestCommentReactions(g.ctx, g.owner, g.repo, p.id, page)
		case postBody, postReview:
		}
		return g.Reactions.ListIssueReactions(g.ctx, g.owner, g.repo, int(p.id), page)
	})
	if err != nil {
		return err
	}
	for _, r := range all {
		mine := r.GetUser().GetLogin() == me.login && (m.client.appID != "" || r.GetUser().GetID() == me.id)
		if !mine || r.GetContent() == keep || !slices.Contains([]string{reactSeen, reactDone, reactFailed}, r.GetContent()) {
			continue
		}
		_, err := m.client.inRepo(ctx, at.repo, op{name: "removing a reaction", shed: true}, func(g api) (*github.Response, error) {
			switch p.kind {
			case postComment:
				return g.Reactions.DeleteIssueCommentReaction(g.ctx, g.owner, g.repo, p.id, r.GetID())
			case postLine:
				return g.Reactions.DeletePullRequestCommentReaction(g.ctx, g.owner, g.repo, p.id, r.GetID())
			default:
				return g.Reactions.DeleteIssueReaction(g.ctx, g.owner, g.repo, int(p.id), r.GetID())
			}
		})
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}
