package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

const entryColumns = `
	id, conversation_id, seq, lane, state, attempts, next_ms, session_id, error, raw, accepted_ms, preparation, ` + eventColumns

// entryRow is an entry on its way out of the database.
type entryRow struct {
	entry sessions.Entry
	event storedEvent
	raw   []byte
	ready string
}

func (r *entryRow) dest() []any {
	e := &r.entry
	return append([]any{
		text{&e.ID}, text{&e.ConversationID}, &e.Seq, &e.Lane, &e.State, &e.Attempts, msTime{&e.NextAt},
		text{&e.SessionID}, text{&e.Error}, &r.raw, msTime{&e.AcceptedAt}, text{&r.ready},
	}, r.event.dest()...)
}

// read reads the event itself. An entry that was raw, or whose conversation
// was deleted, has none.
func (r *entryRow) read() sessions.Entry {
	r.entry.In = r.event.read()
	r.entry.In.Raw = unpackBody(r.raw)
	if r.ready != "" && json.Unmarshal([]byte(r.ready), &r.entry.Preparation) != nil {
		r.entry.Preparation = sessions.Preparation{} // it is found out again
	}
	return r.entry
}

// InsertEntry implements sessions.InboxStore. Empty fields of e get their defaults: a
// fresh id, lane turn, state waiting, accepted now.
func (t *Inbox) InsertEntry(ctx context.Context, e *sessions.Entry) (fresh bool, err error) {
	store, err := t.storeEntry(e, false, new(int64))
	if err != nil {
		return false, err
	}
	if e.ConversationID == "" { // it has no number, so that there is no row to wait for
		e.Seq = 0
		n, err := t.tx.exec(ctx, insertUnnumberedSQL, store.args[:unnumberedArgs]...)
		return n == 1, wrap(err, "store inbound event")
	}
	if fresh, err = t.tx.one(ctx, store.dest, store.query, store.args...); err != nil {
		return false, fmt.Errorf("store inbound event: %w", err)
	}
	if !fresh {
		return false, nil
	}
	t.tx.touches(e.ConversationID)
	err = t.tx.later(ctx, `UPDATE remote_agent_conversations SET inbox_seq = $2 WHERE id = $1`, e.ConversationID, e.Seq)
	return true, wrap(err, "advance inbox")
}

// AdmitEntry implements sessions.InboxStore. The numbers that a.Deliveries asks for end
// with the returned one.
func (t *Inbox) AdmitEntry(ctx context.Context, e *sessions.Entry, a sessions.Admission) (fresh bool, got sessions.Admitted, err error) {
	if a.Owner == "" {
		return false, got, fault.New(fault.Invalid, "A lease needs an owner.")
	}
	store, err := t.storeEntry(e, a.Begins, &got.MessageSeq)
	if err != nil {
		return false, got, err
	}
	got.Lease = sessions.Lease{ConversationID: e.ConversationID, Owner: a.Owner}
	ok, err := t.tx.all(ctx, []step{store, {dest: []any{&got.Lease.Epoch, &got.DeliverySeq}, query: `
		UPDATE remote_agent_conversations SET
			inbox_seq = inbox_seq + 1, delivery_seq = delivery_seq + $3,
			lease_owner = $4, lease_until = {now} + $5, lease_epoch = lease_epoch + 1
		WHERE id = $1 AND EXISTS (SELECT 1 FROM inbound_events e WHERE e.id = $2)
		RETURNING lease_epoch, delivery_seq`, args: []any{e.ConversationID, e.ID, a.Deliveries, a.Owner, a.TTL.Milliseconds()}}})
	if err != nil || !ok[0] { // not stored, for it is there already
		return false, sessions.Admitted{}, wrap(err, "store inbound event")
	}
	if !ok[1] {
		return false, got, notFound("conversation")
	}
	t.tx.touches(e.ConversationID)
	return true, got, nil
}

// insertEntry is the statement that stores an entry with those expressions as its seq and
// checkpoint_seq.
func insertEntry(seq, checkpoint string) string {
	return `
	INSERT INTO inbound_events (
		id, platform_type, account, event_id, conversation_id, lane, state, attempts, next_ms,
		session_id, message_id, error, data, raw, accepted_ms, sender, seq, checkpoint_seq)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, ` + seq + `, ` + checkpoint + `)
	ON CONFLICT (platform_type, account, event_id) DO NOTHING`
}

