// Package port is what the engine needs of the database, as interfaces.
package port

import (
	"context"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// Storage is the database. It is safe for
// concurrent use. Errors are classified: fault.NotFound for a missing row,
// fault.Conflict for a lost race (it wraps sessions.ErrLeaseLost where a lease
// was lost), fault.Unavailable when the database does not answer.
type Storage interface {
	// InTx runs fn in one transaction and commits it durably if fn returns nil.
	// fn may run more than once (a serialization failure, a group commit that
	// has to be repeated), so it must set the variables it captures from
	// scratch; it uses only tx and never calls out of the process. A panic in
	// fn rolls back and is passed on.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// Commit applies changes in one transaction that begins with the fence of the
	// lease, durably, and returns how the conversation stands then. It is
	// sessions.ErrLeaseLost, and nothing is changed, if l is not current any more.
	Commit(ctx context.Context, l sessions.Lease, c commit.Changes) (commit.News, error)

	// InRead runs fn in a read-only snapshot that does not wait for writers.
	InRead(ctx context.Context, fn func(tx Tx) error) error
}

// Tx is one transaction. What it can do is told by those whose rows it reads and
// writes, in parts: all of them belong to the same transaction.
type Tx interface {
	queue.Tx

	// Abreast runs n parts of the transaction, one of them at a time, so that what
	// they ask of the database is asked together where that saves time. No part may
	// depend on another one. It returns the first error.
	Abreast(ctx context.Context, n int, part func(i int) error) error

	// Audit appends to the audit log.
	Audit(ctx context.Context, e sessions.AuditEntry) error

	// What a turn is made of.
	Conversations() sessions.ConversationStore
	Leases() commit.LeaseStore
	Inbox() sessions.InboxStore
	Sessions() sessions.SessionStore
	Messages() sessions.MessageStore
	Calls() sessions.CallStore
	Deliveries() sessions.DeliveryStore

	// What the engine only serves.
	Buttons() command.ButtonStore
	Questions() approval.Store
	Proposals() plan.Store
	Spending() spend.Store
	Profiles() profile.Store
	Tasks() sessions.TaskStore
	People() sessions.PeopleStore
	Registry() sessions.CodebaseStore
}
