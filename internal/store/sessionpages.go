package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/order"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
)

// What the web pages show of one session besides what was said.

// RunsBefore returns up to limit runs of a session before the one with a number (0: the
// last ones), in their order.
func (t *Pages) RunsBefore(ctx context.Context, sessionID string, before int64, limit int) (list []sessions.Run, err error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, err
	}
	if before <= 0 {
		before = beforeFirst(true)
	}
	list, err = t.tx.Sessions().runs(ctx, `SELECT `+runColumns+` FROM agent_runs WHERE session_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3`, sessionID, before, limit)
	slices.Reverse(list)
	return list, err
}

// SpanKind says what took time.
type SpanKind string

// The kinds of spans. A SpanModel has an end only: it began with the end of what was
// before it.
const (
	SpanModel SpanKind = "model"
	SpanTool  SpanKind = "tool"
	SpanWait  SpanKind = "wait" // for a person
)

// Span is something in a session that took time.
type Span struct {
	Kind       SpanKind
	Name       string // the tool or the model; of a SpanWait what was asked
	State      string // as it is stored
	Begin, End time.Time
}

// What spans are asked with: the session, the two ends of the time and a limit. A call that
// has not ended has no end.
const (
	toolSpansSQL = `
		SELECT tool_name, status, COALESCE(executing_ms, created_at * 1000),
			CASE WHEN status IN ('completed', 'failed') THEN COALESCE(COALESCE(executing_ms, created_at * 1000) + execution_time_ms, completed_at * 1000, 0) ELSE 0 END
		FROM agent_tool_calls WHERE session_id = $1 AND COALESCE(executing_ms, created_at * 1000) BETWEEN $2 AND $3 ORDER BY 3, id LIMIT $4`
	waitSpansSQL = `
		SELECT title, state, created_ms, CASE state WHEN 'waiting' THEN 0 WHEN 'expired' THEN expires_ms ELSE decided_ms END
		FROM approvals WHERE session_id = $1 AND created_ms BETWEEN $2 AND $3 ORDER BY 3, number LIMIT $4`
	modelSpansSQL = `
		SELECT CASE WHEN model = '' THEN ai_assistant_type ELSE model END, '', 0, at_ms FROM usage_records
		WHERE session_id = $1 AND conversation_id = (SELECT s.conversation_id FROM remote_agent_sessions s WHERE s.id = $1)
			AND at_ms BETWEEN $2 AND $3 ORDER BY at_ms, id LIMIT $4`
)

// Spans returns what took time in a session and began (of a model: ended) in a time, the
// earliest first, up to limit of each kind.
func (t *Pages) Spans(ctx context.Context, sessionID string, from, until time.Time, limit int) (list []Span, err error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, err
	}
	for _, of := range [...]struct {
		kind  SpanKind
		query string
	}{{SpanTool, toolSpansSQL}, {SpanWait, waitSpansSQL}, {SpanModel, modelSpansSQL}} {
		err = t.tx.each(ctx, func(scan func(...any) error) error {
			s := Span{Kind: of.kind}
			err := scan(&s.Name, &s.State, msTime{&s.Begin}, msTime{&s.End})
			list = append(list, s)
			return err
		}, of.query, sessionID, millis(from), millis(until), limit)
		if err != nil {
			return nil, wrap(err, "list what took time")
		}
	}
	order.By(list, func(a, b Span) int {
		return cmp.Or(a.began().Compare(b.began()), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return list, nil
}

func (s Span) began() time.Time {
	if s.Kind == SpanModel {
		return s.End
	}
	return s.Begin
}

// SessionPlans returns up to limit versions of the plans that a session made, and of the
// plan of its conversation that has the number executed (0 for none), the newest plan
// first and of each the newest version.
func (t *Pages) SessionPlans(ctx context.Context, sessionID string, executed int64, limit int) (list []plan.Plan, err error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, err
	}
	return rowsOf(ctx, t.tx, "list the plans of a session", scanPlan, `SELECT `+planColumns+` FROM plans
		WHERE conversation_id = (SELECT s.conversation_id FROM remote_agent_sessions s WHERE s.id = $1)
			AND (number = $2 OR number IN (SELECT m.number FROM plans m WHERE m.session_id = $1))
		ORDER BY number DESC, version DESC LIMIT $3`, sessionID, executed, limit)
}

// SessionEvent is an event of the inbox with what was sent for it.
type SessionEvent struct {
	ID         string
	Seq        int64
	Lane       sessions.Lane
	State      sessions.EntryState
	Attempts   int
	NextAt     time.Time
	AcceptedAt time.Time
	Error      string // for operators
	In         messages.Inbound
	Deliveries []messages.Delivery // without their files
}

const (
	sessionEventsSQL = `
		SELECT id, seq, lane, state, attempts, next_ms, accepted_ms, error, ` + eventColumns + ` FROM inbound_events
		WHERE conversation_id = $1 AND seq > 0 AND seq < $2 AND (session_id = $3 OR session_id IS NULL AND accepted_ms >= $4 AND accepted_ms <= $5)
		ORDER BY seq DESC LIMIT $6`

	maxEventDeliveries = 300
)

// SessionEvents returns up to limit events of a session before the one with a number (0:
// the last ones), the newest first: those that it answered, and those that came in while
// it was there and belong to no session, such as commands and what was ignored.
func (t *Pages) SessionEvents(ctx context.Context, s sessions.Session, before int64, limit int) (list []SessionEvent, err error) {
	if before <= 0 {
		before = beforeFirst(true)
	}
	until := s.EndedAt
	if until.IsZero() {
		until = time.Now().AddDate(1, 0, 0)
	}
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var e SessionEvent
		var event storedEvent
		err := scan(append([]any{text{&e.ID}, &e.Seq, &e.Lane, &e.State, &e.Attempts, msTime{&e.NextAt}, msTime{&e.AcceptedAt}, text{&e.Error}}, event.dest()...)...)
		e.In = event.read()
		list = append(list, e)
		return err
	}, sessionEventsSQL, s.ConversationID, before, s.ID, millis(s.StartedAt.Add(-time.Minute)), millis(until), limit)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "list the events of a session")
	}
	return list, t.addDeliveries(ctx, list)
}