var (
	insertEntrySQL = insertEntry(
		`COALESCE((SELECT inbox_seq + 1 FROM remote_agent_conversations WHERE id = $5), 0)`,
		`CASE WHEN $17 THEN (SELECT last_seq + 1 FROM remote_agent_sessions WHERE id = $10) END`,
	) + ` RETURNING seq, COALESCE(checkpoint_seq, 0)`

	// insertUnnumberedSQL stores an entry of no conversation. A statement of its own, without
	// subqueries, because PostgreSQL would plan the other one anew for each of them.
	insertUnnumberedSQL = insertEntry("0", "NULL")
)

// unnumberedArgs is how many of the arguments insertUnnumberedSQL takes.
const unnumberedArgs = 16

// storeEntry is the statement that stores an entry, whose empty fields get their
// defaults. It has a row, which sets the entry's Seq, if there is none of that event. Of an
// entry whose turn begins it sets the number of the message that it begins with.
func (t *Inbox) storeEntry(e *sessions.Entry, begins bool, message *int64) (s step, err error) {
	if e.In.Event == "" {
		return s, fault.New(fault.Invalid, "An event needs an id.")
	}
	if e.ID == "" {
		if e.ID, err = newID(); err != nil {
			return s, err
		}
	}
	e.Lane = cmp.Or(e.Lane, sessions.LaneTurn)
	e.State = cmp.Or(e.State, sessions.EntryWaiting)
	if e.AcceptedAt.IsZero() {
		e.AcceptedAt = time.Now()
	}
	event := storedEvent{platform: e.In.Conversation.Platform, account: e.In.Account, event: e.In.Event, message: e.In.Message}
	if err := event.encode(e.In); err != nil {
		return s, err
	}
	return step{dest: []any{&e.Seq, message}, query: insertEntrySQL, args: []any{
		e.ID, string(event.platform), event.account, string(event.event), orNull(e.ConversationID),
		string(e.Lane), string(e.State), e.Attempts, millis(e.NextAt),
		orNull(e.SessionID), string(event.message), orNull(t.tx.said(e.Error)), event.data, packBody(e.In.Raw), millis(e.AcceptedAt), senderKey(e.In), begins,
	}}, nil
}

// senderKey is who sent an event, as its row has it beside the platform of its
// conversation: their id there, or for somebody of another platform that platform and
// their id, so that nobody there is taken for them. No id has a space in it.
func senderKey(in messages.Inbound) string {
	if in.Outside() {
		return outsideKey(in.Home(), in.Sender.ID)
	}
	return string(in.Sender.ID)
}

func outsideKey(home messages.Platform, id messages.UserID) string {
	return string(home) + " " + string(id)
}

// KeepRaw implements sessions.InboxStore. One without an id is recognized by its content.
func (t *Inbox) KeepRaw(ctx context.Context, raw messages.RawEvent) (fresh bool, err error) {
	id, err := newID()
	if err != nil {
		return false, err
	}
	event := string(raw.Event)
	if event == "" {
		sum := sha256.Sum256(raw.Raw)
		event = "sha256:" + hex.EncodeToString(sum[:])
	}
	n, err := t.tx.exec(ctx, `
		INSERT INTO inbound_events (id, platform_type, account, event_id, state, error, raw, accepted_ms)
		VALUES ($1, $2, $3, $4, 'raw', $5, $6, {now})
		ON CONFLICT (platform_type, account, event_id) DO NOTHING`,
		id, string(raw.Platform), raw.Account, event, orNull(t.tx.said(raw.Reason)), packBody(raw.Raw))
	return n == 1, wrap(err, "keep raw event")
}

// HasEntry implements sessions.InboxStore.
func (t *Inbox) HasEntry(ctx context.Context, in messages.Inbound) (bool, error) {
	var id string
	ok, err := t.tx.one(ctx, []any{text{&id}}, `
		SELECT id FROM inbound_events WHERE platform_type = $1 AND account = $2 AND event_id = $3`,
		string(in.Conversation.Platform), in.Account, string(in.Event))
	return ok, wrap(err, "look for an inbound event")
}

