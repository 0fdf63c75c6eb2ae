package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
)

// Reads for the web pages.

// Viewer is an account that sees the conversations in which it has written. The zero
// value sees all.
type Viewer struct {
	Platform messages.Platform
	ID       messages.UserID
}

// hasWritten is the condition that an account has written in a conversation, there or
// from elsewhere. What it wrote has the platform of the conversation, so that the index of
// senders finds it at once, also where a conversation has much of others.
const hasWritten = `EXISTS (
	SELECT 1 FROM inbound_events v {by sender} WHERE v.sender IN ($%%d, $%%d) AND (v.platform_type = $%%d OR v.sender = $%%d)
		AND v.platform_type = %[1]s.platform_type AND v.conversation_id = %[1]s.id AND v.seq > 0 AND v.state NOT IN ('refused', 'raw'))`

// writtenIn are the conversations in which an account has an event. Where hasWritten asks
// of each conversation, this goes through those of the account.
const writtenIn = `
	SELECT v.conversation_id FROM inbound_events v WHERE v.seq > 0 AND v.platform_type = $%d AND v.sender = $%d
	UNION SELECT v.conversation_id FROM inbound_events v WHERE v.seq > 0 AND v.sender = $%d`

// The conversations in which an account has an event, there and from elsewhere, one after
// the other: the index has them in their order, so that a few are read at once.
const (
	writtenThereSQL     = `SELECT DISTINCT v.conversation_id FROM inbound_events v WHERE v.seq > 0 AND v.platform_type = $1 AND v.sender = $2 LIMIT $3`
	writtenElsewhereSQL = `SELECT DISTINCT v.conversation_id FROM inbound_events v WHERE v.seq > 0 AND v.sender = $1 LIMIT $2`
)

// FewWrittenIn returns the conversations in which the first of some accounts that is one
// has written, or nil if these are more than most, or none is an account. There may be some
// among them in which what it wrote was refused.
func (t *Pages) FewWrittenIn(ctx context.Context, most int, accounts ...Viewer) ([]string, error) {
	for _, v := range accounts {
		if v == (Viewer{}) {
			continue
		}
		ids, err := t.tx.ids(ctx, writtenThereSQL, string(v.Platform), string(v.ID), most+1)
		if err != nil || len(ids) > most {
			return nil, wrap(err, "find the conversations of a person")
		}
		more, err := t.tx.ids(ctx, writtenElsewhereSQL, outsideKey(v.Platform, v.ID), most+1)
		if err != nil {
			return nil, wrap(err, "find where a person wrote from elsewhere")
		}
		ids = append(ids, more...)
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) > most {
			return nil, nil
		}
		return append([]string{}, ids...), nil
	}
	return nil, nil
}

// seenBy adds the condition that the conversation of an alias is one that v sees.
func (c *conditions) seenBy(v Viewer, conversation string) {
	if v != (Viewer{}) {
		outside := outsideKey(v.Platform, v.ID)
		c.add(fmt.Sprintf(hasWritten, conversation), string(v.ID), outside, string(v.Platform), outside)
	}
}

// ofSeen adds the condition that a column names a conversation that v sees.
func (c *conditions) ofSeen(v Viewer, column string) {
	if v != (Viewer{}) {
		seen := &conditions{args: c.args}
		seen.seenBy(v, "c")
		c.args = seen.args
		c.list = append(c.list, "EXISTS (SELECT 1 FROM remote_agent_conversations c WHERE c.id = "+column+" AND "+seen.list[0]+")")
	}
}

// Sees reports whether an account sees a conversation.
func (t *Pages) Sees(ctx context.Context, v Viewer, conversationID string) (bool, error) {
	if v == (Viewer{}) {
		return true, nil
	}
	var c conditions
	c.add("c.id = $%d", conversationID)
	c.seenBy(v, "c")
	ok, err := t.tx.exists(ctx, `SELECT 1 FROM remote_agent_conversations c`+c.where(), c.args...)
	return ok, wrap(err, "look who sees a conversation")
}

