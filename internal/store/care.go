package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// Removed counts what a deletion took away, or would take away.
type Removed struct {
	Sessions   int64
	Messages   int64
	ToolCalls  int64
	Deliveries int64 // answers as they were sent to platforms
	Inbox      int64 // texts of inbound events; that they were received stays
	Plans      int64
	Approvals  int64
}

// Add adds other to r.
func (r *Removed) Add(other Removed) {
	r.Sessions += other.Sessions
	r.Messages += other.Messages
	r.ToolCalls += other.ToolCalls
	r.Deliveries += other.Deliveries
	r.Inbox += other.Inbox
	r.Plans += other.Plans
	r.Approvals += other.Approvals
}

// What belongs to the session $1 besides its messages and tool calls, as
// conditions. A run id of a message is the id of the inbound event that it
// answers. Between its first event and that of the next session there are others
// without a run: commands, messages that were taken into a turn or stopped before
// theirs. Numbers of usage and the audit log stay: they hold no text of a
// conversation.
const (
	sessionHome = `(SELECT conversation_id FROM remote_agent_sessions WHERE id = $1)`

	// Each is looked up by its key, and what lies between by the index of numbers: a
	// conversation may have thousands of other sessions. COALESCE keeps the planners from
	// going through all of its deliveries.
	sessionRuns = `(SELECT DISTINCT {run} AS id FROM agent_messages WHERE session_id = $1 AND run_id <> '') r
		CROSS JOIN inbound_events o WHERE o.id = r.id AND o.conversation_id = ` + sessionHome + ` AND o.seq > 0`

	sessionBegin = `(SELECT min(o.seq) FROM ` + sessionRuns + `)`

	sessionStretch = `id IN (
		SELECT o.id FROM ` + sessionRuns + `
		UNION ALL
		SELECT o.id FROM inbound_events o WHERE o.conversation_id = ` + sessionHome + ` AND o.seq > 0 AND o.seq >= ` + sessionBegin + ` AND o.seq < COALESCE((
			SELECT min(o.seq) FROM inbound_events o
			WHERE o.conversation_id = ` + sessionHome + ` AND o.seq > 0 AND o.seq > ` + sessionBegin + ` AND o.session_id <> $1), 9223372036854775807))`

	sessionDeliveries = `COALESCE(conversation_id, conversation_id) = ` + sessionHome + ` AND state IN ('sent', 'failed')
		AND event_id IN (SELECT id FROM inbound_events WHERE ` + sessionStretch + `)`
	sessionInbox = sessionStretch + ` AND state NOT IN ('waiting', 'running')
		AND (raw IS NOT NULL OR data IS NOT NULL OR error IS NOT NULL)`
	sessionPlans     = `session_id = $1 AND state NOT IN ('proposed', 'approved', 'executing')`
	sessionApprovals = `session_id = $1 AND state <> 'waiting'`
)

// MeasureSession counts what RemoveSession would remove.
func (t *Care) MeasureSession(ctx context.Context, id string) (Removed, error) {
	if err := checkID(id, "session"); err != nil {
		return Removed{}, err
	}
	if _, err := t.tx.Sessions().Session(ctx, id); err != nil {
		return Removed{}, err
	}
	r := Removed{Sessions: 1}
	err := t.count(ctx, "measure session", id, []counted{
		{&r.Messages, `SELECT count(DISTINCT seq) FROM agent_messages WHERE session_id = $1`},
		{&r.ToolCalls, `SELECT count(*) FROM agent_tool_calls WHERE session_id = $1`},
		{&r.Deliveries, `SELECT count(*) FROM deliveries WHERE ` + sessionDeliveries},
		{&r.Inbox, `SELECT count(*) FROM inbound_events WHERE ` + sessionInbox},
		{&r.Plans, `SELECT count(*) FROM plans WHERE ` + sessionPlans},
		{&r.Approvals, `SELECT count(*) FROM approvals WHERE ` + sessionApprovals},
	})
	return r, err
}

// counted is a query that counts something of $1.
type counted struct {
	to    *int64
	query string
}

