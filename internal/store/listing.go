package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// MessageFilter chooses the messages of a listing; empty members choose all.
type MessageFilter struct {
	SessionID      string
	ConversationID string
	Agent          string // name of the profile of a session
	Desc           bool   // the newest first

	Limit  int    // 1 to 1000; 0 is 50
	Offset int    // how many to leave out first; not together with After
	After  string // Cursor of the last message of a page: only those behind it
}

// ListedMessage is a message in a listing.
type ListedMessage struct {
	TranscriptMessage

	SessionID      string
	ConversationID string
	Key            messages.ConversationKey
	Agent          string
	RunID          string // the inbound event that it belongs to; may be empty
}

// Cursor names the place of a message in a listing of either order.
func (m ListedMessage) Cursor() string { return fmt.Sprintf("%s/%d", m.SessionID, m.Seq) }

// listedSession is a session whose messages are listed.
type listedSession struct {
	id, conversation, agent string
	key                     messages.ConversationKey
	messages                int // that the listing shows; 0 if none has to be skipped
}

// sessionBatch is how many sessions a listing looks at in one query.
const sessionBatch = 200

// ListMessages returns messages in the order of their sessions and, within a
// session, of their numbers: never by time, so that pages neither overlap nor
// leave out a message. It is seed 004's get_messages_optimized, with a cursor
// besides limit and offset; messages that come in between change no page behind
// a cursor. Messages that were taken back are there, marked; those of role system
// are not. An offset below zero, one together with a cursor, and what is no
// cursor are fault.Invalid; what a cursor or the filter names and is not there is
// fault.NotFound.
func (t *Search) ListMessages(ctx context.Context, f MessageFilter) ([]ListedMessage, error) {
	from, behind, err := t.listFrom(ctx, f)
	if err != nil {
		return nil, err
	}
	var list []ListedMessage
	skip, left := f.Offset, page(f.Limit)
	for included, counted := true, false; ; {
		batch, err := t.listedSessions(ctx, f, from, included, counted && skip > 0)
		if err != nil {
			return nil, err
		}
		again := false
		for i, s := range batch {
			if !included || i > 0 || s.id != from {
				behind = beforeFirst(f.Desc)
			}
			if counted && skip > 0 && s.messages <= skip {
				skip -= s.messages
				continue
			}
			found, err := t.listSession(ctx, s, f.Desc, behind, left, skip)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 && skip > 0 { // it may be one of many before the page: count them
				from, included, counted, again = s.id, true, true, true
				break
			}
			list, left, skip = append(list, found...), left-len(found), 0
			if left == 0 {
				return list, nil
			}
		}
		switch {
		case again:
		case len(batch) < sessionBatch:
			return list, nil
		default:
			from, included = batch[len(batch)-1].id, false
		}
	}
}

// beforeFirst is a number that no message of a session has, before them all.
func beforeFirst(desc bool) int64 {
	if desc {
		return math.MaxInt64
	}
	return -1
}

// listFrom checks a filter and returns where its listing begins: a session, or
// none for the first one, and the number of the message to go on behind.
func (t *Search) listFrom(ctx context.Context, f MessageFilter) (session string, behind int64, err error) {
	switch {
	case f.Offset < 0:
		return "", 0, fault.Newf(fault.Invalid, "The offset %d is below zero.", f.Offset)
	case f.Offset > 0 && f.After != "":
		return "", 0, fault.New(fault.Invalid, "Use offset or cursor, not both.")
	}
	if f.SessionID != "" {
		if err := t.isSession(ctx, f.SessionID); err != nil {
			return "", 0, err
		}
	}
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return "", 0, err
		}
		if _, err := t.tx.Conversations().Conversation(ctx, f.ConversationID); err != nil {
			return "", 0, err
		}
	}
	if f.After == "" {
		return "", beforeFirst(f.Desc), nil
	}
	session, number, ok := strings.Cut(f.After, "/")
	behind, err = strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || behind < 0 {
		return "", 0, fault.Newf(fault.Invalid, "%q is not a cursor that a page of messages ended with.", f.After)
	}
	return session, behind, t.isSession(ctx, session)
}

// isSession returns why an id is none of a session.
func (t *Search) isSession(ctx context.Context, id string) error {
	err := checkID(id, "session")
	if err == nil {
		_, err = t.tx.Sessions().Session(ctx, id)
	}
	return err
}

