package app

import (
	"context"

	"remote-agent/internal/commit"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

var (
	_ orchestrator.Storage = storage{}
	_ orchestrator.Tx      = (*store.Tx)(nil)
)

// storage shows the store through the orchestrator's port. The store may not
// know the port, and Go does not convert function types by itself.
type storage struct{ store *store.Store }

// InTx implements orchestrator.Storage.
func (s storage) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.store.InTx(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// Commit implements orchestrator.Storage.
func (s storage) Commit(ctx context.Context, l sessions.Lease, c commit.Changes) (commit.News, error) {
	return s.store.Commit(ctx, l, c)
}

// InRead implements orchestrator.Storage.
func (s storage) InRead(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.store.InRead(ctx, func(tx *store.Tx) error { return fn(tx) })
}
