// Package work keeps the codebases that conversations work on: it registers them
// with their command files, prepares the worktree of a turn, and puts worktrees
// away that have rested. The chat commands about it are in package chat.
package work

import (
	"log/slog"

	"remote-agent/internal/codebase"
	"remote-agent/internal/store"
)

// Config configures a Service.
type Config struct {
	Store     *store.Store
	Workspace *codebase.Workspace
	Log       *slog.Logger
}

// Service keeps codebases. It is safe for concurrent use.
type Service struct {
	store *store.Store
	space *codebase.Workspace
	log   *slog.Logger
}

// New returns a Service.
func New(config Config) *Service {
	return &Service{store: config.Store, space: config.Workspace, log: config.Log}
}