func (t *Care) count(ctx context.Context, doing, id string, list []counted) error {
	for _, c := range list {
		if _, err := t.tx.one(ctx, []any{c.to}, c.query, id); err != nil {
			return wrap(err, doing)
		}
	}
	return nil
}

// RemoveSession deletes a session with its messages and tool calls, and besides
// what else holds its text: settled deliveries, plans and approvals of its
// turns, and the content of the messages that they answered. It is a
// fault.Conflict while a turn of the session waits or runs, whether or not the session
// has ended.
func (t *Care) RemoveSession(ctx context.Context, id string) (Removed, error) {
	r, err := t.MeasureSession(ctx, id)
	if err != nil {
		return Removed{}, err
	}
	// Whoever accepts a message or begins a turn holds the conversation's row, so
	// that none of them falls between looking and deleting.
	var conversation string
	if _, err := t.tx.one(ctx, []any{text{&conversation}}, `
		SELECT id FROM remote_agent_conversations
		WHERE id = (SELECT conversation_id FROM remote_agent_sessions WHERE id = $1) {lock}`, id); err != nil {
		return Removed{}, fmt.Errorf("lock conversation: %w", err)
	}
	t.tx.touches(conversation)
	busy, err := t.sessionBusy(ctx, id)
	if err != nil {
		return Removed{}, err
	}
	if busy {
		return Removed{}, fault.New(fault.Conflict, "The session is running; stop it first, or wait for its answer.")
	}
	t.tx.erases()
	if err := t.tx.runAll(ctx, "remove session", []string{
		`DELETE FROM approvals WHERE ` + sessionApprovals,
		`DELETE FROM plans WHERE ` + sessionPlans,
		`DELETE FROM deliveries WHERE ` + sessionDeliveries,
		`UPDATE inbound_events SET raw = NULL, data = NULL, error = NULL, preparation = NULL WHERE ` + sessionInbox,
	}, id); err != nil {
		return Removed{}, err
	}
	return r, t.tx.Sessions().DeleteSession(ctx, id)
}

// conversationBusy is the condition that the conversation $1 has work.
const conversationBusy = `
	SELECT 1 WHERE EXISTS (SELECT 1 FROM inbound_events WHERE conversation_id = $1 AND lane = 'turn' AND state IN ('waiting', 'running'))
		OR EXISTS (SELECT 1 FROM deliveries WHERE conversation_id = $1 AND state IN ('pending', 'sending', 'placed'))
		OR EXISTS (SELECT 1 FROM approvals WHERE conversation_id = $1 AND state = 'waiting')`

// MeasureConversation counts what RemoveConversation would remove.
func (t *Care) MeasureConversation(ctx context.Context, id string) (Removed, error) {
	if err := checkID(id, "conversation"); err != nil {
		return Removed{}, err
	}
	if _, err := t.tx.Conversations().Conversation(ctx, id); err != nil {
		return Removed{}, err
	}
	var r Removed
	err := t.count(ctx, "measure conversation", id, []counted{
		{&r.Sessions, `SELECT count(*) FROM remote_agent_sessions WHERE conversation_id = $1`},
		{&r.Messages, `SELECT count(*) FROM (SELECT DISTINCT m.session_id, m.seq FROM agent_messages m
			JOIN remote_agent_sessions s ON s.id = m.session_id WHERE s.conversation_id = $1) AS said`},
		{&r.ToolCalls, `SELECT count(*) FROM agent_tool_calls c JOIN remote_agent_sessions s ON s.id = c.session_id WHERE s.conversation_id = $1`},
		{&r.Deliveries, `SELECT count(*) FROM deliveries WHERE conversation_id = $1`},
		{&r.Inbox, `SELECT count(*) FROM inbound_events WHERE conversation_id = $1 AND (raw IS NOT NULL OR data IS NOT NULL)`},
		{&r.Plans, `SELECT count(*) FROM plans WHERE conversation_id = $1`},
		{&r.Approvals, `SELECT count(*) FROM approvals WHERE conversation_id = $1`},
	})
	return r, err
}

