package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// Reads for programs that go through the data page by page. A page goes on
// behind a place, which stays valid when the row that it names is deleted, and
// rows that come in between change nothing.

// browseBytes is how much text a page holds before it ends early.
const browseBytes = 4 << 20

var errPageFull = errors.New("the page is full")

// SessionPlace is where a session stands among all: by its start, then by id.
type SessionPlace struct {
	Started string // as the database has it
	ID      string
}

// check refuses a place that the database would not understand.
func (t *Pages) checkPlace(p SessionPlace) error {
	if err := checkID(p.ID, "session"); err != nil {
		return err
	}
	layouts := []string{time.RFC3339Nano, time.DateTime}
	if t.tx.pg != nil {
		layouts = layouts[:1]
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, p.Started); err == nil && at.Year() >= 1 {
			return nil
		}
	}
	return fault.New(fault.Invalid, "The message to continue from is damaged.")
}

// startedText is a start as it is compared. On SQLite that is the text itself,
// which a person may have written in another form than this program.
func (t *Pages) startedText(at time.Time, raw string) string {
	if t.tx.pg != nil {
		return at.Format(time.RFC3339Nano)
	}
	return raw
}

// conditions collects the conditions of a query.
type conditions struct {
	list []string
	args []any
}

// add adds a condition with %d in the places of its values.
func (c *conditions) add(format string, values ...any) {
	places := make([]any, len(values))
	for i, v := range values {
		c.args = append(c.args, v)
		places[i] = len(c.args)
	}
	c.list = append(c.list, fmt.Sprintf(format, places...))
}

// when adds a condition that is wanted.
//
//go:noinline // it would be copied into many callers
func (c *conditions) when(wanted bool, format string, values ...any) {
	if wanted {
		c.add(format, values...)
	}
}

// runningSessions are those with an open turn: there are few, found by an index.
const runningSessions = `s.status = 'running' AND s.id IN (SELECT e.session_id FROM inbound_events e WHERE e.lane = 'turn' AND e.state IN ('waiting', 'running'))`

// status adds the condition that the session s has a status (empty: any). The words
// are those of the indexes: a value in a place of its own would not find them.
func (c *conditions) status(s sessions.Status) {
	switch s {
	case "":
	case sessions.Running:
		c.add(runningSessions)
	case sessions.Failed:
		c.add("s.status = 'failed'")
	case sessions.Completed:
		c.add("s.status = 'completed'")
	default:
		c.add("s.status = $%d", string(s))
	}
}

//go:noinline // it would be copied into many callers
func (c *conditions) where() string {
	if len(c.list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.list, " AND ")
}

// BrowseSessionsQuery chooses sessions; empty members choose all.
type BrowseSessionsQuery struct {
	ConversationID string
	Agent          string // name of the agent profile
	Status         sessions.Status
	Active         *bool
	Since, Until   time.Time // of the start; Until itself is not part of it
	After          SessionPlace
	Limit          int // at least 1
}

// BrowsedSession is a session of a page.
type BrowsedSession struct {
	sessions.Session

	Key   messages.ConversationKey
	Place SessionPlace
}

func (t *Pages) browseSessionsSQL(q BrowseSessionsQuery) (query string, args []any, err error) {
	var c conditions
	if q.ConversationID != "" {
		if err := checkID(q.ConversationID, "conversation"); err != nil {
			return "", nil, err
		}
		c.add("s.conversation_id = $%d", q.ConversationID)
	}
	c.when(q.Agent != "", "s.agent_name = $%d", q.Agent)
	c.status(q.Status)
	if q.Active != nil {
		c.add("s.active = $%d", *q.Active)
	}
	c.when(!q.Since.IsZero(), "s.started_at >= $%d", rfc3339(q.Since))
	c.when(!q.Until.IsZero(), "s.started_at < $%d", rfc3339(q.Until))
	if q.After != (SessionPlace{}) {
		if err := t.checkPlace(q.After); err != nil {
			return "", nil, err
		}
		c.add("(s.started_at, s.id) < ($%d, $%d)", q.After.Started, q.After.ID)
	}
	c.args = append(c.args, q.Limit)
	return `
		SELECT ` + qualified("s", sessionColumns) + `, c.platform_type, c.platform_conversation_id, CAST(s.started_at AS TEXT)
		FROM remote_agent_sessions s JOIN remote_agent_conversations c ON c.id = s.conversation_id` + c.where() +
		fmt.Sprintf(" ORDER BY s.started_at DESC, s.id DESC LIMIT $%d", len(c.args)), c.args, nil
}

