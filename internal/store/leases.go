package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// ClaimLease implements commit.LeaseStore. Time is the database's.
func (t *Leases) ClaimLease(
	ctx context.Context, conversationID, owner string, ttl time.Duration,
) (l sessions.Lease, c sessions.Conversation, ok bool, err error) {
	if owner == "" {
		return l, c, false, fault.New(fault.Invalid, "A lease needs an owner.")
	}
	ok, err = t.tx.one(ctx, scanConversation(&c), `
		UPDATE remote_agent_conversations
		SET lease_owner = $2, lease_until = {now} + $3, lease_epoch = lease_epoch + 1
		WHERE id = $1 AND (lease_owner IS NULL OR lease_until <= {now})
		RETURNING `+conversationColumns, conversationID, owner, ttl.Milliseconds())
	if err != nil {
		return l, c, false, fmt.Errorf("claim lease: %w", err)
	}
	if ok {
		t.tx.touches(conversationID)
		return sessions.Lease{ConversationID: conversationID, Owner: owner, Epoch: c.Epoch}, c, true, nil
	}
	_, err = t.tx.Conversations().Conversation(ctx, conversationID) // held, or no conversation at all
	return l, c, false, err
}

// HoldLease implements commit.LeaseStore. A lease that ran out is current until somebody
// else claims it.
func (t *Leases) HoldLease(ctx context.Context, l sessions.Lease) (sessions.Conversation, error) {
	var c sessions.Conversation
	ok, err := t.tx.one(ctx, scanConversation(&c), `
		SELECT `+conversationColumns+` FROM remote_agent_conversations
		WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3 {lock}`,
		l.ConversationID, l.Owner, l.Epoch)
	if err != nil {
		return sessions.Conversation{}, fmt.Errorf("hold lease: %w", err)
	}
	if !ok {
		return sessions.Conversation{}, leaseLost()
	}
	t.tx.touches(l.ConversationID)
	return c, nil
}

func leaseLost() error {
	return &fault.Error{Kind: fault.Conflict, Err: sessions.ErrLeaseLost}
}

// AcquireNamed takes or renews the lease with a free name. It reports whether
// owner has it now.
func (t *Leases) AcquireNamed(ctx context.Context, name, owner string, ttl time.Duration) (bool, error) {
	n, err := t.tx.exec(ctx, `
		INSERT INTO named_leases (name, owner, lease_until) VALUES ($1, $2, {now} + $3)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
		WHERE named_leases.owner = excluded.owner OR named_leases.lease_until <= {now}`,
		name, owner, ttl.Milliseconds())
	return n == 1, wrap(err, "acquire named lease")
}

// ReleaseNamed gives a named lease up if owner has it.
func (t *Leases) ReleaseNamed(ctx context.Context, name, owner string) error {
	return t.tx.run(ctx, "release named lease", `DELETE FROM named_leases WHERE name = $1 AND owner = $2`, name, owner)
}

// ClearLeases ends all leases on SQLite, where the one process that may have
// held them is gone; call it at start, before any work. On PostgreSQL it does
// nothing: other replicas hold leases, and Life voids those of the dead.
func (s *Store) ClearLeases(ctx context.Context) error {
	if s.pg != nil {
		return nil
	}
	return s.InTx(ctx, func(t *Tx) error {
		return t.runAll(ctx, "clear leases", []string{
			`UPDATE remote_agent_conversations SET lease_owner = NULL, lease_until = 0 WHERE lease_owner IS NOT NULL`,
			`DELETE FROM named_leases`,
			`UPDATE memory_lessons SET next_ms = 0 WHERE claim <> ''`,
			// Answers to commands that the dead process had to itself.
			`UPDATE deliveries SET next_ms = 0 WHERE control AND next_ms > 0 AND state IN ('pending', 'sending', 'placed')`,
		})
	})
}