// SeesAny reports whether an account sees one of some conversations.
func (t *Pages) SeesAny(ctx context.Context, v Viewer, conversationIDs []string) (bool, error) {
	for some := range slices.Chunk(conversationIDs, maxPage) {
		var c conditions
		c.list = append(c.list, within("c.id", some, &c.args))
		c.seenBy(v, "c")
		var one int
		if ok, err := t.tx.one(ctx, []any{&one}, `SELECT 1 FROM remote_agent_conversations c`+c.where()+` LIMIT 1`, c.args...); ok || err != nil {
			return ok, wrap(err, "look who sees conversations")
		}
	}
	return false, nil
}

// AskedApprovals returns up to limit approvals that wait at a time in conversations that v
// sees, the oldest first.
func (t *Pages) AskedApprovals(ctx context.Context, v Viewer, now time.Time, limit int) ([]approval.Approval, error) {
	c := askedOf(v, now)
	c.args = append(c.args, limit)
	return t.tx.Questions().approvals(ctx, `SELECT `+approvalColumns+` FROM approvals`+c.where()+fmt.Sprintf(" ORDER BY number LIMIT $%d", len(c.args)), c.args...)
}

// askedOf are the conditions on an approval of AskedApprovals.
func askedOf(v Viewer, now time.Time) (c conditions) {
	c.add("state = 'waiting'")
	c.add("expires_ms > $%d", millis(now))
	c.ofSeen(v, "approvals.conversation_id")
	return c
}

// OpenPlans returns up to limit plans that wait at a time for a decision, or to be run,
// in conversations that v sees, the oldest first.
func (t *Pages) OpenPlans(ctx context.Context, v Viewer, now time.Time, limit int) (list []plan.Plan, err error) {
	c := openOf(v, now)
	c.args = append(c.args, limit)
	return rowsOf(ctx, t.tx, "list open plans", scanPlan, `SELECT `+planColumns+` FROM plans`+c.where()+fmt.Sprintf(" ORDER BY number LIMIT $%d", len(c.args)), c.args...)
}

// openOf are the conditions on a plan of OpenPlans.
func openOf(v Viewer, now time.Time) (c conditions) {
	c.add(openPlan)
	c.add("expires_ms > $%d", millis(now))
	c.ofSeen(v, "plans.conversation_id")
	return c
}

// CountUndecided counts all that AskedApprovals and OpenPlans would return.
func (t *Pages) CountUndecided(ctx context.Context, v Viewer, now time.Time) (approvals, plans int, err error) {
	asked, open := askedOf(v, now), openOf(v, now)
	if _, err = t.tx.one(ctx, []any{&approvals}, `SELECT count(*) FROM approvals`+asked.where(), asked.args...); err == nil {
		_, err = t.tx.one(ctx, []any{&plans}, `SELECT count(*) FROM plans`+open.where(), open.args...)
	}
	return approvals, plans, wrap(err, "count what waits for a decision")
}

const transcriptPageSQL = `
	WITH page AS MATERIALIZED (
		SELECT seq FROM agent_messages WHERE session_id = $1 AND part = 0 AND seq < $2 ORDER BY seq DESC LIMIT $3)
	SELECT seq, role, kind, content, ` + shortResult + `, created_at, undone, run_id FROM agent_messages
	WHERE session_id = $1 AND role <> 'system' AND seq < $2 AND seq >= (SELECT min(seq) FROM page)
	ORDER BY seq DESC, part DESC`

// shortResult stands for data_json: of a long result of a tool the beginning.
const shortResult = `CASE WHEN octet_length(data_json) > 262144 AND kind = 'tool_result' THEN substr(data_json, 1, 65536) ELSE data_json END`

