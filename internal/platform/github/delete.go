package github

import (
	"context"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

var _ platform.Deleter = (*Adapter)(nil)

// Delete implements platform.Deleter.
func (a *Adapter) Delete(ctx context.Context, ref messages.Ref) error {
	at, p, err := parseRef(ref)
	if err != nil {
		return err
	}
	if p.kind != postComment && p.kind != postLine {
		return fault.Newf(fault.NotFound, "%q is not a comment of the bot.", ref.Message)
	}
	_, _, err = inRepo(ctx, a, at.repo, op{name: "deleting a comment"}, func(g api) (nothing, *github.Response, error) {
		if p.kind == postLine {
			resp, err := g.PullRequests.DeleteComment(g.ctx, g.owner, g.repo, p.id)
			return nothing{}, resp, err
		}
		resp, err := g.Issues.DeleteComment(g.ctx, g.owner, g.repo, p.id)
		return nothing{}, resp, err
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
