package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/live"
	"remote-agent/internal/sessions"
)

// step is one statement of a commit.
type step struct {
	query string
	args  []any
	dest  []any // where its row goes; nil if there is none to read
}

// Commit applies changes under a lease, durably, all of them or none, and returns
// how the conversation stands then. A lease that is not current any more is a
// fault.Conflict that wraps sessions.ErrLeaseLost. On PostgreSQL it is one round
// trip, on SQLite a part of a group commit.
func (s *Store) Commit(ctx context.Context, l sessions.Lease, c commit.Changes) (news commit.News, err error) {
	if s.pg != nil {
		err = s.watched(func() error {
			return again(ctx, func() error {
				var err error
				news, err = s.commitBatch(ctx, l, c)
				return err
			})
		})
		s.tell(err, []live.Topic{live.Conversation(l.ConversationID)})
		return news, err
	}
	return Within(ctx, s.InTx, func(tx *Tx) (commit.News, error) { return tx.Leases().Apply(ctx, l, c) })
}

// Apply implements commit.LeaseStore. It locks the conversation's row.
func (t *Leases) Apply(ctx context.Context, l sessions.Lease, c commit.Changes) (news commit.News, err error) {
	steps, err := stepsOf(t.tx.redact, l, c, &news)
	if err != nil {
		return news, err
	}
	held, err := t.tx.one(ctx, steps[0].dest, steps[0].query, steps[0].args...)
	if err != nil {
		return news, committing(err)
	}
	if !held {
		return news, leaseLost()
	}
	t.tx.touches(l.ConversationID)
	if _, err = t.tx.all(ctx, steps[1:]); err != nil {
		return news, committing(err)
	}
	return news, nil
}

// commitBatch sends all statements at once. They are one transaction, which the
// fence ends before anything else is done: it divides by the number of rows that
// it holds.
func (s *Store) commitBatch(ctx context.Context, l sessions.Lease, c commit.Changes) (news commit.News, err error) {
	steps, err := stepsOf(s.redact, l, c, &news)
	if err != nil {
		return news, err
	}
	steps[0].query = `WITH held AS (` + steps[0].query + `)
		SELECT max(inbox_seq), max(stop_seq), max(delivery_seq), bool_and(released), 1 / count(*) FROM held`
	steps[0].dest = append(steps[0].dest, new(int64))
	batch := &pgx.Batch{}
	for _, st := range steps {
		query, args := s.text.rewrite(st.query, st.args)
		batch.Queue(query, args...)
	}
	results := s.pg.SendBatch(ctx, batch)
	for _, st := range steps {
		if st.dest == nil {
			_, err = results.Exec()
		} else if err = results.QueryRow().Scan(st.dest...); errors.Is(err, pgx.ErrNoRows) {
			err = nil // somebody deleted it
		}
		if err != nil {
			break
		}
	}
	err = errors.Join(err, results.Close())
	switch {
	case isState(err, pgDivisionByZero):
		return news, leaseLost()
	case err != nil:
		return news, committing(commitError(classifyPostgres(err)))
	}
	return news, nil
}

func committing(err error) error { return fmt.Errorf("commit a step: %w", err) }

