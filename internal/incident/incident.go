// Package incident tells owners of trouble with the service itself: once when it
// begins, and once when it is over.
//
// It decides when something is an incident; what is looked at, how owners are told
// and where it is on record is the application's.
package incident

import (
	"context"
	"errors"
	"time"
)

// Condition is something that was looked at.
type Condition struct {
	Key string // names the incident, as "platform/slack"; unique, at most 200 bytes

	// Bad reports whether there is trouble now. Text says so to owners, Resolved that
	// it is over.
	Bad            bool
	Text, Resolved string

	// After is how long it has to last until owners are told. Zero is at once.
	After time.Duration
}

// Ledger remembers which incidents are open, over restarts and for all replicas, and
// tells owners. Both methods do nothing, and tell nobody, if the incident is in that
// state already; recording and telling are one step that happens or does not.
type Ledger interface {
	Begin(ctx context.Context, key, text string) error
	Resolve(ctx context.Context, key, text string) error
}

// Watch turns what is seen again and again into incidents. Its zero value is ready. It
// is not safe for concurrent use.
type Watch struct {
	since map[string]time.Time // since when there is trouble
}

// Observe takes note of what was seen at a time. An error of the ledger is returned
// and means that the same is tried with the next call.
func (w *Watch) Observe(ctx context.Context, now time.Time, ledger Ledger, seen ...Condition) error {
	if w.since == nil {
		w.since = make(map[string]time.Time)
	}
	var errs []error
	for _, c := range seen {
		if !c.Bad {
			delete(w.since, c.Key)
			errs = append(errs, ledger.Resolve(ctx, c.Key, c.Resolved))
			continue
		}
		began, known := w.since[c.Key]
		if !known {
			began = now
			w.since[c.Key] = now
		}
		if now.Sub(began) >= c.After {
			errs = append(errs, ledger.Begin(ctx, c.Key, c.Text))
		}
	}
	return errors.Join(errs...)
}
