package store

import (
	"context"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

const openWorkSQL = `
	(SELECT next_ms FROM inbound_events WHERE conversation_id = $1 AND ` + openTurn + ` ORDER BY seq LIMIT 1),
	EXISTS (SELECT 1 FROM inbound_events WHERE conversation_id = $1 AND lane = 'control' AND state = 'waiting'),
	EXISTS (SELECT 1 FROM deliveries WHERE conversation_id = $1 AND state IN ('pending', 'sending', 'placed'))`

// OpenWork returns what there is to do in a conversation, and its active session.
func (t *Conversations) OpenWork(ctx context.Context, conversationID string) (w sessions.OpenWork, err error) {
	var next *int64
	open := []any{&next, &w.Control, &w.Deliveries}
	w.Active, err = t.tx.one(ctx, append(open, scanSession(&w.Session)...), `
		SELECT `+openWorkSQL+`, `+sessionColumns+` FROM remote_agent_sessions WHERE conversation_id = $1 AND active`, conversationID)
	if err == nil && !w.Active {
		w.Session = sessions.Session{}
		_, err = t.tx.one(ctx, open, `SELECT `+openWorkSQL, conversationID)
	}
	if w.Waiting = next != nil; w.Waiting && *next != 0 {
		w.NextAt = time.UnixMilli(*next).UTC()
	}
	return w, wrap(err, "look for open work")
}

const waitingEntriesSQL = `
	SELECT ` + entryColumns + ` FROM inbound_events
	WHERE conversation_id = $1 AND ` + openTurn + ` AND state = 'waiting' AND seq > $2 ORDER BY seq LIMIT $3`

// WaitingEntries implements sessions.InboxStore.
func (t *Inbox) WaitingEntries(ctx context.Context, conversationID string, after int64, limit int) ([]sessions.Entry, error) {
	return t.entries(ctx, waitingEntriesSQL, conversationID, after, limit)
}

// TakenEntries implements sessions.InboxStore. Entries have their turns in order, so
// nothing else behind one that is open is done.
func (t *Inbox) TakenEntries(ctx context.Context, e sessions.Entry) ([]sessions.Entry, error) {
	return t.entries(ctx, `
		SELECT `+entryColumns+` FROM inbound_events
		WHERE conversation_id = $1 AND seq > $2 AND seq > 0 AND session_id = $3 AND lane = 'turn' AND state = 'done'
		ORDER BY seq LIMIT 100`, e.ConversationID, e.Seq, e.SessionID)
}

// CountWaiting returns how many entries of lane turn wait or run.
func (t *Inbox) CountWaiting(ctx context.Context, conversationID string) (int, error) {
	var n int
	_, err := t.tx.one(ctx, []any{&n}, `
		SELECT count(*) FROM inbound_events WHERE conversation_id = $1 AND `+openTurn, conversationID)
	return n, wrap(err, "count waiting events")
}

// The condition is that of the partial index idx_inbound_events_person.
const waitingOfSQL = `
	SELECT count(*), COALESCE(sum(CASE WHEN conversation_id = $3 THEN 1 ELSE 0 END), 0), COALESCE(min(accepted_ms), 0) FROM (
		SELECT conversation_id, accepted_ms FROM inbound_events
		WHERE platform_type = $1 AND sender = $2 AND lane = 'turn' AND state = 'waiting' LIMIT $4) AS own`

// WaitingOf implements sessions.InboxStore.
func (t *Inbox) WaitingOf(ctx context.Context, in messages.Inbound, conversationID string, most int) (all, here int, since time.Time, err error) {
	_, err = t.tx.one(ctx, []any{&all, &here, msTime{&since}}, waitingOfSQL,
		string(in.Conversation.Platform), senderKey(in), conversationID, most)
	return all, here, since, wrap(err, "count what waits of a person")
}

// The condition is that of the partial index idx_inbound_events_refused.
const refusedSinceSQL = `
	SELECT 1 FROM inbound_events
	WHERE platform_type = $1 AND sender = $2 AND state = 'refused' AND error = $3 AND accepted_ms >= $4 LIMIT 1`

// RefusedSince implements sessions.InboxStore.
func (t *Inbox) RefusedSince(ctx context.Context, in messages.Inbound, reason string, since time.Time) (bool, error) {
	ok, err := t.tx.exists(ctx, refusedSinceSQL, string(in.Conversation.Platform), senderKey(in), reason, millis(since))
	return ok, wrap(err, "look for refused messages")
}

const controlWorkSQL = `
	SELECT ` + entryColumns + ` FROM inbound_events
	WHERE lane = 'control' AND state = 'waiting' AND accepted_ms < $1
	ORDER BY accepted_ms, seq LIMIT $2`

// ControlWork implements sessions.InboxStore. The oldest is the first.
func (t *Inbox) ControlWork(ctx context.Context, before time.Time, limit int) ([]sessions.Entry, error) {
	return t.entries(ctx, controlWorkSQL, millis(before), limit)
}

// The plus keeps the planners from looking through the whole inbox by number: few
// entries wait, and they have an index.
const controlBeforeSQL = `
	SELECT ` + entryColumns + ` FROM inbound_events
	WHERE conversation_id = $1 AND lane = 'control' AND state = 'waiting' AND +seq < $2
	ORDER BY +seq`

// ControlBefore implements sessions.InboxStore.
func (t *Inbox) ControlBefore(ctx context.Context, conversationID string, seq int64) ([]sessions.Entry, error) {
	return t.entries(ctx, controlBeforeSQL, conversationID, seq)
}

// A head is due: the first open entry of a conversation, or a final delivery
// with none before it that has to wait. A delivery whose text is not decided is
// its entry's work. What is open is gone through once, in the order of its index: where
// PostgreSQL has no figures yet of what a crowd brought, it would compare each with all.
const conversationsWithWorkSQL = `
	SELECT c.id FROM (
		SELECT conversation_id AS id, accepted_ms AS since FROM (
			SELECT conversation_id, accepted_ms, next_ms, row_number() OVER (PARTITION BY conversation_id ORDER BY seq) AS place
			FROM inbound_events
			WHERE lane = 'turn' AND state IN ('waiting', 'running') AND conversation_id IS NOT NULL
		) AS entries
		WHERE place = 1 AND next_ms <= {now} AND (SELECT halted_ms FROM service_state WHERE id = 1) = 0
		UNION ALL
		SELECT conversation_id AS id, created_ms AS since FROM (
			SELECT conversation_id, seq, created_ms, next_ms, final, control,
				min(CASE WHEN next_ms > {now} AND NOT control THEN seq END) OVER (PARTITION BY conversation_id) AS blocked
			FROM deliveries
			WHERE state IN ('pending', 'sending', 'placed')
		) AS parts
		WHERE final AND next_ms <= {now} AND (control OR blocked IS NULL OR seq < blocked)
	) AS work
	CROSS JOIN remote_agent_conversations c
	WHERE c.id = work.id AND (c.lease_owner IS NULL OR c.lease_until <= {now})
	GROUP BY c.id
	ORDER BY min(work.since), c.id
	LIMIT $1`

// ConversationsWithWork implements sessions.ConversationStore. While the service is halted
// entries do not count.
func (t *Conversations) ConversationsWithWork(ctx context.Context, limit int) ([]string, error) {
	ids, err := t.tx.ids(ctx, conversationsWithWorkSQL, limit)
	return ids, wrap(err, "find conversations with work")
}

// The newest entries of a conversation, so that the time does not grow with it.
const unansweredSQL = `
	SELECT count(*), COALESCE(max(accepted_ms), 0) FROM inbound_events
	WHERE conversation_id = $1 AND seq > (SELECT inbox_seq FROM remote_agent_conversations WHERE id = $1) - 100
		AND state = 'refused' AND error = $2 AND accepted_ms >= $3`

// Unanswered counts the entries of a conversation that were refused with
// sessions.ErrorLoop at or after a time, among its newest hundred, and says when the
// last of them came.
func (t *Inbox) Unanswered(ctx context.Context, conversationID string, since time.Time) (n int, last time.Time, err error) {
	_, err = t.tx.one(ctx, []any{&n, msTime{&last}}, unansweredSQL, conversationID, sessions.ErrorLoop, millis(since))
	return n, last, wrap(err, "count unanswered messages")
}

const begunBehindSQL = `
	SELECT
		EXISTS (SELECT 1 FROM inbound_events WHERE conversation_id = $1 AND session_id = $2 AND seq < $3),
		EXISTS (SELECT 1 FROM inbound_events WHERE conversation_id = $1 AND session_id = $2 AND seq > $3)`

// BegunBehind reports whether all turns of a session are behind a place in the inbox of
// its conversation, and there are some: it began after what has that place. No clock is
// asked, for that of the database and those of processes differ.
func (t *Inbox) BegunBehind(ctx context.Context, s sessions.Session, seq int64) (bool, error) {
	var before, behind bool
	_, err := t.tx.one(ctx, []any{&before, &behind}, begunBehindSQL, s.ConversationID, s.ID, seq)
	return behind && !before, wrap(err, "look for the first turn of a session")
}