// HasMessage reports whether an event of a conversation is about a message.
func (t *Inbox) HasMessage(ctx context.Context, conversationID string, message messages.MessageID) (bool, error) {
	var id string
	ok, err := t.tx.one(ctx, []any{text{&id}}, `
		SELECT id FROM inbound_events WHERE conversation_id = $1 AND seq > 0 AND message_id = $2 LIMIT 1`, conversationID, string(message))
	return ok, wrap(err, "look for an inbound event")
}

// openTurn is the condition of the partial index idx_inbound_events_open; SQLite
// uses the index only if the query repeats it word for word.
const openTurn = `lane = 'turn' AND state IN ('waiting', 'running')`

const nextEntrySQL = `
	SELECT ` + entryColumns + ` FROM inbound_events
	WHERE conversation_id = $1 AND ` + openTurn + `
	ORDER BY seq LIMIT 1`

// NextEntry implements sessions.InboxStore.
func (t *Inbox) NextEntry(ctx context.Context, conversationID string) (e sessions.Entry, ok bool, err error) {
	var row entryRow
	ok, err = t.tx.one(ctx, row.dest(), nextEntrySQL, conversationID)
	if err != nil || !ok {
		return e, false, wrap(err, "read next event")
	}
	return row.read(), true, nil
}

// Entry returns an entry by id; fault.NotFound if there is none.
func (t *Inbox) Entry(ctx context.Context, id string) (sessions.Entry, error) {
	return t.entry(ctx, `id = $1`, id)
}

// EntryNumbered implements sessions.InboxStore.
func (t *Inbox) EntryNumbered(ctx context.Context, conversationID string, seq int64) (sessions.Entry, error) {
	return t.entry(ctx, `conversation_id = $1 AND seq = $2`, conversationID, seq)
}

func (t *Inbox) entry(ctx context.Context, where string, args ...any) (sessions.Entry, error) {
	row, err := rowOf(ctx, t.tx, "event", (*entryRow).dest, `SELECT `+entryColumns+` FROM inbound_events WHERE `+where, args...)
	if err != nil {
		return sessions.Entry{}, err
	}
	return row.read(), nil
}

// needless is the condition that nothing needs the text of an entry any more once
// its state is $2: a command was carried out, or a message was refused.
const needless = `$2 = 'refused' OR lane = 'control' AND $2 IN ('done', 'failed', 'stopped')`

const (
	setEntrySQL = `
	UPDATE inbound_events SET
		state = COALESCE($2, state),
		attempts = COALESCE($3, attempts),
		next_ms = COALESCE($4, next_ms),
		session_id = CASE WHEN $5 THEN $6 ELSE session_id END,
		error = CASE WHEN $7 THEN $8 ELSE error END,
		preparation = CASE WHEN $2 IN ('done', 'failed', 'stopped', 'refused') THEN NULL WHEN $9 THEN $10 ELSE preparation END`

	updateEntrySQL = setEntrySQL + `,
		data = CASE WHEN ` + needless + ` THEN NULL ELSE data END,
		raw = CASE WHEN ` + needless + ` THEN NULL ELSE raw END
	WHERE id = $1`

	// An entry of lane turn that was not refused keeps its content. A statement that
	// does not name it leaves the index of what is kept alone.
	updateTurnSQL = setEntrySQL + ` WHERE id = $1`

	// A turn that is begun again (after a crash, or a fault that passes) has another
	// checkpoint: the files before its first beginning are what counts, so the first ref is
	// kept, and the first place in the session unless the turn now runs in another session.
	beginTurnSQL = setEntrySQL + `,
		checkpoint_seq = CASE WHEN checkpoint_seq IS NOT NULL AND session_id = $6 THEN checkpoint_seq ELSE $11 END,
		checkpoint_ref = COALESCE(checkpoint_ref, $12)
	WHERE id = $1`
)

// updateEntry is a statement that makes changes to an entry. With clears it takes the
// content away that nothing needs any more.
func updateEntry(redact redaction, id string, u sessions.EntryUpdate, clears bool) step {
	c := u.Checkpoint
	switch {
	case c != nil:
		u.SessionID = &c.SessionID
		return step{query: beginTurnSQL, args: append(updateEntryArgs(redact, id, u), c.Seq, orNull(c.Ref))}
	case clears:
		return step{query: updateEntrySQL, args: updateEntryArgs(redact, id, u)}
	}
	return step{query: updateTurnSQL, args: updateEntryArgs(redact, id, u)}
}