// RemoveConversation deletes a conversation with all its sessions and everything
// else that holds its text. Sums of usage, the audit log and memories stay. It is a
// fault.Conflict while something in it waits or runs.
func (t *Care) RemoveConversation(ctx context.Context, id string) (Removed, error) {
	r, err := t.MeasureConversation(ctx, id)
	if err != nil {
		return Removed{}, err
	}
	var one int
	if _, err := t.tx.one(ctx, []any{&one}, `SELECT 1 FROM remote_agent_conversations WHERE id = $1 {lock}`, id); err != nil {
		return Removed{}, fmt.Errorf("lock conversation: %w", err)
	}
	busy, err := t.tx.one(ctx, []any{&one}, conversationBusy, id)
	if err != nil {
		return Removed{}, fmt.Errorf("look whether the conversation works: %w", err)
	}
	if busy {
		return Removed{}, fault.New(fault.Conflict, "The conversation is running; stop it first, or wait for its answer.")
	}
	return r, t.tx.Conversations().DeleteConversation(ctx, id)
}

// sessionAtWork is the condition that the session s has work: all of its conversation, while it
// is the active one, and what it began itself. A turn goes on in the session that it began in,
// also after somebody has ended that, as /new does.
const sessionAtWork = `(
	EXISTS (SELECT 1 FROM inbound_events e WHERE e.conversation_id = s.conversation_id AND e.lane = 'turn' AND e.state IN ('waiting', 'running')
		AND (s.active OR e.session_id = s.id))
	OR EXISTS (SELECT 1 FROM deliveries d LEFT JOIN inbound_events e ON e.id = d.event_id
		WHERE d.conversation_id = s.conversation_id AND d.state IN ('pending', 'sending', 'placed') AND (s.active OR e.session_id = s.id))
	OR EXISTS (SELECT 1 FROM approvals p WHERE p.session_id = s.id AND p.state = 'waiting'))`

// sessionBusy reports whether a session has work.
func (t *Care) sessionBusy(ctx context.Context, id string) (bool, error) {
	busy, err := t.tx.exists(ctx, `SELECT 1 FROM remote_agent_sessions s WHERE s.id = $1 AND `+sessionAtWork, id)
	return busy, wrap(err, "look whether the session works")
}

// OldSessions returns ids of sessions in which nothing happened since the given
// time and that are not at work, the oldest first. It looks at sessions after
// the given id and returns up to limit; pass the last id to go on.
func (t *Care) OldSessions(ctx context.Context, before time.Time, after string, limit int) ([]string, error) {
	after = cmp.Or(after, firstUUID)
	ids, err := t.tx.ids(ctx, `
		SELECT s.id FROM remote_agent_sessions s
		WHERE s.id > $2
			AND COALESCE((SELECT max(m.created_at) FROM agent_messages m WHERE m.session_id = s.id),
				(SELECT a.started_at FROM agent_sessions a WHERE a.id = s.id), 0) < $1
			AND NOT `+sessionAtWork+`
		ORDER BY s.id LIMIT $3`, before.Unix(), after, page(limit))
	return ids, wrap(err, "find old sessions")
}

// Settled counts what SettleRestored ended.
type Settled struct {
	Entries       int64 // messages that waited or were being answered
	Deliveries    int64 // answers on their way
	ToolCalls     int64
	Plans         int64
	Approvals     int64
	Conversations int64 // each got one notice
	Keys          int64 // keys of the API that were valid
}

// ErrRestored is the error text of what SettleRestored and an import ended.
const ErrRestored = "ended by a restore or an import: what happened after the copy was made is not known"

