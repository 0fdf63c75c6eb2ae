package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
)

const (
	// listenClass is the first key of the advisory locks of lives that listen to offers.
	// Versions that do not have no such lock.
	listenClass = lifeClass + 1

	// listensFor is how long after it was heard of last a process counts as one that takes
	// offers: a frozen one is offered none for longer.
	listensFor = lifeBeat + lifeTimeout/2

	// mostOffered is how many ids of 36 bytes a notification holds, of 8000 bytes at most.
	mostOffered = 200
)

// offers is the channel on which a process hears what it is offered.
func offers(owner string) string { return "bot_offers_" + owner }

// Takers returns the other processes on the database that take offers, as this one saw
// them within the last half second, in their order; see Leases.Offer. It does no I/O. The
// caller must not change the list.
func (s *Store) Takers() []string {
	if takers := s.company.takers.Load(); takers != nil {
		return *takers
	}
	return nil
}

// Offer implements commit.LeaseStore. On SQLite, where there is no other process, it is a
// fault.Unsupported.
func (t *Leases) Offer(ctx context.Context, taker string, conversationIDs ...string) error {
	if t.tx.pg == nil {
		return fault.New(fault.Unsupported, "There is no other process on this database.")
	}
	for some := range slices.Chunk(conversationIDs, mostOffered) {
		if _, err := t.tx.exec(ctx, `SELECT pg_notify($1, $2)`, offers(taker), strings.Join(some, " ")); err != nil {
			return wrap(err, "offer conversations")
		}
	}
	return nil
}

// subscribe begins to listen to offers, and has others see that by a lock.
func (l *Life) subscribe(ctx context.Context) error {
	if l.config.Offered == nil {
		return nil
	}
	if _, err := l.conn.Exec(ctx, `LISTEN `+pgx.Identifier{offers(l.config.Owner)}.Sanitize()); err != nil {
		return err
	}
	_, err := l.conn.Exec(ctx, `SELECT pg_try_advisory_lock($1::int, $2::int)`, listenClass, l.key)
	return err
}

// listen hands on what this process is offered, until d has passed or ctx ends.
func (l *Life) listen(ctx context.Context, d time.Duration) {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for l.config.Offered != nil && l.conn != nil && over.Err() == nil {
		n, err := l.conn.WaitForNotification(over)
		if err != nil {
			if l.conn.IsClosed() {
				l.hangUp(ctx) // the next step connects again
			}
			break
		}
		l.config.Offered(ctx, strings.Fields(n.Payload))
	}
	<-over.Done()
}
