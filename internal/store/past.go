package store

import (
	"context"
	"database/sql"
	"strings"

	"remote-agent/internal/fault"
)

// maxPast is how many rows of a table Past gives, the newest.
const maxPast = 10_000

// pastSQL are the queries of Past. Their columns are those of seed 003, and for
// messages seq and kind.
var pastSQL = map[string]struct {
	query   string
	columns string // T for a text, N for a number
	secret  []int  // columns with what tools were given and returned
}{
	"agent_sessions": {`
		SELECT a.id, a.agent_name, a.provider, a.model, a.system_prompt, a.user_prompt, a.config, a.status,
			a.started_at, a.ended_at, a.result, a.error
		FROM agent_sessions a JOIN remote_agent_sessions s ON s.id = a.id
		WHERE s.conversation_id = $1 ORDER BY a.id DESC LIMIT $2`, "TTTTTTTTNNTT", nil},
	"agent_messages": {`
		SELECT m.id, m.session_id, m.role, substr(m.content, 1, 16384), m.created_at, m.seq, m.kind
		FROM agent_messages m JOIN remote_agent_sessions s ON s.id = m.session_id
		WHERE s.conversation_id = $1 AND NOT m.undone ORDER BY m.id DESC LIMIT $2`, "NTTTNNT", nil},
	"agent_tool_calls": {`
		SELECT c.id, c.session_id, c.message_id, c.tool_call_id, c.tool_name, substr(c.request, 1, 16384), substr(c.response, 1, 16384),
			c.status, c.created_at, c.completed_at, c.execution_time_ms, c.error_details
		FROM agent_tool_calls c JOIN remote_agent_sessions s ON s.id = c.session_id
		WHERE s.conversation_id = $1 ORDER BY c.id DESC LIMIT $2`, "NTNTTTTTNNNT", []int{5, 6, 11}},
}

// Past gives the rows of agent_sessions, agent_messages or agent_tool_calls that
// belong to one conversation, the newest first and at most 10,000 of them. What
// was taken back is not among them, and long texts are cut. NULL and empty texts
// are nil. With discreet set, what tools were given and returned is nil, too.
func (t *Pages) Past(ctx context.Context, conversationID, table string, discreet bool, visit func(row ...any) error) error {
	of, ok := pastSQL[table]
	if !ok {
		return fault.Newf(fault.Invalid, "There is no table %q of the past.", table)
	}
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		texts, numbers := make([]string, len(of.columns)), make([]sql.NullInt64, len(of.columns))
		into, row := make([]any, len(of.columns)), make([]any, len(of.columns))
		for i, kind := range of.columns {
			if kind == 'N' {
				into[i] = &numbers[i]
			} else {
				into[i] = text{&texts[i]}
			}
		}
		if err := scan(into...); err != nil {
			return err
		}
		for i, kind := range of.columns {
			switch {
			case kind == 'N' && numbers[i].Valid:
				row[i] = numbers[i].Int64
			case kind == 'T' && texts[i] != "":
				row[i] = texts[i]
			}
		}
		if discreet {
			for _, i := range of.secret {
				row[i] = nil
			}
			if table == "agent_messages" && strings.HasPrefix(texts[6], "tool") {
				row[3] = nil
			}
		}
		return visit(row...)
	}, of.query, conversationID, maxPast)
	return wrap(err, "read the past")
}
