package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// MessagePlace is where a message stands in a conversation: by its session, then
// by number.
type MessagePlace struct {
	Session SessionPlace
	Seq     int64
}

// BrowseMessagesQuery chooses messages: those of a session or of a conversation,
// one of which has to be set.
type BrowseMessagesQuery struct {
	SessionID      string
	ConversationID string
	Agent          string // only of sessions with this agent profile
	Newest         bool   // the newest first
	After          MessagePlace
	Offset         int // how many to leave out
	Limit          int // at least 1
}

// BrowsedMessage is a message of a page.
type BrowsedMessage struct {
	TranscriptMessage

	SessionID      string
	ConversationID string
	RunID          string // the turn
	Place          MessagePlace
}

// BrowseMessages returns a page of messages in the order of their numbers, the
// sessions of a conversation one after the other. Messages of turns that were
// taken back are part of it and marked. more says that others follow; a page of
// much text ends early. It reads by index: the sessions in order, and of each
// the messages that are wanted.
func (t *Tx) BrowseMessages(ctx context.Context, q BrowseMessagesQuery) (list []BrowsedMessage, more bool, err error) {
	p := messagePage{tx: t, query: q, skip: q.Offset}
	if q.SessionID != "" {
		s, err := t.browsedSession(ctx, q.SessionID)
		switch {
		case err != nil:
			return nil, false, err
		case q.Agent != "" && s.agent != q.Agent, q.ConversationID != "" && s.conversation != q.ConversationID:
			return nil, false, nil
		}
		err = p.read(ctx, s)
		return p.list, p.full, err
	}
	if err := checkID(q.ConversationID, "conversation"); err != nil {
		return nil, false, err
	}
	at, inclusive := q.After.Session, true
	for !p.full {
		batch, err := t.sessionsFrom(ctx, q, at, inclusive)
		if err != nil {
			return nil, false, err
		}
		for _, s := range batch {
			if err := p.read(ctx, s); err != nil || p.full {
				return p.list, p.full, err
			}
		}
		if len(batch) < sessionBatch {
			break
		}
		at, inclusive = batch[len(batch)-1].place, false
	}
	return p.list, p.full, nil
}

// placedSession is what BrowseMessages has to know of a session.
type placedSession struct {
	place        SessionPlace
	conversation string
	agent        string
}

const placedColumns = `s.id, s.conversation_id, s.agent_name, s.started_at, CAST(s.started_at AS TEXT)`

func (t *Tx) scanPlaced(scan func(...any) error) (placedSession, error) {
	var s placedSession
	var at time.Time
	var raw string
	err := scan(text{&s.place.ID}, text{&s.conversation}, &s.agent, stamp{&at}, text{&raw})
	s.place.Started = t.startedText(at, raw)
	return s, err
}

func (t *Tx) browsedSession(ctx context.Context, id string) (s placedSession, err error) {
	if err := checkID(id, "session"); err != nil {
		return s, err
	}
	ok := false
	err = t.each(ctx, func(scan func(...any) error) (err error) {
		ok = true
		s, err = t.scanPlaced(scan)
		return err
	}, `SELECT `+placedColumns+` FROM remote_agent_sessions s WHERE s.id = $1`, id)
	return found(s, ok, err, "session")
}

const sessionBatch = 100

// sessionsFrom returns sessions of a conversation in order from a place on.
func (t *Tx) sessionsFrom(ctx context.Context, q BrowseMessagesQuery, at SessionPlace, inclusive bool) (list []placedSession, err error) {
	var c conditions
	c.add("s.conversation_id = $%d", q.ConversationID)
	if q.Agent != "" {
		c.add("s.agent_name = $%d", q.Agent)
	}
	direction, than := "", ">"
	if q.Newest {
		direction, than = " DESC", "<"
	}
	if inclusive {
		than += "="
	}
	if at != (SessionPlace{}) {
		if err := t.checkPlace(at); err != nil {
			return nil, err
		}
		c.add("(s.started_at, s.id) "+than+" ($%d, $%d)", at.Started, at.ID)
	}
	err = t.each(ctx, func(scan func(...any) error) error {
		s, err := t.scanPlaced(scan)
		list = append(list, s)
		return err
	}, fmt.Sprintf(`SELECT `+placedColumns+` FROM remote_agent_sessions s%s ORDER BY s.started_at%[2]s, s.id%[2]s LIMIT %[3]d`,
		c.where(), direction, sessionBatch), c.args...)
	return list, wrap(err, "browse messages")
}

