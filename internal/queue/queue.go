// Package queue rings doorbells: jobs that say "look after this conversation",
// now or later, on any replica. Where several processes share a database River keeps
// them in it; where there is one, a timer does.
//
// The inbox is the truth and a job is only a wake-up: one that is lost, late or
// doubled changes nothing, because a periodic sweep rings again for every
// conversation that has work and no live lease.
package queue

import (
	"context"
	"errors"
	"time"
)

// Kind names what a job does. It is stored.
type Kind string

// The kinds of jobs.
const (
	KindTurn  Kind = "turn"  // Key is a conversation id
	KindSweep Kind = "sweep" // periodic; Key is empty
)

// Job is a wake-up. Keep it tiny.
type Job struct {
	Kind Kind
	Key  string
	At   time.Time // zero means now

	// Behind lets those go first that are due as well and have it not.
	Behind bool
}

// Tx is a transaction of the store.
type Tx interface {
	// Handle returns the driver's own transaction: pgx.Tx on PostgreSQL.
	Handle() any

	// AfterCommit has fn called once the transaction is committed, and not otherwise.
	AfterCommit(fn func())
}

// ErrBusy is returned by a Handler that has no free slot: the job is offered
// again shortly, on any replica, and no attempt is counted.
var ErrBusy = errors.New("queue: no free slot")

// Handler works on a job: it starts the work and returns, it does not wait for
// a turn to end. It may be called twice for one job, and at the same
// time on two replicas. Its error is logged; ErrBusy means again, any other
// error is retried a few times and then dropped.
type Handler func(ctx context.Context, job Job) error

// Queue stores wake-ups and hands them out. It is safe for concurrent use.
type Queue interface {
	// Enqueue stores jobs in tx: they exist if and only if tx commits.
	Enqueue(ctx context.Context, tx Tx, jobs ...Job) error

	// Run hands jobs to the handlers until ctx is done. Then it takes no more,
	// waits for the running ones, which are short, and returns nil.
	Run(ctx context.Context, handlers map[Kind]Handler) error
}
