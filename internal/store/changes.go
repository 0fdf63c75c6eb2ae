package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
	"remote-agent/internal/live"
)

// OnChange sets what is told of the changes of each transaction, after it was committed.
// It must not wait. It is called once, before the first transaction.
func (s *Store) OnChange(changed func(...live.Topic)) { s.changed = changed }

// tell tells of what a transaction changed, if it was committed or may have been.
func (s *Store) tell(err error, topics []live.Topic) {
	if s.changed != nil && len(topics) > 0 && (err == nil || fault.Uncertain(err)) {
		s.changed(topics...)
	}
}

// touch notes that the transaction changes something.
//
//go:noinline // it would be copied into many callers
func (t *Tx) touch(topic live.Topic) {
	if !slices.Contains(t.touched, topic) {
		t.touched = append(t.touched, topic)
	}
}

// touches notes that the transaction changes something in a conversation; none if the id
// is empty.
//
//go:noinline // it would be copied into many callers
func (t *Tx) touches(conversationID string) {
	if conversationID != "" {
		t.touch(live.Conversation(conversationID))
	}
}

// changesChannel is where the processes on a database tell each other of changes.
const changesChannel = "bot_changes"

// Notify implements live.Wire.
func (s *Store) Notify(ctx context.Context, text string) error {
	_, err := s.pg.Exec(ctx, `SELECT pg_notify($1, $2)`, changesChannel, text)
	return classifyPostgres(err)
}

// Listen implements live.Wire, over a connection of its own.
func (s *Store) Listen(ctx context.Context, ready func(), hear func(text string)) error {
	if s.pooled {
		return live.ErrDeaf
	}
	config := s.pg.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = "bot changes"
	config.Tracer = nil // none of what anybody asked for
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return classifyPostgres(err)
	}
	defer func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		_ = conn.Close(ctx) // it may be broken
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+changesChannel); err != nil {
		return classifyPostgres(err)
	}
	ready()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return classifyPostgres(err)
		}
		hear(n.Payload)
	}
}

var _ live.Wire = (*Store)(nil)
