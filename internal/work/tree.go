package work

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// WorktreeFor returns the worktree of a conversation, begun where its platform says
// that the work belongs.
func (s *Service) WorktreeFor(ctx context.Context, c sessions.Codebase, conv sessions.Conversation, about *messages.Repository) (codebase.Tree, error) {
	if about == nil {
		return s.tree(ctx, c, conv)
	}
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return codebase.Tree{}, err
	}
	if repo.URL != "" && !sameRepository(repo.URL, about.URL) {
		return s.tree(ctx, c, conv) // the conversation was switched to another repository
	}
	start := codebase.Start{Branch: about.Branch, Base: about.Base, Existing: about.Existing, Head: about.Head}
	if about.ReadOnly {
		if about.Fetch == "" {
			return codebase.Tree{}, fault.New(fault.Unavailable, "Could not find the branch of this pull request. Try again in a minute.")
		}
		start = codebase.Start{Fetch: about.Fetch, Base: about.Base, Head: about.Head}
	}
	t, err := s.space.WorktreeAt(ctx, repo, conv.WorkID(), start)
	if fault.Is(err, fault.NotFound) && about.Existing && about.Fetch != "" { // closed, and its branch is gone
		t, err = s.space.WorktreeAt(ctx, repo, conv.WorkID(), codebase.Start{Fetch: about.Fetch, Head: about.Head})
	}
	if err != nil {
		return t, fmt.Errorf("prepare the worktree: %w", err)
	}
	return t, s.registerNew(ctx, c, t)
}

// sameRepository compares two addresses for git.
func sameRepository(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, ".git"), strings.TrimSuffix(b, ".git"))
}
