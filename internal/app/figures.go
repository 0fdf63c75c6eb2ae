package app

import (
	"context"
	"sync"
	"time"

	"remote-agent/internal/metrics"
	"remote-agent/internal/resource"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// figuresEvery is how old the figures of /metrics may be, however often they are asked for.
const figuresEvery = 5 * time.Second

// figures measures for /metrics what nobody counts. It is safe for concurrent use.
type figures struct {
	store   *store.Store
	data    string              // the folder whose disk is looked at
	backups string              // the folder
	limits  func() spend.Budget // as they are now
	stalled func() metrics.Stalled

	mu   sync.Mutex // guards both below, and is held while it is measured
	at   time.Time
	last metrics.Figures
}

// measure returns the figures. What the database does not say within a second is left out.
func (f *figures) measure(ctx context.Context) metrics.Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if age := now.Sub(f.at); age >= 0 && age < figuresEvery {
		return f.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout) // others get it, too
	defer cancel()
	next := metrics.Figures{Budget: -1, Stalled: f.stalled()}
	counts, err := store.Within(ctx, f.store.InRead, func(tx *store.Tx) (store.QueueCounts, error) { return tx.Queue().Count(ctx, now) })
	if err == nil {
		next.Inbox = metrics.Backlog{Known: true, Depth: counts.Waiting, Oldest: ageOf(counts.WaitingSince, now)}
		next.Outbox = metrics.Backlog{Known: true, Depth: counts.Deliveries, Oldest: ageOf(counts.UnsentSince, now)}
	}
	if used, ok := usedToday(ctx, f.store, f.limits()); ok {
		next.Budget = used
	}
	next.Disk.Free, next.Disk.Total = resource.DiskSpace(f.data)
	if newest, ok := newestBackup(f.backups); ok {
		next.Backup = newest.Manifest.CreatedAt
	}
	f.at, f.last = now, next
	return next
}

// ageOf is how long ago something was; 0 if it never was.
func ageOf(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t), 0)
}

// spentToday is what all people used since the day began.
func spentToday(ctx context.Context, s *store.Store) (spend.Sum, error) {
	return store.Within(ctx, s.InRead, func(tx *store.Tx) (spend.Sum, error) {
		return tx.Spending().SumUsage(ctx, spend.Filter{Since: spend.Today(time.Now())})
	})
}

// usedToday is the part of the day's budget that is used; ok is false without a budget, and
// if it cannot be read.
func usedToday(ctx context.Context, s *store.Store, b spend.Budget) (used float64, ok bool) {
	if b.DayMicros+b.DayTokens == 0 {
		return 0, false
	}
	sum, err := spentToday(ctx, s)
	if err != nil {
		return 0, false
	}
	part := func(n, of int64) float64 { return float64(n) / float64(max(of, 1)) }
	if b.DayMicros > 0 {
		used = part(sum.Micros, b.DayMicros)
	}
	if b.DayTokens > 0 {
		used = max(used, part(sum.UnpricedToken, b.DayTokens))
	}
	return used, true
}
