package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// maxPage bounds how many rows a listing returns at once.
const maxPage = 1000

// SessionFilter chooses sessions; empty members choose all.
type SessionFilter struct {
	ConversationID string
	Status         sessions.Status
	Within         []string // nil: all; else only these conversations, none if it is empty
	Viewer         Viewer   // only what this account sees
	Person         Viewer   // only where this account has written
	Platform       messages.Platform
	CodebaseID     string
	Assistant      string
	Sessions       []string // nil: all; else only these sessions, none if it is empty
	Before         string   // id of a session: only those that are listed after it
	Limit          int      // 1 to 1000; 0 is 50
}

// SessionRow is a session in a listing.
type SessionRow struct {
	sessions.Session

	Key       messages.ConversationKey
	Messages  int
	ToolCalls int
}

// ListSessions returns sessions, the newest first. Before is a cursor: with the
// id of the last row of a page it returns the next page, and rows that came in
// between change nothing. An id that is none, or of no session, is an error
// (fault.Invalid, fault.NotFound).
func (t *Tx) ListSessions(ctx context.Context, f SessionFilter) ([]SessionRow, error) {
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return nil, err
		}
	}
	if f.Before != "" {
		if err := checkID(f.Before, "session"); err != nil {
			return nil, err
		}
		if _, err := t.Session(ctx, f.Before); err != nil {
			return nil, err
		}
	}
	f.Limit = page(f.Limit)
	if !f.elsewhere() {
		return t.listSessions(ctx, f, "remote_agent_sessions")
	}
	few, err := t.FewWrittenIn(ctx, fewConversations, f.Viewer, f.Person)
	if err != nil {
		return nil, err
	}
	if few == nil {
		list, err := t.listSessions(ctx, f, newestSessions)
		if err != nil || len(list) == f.Limit {
			return list, err
		}
	} else if f.Within == nil {
		f.Within = few
	}
	return t.gatherSessions(ctx, f)
}

// elsewhere reports whether f chooses by what other tables say, which no index of the
// sessions has in their order. What many have is found among the newest; what few have is
// found by the conversations that have it.
func (f SessionFilter) elsewhere() bool {
	return f.Viewer != (Viewer{}) || f.Person != (Viewer{}) || f.Platform != ""
}

// newestSessions stands for the sessions that are looked at one by one: those that are
// listed first.
const newestSessions = "newest"

const (
	lookedAt         = 1000 // sessions of newestSessions
	fewConversations = 200  // of somebody whose sessions are not looked for among the newest
)

// chosen returns the conditions of f on a session s and its conversation c.
func (f SessionFilter) chosen() *conditions {
	c := &conditions{}
	if f.ConversationID != "" {
		c.add("s.conversation_id = $%d", f.ConversationID)
	}
	c.status(f.Status)
	if f.Within != nil {
		c.list = append(c.list, within(f.Within, &c.args))
	}
	c.listed(f)
	f.behind(c)
	return c
}

// behind adds the condition that a session s is listed after the cursor.
func (f SessionFilter) behind(c *conditions) {
	if f.Before != "" {
		c.add("(s.started_at, s.id) < (SELECT b.started_at, b.id FROM remote_agent_sessions b WHERE b.id = $%d)", f.Before)
	}
}

// listSessions goes through sessions in their order until it has enough.
func (t *Tx) listSessions(ctx context.Context, f SessionFilter, from string) ([]SessionRow, error) {
	c := f.chosen()
	if from == newestSessions {
		few := &conditions{args: c.args}
		f.behind(few)
		c.args = few.args
		from = `(SELECT s.* FROM remote_agent_sessions s` + few.where() + fmt.Sprintf(` ORDER BY s.started_at DESC, s.id DESC LIMIT %d)`, lookedAt)
	}
	c.args = append(c.args, f.Limit)
	return t.sessionRows(ctx, from, c.where()+fmt.Sprintf(" ORDER BY s.started_at DESC, s.id DESC LIMIT $%d", len(c.args)), c.args...)
}

// gatherSessions puts the sessions of the conversations that f chooses into order.
func (t *Tx) gatherSessions(ctx context.Context, f SessionFilter) ([]SessionRow, error) {
	c := f.chosen()
	if f.Platform != "" {
		c.add("s.conversation_id IN (SELECT p.id FROM remote_agent_conversations p WHERE p.platform_type = $%d)", string(f.Platform))
	}
	for _, v := range []Viewer{f.Viewer, f.Person} {
		if v != (Viewer{}) && f.Within == nil {
			c.add("s.conversation_id IN ("+writtenIn+")", string(v.Platform), string(v.ID), outsideKey(v.Platform, v.ID))
		}
	}
	c.args = append(c.args, f.Limit)
	return t.sessionRows(ctx, "remote_agent_sessions", ` WHERE s.id IN (
		WITH found AS MATERIALIZED (
			SELECT s.id, s.started_at FROM remote_agent_sessions s JOIN remote_agent_conversations c ON c.id = s.conversation_id`+c.where()+`)
		SELECT found.id FROM found ORDER BY found.started_at DESC, found.id DESC `+fmt.Sprintf("LIMIT $%d) ORDER BY s.started_at DESC, s.id DESC", len(c.args)), c.args...)
}

