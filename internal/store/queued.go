package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// What waits, runs and failed, for the web pages.

// OpenEntry is a message that waits or is being answered, or one whose turn failed.
type OpenEntry struct {
	ID             string
	ConversationID string
	Key            messages.ConversationKey
	Seq            int64
	State          sessions.EntryState
	SessionID      string // empty before its turn began
	Attempts       int
	NextAt         time.Time
	AcceptedAt     time.Time
	Error          string // for operators
	In             messages.Inbound
	LastTool       string // that its session called last; may be empty
}

const openEntryColumns = `
	e.id, e.conversation_id, c.platform_type, c.platform_conversation_id, e.seq, e.state, e.session_id, e.attempts, e.next_ms, e.accepted_ms, e.error,
	e.platform_type, e.account, e.event_id, e.message_id, e.data,
	(SELECT k.tool_name FROM agent_tool_calls k WHERE k.session_id = e.session_id ORDER BY k.id DESC LIMIT 1)
	FROM inbound_events e JOIN remote_agent_conversations c ON c.id = e.conversation_id`

// OpenEntries returns up to limit messages that wait or are being answered, these
// first, the oldest of each first.
func (t *Queue) OpenEntries(ctx context.Context, v Viewer, limit int) (list []OpenEntry, err error) {
	query, args := openEntriesSQL(v, limit)
	list, err = t.openEntries(ctx, query, args...)
	return list, wrap(err, "list open messages")
}

// openEntriesSQL chooses them first: of a crowd that waits no more is read than is returned.
func openEntriesSQL(v Viewer, limit int) (query string, args []any) {
	const order = ` ORDER BY CASE e.state WHEN 'running' THEN 0 ELSE 1 END, e.accepted_ms, e.id`
	var c conditions
	c.add("e.lane = 'turn' AND e.state IN ('waiting', 'running')")
	c.seenBy(v, "c")
	c.args = append(c.args, limit)
	return `SELECT ` + openEntryColumns + ` WHERE e.id IN (
		SELECT e.id FROM inbound_events e JOIN remote_agent_conversations c ON c.id = e.conversation_id` + c.where() + order + fmt.Sprintf(` LIMIT $%d)`, len(c.args)) + order, c.args
}

// FailedEntries returns up to limit messages whose turns failed, the newest first, from
// behind the one with an id on (empty: from the newest on).
func (t *Queue) FailedEntries(ctx context.Context, before string, limit int) (list []OpenEntry, err error) {
	before = cmp.Or(before, lastID)
	if err := checkID(before, "message"); err != nil {
		return nil, err
	}
	list, err = t.openEntries(ctx, failedEntriesSQL, before, limit)
	return list, wrap(err, "list failed messages")
}

// lastID is behind all ids.
const lastID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

const failedEntriesSQL = `SELECT ` + openEntryColumns + ` WHERE e.lane = 'turn' AND e.state = 'failed' AND e.id < $1 ORDER BY e.id DESC LIMIT $2`

func (t *Queue) openEntries(ctx context.Context, query string, args ...any) (list []OpenEntry, err error) {
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var e OpenEntry
		var event storedEvent
		err := scan(slices.Concat([]any{text{&e.ID}, text{&e.ConversationID}, &e.Key.Platform, &e.Key.ID, &e.Seq, &e.State, text{&e.SessionID}, &e.Attempts,
			msTime{&e.NextAt}, msTime{&e.AcceptedAt}, text{&e.Error}}, event.dest(), []any{text{&e.LastTool}})...)
		e.In = event.read()
		list = append(list, e)
		return err
	}, query, args...)
	return list, err
}

// DropFailed takes a message whose turn failed for one that a person stopped, so that it
// is no dead end any more; fault.Conflict if it is none now.
func (t *Queue) DropFailed(ctx context.Context, id string) (conversationID string, err error) {
	if err := checkID(id, "message"); err != nil {
		return "", err
	}
	return t.deadEnd(ctx, `UPDATE inbound_events SET state = 'stopped' WHERE id = $1 AND lane = 'turn' AND state = 'failed' RETURNING conversation_id`, id)
}

// QueuedDelivery is an answer that is on its way, or that was given up.
type QueuedDelivery struct {
	ID             string
	ConversationID string
	Key            messages.ConversationKey
	SessionID      string // of the turn that it answers; may be empty
	State          messages.DeliveryState
	Attempts       int
	NextAt         time.Time
	CreatedAt      time.Time
	Error          string // for operators
	Text           string // its beginning
	FileName       string
	OnlyFor        bool // one person is to see it
}

const queuedDeliveryColumns = `
	d.id, d.conversation_id, c.platform_type, c.platform_conversation_id, e.session_id, d.state, d.attempts, d.next_ms, d.created_ms, d.error, substr(d.body, 1, 300), d.file_name, d.only_for <> ''
	FROM deliveries d JOIN remote_agent_conversations c ON c.id = d.conversation_id LEFT JOIN inbound_events e ON e.id = d.event_id`