// BrowseSessions returns a page of sessions, the newest first. A conversation or
// a place that cannot be one is fault.Invalid.
func (t *Pages) BrowseSessions(ctx context.Context, q BrowseSessionsQuery) ([]BrowsedSession, error) {
	query, args, err := t.browseSessionsSQL(q)
	if err != nil {
		return nil, err
	}
	list, err := rowsOf(ctx, t.tx, "browse sessions", func(s *BrowsedSession) []any {
		return append(scanSession(&s.Session), &s.Key.Platform, &s.Key.ID, text{&s.Place.Started})
	}, query, args...)
	for i := range list {
		s := &list[i]
		s.Place = SessionPlace{Started: t.startedText(s.StartedAt, s.Place.Started), ID: s.ID}
	}
	return list, err
}

// CountSession counts the messages and tool calls of a session.
func (t *Pages) CountSession(ctx context.Context, id string) (msgs, calls int64, err error) {
	_, err = t.tx.one(ctx, []any{&msgs, &calls}, `
		SELECT (SELECT count(*) FROM agent_messages WHERE session_id = $1 AND part = 0 AND role <> 'system'),
			(SELECT count(*) FROM agent_tool_calls WHERE session_id = $1)`, id)
	return msgs, calls, wrap(err, "count session")
}

const browseConversationsSQL = `SELECT ` + conversationColumns + ` FROM remote_agent_conversations`

// BrowseConversations returns a page of conversations of a platform (empty: of
// all) by id, descending: conversations that this program made come newest
// first. After is the id of the last one of the page before.
func (t *Pages) BrowseConversations(ctx context.Context, p messages.Platform, after string, limit int) (list []sessions.Conversation, err error) {
	var c conditions
	c.when(p != "", "platform_type = $%d", string(p))
	if after != "" {
		if err := checkID(after, "conversation"); err != nil {
			return nil, err
		}
		c.add("id < $%d", after)
	}
	c.args = append(c.args, limit)
	return rowsOf(ctx, t.tx, "browse conversations", scanConversation, browseConversationsSQL+c.where()+fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(c.args)), c.args...)
}

const browseCallsSQL = toolCallsSQL + ` WHERE c.session_id = $1 AND c.id > $2 ORDER BY c.id LIMIT $3`

// BrowseToolCalls returns a page of the tool calls of a session with a status
// (empty: any) in the order of their recording, behind the one with the number
// after. more says that others follow; a page of much text ends early.
func (t *Pages) BrowseToolCalls(
	ctx context.Context, sessionID string, status sessions.ToolStatus, after int64, limit int,
) (list []sessions.ToolCall, more bool, err error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, false, err
	}
	query, args := browseCallsSQL, []any{sessionID, after, limit + 1}
	if status != "" {
		query = strings.Replace(query, " ORDER BY", " AND c.status = $4 ORDER BY", 1)
		args = append(args, string(status))
	}
	size := 0
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		if len(list) == limit || size > browseBytes {
			return errPageFull
		}
		var c sessions.ToolCall
		err := scan(scanToolCall(&c)...)
		list = append(list, c)
		size += len(c.Request) + len(c.Response) + len(c.Error)
		return err
	}, query, args...)
	if errors.Is(err, errPageFull) {
		return list, true, nil
	}
	return list, false, wrap(err, "browse tool calls")
}

// ToolCall returns a tool call by its number; fault.NotFound if there is none.
func (t *Pages) ToolCall(ctx context.Context, id int64) (sessions.ToolCall, error) {
	return rowOf(ctx, t.tx, "tool call", scanToolCall, toolCallsSQL+` WHERE c.id = $1`, id)
}

// AgentAtWork reports whether a conversation that uses a profile works now.
func (t *Pages) AgentAtWork(ctx context.Context, agentID string) (bool, error) {
	if err := checkID(agentID, "profile"); err != nil {
		return false, err
	}
	busy, err := t.tx.exists(ctx, agentAtWorkSQL, agentID)
	return busy, wrap(err, "look whether a profile works")
}

const agentAtWorkSQL = `
	SELECT 1 FROM remote_agent_conversations
	WHERE agent_id = $1 AND lease_owner IS NOT NULL AND lease_until > {now} LIMIT 1`