// messagePage collects a page of messages over several sessions.
type messagePage struct {
	tx    *Tx
	query BrowseMessagesQuery
	skip  int
	list  []BrowsedMessage
	size  int
	full  bool // others follow
}

// The inner query chooses by the index on (session_id, seq, part), so the cost
// depends on the page and not on the length of the session.
const (
	browseMessagesSQL = `
		SELECT seq, role, kind, content, data_json, provider_metadata, created_at, undone, run_id FROM agent_messages
		WHERE session_id = $1 AND seq IN (
			SELECT seq FROM agent_messages
			WHERE session_id = $1 AND part = 0 AND role <> 'system' AND seq > $2
			ORDER BY seq LIMIT $3 OFFSET $4)
		ORDER BY seq, part`
	browseMessagesBackSQL = `
		SELECT seq, role, kind, content, data_json, provider_metadata, created_at, undone, run_id FROM agent_messages
		WHERE session_id = $1 AND seq IN (
			SELECT seq FROM agent_messages
			WHERE session_id = $1 AND part = 0 AND role <> 'system' AND seq < $2
			ORDER BY seq DESC LIMIT $3 OFFSET $4)
		ORDER BY seq DESC, part`
	countMessagesSQL = `
		SELECT count(*) FROM agent_messages WHERE session_id = $1 AND part = 0 AND role <> 'system'`
)

// read adds the messages of a session.
func (p *messagePage) read(ctx context.Context, s placedSession) error {
	after := int64(0)
	if p.query.Newest {
		after = 1 << 62
	}
	if p.query.After.Seq != 0 && (p.query.SessionID != "" || p.query.After.Session == s.place) {
		after = p.query.After.Seq
	}
	if p.skip > 0 {
		var n int
		if _, err := p.tx.one(ctx, []any{&n}, countMessagesSQL, s.place.ID); err != nil {
			return fmt.Errorf("browse messages: %w", err)
		}
		if n <= p.skip {
			p.skip -= n
			return nil
		}
	}
	query := browseMessagesSQL
	if p.query.Newest {
		query = browseMessagesBackSQL
	}
	begin := len(p.list)
	err := p.tx.each(ctx, func(scan func(...any) error) error { return p.row(scan, s, begin) },
		query, s.place.ID, after, p.query.Limit-len(p.list)+1, p.skip)
	p.skip = 0
	if errors.Is(err, errPageFull) {
		p.full = true
		return nil
	}
	return wrap(err, "browse messages")
}

// row adds a row, which is a block: the first of its message or a further one.
func (p *messagePage) row(scan func(...any) error, s placedSession, begin int) error {
	var r messages.Record
	var metadata string
	var created int64
	m := BrowsedMessage{SessionID: s.place.ID, ConversationID: s.conversation}
	err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, text{&metadata}, &created, &m.Undone, &m.RunID)
	if err != nil {
		return err
	}
	last := len(p.list) - 1
	further := last >= begin && p.list[last].Seq == r.Seq
	if !further && (len(p.list) == p.query.Limit || p.size > browseBytes) {
		return errPageFull
	}
	decoded, ok, err := messages.FromRecord(r)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "decode message")
	}
	p.size += len(r.Content) + len(r.DataJSON)
	switch {
	case !ok:
	case further:
		p.list[last].Blocks = append(p.list[last].Blocks, decoded.Blocks...)
	default:
		if metadata != "" {
			decoded.ProviderMetadata = json.RawMessage(metadata)
		}
		m.Message, m.At = decoded, time.Unix(created, 0).UTC()
		m.Place = MessagePlace{Session: s.place, Seq: r.Seq}
		p.list = append(p.list, m)
	}
	return nil
}

// MessagesOf returns messages by session and number, in the order of the places,
// of which only the session's id and the number count. Those that are gone are
// left out.
func (t *Tx) MessagesOf(ctx context.Context, places []MessagePlace) ([]BrowsedMessage, error) {
	var list []BrowsedMessage
	seen := make(map[string]placedSession)
	for _, place := range places {
		s, ok := seen[place.Session.ID]
		if !ok {
			var err error
			if s, err = t.browsedSession(ctx, place.Session.ID); err != nil {
				return nil, err
			}
			seen[place.Session.ID] = s
		}
		p := messagePage{tx: t, query: BrowseMessagesQuery{SessionID: s.place.ID, After: MessagePlace{Seq: place.Seq - 1}, Limit: 1}}
		if err := p.read(ctx, s); err != nil {
			return nil, err
		}
		list = append(list, slices.DeleteFunc(p.list, func(m BrowsedMessage) bool { return m.Seq != place.Seq })...)
	}
	return list, nil
}