// listedSessions returns sessions in the order of a listing, from the given one
// on or behind it, and counts their messages if that is wanted.
func (t *Search) listedSessions(ctx context.Context, f MessageFilter, from string, included, counted bool) ([]listedSession, error) {
	query, args := listedSessionsSQL(f, from, included, counted)
	return rowsOf(ctx, t.tx, "list sessions of messages", func(s *listedSession) []any {
		return []any{text{&s.id}, text{&s.conversation}, &s.agent, &s.key.Platform, &s.key.ID, &s.messages}
	}, query, args...)
}

func listedSessionsSQL(f MessageFilter, from string, included, counted bool) (query string, args []any) {
	compare, order, count := ">", "", "0"
	if counted {
		count = countListedSQL
	}
	if f.Desc {
		compare, order = "<", " DESC"
	}
	if included {
		compare += "="
	}
	var c conditions
	c.when(f.SessionID != "", "s.id = $%d", f.SessionID)
	c.when(f.ConversationID != "", "s.conversation_id = $%d", f.ConversationID)
	c.when(f.Agent != "", "s.agent_name = $%d", f.Agent)
	c.when(from != "", "(s.started_at, s.id) "+compare+" (SELECT b.started_at, b.id FROM remote_agent_sessions b WHERE b.id = $%d)", from)
	query = `
		SELECT s.id, s.conversation_id, s.agent_name, c.platform_type, c.platform_conversation_id, ` + count + `
		FROM remote_agent_sessions s JOIN remote_agent_conversations c ON c.id = s.conversation_id` + c.where()
	c.args = append(c.args, sessionBatch)
	return query + fmt.Sprintf(" ORDER BY s.started_at%[1]s, s.id%[1]s LIMIT $%[2]d", order, len(c.args)), c.args
}

// countListedSQL is how many messages of session s a listing shows. Both counts are
// of an index alone; of the role system there are hardly any.
const countListedSQL = `(
			(SELECT count(*) FROM agent_messages m WHERE m.session_id = s.id AND m.part = 0)
			- (SELECT count(*) FROM agent_messages m WHERE m.session_id = s.id AND m.part = 0 AND m.role = 'system'))`

// The page is taken by the index on (session_id, seq, part) alone, so that a message
// is whole, however many rows it has, and what is skipped is not read.
func listSessionSQL(desc bool) string {
	compare, order := ">", ""
	if desc {
		compare, order = "<", " DESC"
	}
	return `
		WITH page AS MATERIALIZED (
			SELECT seq FROM agent_messages WHERE session_id = $1 AND part = 0 AND seq ` + compare + ` $2
				AND (NOT EXISTS (SELECT 1 FROM agent_messages WHERE session_id = $1 AND part = 0 AND role = 'system')
					OR seq NOT IN (SELECT seq FROM agent_messages WHERE session_id = $1 AND part = 0 AND role = 'system'))
			ORDER BY seq` + order + ` LIMIT $3 OFFSET $4)
		SELECT seq, role, kind, content, data_json, provider_metadata, run_id, created_at, undone FROM agent_messages
		WHERE session_id = $1 AND role <> 'system' AND seq BETWEEN (SELECT min(seq) FROM page) AND (SELECT max(seq) FROM page)
		ORDER BY seq` + order + `, part`
}

func (t *Search) listSession(ctx context.Context, s listedSession, desc bool, behind int64, limit, offset int) ([]ListedMessage, error) {
	var list []ListedMessage
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var r messages.Record
		m := ListedMessage{SessionID: s.id, ConversationID: s.conversation, Key: s.key, Agent: s.agent}
		if err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, rawJSON{&r.ProviderMetadata}, &m.RunID, secTime{&m.At}, &m.Undone); err != nil {
			return err
		}
		decoded, ok, err := messages.FromRecord(r)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "decode message")
		}
		if n := len(list); ok && n > 0 && list[n-1].Seq == decoded.Seq {
			list[n-1].Blocks = append(list[n-1].Blocks, decoded.Blocks...)
			return nil
		}
		if !ok { // a row that is no message keeps its place, so that pages stay whole
			decoded = messages.Message{Seq: r.Seq, Role: r.Role}
		}
		m.Message = decoded
		list = append(list, m)
		return nil
	}, listSessionSQL(desc), s.id, behind, limit, offset)
	return list, wrap(err, "list messages")
}