// SettleRestored makes the data of a copy safe to run: what was open when the
// copy was made may have been finished since, so none of it is done again.
// Deliveries that were not sent become failed, waiting and running entries
// stopped, runs interrupted, open tool calls failed, and open plans and approvals expired. In each
// conversation that had a message to answer, or an answer on its way, one notice
// is queued. Positions up to where platforms were read are forgotten: reading
// starts at now. What was said in the browser and not taken is taken no more. Leases end. Keys of the API and sessions of browsers are revoked: one
// that was revoked after the copy was made, because it had leaked, must not work again.
func (t *Care) SettleRestored(ctx context.Context, notice string) (Settled, error) {
	var s Settled
	open, err := t.tx.ids(ctx, `
		SELECT conversation_id FROM inbound_events
		WHERE conversation_id IS NOT NULL AND lane = 'turn' AND state IN ('waiting', 'running')
		UNION
		SELECT conversation_id FROM deliveries WHERE state IN ('pending', 'sending', 'placed') AND NOT control
		ORDER BY 1`)
	if err != nil {
		return s, fmt.Errorf("find open work: %w", err)
	}
	for _, c := range []struct {
		count *int64
		query string
		args  []any
	}{
		{&s.Deliveries, `UPDATE deliveries SET state = 'failed', error = $1, final = true, next_ms = 0 WHERE state IN ('pending', 'sending', 'placed')`, []any{ErrRestored}},
		{&s.Entries, `UPDATE inbound_events SET state = 'stopped', error = $1, preparation = NULL WHERE state IN ('waiting', 'running')`, []any{ErrRestored}},
		{&s.ToolCalls, `UPDATE agent_tool_calls SET status = 'failed', error_details = $1, completed_at = {now} / 1000 WHERE status IN ('pending', 'executing')`, []any{ErrRestored}},
		{&s.Plans, `UPDATE plans SET state = 'expired', decided_ms = {now}, note = $1 WHERE state IN ('proposed', 'approved', 'executing')`, []any{ErrRestored}},
		{&s.Approvals, `UPDATE approvals SET state = 'expired', decided_ms = {now}, note = $1 WHERE state = 'waiting'`, []any{ErrRestored}},
		{&s.Keys, `UPDATE api_keys SET revoked_ms = {now} WHERE revoked_ms = 0`, nil},
		{nil, `UPDATE agent_runs SET status = 'interrupted', waiting = false, finished_ms = {now}, error = $1 WHERE status = 'running'`, []any{ErrRestored}},
		{nil, `UPDATE remote_agent_sessions SET status = 'completed' WHERE status = 'running'`, nil},
		{nil, `DELETE FROM buttons`, nil},
		{nil, `DELETE FROM platform_cursors`, nil},
		{nil, `DELETE FROM named_leases`, nil},
		{nil, `DELETE FROM replicas`, nil},
		{nil, `DELETE FROM owner_codes`, nil},
		{nil, `DELETE FROM link_codes`, nil},
		{nil, `DELETE FROM sign_in_links`, nil},
		{nil, `UPDATE web_sessions SET revoked_ms = {now} WHERE revoked_ms = 0`, nil},
		{nil, `DELETE FROM memory_lessons`, nil},
		{nil, `UPDATE web_messages SET event = NULL, mark = '' WHERE event IS NOT NULL`, nil},
		{nil, `UPDATE remote_agent_conversations SET lease_owner = NULL, lease_until = 0, lease_epoch = lease_epoch + 1, stop_seq = inbox_seq`, nil},
	} {
		n, err := t.tx.exec(ctx, c.query, c.args...)
		if err != nil {
			return s, fmt.Errorf("settle a restored copy: %w", err)
		}
		if c.count != nil {
			*c.count = n
		}
	}
	for _, id := range open {
		d := messages.Delivery{ConversationID: id, Text: notice, Final: true, Control: true}
		if err := t.tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return s, err
		}
		s.Conversations++
	}
	return s, nil
}

// SweepSessions removes up to limit sessions in which nothing happened since the
// given time, one transaction each, so that a turn never waits long for it. The audit
// log has a row of each, under the name of who had it done. It returns what it
// removed, also with an error.
func (s *Store) SweepSessions(ctx context.Context, before time.Time, limit int, by string) (total Removed, err error) {
	ids, err := Within(ctx, s.InRead, func(tx *Tx) ([]string, error) { return tx.Care().OldSessions(ctx, before, "", limit) })
	if err != nil {
		return total, err
	}
	for _, id := range ids {
		r, err := Within(ctx, s.InTx, func(tx *Tx) (Removed, error) {
			r, err := tx.Care().RemoveSession(ctx, id)
			if err != nil {
				return r, err
			}
			return r, tx.Audit(ctx, sessions.AuditEntry{Actor: by, Action: "session.remove", Target: id})
		})
		switch {
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // it has work again, or somebody was faster
		case err != nil:
			return total, err
		default:
			total.Add(r)
		}
	}
	return total, nil
}
