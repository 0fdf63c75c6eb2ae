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
	Since          time.Time // of the start
	Sessions       []string  // nil: all; else only these sessions, none if it is empty
	Before         string    // id of a session: only those that are listed after it
	Limit          int       // 1 to 1000; 0 is 50

	gone SessionPlace // where the session Before was listed, if it was deleted since
}

// SessionRow is a session in a listing.
type SessionRow struct {
	sessions.Session

	Key       messages.ConversationKey
	Messages  int
	ToolCalls int
}

// Sessions returns sessions, the newest first. Before is a cursor: with the
// id of the last row of a page it returns the next page, and rows that came in
// between change nothing. If that session was deleted, the page goes on where it began,
// which its id tells. What is no id is an error (fault.Invalid), and so is an id of no
// session that tells no time, as other programs make them (fault.NotFound).
func (t *Lists) Sessions(ctx context.Context, f SessionFilter) ([]SessionRow, error) {
	f, err := t.checkFilter(ctx, f)
	if err != nil {
		return nil, err
	}
	f.Limit = page(f.Limit)
	ids, err := t.chooseSessions(ctx, f)
	if err != nil {
		return nil, err
	}
	return t.sessionRows(ctx, ids...)
}

// checkFilter refuses ids that are none, and a cursor that is of no session and of no time.
// It returns f with the place of a cursor whose session is gone.
func (t *Lists) checkFilter(ctx context.Context, f SessionFilter) (SessionFilter, error) {
	if err := t.tx.alone(ctx); err != nil {
		return f, err
	}
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return f, err
		}
	}
	if f.Before == "" {
		return f, nil
	}
	if err := checkID(f.Before, "session"); err != nil {
		return f, err
	}
	_, err := t.tx.Sessions().Session(ctx, f.Before)
	if place, ok := placeOf(f.Before); ok && fault.Is(err, fault.NotFound) {
		f.gone, err = place, nil
	}
	return f, err
}

// placeOf returns where a session is listed by what its id says, if that tells a time. What
// began in the same millisecond is rather listed twice than left out.
func placeOf(id string) (SessionPlace, bool) {
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.Version() != 7 {
		return SessionPlace{}, false
	}
	at := time.Unix(parsed.Time().UnixTime()).Add(time.Millisecond).UTC()
	return SessionPlace{Started: rfc3339(at), ID: parsed.String()}, at.Year() <= 9999
}

const (
	lookedAt         = 2000 // sessions that are looked at one by one
	fewConversations = 200  // by which sessions are found
)

// chooseSessions returns the ids of the sessions that f chooses, the newest first, up to
// f.Limit. What many have is found by looking at the newest sessions one by one, what few
// have by the conversations that have it.
func (t *Lists) chooseSessions(ctx context.Context, f SessionFilter) ([]string, error) {
	if f.Sessions != nil {
		return t.walkSessions(ctx, f, SessionPlace{})
	}
	few, narrow, err := t.narrowed(ctx, f)
	if err != nil {
		return nil, err
	}
	if narrow {
		return t.gatherSessions(ctx, few)
	}
	if !f.elsewhere() {
		return t.walkSessions(ctx, f, SessionPlace{})
	}
	last, more, err := t.walkEnd(ctx, f)
	if err != nil {
		return nil, err
	}
	ids, err := t.walkSessions(ctx, f, last)
	if err != nil || len(ids) == f.Limit || !more {
		return ids, err
	}
	return t.gatherSessions(ctx, f)
}

// elsewhere reports whether f chooses by what other tables say, which no index of the
// sessions has in their order.
func (f SessionFilter) elsewhere() bool {
	return f.Viewer != (Viewer{}) || f.Person != (Viewer{}) || f.Platform != ""
}

// narrowed returns f with the few conversations instead of what chooses these. ok is false
// if they are many.
func (t *Lists) narrowed(ctx context.Context, f SessionFilter) (few SessionFilter, ok bool, err error) {
	if !f.elsewhere() {
		return f, f.Within != nil, nil
	}
	ids := f.Within
	if ids == nil {
		ids, err = t.tx.Pages().FewWrittenIn(ctx, fewConversations, f.Viewer)
	}
	if ids == nil && err == nil {
		ids, err = t.tx.Pages().FewWrittenIn(ctx, fewConversations, f.Person)
	}
	if ids == nil && err == nil && f.Platform != "" {
		ids, err = t.tx.ids(ctx, `SELECT id FROM remote_agent_conversations WHERE platform_type = $1 LIMIT $2`, string(f.Platform), fewConversations+1)
		if len(ids) > fewConversations {
			ids = nil
		} else {
			ids = append([]string{}, ids...)
		}
	}
	if ids == nil || err != nil {
		return f, false, wrap(err, "look for few conversations")
	}
	var c conditions
	list, arg, err := t.tx.Care().oneOf(ids, "UUID", 1)
	if err != nil {
		return f, false, err
	}
	c.list, c.args = append(c.list, "c.id"+list), append(c.args, arg)
	c.elsewhere(f)
	ids, err = t.tx.ids(ctx, `SELECT c.id FROM remote_agent_conversations c`+c.where(), c.args...)
	f.Viewer, f.Person, f.Platform, f.Within = Viewer{}, Viewer{}, "", append([]string{}, ids...)
	return f, true, wrap(err, "look for few conversations")
}