// addDeliveries reads what was sent for events.
func (t *Pages) addDeliveries(ctx context.Context, events []SessionEvent) error {
	if len(events) == 0 {
		return nil
	}
	ids, args := make([]string, len(events)), []any{maxEventDeliveries}
	at := make(map[string]int, len(events))
	for i, e := range events {
		ids[i], at[e.ID] = e.ID, i
	}
	these := within("event_id", ids, &args)
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var d messages.Delivery
		err := scan(text{&d.EventID}, &d.Seq, &d.Control, &d.State, &d.Attempts, msTime{&d.NextAt}, &d.Error, msTime{&d.CreatedAt}, &d.OnlyFor, &d.FileName, &d.Text)
		if i, ok := at[d.EventID]; ok && err == nil {
			events[i].Deliveries = append(events[i].Deliveries, d)
		}
		return err
	}, `SELECT event_id, seq, control, state, attempts, next_ms, error, created_ms, only_for, file_name, substr(body, 1, 300) FROM deliveries
		WHERE `+these+` ORDER BY event_id DESC, seq LIMIT $1`, args...)
	return wrap(err, "list what was sent")
}

// TurnUsage is what a turn used of a model.
type TurnUsage struct {
	EntryID                        string // empty if it was deleted
	Actor, Assistant, Model        string
	At                             time.Time // of its first request
	Requests                       int
	Input, Output, Cached, Written int64
	Micros                         int64 // of what has a known price
	Unpriced                       int64 // tokens without price data
}

// SessionUsage returns what the turns of a session used, by turn and model, the newest
// turn first, up to limit.
func (t *Pages) SessionUsage(ctx context.Context, sessionID string, limit int) (list []TurnUsage, err error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, err
	}
	where, args := usageWhere(UsageFilter{SessionID: sessionID})
	sum := func(column string) string { return `CAST(COALESCE(sum(` + column + `), 0) AS BIGINT)` }
	return rowsOf(ctx, t.tx, "list what a session used", func(u *TurnUsage) []any {
		return []any{&u.EntryID, &u.Actor, &u.Assistant, &u.Model, msTime{&u.At}, &u.Requests, &u.Input, &u.Output, &u.Cached, &u.Written, &u.Micros, &u.Unpriced}
	}, `SELECT COALESCE(CAST(event_id AS TEXT), ''), actor, ai_assistant_type, model, min(at_ms), count(*), `+
		sum("input_tokens")+`, `+sum("output_tokens")+`, `+sum("cached_tokens")+`, `+sum("written_tokens")+`, `+sum("cost_micros")+`, `+
		sum("CASE WHEN cost_micros IS NULL THEN input_tokens + output_tokens ELSE 0 END")+`
		FROM usage_records`+where+` GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 4 LIMIT $`+fmt.Sprint(len(args)+1), append(args, limit)...)
}