func updateEntryArgs(redact redaction, id string, u sessions.EntryUpdate) []any {
	var state, attempts, next any
	if u.State != nil {
		state = string(*u.State)
	}
	if u.Attempts != nil {
		attempts = *u.Attempts
	}
	if u.NextAt != nil {
		next = millis(*u.NextAt)
	}
	var session, errText any
	if u.SessionID != nil {
		session = orNull(*u.SessionID)
	}
	if u.Error != nil {
		errText = orNull(redact.said(*u.Error))
	}
	var ready any
	if u.Preparation != nil {
		if data, err := json.Marshal(u.Preparation); err == nil { // else it is found out again
			ready = redact.said(string(data))
		}
	}
	return []any{id, state, attempts, next, u.SessionID != nil, session, u.Error != nil, errText, u.Preparation != nil, ready}
}

// UpdateEntry implements sessions.InboxStore. The content of a command that has ended, and
// that of a message that was refused, goes with it.
func (t *Inbox) UpdateEntry(ctx context.Context, id string, u sessions.EntryUpdate) error {
	update := updateEntry(t.tx.redact, id, u, true)
	return t.tx.change(ctx, "update event", "event", update.query, update.args...)
}

// ReplaceWaiting implements sessions.InboxStore.
func (t *Inbox) ReplaceWaiting(
	ctx context.Context, conversationID string, message messages.MessageID, in messages.Inbound,
) (bool, error) {
	data, err := json.Marshal(in) // all of it: the other columns are of the event before
	if err != nil {
		return false, fault.Wrap(err, fault.Invalid, "encode inbound event")
	}
	n, err := t.tx.exec(ctx, `
		UPDATE inbound_events SET data = $3, raw = COALESCE($4, raw), preparation = NULL
		WHERE conversation_id = $1 AND message_id = $2 AND state = 'waiting' AND attempts = 0`,
		conversationID, string(message), string(data), packBody(in.Raw))
	return n > 0, wrap(err, "replace waiting event")
}

// StopEntries implements sessions.InboxStore. They are in order.
func (t *Inbox) StopEntries(ctx context.Context, conversationID string, upTo int64) ([]sessions.Entry, error) {
	n, err := t.tx.exec(ctx, `
		UPDATE remote_agent_conversations
		SET stop_seq = CASE WHEN stop_seq < $2 THEN $2 ELSE stop_seq END WHERE id = $1`, conversationID, upTo)
	if err != nil {
		return nil, fmt.Errorf("stop conversation: %w", err)
	}
	if n == 0 {
		return nil, notFound("conversation")
	}
	t.tx.touches(conversationID)
	stopped, err := t.entries(ctx, `
		SELECT `+entryColumns+` FROM inbound_events
		WHERE conversation_id = $1 AND `+openTurn+` AND state = 'waiting' AND attempts = 0 AND seq <= $2
		ORDER BY seq {lock}`, conversationID, upTo)
	if err != nil {
		return nil, err
	}
	for i := range stopped {
		if _, err := t.tx.exec(ctx, `UPDATE inbound_events SET state = 'stopped', preparation = NULL WHERE id = $1`, stopped[i].ID); err != nil {
			return nil, fmt.Errorf("stop event: %w", err)
		}
		stopped[i].State = sessions.EntryStopped
	}
	return stopped, nil
}

// StoppedEntries implements sessions.InboxStore. Events that cause no work, such as edits,
// do not count.
func (t *Inbox) StoppedEntries(ctx context.Context, conversationID string, upTo int64) ([]sessions.Entry, error) {
	return t.entries(ctx, `
		SELECT `+entryColumns+` FROM inbound_events
		WHERE conversation_id = $1 AND lane = 'turn' AND state = 'stopped' AND seq <= $2 AND seq > COALESCE((
			SELECT seq FROM inbound_events
			WHERE conversation_id = $1 AND lane = 'turn' AND state NOT IN ('stopped', 'ignored') AND seq <= $2 ORDER BY seq DESC LIMIT 1), 0)
		ORDER BY seq`, conversationID, upTo)
}

func (t *Inbox) entries(ctx context.Context, query string, args ...any) ([]sessions.Entry, error) {
	var list []sessions.Entry
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var row entryRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		list = append(list, row.read())
		return nil
	}, query, args...)
	return list, wrap(err, "read events")
}