// elsewhere adds the conditions on a conversation c.
func (c *conditions) elsewhere(f SessionFilter) {
	c.seenBy(f.Viewer, "c")
	c.seenBy(f.Person, "c")
	c.when(f.Platform != "", "c.platform_type = $%d", string(f.Platform))
}

// ownConditions returns the conditions of f on a session s itself. Indexes have the
// sessions with each of the statuses, repositories and assistants in their order.
func (t *Lists) ownConditions(f SessionFilter) (*conditions, error) {
	c := &conditions{}
	c.status(f.Status)
	c.when(f.CodebaseID != "", "s.codebase_id = $%d", f.CodebaseID)
	c.when(f.Assistant != "", "s.ai_assistant_type = $%d", f.Assistant)
	c.when(!f.Since.IsZero(), "s.started_at >= $%d", rfc3339(f.Since))
	c.when(f.ConversationID != "", "s.conversation_id = $%d", f.ConversationID)
	for _, of := range []struct {
		column string
		ids    []string
	}{{"s.conversation_id", f.Within}, {"s.id", f.Sessions}} {
		if of.ids == nil {
			continue
		}
		list, arg, err := t.tx.Care().oneOf(of.ids, "UUID", len(c.args)+1)
		if err != nil {
			return nil, err
		}
		c.list, c.args = append(c.list, of.column+list), append(c.args, arg)
	}
	switch {
	case f.Before == "":
	case strings.EqualFold(f.Before, f.gone.ID):
		c.add("(s.started_at, s.id) < ($%d, $%d)", f.gone.Started, f.gone.ID)
	default:
		c.add("(s.started_at, s.id) < (SELECT b.started_at, b.id FROM remote_agent_sessions b WHERE b.id = $%d)", f.Before)
	}
	return c, nil
}

const newestFirst = ` ORDER BY s.started_at DESC, s.id DESC`

// walkEnd returns the place of the last session that is looked at one by one, the zero one
// if all are, of those with the own conditions of f; more says that others follow.
func (t *Lists) walkEnd(ctx context.Context, f SessionFilter) (last SessionPlace, more bool, err error) {
	c, err := t.ownConditions(f)
	if err != nil {
		return last, false, err
	}
	// Within, so that SQLite does not sort all of them for the one behind so many.
	more, err = t.tx.one(ctx, []any{text{&last.Started}, text{&last.ID}}, `
		SELECT CAST(s.started_at AS TEXT), s.id FROM (
			SELECT s.started_at, s.id FROM remote_agent_sessions s`+c.where()+newestFirst+fmt.Sprintf(` LIMIT %d) s`, lookedAt+1)+
		newestFirst+fmt.Sprintf(` LIMIT 1 OFFSET %d`, lookedAt), c.args...)
	return last, more, wrap(err, "list sessions")
}

// walkSessions goes through the sessions in their order until it has enough, or is at last.
func (t *Lists) walkSessions(ctx context.Context, f SessionFilter, last SessionPlace) ([]string, error) {
	c, err := t.ownConditions(f)
	if err != nil {
		return nil, err
	}
	if last != (SessionPlace{}) {
		c.add("(s.started_at, s.id) > ($%d, $%d)", last.Started, last.ID)
	}
	from := `remote_agent_sessions s`
	if f.elsewhere() {
		from += ` CROSS JOIN remote_agent_conversations c` // SQLite keeps the order of these
		c.list = append(c.list, "c.id = s.conversation_id")
		c.elsewhere(f)
	}
	c.args = append(c.args, f.Limit)
	ids, err := t.tx.ids(ctx, `SELECT s.id FROM `+from+c.where()+newestFirst+fmt.Sprintf(` LIMIT $%d`, len(c.args)), c.args...)
	return ids, wrap(err, "list sessions")
}