// stepsOf returns the statements of a commit, the fence first.
func stepsOf(redact redaction, l sessions.Lease, c commit.Changes, news *commit.News) ([]step, error) {
	if c.Release != nil && len(c.Added) > 0 {
		return nil, fault.New(fault.Invalid, "A lease is not given up with deliveries that nobody has sent.")
	}
	steps := []step{fence(l, c, news)}
	session, err := sessionSteps(redact, c.Session, c.Run, news)
	if err != nil {
		return nil, err
	}
	steps = append(steps, session...)
	for _, lesson := range c.Lessons {
		steps = append(steps, step{query: addLessonSQL, args: []any{lesson.Entry, lesson.Account, millis(lesson.Due)}})
	}
	if c.Usage != nil {
		steps = append(steps, step{query: addUsageSQL, args: addUsageArgs(*c.Usage)})
	}
	if c.Run != nil {
		steps = append(steps, step{query: endRunSQL, args: endRunArgs(redact, c.Run.SessionID, c.Run.Number, c.Run.RunEnd)})
	}
	if c.Entry != nil {
		refused := c.Entry.State != nil && *c.Entry.State == sessions.EntryRefused
		steps = append(steps, updateEntry(redact, c.Entry.ID, c.Entry.EntryUpdate, refused))
	}
	for _, d := range c.Deliveries {
		args, err := updateDeliveryArgs(redact, d)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{query: updateDeliverySQL, args: args})
	}
	for i := range c.Added {
		args, err := addDeliveryArgs(redact, &c.Added[i], int64(len(c.Added)-1-i))
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{query: addDeliverySQL, args: args})
	}
	return steps, nil
}

// fence checks the lease and locks the row, numbers what is added and gives the
// lease up, in one statement.
func fence(l sessions.Lease, c commit.Changes, news *commit.News) step {
	s := step{
		args: []any{l.ConversationID, l.Owner, l.Epoch},
		dest: []any{&news.InboxSeq, &news.StopSeq, &news.DeliverySeq, &news.Released},
	}
	const (
		held     = `WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3`
		returned = `inbox_seq, stop_seq, delivery_seq, lease_owner IS NULL AS released`
	)
	switch {
	case c.Release != nil && c.Release.Anyway:
		s.query = `
			UPDATE remote_agent_conversations SET lease_owner = NULL, lease_until = 0
			` + held + ` RETURNING ` + returned
	case c.Release != nil:
		s.query = `
			UPDATE remote_agent_conversations SET
				lease_owner = CASE WHEN inbox_seq = $4 AND delivery_seq = $5 THEN NULL ELSE lease_owner END,
				lease_until = CASE WHEN inbox_seq = $4 AND delivery_seq = $5 THEN 0 ELSE lease_until END
			` + held + ` RETURNING ` + returned
		s.args = append(s.args, c.Release.InboxSeq, c.Release.DeliverySeq)
	case c.Renew != 0:
		s.query = `
			UPDATE remote_agent_conversations SET lease_until = {now} + $4
			` + held + ` RETURNING ` + returned
		s.args = append(s.args, c.Renew.Milliseconds())
	case len(c.Added) > 0:
		s.query = `
			UPDATE remote_agent_conversations SET delivery_seq = delivery_seq + $4
			` + held + ` RETURNING ` + returned
		s.args = append(s.args, int64(len(c.Added)))
	default:
		s.query = `SELECT ` + returned + ` FROM remote_agent_conversations ` + held + ` {lock}`
	}
	return s
}

// sessionSteps changes the session's row once, whatever is to be changed.
func sessionSteps(redact redaction, c *commit.Session, run *commit.Run, news *commit.News) ([]step, error) {
	ends := run != nil && run.Status != sessions.RunRunning
	if c == nil && ends {
		c = &commit.Session{ID: run.SessionID}
	}
	if c == nil {
		return nil, nil
	}
	if c.Turn == nil && len(c.Messages) == 0 && !ends {
		return callSteps(redact, c), nil
	}
	set, args := "", []any{c.ID}
	if c.Turn != nil {
		set, args = recordTurnSQL+", ", recordTurnArgs(redact, c.ID, *c.Turn)
	}
	if ends {
		args = append(args, string(run.Status.Session()))
		set += fmt.Sprintf("status = $%d, ", len(args))
	}
	args = append(args, int64(len(c.Messages)))
	query := `UPDATE remote_agent_sessions SET ` + set + fmt.Sprintf(`last_seq = last_seq + $%d WHERE id = $1 RETURNING last_seq`, len(args))
	steps, err := messageSteps(c.ID, c.Run, c.Messages)
	return slices.Concat([]step{{query: query, args: args, dest: []any{&news.LastSeq}}}, steps, callSteps(redact, c)), err
}