// SessionRow returns one session with its figures. What is no id is
// fault.Invalid, that of no session fault.NotFound.
func (t *Tx) SessionRow(ctx context.Context, id string) (SessionRow, error) {
	if err := checkID(id, "session"); err != nil {
		return SessionRow{}, err
	}
	rows, err := t.sessionRows(ctx, "remote_agent_sessions", " WHERE s.id = $1", id)
	if err == nil && len(rows) == 0 {
		err = notFound("session")
	}
	if err != nil {
		return SessionRow{}, err
	}
	return rows[0], nil
}

func (t *Tx) sessionRows(ctx context.Context, from, rest string, args ...any) ([]SessionRow, error) {
	query := `
		SELECT ` + qualified("s", sessionColumns) + `, c.platform_type, c.platform_conversation_id,
			(SELECT count(DISTINCT m.seq) FROM agent_messages m WHERE m.session_id = s.id),
			(SELECT count(*) FROM agent_tool_calls k WHERE k.session_id = s.id)
		FROM ` + from + ` s JOIN remote_agent_conversations c ON c.id = s.conversation_id`
	var list []SessionRow
	err := t.each(ctx, func(scan func(...any) error) error {
		var row sessionRow
		var r SessionRow
		if err := scan(append(row.dest(), &r.Key.Platform, &r.Key.ID, &r.Messages, &r.ToolCalls)...); err != nil {
			return err
		}
		var err error
		r.Session, err = row.decode()
		list = append(list, r)
		return err
	}, query+rest, args...)
	return list, wrap(err, "list sessions")
}

// within is the condition that a session is of one of some conversations; their
// ids are added to args.
func within(ids []string, args *[]any) string {
	places := make([]string, len(ids))
	for i, id := range ids {
		*args = append(*args, id)
		places[i] = fmt.Sprintf("$%d", len(*args))
	}
	if len(places) == 0 {
		return "1 = 0"
	}
	return "s.conversation_id IN (" + strings.Join(places, ", ") + ")"
}

// ConversationsAt returns the ids of the conversation at a place of a platform
// and of those that were there before and were put aside, as a hand-off does: a
// "~" follows the place's id in theirs. No other place's are among them.
func (t *Tx) ConversationsAt(ctx context.Context, key messages.ConversationKey) ([]string, error) {
	aside := key.ID + "~"
	ids, err := t.ids(ctx, `
		SELECT id FROM remote_agent_conversations
		WHERE platform_type = $1 AND (platform_conversation_id = $2 OR substr(platform_conversation_id, 1, $3) = $4)
		ORDER BY id`, string(key.Platform), key.ID, utf8.RuneCountInString(aside), aside)
	if ids == nil {
		ids = []string{} // none, and not all as nil is for a filter
	}
	return ids, wrap(err, "find the conversations of a place")
}

// SessionIDs returns the ids of the sessions of conversations, the oldest first:
// the place of one in the list is a number that people can call it by.
func (t *Tx) SessionIDs(ctx context.Context, conversations []string) ([]string, error) {
	var args []any
	query := `SELECT s.id FROM remote_agent_sessions s WHERE ` + within(conversations, &args) + ` ORDER BY s.started_at, s.id`
	list, err := t.ids(ctx, query, args...)
	return list, wrap(err, "number sessions")
}

// TranscriptMessage is a message with when it was stored and whether its turn
// was taken back.
type TranscriptMessage struct {
	messages.Message

	At     time.Time
	Undone bool
	RunID  string // of the event that it belongs to; only TranscriptPage says it
}

// Transcript calls visit for the messages of a session in order, without
// reading them all into memory. visit may not use t.
func (t *Tx) Transcript(ctx context.Context, sessionID string, visit func(TranscriptMessage) error) error {
	var held *TranscriptMessage
	err := t.each(ctx, func(scan func(...any) error) error {
		var r messages.Record
		var m TranscriptMessage
		var created int64
		if err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, &created, &m.Undone); err != nil {
			return err
		}
		decoded, ok, err := messages.FromRecord(r)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "decode message")
		}
		if !ok {
			return nil
		}
		if held != nil && held.Seq == decoded.Seq {
			held.Blocks = append(held.Blocks, decoded.Blocks...)
			return nil
		}
		ready := held
		m.Message, m.At = decoded, time.Unix(created, 0).UTC()
		held = &m
		if ready == nil {
			return nil
		}
		return visit(*ready)
	}, `
		SELECT seq, role, kind, content, data_json, created_at, undone
		FROM agent_messages WHERE session_id = $1 ORDER BY seq, part`, sessionID)
	if err == nil && held != nil {
		err = visit(*held)
	}
	return wrap(err, "read transcript")
}

func page(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, maxPage)
}

// checkID refuses what is no id before PostgreSQL does, with words for people.
func checkID(id, what string) error {
	if err := uuid.Validate(id); err != nil || len(id) != 36 {
		return fault.Newf(fault.Invalid, "%q is not the id of a %s; ids look like 0198c2d1-7a3b-7c4d-8e5f-0123456789ab.", id, what)
	}
	return nil
}

// qualified puts the name of a table before each column of a list.
func qualified(table, columns string) string {
	list := strings.Split(columns, ",")
	for i, c := range list {
		list[i] = table + "." + strings.TrimSpace(c)
	}
	return strings.Join(list, ", ")
}