// gatherSessions puts the sessions of the conversations that f chooses into order.
func (t *Lists) gatherSessions(ctx context.Context, f SessionFilter) ([]string, error) {
	c, err := t.ownConditions(f)
	if err != nil {
		return nil, err
	}
	from := `remote_agent_sessions s`
	if f.elsewhere() {
		from += ` JOIN remote_agent_conversations c ON c.id = s.conversation_id`
		c.elsewhere(f)
	}
	for _, v := range []Viewer{f.Viewer, f.Person} {
		if v != (Viewer{}) && f.Within == nil {
			c.add("s.conversation_id IN ("+writtenIn+")", string(v.Platform), string(v.ID), outsideKey(v.Platform, v.ID))
		}
	}
	c.args = append(c.args, f.Limit)
	ids, err := t.tx.ids(ctx, `
		WITH found AS MATERIALIZED (SELECT s.id, s.started_at FROM `+from+c.where()+`)
		SELECT s.id FROM found s`+newestFirst+fmt.Sprintf(` LIMIT $%d`, len(c.args)), c.args...)
	return ids, wrap(err, "list sessions")
}

// SessionRow returns one session with its figures. What is no id is
// fault.Invalid, that of no session fault.NotFound.
func (t *Lists) SessionRow(ctx context.Context, id string) (SessionRow, error) {
	if err := checkID(id, "session"); err != nil {
		return SessionRow{}, err
	}
	rows, err := t.sessionRows(ctx, id)
	if err == nil && len(rows) == 0 {
		err = notFound("session")
	}
	if err != nil {
		return SessionRow{}, err
	}
	return rows[0], nil
}

// sessionRows returns those of some sessions that there are, the newest first.
func (t *Lists) sessionRows(ctx context.Context, ids ...string) ([]SessionRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	those, arg, err := t.tx.Care().oneOf(ids, "UUID", 1)
	if err != nil {
		return nil, err
	}
	query := `
		SELECT ` + qualified("s", sessionColumns) + `, c.platform_type, c.platform_conversation_id,
			(SELECT count(DISTINCT m.seq) FROM agent_messages m WHERE m.session_id = s.id),
			(SELECT count(*) FROM agent_tool_calls k WHERE k.session_id = s.id)
		FROM remote_agent_sessions s JOIN remote_agent_conversations c ON c.id = s.conversation_id
		WHERE s.id` + those + newestFirst
	return rowsOf(ctx, t.tx, "list sessions", func(r *SessionRow) []any {
		return append(scanSession(&r.Session), &r.Key.Platform, &r.Key.ID, &r.Messages, &r.ToolCalls)
	}, query, arg)
}

// within is the condition that a column has one of some ids, which are added to args.
func within(column string, ids []string, args *[]any) string {
	if len(ids) == 0 {
		return "1 = 0"
	}
	places := make([]string, len(ids))
	for i, id := range ids {
		*args = append(*args, id)
		places[i] = fmt.Sprintf("$%d", len(*args))
	}
	return column + " IN (" + strings.Join(places, ", ") + ")"
}

// ConversationsAt returns the ids of the conversation at a place of a platform
// and of those that were there before and were put aside, as a hand-off does: a
// "~" follows the place's id in theirs. No other place's are among them.
func (t *Lists) ConversationsAt(ctx context.Context, key messages.ConversationKey) ([]string, error) {
	aside := key.ID + "~"
	ids, err := t.tx.ids(ctx, `
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
func (t *Lists) SessionIDs(ctx context.Context, conversations []string) ([]string, error) {
	var args []any
	query := `SELECT s.id FROM remote_agent_sessions s WHERE ` + within("s.conversation_id", conversations, &args) + ` ORDER BY s.started_at, s.id`
	list, err := t.tx.ids(ctx, query, args...)
	return list, wrap(err, "number sessions")
}

// TranscriptMessage is a message with when it was stored and whether its turn
// was taken back.
type TranscriptMessage struct {
	messages.Message

	At     time.Time
	Undone bool
	RunID  string // of the event that it belongs to; only TranscriptPage says it, also of a message that a fork copied
}

// Transcript calls visit for the messages of a session in order, without
// reading them all into memory. visit may not use t.
func (t *Lists) Transcript(ctx context.Context, sessionID string, visit func(TranscriptMessage) error) error {
	var held *TranscriptMessage
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var r messages.Record
		var m TranscriptMessage
		if err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, secTime{&m.At}, &m.Undone); err != nil {
			return err
		}
		var last *messages.Message
		if held != nil {
			last = &held.Message
		}
		decoded, begins, err := nextMessage(r, last)
		if !begins {
			return err
		}
		ready := held
		m.Message, held = decoded, &m
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
