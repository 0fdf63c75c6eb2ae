package store

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
)

// Abreast runs the parts 0 to n-1 of a transaction, one of them at a time: on SQLite
// one after the other; on PostgreSQL each until it asks the database something, and then
// what all of them ask goes in one round trip, in their order. So n parts that ask k
// things each wait k times and not n*k times. A part must not depend on what another one
// does. It returns the first error, after which nothing of the transaction can be
// committed; the parts that were not done then get an error as well.
func (t *Tx) Abreast(ctx context.Context, n int, part func(i int) error) error {
	if t.pg != nil && n > 1 {
		return t.pg.abreast(ctx, n, part)
	}
	for i := range n {
		if err := part(i); err != nil {
			return err
		}
	}
	return nil
}

// asking adds what is asked to a batch.
type asking func(b *pgx.Batch)

// errAbandoned is what a part gets that another one keeps from going on.
var errAbandoned = fault.New(fault.Canceled, "")

func (p *pipeline) abreast(ctx context.Context, n int, part func(i int) error) error {
	var failed, result error // of the last round trip; of the first part that failed
	open := make([]*strand, n)
	defer func() {
		for _, s := range open {
			p.strand = s
			s.stop()
		}
		p.strand = nil
	}()
	for i := range n {
		s := &strand{}
		s.next, s.stop = iter.Pull(func(yield func(asking) bool) {
			s.ask = func(add asking) error {
				if s.gone = s.gone || !yield(add); s.gone {
					return errAbandoned
				}
				return failed
			}
			if err := part(i); result == nil {
				result = err
			}
		})
		open[i] = s
	}
	for result == nil && len(open) > 0 {
		var asked []asking
		waiting := make([]*strand, 0, len(open))
		for _, s := range open {
			p.strand = s
			if add, ok := s.next(); ok {
				asked, waiting = append(asked, add), append(waiting, s)
			}
		}
		open, p.strand = waiting, nil
		if result == nil && len(asked) > 0 {
			failed = p.send(ctx, func(b *pgx.Batch) {
				for _, add := range asked {
					add(b)
				}
			})
		}
	}
	return result
}

// strand is a part of a transaction that runs abreast of others.
type strand struct {
	next func() (asking, bool)
	stop func()
	ask  func(add asking) error
	gone bool
}
