package work

import (
	"context"
	"fmt"

	"remote-agent/internal/codebase"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// adopt gives a conversation without a codebase the repository that its platform
// says it is about: found if it is there already, cloned if not. It is safe to
// repeat after a crash.
func (s *Service) adopt(ctx context.Context, conv sessions.Conversation, entry sessions.Entry) (sessions.Conversation, error) {
	about := entry.In.Repository
	if conv.CodebaseID != "" || about == nil {
		return conv, nil
	}
	repo, err := s.space.Clone(ctx, about.URL, nil)
	if err != nil {
		return conv, fmt.Errorf("clone: %w", err)
	}
	c, _, problems, err := s.Register(ctx, repo)
	if err != nil {
		return conv, err
	}
	for _, p := range problems {
		s.log.InfoContext(ctx, "a command file was not loaded", "codebase", c.Name, "problem", p)
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{CodebaseID: &c.ID}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: entry.In.Actor(), Action: "conversation.codebase",
			ConversationID: conv.ID, Target: c.ID,
		})
	})
	if err != nil {
		return conv, fmt.Errorf("link the repository: %w", err)
	}
	conv.CodebaseID = c.ID
	return conv, nil
}

// Fork gives a conversation a worktree of its own that begins as that of another one
// of the same codebase is now. It returns that other one, with what is to be known of it,
// and what could not be taken along, for a person. A second time it changes nothing.
func (s *Service) Fork(ctx context.Context, from, to sessions.Conversation) (codebase.Tree, []string, error) {
	_, tree, err := s.Worktree(ctx, from)
	if err != nil {
		return tree, nil, err
	}
	left, err := s.space.Fork(ctx, tree, to.WorkID())
	if err != nil {
		return tree, nil, fmt.Errorf("fork the worktree: %w", err)
	}
	return tree, left, nil
}

// Release implements orchestrator.Worktrees: the worktree is put away, and what
// is in it is saved. The next turn brings it back.
func (s *Service) Release(ctx context.Context, conv sessions.Conversation) error {
	c, err := s.Codebase(ctx, conv)
	if err != nil {
		return err
	}
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return err
	}
	if _, err := s.space.Release(ctx, repo, conv.WorkID()); err != nil {
		return fmt.Errorf("put the worktree away: %w", err)
	}
	return nil
}
