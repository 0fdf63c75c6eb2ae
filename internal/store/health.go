package store

import (
	"context"
	"fmt"

	"remote-agent/internal/fault"
)

// CheckSchema reports whether the schema is exactly the one this binary knows:
// fault.Invalid if a newer one has changed it, fault.Unavailable if migrations
// are missing or the database does not answer.
func (s *Store) CheckSchema(ctx context.Context) (err error) {
	provider, db, err := s.provider()
	if err != nil {
		return err
	}
	defer s.closeProvider(db, &err)
	if err := s.refuseNewer(ctx, provider); err != nil {
		return err
	}
	pending, err := provider.HasPending(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read schema version: %w", s.classify(err))
	case pending:
		return fault.New(fault.Unavailable, "migrations are missing; `bot migrate up` applies them")
	}
	return nil
}
