package app

import (
	"context"
	"log/slog"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
	"remote-agent/migrations"
)

// singleTTL is how long a named lease holds without being renewed, and so the
// longest pause in a poll after its replica froze; that of a dead one is void at
// once. singleAsk is how often the others ask for it.
const (
	singleTTL = 15 * time.Second
	singleAsk = time.Second

	// askAgain is how often a platform that did not answer is asked who the bot is.
	askAgain = 5 * time.Second
)

// singleton returns the name of the lease that an adapter needs to receive, or
// nothing if every replica may: the adapter is sent its events, belongs to this
// terminal, or there is only one process on the database. The name has the bot's account
// there, so it waits until the platform has told it: a replica that was started while the
// platform did not answer would hold another lease than the others, and receive beside them.
func (pl *platforms) singleton(ctx context.Context, a platform.Adapter) (string, error) {
	if pl.store.Dialect() != string(migrations.Postgres) || a == platform.Adapter(pl.console) || a == platform.Adapter(pl.talk) || pl.intakeOf(a) != platform.Polled {
		return "", nil
	}
	for {
		if account, answered := pl.account(a.Platform()); answered {
			return "receive/" + string(a.Platform()) + "/" + account.ID, nil
		}
		if !sleep(ctx, askAgain) {
			return "", ctx.Err()
		}
		if err := pl.ask(ctx, a); fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.Invalid) {
			return "", err
		}
	}
}

// leases are what one process of all on a database may have at a time, by name.
type leases struct {
	store *store.Store
	log   *slog.Logger
	owner string // whose leases are void when this process dies
}

// run runs fn while this process holds the named lease, again and again
// until ctx ends or fn fails. fn's context ends before the lease can be taken by
// another replica.
func (l leases) run(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	defer l.release(ctx, name)
	for {
		if held, _ := l.acquire(ctx, name); held {
			l.log.InfoContext(ctx, "this replica receives", "lease", name)
			err := l.whileHeld(ctx, name, fn)
			if ctx.Err() != nil || fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.Invalid) {
				return err
			}
		}
		if !sleep(ctx, singleAsk) {
			return nil
		}
	}
}

// whileHeld runs fn until it returns or the lease cannot be renewed.
func (l leases) whileHeld(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for sleep(ctx, singleTTL/3) {
			held, err := l.acquire(ctx, name)
			if !held && err == nil {
				l.log.WarnContext(ctx, "another replica has the lease now", "lease", name)
			}
			if !held {
				return
			}
		}
	}()
	err := fn(ctx)
	cancel()
	<-done
	return err
}

// acquire takes or renews a lease. A database that does not answer in time
// is a no, with the reason.
func (l leases) acquire(ctx context.Context, name string) (held bool, err error) {
	asking, cancel := context.WithTimeout(ctx, singleTTL/3)
	defer cancel()
	held, err = store.Within(asking, l.store.InTx, func(tx *store.Tx) (bool, error) {
		return tx.Leases().AcquireNamed(asking, name, l.owner, singleTTL)
	})
	if err != nil && ctx.Err() == nil {
		l.log.WarnContext(ctx, "could not acquire a lease", "lease", name, "err", err)
	}
	return held && err == nil, err
}

func (l leases) release(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := l.store.InTx(ctx, func(tx *store.Tx) error { return tx.Leases().ReleaseNamed(ctx, name, l.owner) })
	if err != nil {
		l.log.InfoContext(ctx, "could not release a lease; it expires on its own", "lease", name, "err", err)
	}
}

// sleep waits for d. It reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool { return platform.Sleep(ctx, d) == nil }