// mendResult makes JSON again of what shortResult has cut within the output. What is not
// like that stays as it is.
func mendResult(data string) (mended string, cut bool) {
	if len(data) < 65536 || json.Valid([]byte(data)) || !strings.Contains(data, `,"output":"`) {
		return data, false
	}
	if i := strings.LastIndexByte(data, '\\'); i >= len(data)-len(`\u0000`) && (i+1-len(strings.TrimRight(data[:i+1], `\`)))%2 == 1 {
		data = data[:i] // it may be half of an escape
	}
	return data + ` …","success":true}`, true
}

// failedCalls notes which of some results that were cut are of calls that failed.
func (t *Pages) failedCalls(ctx context.Context, sessionID string, list []TranscriptMessage, cut map[int64]bool) error {
	for _, m := range list {
		for i, b := range m.Blocks {
			res, ok := b.(messages.ToolResult)
			if !ok || !cut[m.Seq] {
				continue
			}
			failed, err := t.tx.exists(ctx, `SELECT 1 FROM agent_tool_calls WHERE session_id = $1 AND tool_call_id = $2 AND status = 'failed'`, sessionID, res.CallID)
			if err != nil {
				return err
			}
			res.IsError = res.IsError || failed
			m.Blocks[i] = res
		}
	}
	return nil
}

// TranscriptPage returns up to limit messages of a session before the one with a number
// (0: the last ones), in their order. A page of much text has fewer, and at least one, so
// that what it takes is bounded by a few MiB and one message. Of a tool's result of more than
// 256 KiB it has the beginning only.
func (t *Pages) TranscriptPage(ctx context.Context, sessionID string, before int64, limit int) (list []TranscriptMessage, err error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, err
	}
	if before <= 0 {
		before = beforeFirst(true)
	}
	size := 0
	cut := make(map[int64]bool) // by number, of messages
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var r messages.Record
		var m TranscriptMessage
		if err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, secTime{&m.At}, &m.Undone, &m.RunID); err != nil {
			return err
		}
		if mended, short := mendResult(r.DataJSON); short {
			r.DataJSON, cut[r.Seq] = mended, true
		}
		last := len(list) - 1
		if size > browseBytes && (last < 0 || list[last].Seq != r.Seq) {
			return errPageFull
		}
		size += len(r.Content) + len(r.DataJSON)
		decoded, ok, err := messages.FromRecord(r)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "decode message")
		}
		switch {
		case !ok:
		case last >= 0 && list[last].Seq == decoded.Seq:
			list[last].Blocks = slices.Concat(decoded.Blocks, list[last].Blocks)
		default:
			m.Message = decoded
			list = append(list, m)
		}
		return nil
	}, transcriptPageSQL, sessionID, before, limit)
	if errors.Is(err, errPageFull) {
		err = nil
	}
	if err == nil {
		err = t.failedCalls(ctx, sessionID, list, cut)
	}
	slices.Reverse(list)
	if err == nil {
		err = t.forkedRuns(ctx, sessionID, list)
	}
	return list, wrap(err, "read a page of a transcript")
}

// Senders returns the events by which messages came in, by RunID, as far as they were not
// forgotten: who sent them, and where, and nothing of what they said.
func (t *Pages) Senders(ctx context.Context, list []TranscriptMessage) (map[string]messages.Inbound, error) {
	found := make(map[string]messages.Inbound)
	var args []any
	var places []string
	for _, m := range list {
		if _, known := found[m.RunID]; !known && m.Role == messages.RoleUser && checkID(m.RunID, "message") == nil {
			found[m.RunID] = messages.Inbound{}
			args = append(args, m.RunID)
			places = append(places, fmt.Sprintf("$%d", len(args)))
		}
	}
	if len(args) == 0 {
		return found, nil
	}
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var id string
		var event storedEvent
		if err := scan(append([]any{text{&id}}, event.dest()...)...); err != nil || event.data == "" {
			return err
		}
		in := event.read()
		found[id] = messages.Inbound{Conversation: in.Conversation, Sender: in.Sender}
		return nil
	}, `SELECT id, `+eventColumns+` FROM inbound_events WHERE id IN (`+strings.Join(places, ", ")+`)`, args...)
	return found, wrap(err, "look who sent messages")
}
