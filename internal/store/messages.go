package store

import (
	"context"
	"fmt"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// AppendMessages adds messages to a session under a run id and returns the
// sequence number of each, in order, without gaps. A message of no blocks is
// refused (fault.Invalid).
func (t *Messages) AppendMessages(ctx context.Context, sessionID, runID string, msgs ...messages.Message) ([]int64, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	steps, last, err := appendSteps(sessionID, runID, "", msgs, new(int64))
	if err != nil {
		return nil, err
	}
	return t.append(ctx, steps, last, len(msgs))
}

// appendSteps are the statements of AppendMessages, which also give the session a
// status, unless it is empty. The first of them sets last, the number of the last
// message then, and newest, that of the newest message that MessagesBefore would have
// returned before, 0 if there was none.
func appendSteps(sessionID, runID string, status sessions.Status, msgs []messages.Message, newest *int64) (steps []step, last *int64, err error) {
	set, args := "", []any{sessionID, len(msgs)}
	if status != "" {
		set, args = "status = $3, ", append(args, string(status))
	}
	last = new(int64)
	steps, err = messageSteps(sessionID, runID, msgs)
	return append([]step{{dest: []any{last, newest}, args: args, query: `
		UPDATE remote_agent_sessions SET ` + set + `last_seq = last_seq + $2 WHERE id = $1
		RETURNING last_seq, COALESCE((SELECT m.seq FROM agent_messages m
			WHERE m.session_id = $1 AND m.part = 0 AND m.role <> 'system' AND NOT m.undone
			ORDER BY m.seq DESC LIMIT 1), 0)`}}, steps...), last, err
}

// append runs appendSteps and returns the numbers of n messages.
func (t *Messages) append(ctx context.Context, steps []step, last *int64, n int) (seqs []int64, err error) {
	ok, err := t.tx.all(ctx, steps)
	if !ok[0] && (err == nil || isNull(err)) { // without a session the messages have no number
		return nil, notFound("session")
	}
	if err != nil {
		return nil, fmt.Errorf("store message: %w", err)
	}
	for i := range n {
		seqs = append(seqs, *last-int64(n-1-i))
	}
	return seqs, nil
}

// messageSteps are the statements that store messages of a session whose last_seq
// counts them already.
func messageSteps(sessionID, runID string, msgs []messages.Message) (steps []step, err error) {
	for i, m := range msgs {
		if len(m.Blocks) == 0 {
			return nil, fault.New(fault.Invalid, "A message needs content.")
		}
		records, err := messages.ToRecords(m)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "encode message")
		}
		for part, r := range records {
			steps = append(steps, step{query: `
				INSERT INTO agent_messages (
					session_id, seq, part, role, kind, content, data_json, provider_metadata, run_id, created_at)
				VALUES ($1, (SELECT last_seq FROM remote_agent_sessions WHERE id = $1) - $2,
					$3, $4, $5, $6, $7, $8, $9, {now} / 1000)`,
				args: []any{
					sessionID, int64(len(msgs) - 1 - i), part, string(r.Role), r.Kind, r.Content, orNull(r.DataJSON),
					orNull(string(r.ProviderMetadata)), runID,
				}})
		}
	}
	return steps, nil
}

// CopyMessages appends the messages of a session that were not undone to
// another, in order, and returns how many there were. The copies belong to no
// run. The other session must be new: numbers are kept.
func (t *Messages) CopyMessages(ctx context.Context, from, to string) (int, error) {
	if _, err := t.tx.exec(ctx, `
		INSERT INTO agent_messages (session_id, seq, part, role, kind, content, data_json, provider_metadata, run_id, created_at)
		SELECT $2, seq, part, role, kind, content, data_json, provider_metadata, '', created_at
		FROM agent_messages WHERE session_id = $1 AND NOT undone ORDER BY seq, part`, from, to); err != nil {
		return 0, fmt.Errorf("copy messages: %w", err)
	}
	var n int
	if _, err := t.tx.one(ctx, []any{&n}, `SELECT count(DISTINCT seq) FROM agent_messages WHERE session_id = $1`, to); err != nil {
		return 0, fmt.Errorf("count copied messages: %w", err)
	}
	_, err := t.tx.exec(ctx, `
		UPDATE remote_agent_sessions SET last_seq = COALESCE((SELECT max(seq) FROM agent_messages WHERE session_id = $1), 0)
		WHERE id = $1`, to)
	return n, wrap(err, "number copied messages")
}

const messageColumns = `seq, role, kind, content, data_json, provider_metadata`

// The inner query finds the first of the last messages by the index on
// (session_id, seq, part), so the cost depends on the limit and not on the
// length of the session.
const messagesBeforeSQL = `
	SELECT ` + messageColumns + ` FROM agent_messages
	WHERE session_id = $1 AND seq < $2 AND role <> 'system' AND NOT undone AND seq >= (
		SELECT min(seq) FROM (
			SELECT seq FROM agent_messages
			WHERE session_id = $1 AND seq < $2 AND part = 0 AND role <> 'system' AND NOT undone
			ORDER BY seq DESC LIMIT $3) AS newest)
	ORDER BY seq DESC, part`

// MessagesBefore implements sessions.MessageStore. Those of turns that were taken back are
// left out, too.
func (t *Messages) MessagesBefore(ctx context.Context, sessionID string, before int64, limit int) ([]messages.Message, error) {
	return t.messages(ctx, messagesBeforeSQL, sessionID, before, limit)
}

const runMessagesSQL = `
	SELECT ` + messageColumns + ` FROM agent_messages WHERE run_id = $1 AND NOT undone ORDER BY id`

// RunMessages implements sessions.MessageStore. Those that were taken back are left out.
func (t *Messages) RunMessages(ctx context.Context, runID string) ([]messages.Message, error) {
	if runID == "" {
		return nil, nil
	}
	return t.messages(ctx, runMessagesSQL, runID)
}

// messages reads rows and joins those of one message, which follow each other.
func (t *Messages) messages(ctx context.Context, query string, args ...any) ([]messages.Message, error) {
	var list []messages.Message
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var r messages.Record
		if err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, rawJSON{&r.ProviderMetadata}); err != nil {
			return err
		}
		var last *messages.Message
		if n := len(list); n > 0 {
			last = &list[n-1]
		}
		m, begins, err := nextMessage(r, last)
		if begins {
			list = append(list, m)
		}
		return err
	}, query, args...)
	return list, wrap(err, "read messages")
}

// nextMessage reads the row behind those of the last message (nil: there is none). begins is
// false if it is a part of that one, to which it is added, or of none.
func nextMessage(r messages.Record, last *messages.Message) (m messages.Message, begins bool, err error) {
	m, is, err := messages.FromRecord(r)
	switch {
	case err != nil:
		return m, false, fault.Wrap(err, fault.Internal, "decode message")
	case is && last != nil && last.Seq == m.Seq:
		last.Blocks = append(last.Blocks, m.Blocks...)
		return m, false, nil
	}
	return m, is, nil
}