const (
	waitingDeliveriesSQL = `SELECT ` + queuedDeliveryColumns + ` WHERE d.state IN ('pending', 'sending', 'placed') ORDER BY d.created_ms, d.id LIMIT $1`
	failedDeliveriesSQL  = `SELECT ` + queuedDeliveryColumns + ` WHERE d.state = 'failed' AND d.id < $1 ORDER BY d.id DESC LIMIT $2`
)

// WaitingDeliveries returns up to limit answers that are on their way, the oldest first.
func (t *Queue) WaitingDeliveries(ctx context.Context, limit int) ([]QueuedDelivery, error) {
	return t.queuedDeliveries(ctx, waitingDeliveriesSQL, limit)
}

// FailedDeliveries returns up to limit answers that were given up, the newest first,
// from behind the one with an id on (empty: from the newest on).
func (t *Queue) FailedDeliveries(ctx context.Context, before string, limit int) ([]QueuedDelivery, error) {
	before = cmp.Or(before, lastID)
	if err := checkID(before, "delivery"); err != nil {
		return nil, err
	}
	return t.queuedDeliveries(ctx, failedDeliveriesSQL, before, limit)
}

func (t *Queue) queuedDeliveries(ctx context.Context, query string, args ...any) (list []QueuedDelivery, err error) {
	return rowsOf(ctx, t.tx, "list deliveries", func(d *QueuedDelivery) []any {
		return []any{
			text{&d.ID}, text{&d.ConversationID}, &d.Key.Platform, &d.Key.ID, text{&d.SessionID}, &d.State, &d.Attempts,
			msTime{&d.NextAt}, msTime{&d.CreatedAt}, &d.Error, &d.Text, &d.FileName, &d.OnlyFor,
		}
	}, query, args...)
}

// RetryDelivery has an answer that was given up sent again, as if it never had been
// tried; fault.Conflict if it is not given up now.
func (t *Queue) RetryDelivery(ctx context.Context, id string) (conversationID string, err error) {
	return t.deadEnd(ctx, `
		UPDATE deliveries SET state = CASE WHEN message_id <> '' THEN 'placed' ELSE 'pending' END, attempts = 0, next_ms = 0, error = ''
		WHERE id = $1 AND state = 'failed' RETURNING conversation_id`, id)
}

// DropDelivery forgets an answer that was given up; what it says is in the transcript.
// It is fault.Conflict if it is not given up now.
func (t *Queue) DropDelivery(ctx context.Context, id string) (conversationID string, err error) {
	return t.deadEnd(ctx, `DELETE FROM deliveries WHERE id = $1 AND state = 'failed' RETURNING conversation_id`, id)
}

// deadEnd changes what was a dead end when somebody saw it, and returns its conversation.
func (t *Queue) deadEnd(ctx context.Context, query, id string) (conversationID string, err error) {
	is, err := t.tx.one(ctx, []any{text{&conversationID}}, query, id)
	if err == nil && !is {
		return "", fault.New(fault.Conflict, "Somebody retried or dropped this in the meantime, so nothing was done.")
	}
	t.tx.touches(conversationID)
	return conversationID, wrap(err, "change a dead end")
}

// QueueCounts says how much waits and failed.
type QueueCounts struct {
	Waiting, Running, Deliveries, FailedTurns, FailedDeliveries int

	WaitingSince time.Time // the oldest that waits and may run now; zero: there is none
	UnsentSince  time.Time // the oldest answer that waits to be sent; zero: there is none
}

const queueCountsSQL = `SELECT
	(SELECT count(*) FROM inbound_events WHERE lane = 'turn' AND state IN ('waiting', 'running') AND state = 'waiting'),
	(SELECT count(*) FROM inbound_events WHERE lane = 'turn' AND state IN ('waiting', 'running') AND state = 'running'),
	(SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'placed')),
	(SELECT count(*) FROM inbound_events WHERE lane = 'turn' AND state = 'failed'),
	(SELECT count(*) FROM deliveries WHERE state = 'failed'),
	(SELECT coalesce(min(accepted_ms), 0) FROM inbound_events WHERE lane = 'turn' AND state IN ('waiting', 'running') AND state = 'waiting' AND next_ms <= $1),
	(SELECT coalesce(min(created_ms), 0) FROM deliveries WHERE state IN ('pending', 'sending', 'placed') AND final)`

// Count counts what waits and what failed.
func (t *Queue) Count(ctx context.Context, now time.Time) (c QueueCounts, err error) {
	_, err = t.tx.one(ctx, []any{
		&c.Waiting, &c.Running, &c.Deliveries, &c.FailedTurns, &c.FailedDeliveries, msTime{&c.WaitingSince}, msTime{&c.UnsentSince},
	}, queueCountsSQL, now.UnixMilli())
	return c, wrap(err, "count the queue")
}
