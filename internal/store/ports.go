//nolint:revive // what a method does says the part that has it
package store

import (
	"context"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/memory"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// Port is a transaction to those who know its parts as interfaces only. Each of its
// methods returns the part of that name.
type Port struct{ *Tx }

func (p Port) Conversations() sessions.ConversationStore { return p.Tx.Conversations() }
func (p Port) Leases() commit.LeaseStore                 { return p.Tx.Leases() }
func (p Port) Inbox() sessions.InboxStore                { return p.Tx.Inbox() }
func (p Port) Sessions() sessions.SessionStore           { return p.Tx.Sessions() }
func (p Port) Messages() sessions.MessageStore           { return p.Tx.Messages() }
func (p Port) Deliveries() sessions.DeliveryStore        { return p.Tx.Deliveries() }
func (p Port) Questions() approval.Store                 { return p.Tx.Questions() }
func (p Port) Proposals() plan.Store                     { return p.Tx.Proposals() }
func (p Port) Spending() spend.Store                     { return p.Tx.Spending() }
func (p Port) Profiles() profile.Store                   { return p.Tx.Profiles() }
func (p Port) Tasks() sessions.TaskStore                 { return p.Tx.Tasks() }
func (p Port) People() sessions.PeopleStore              { return p.Tx.People() }
func (p Port) Registry() sessions.CodebaseStore          { return p.Tx.Registry() }
func (p Port) Calls() sessions.CallStore                 { return p.Tx.Calls() }
func (p Port) Buttons() command.ButtonStore              { return p.Tx.Buttons() }

// Through is a Store through a port with transactions of its own, which it may not know: Go
// does not convert function types by itself.
type Through[T any] struct {
	Store *Store
	As    func(tx *Tx) T
}

func (s Through[T]) Commit(ctx context.Context, l sessions.Lease, c commit.Changes) (commit.News, error) {
	return s.Store.Commit(ctx, l, c)
}

func (s Through[T]) InTx(ctx context.Context, fn func(tx T) error) error {
	return s.Store.InTx(ctx, func(tx *Tx) error { return fn(s.As(tx)) })
}

func (s Through[T]) InRead(ctx context.Context, fn func(tx T) error) error {
	return s.Store.InRead(ctx, func(tx *Tx) error { return fn(s.As(tx)) })
}

func (s Through[T]) ReadOnce(ctx context.Context, fn func(tx T) error) error {
	return s.Store.ReadOnce(ctx, func(tx *Tx) error { return fn(s.As(tx)) })
}

// What follows is of other parts, for packages that need it beside what is theirs.

func (t *Messages) HasFile(ctx context.Context, hash string) (bool, error) {
	return t.tx.Files().Has(ctx, hash)
}

func (t *Messages) HoldFile(ctx context.Context, hash string) (bool, error) {
	return t.tx.Files().Hold(ctx, hash)
}

func (t *Memories) Audit(ctx context.Context, e sessions.AuditEntry) error { return t.tx.Audit(ctx, e) }

func (t *Memories) SweepLinkCodes(ctx context.Context, now, since time.Time) error {
	return t.tx.Persons().SweepLinkCodes(ctx, now, since)
}

func (t *Lessons) Entry(ctx context.Context, id string) (sessions.Entry, error) {
	return t.tx.Inbox().Entry(ctx, id)
}

func (t *Lessons) Conversation(ctx context.Context, id string) (sessions.Conversation, error) {
	return t.tx.Conversations().Conversation(ctx, id)
}

func (t *Lessons) MemoryOn(ctx context.Context, account string) (bool, error) {
	return t.tx.Memories().MemoryOn(ctx, account)
}

func (t *Lessons) NearFact(ctx context.Context, f memory.Fact) (old memory.Memory, ok bool, err error) {
	return t.tx.Memories().NearFact(ctx, f)
}

func (t *Lessons) UpsertFact(ctx context.Context, f memory.Fact) (memory.Outcome, error) {
	return t.tx.Memories().UpsertFact(ctx, f)
}

func (t *Lessons) InsertEpisode(ctx context.Context, e memory.Episode) (memory.Outcome, error) {
	return t.tx.Memories().InsertEpisode(ctx, e)
}

func (t *Lessons) SumUsage(ctx context.Context, f spend.Filter) (spend.Sum, error) {
	return t.tx.Spending().SumUsage(ctx, f)
}

func (t *Lessons) AddUsage(ctx context.Context, r spend.Record) error {
	return t.tx.Spending().AddUsage(ctx, r)
}
