package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// Expiring is a kind of rows that a settled turn leaves and that are of no use
// after a while.
type Expiring int

// The kinds.
const (
	ExpiringBodies      Expiring = iota // of inbound events; that they came in stays
	ExpiringDeliveries                  // answers and notices as they were sent
	ExpiringCheckpoints                 // states that /undo goes back to
	ExpiringButtons                     // what buttons meant that do nothing any more

	// ExpiringKinds is how many kinds there are, from 0 on.
	ExpiringKinds
)

// lastTurn is the condition that an event is of the turn which /undo takes back next, and
// which /retry runs again. The first bound of seq is where SQLite begins in the index; the
// second one names the index.
const lastTurn = `(t.checkpoint_seq IS NOT NULL AND NOT t.checkpoint_undone AND NOT EXISTS (
	SELECT 1 FROM inbound_events n WHERE n.conversation_id = t.conversation_id AND n.seq > t.seq AND n.seq > 0
		AND n.checkpoint_seq IS NOT NULL AND NOT n.checkpoint_undone))`

// expiring says which rows of a table, as t, are past their time, $1, and what
// happens to them. They are gone through by their keys, or where a column of by has an
// index that holds few others, by that and their keys. What is still needed then is not:
//
//   - the row of an event, without its content: a redelivery stays a duplicate, the
//     numbers that /stop and its buttons go by stay, and so do exports of what came in;
//   - whatever belongs to an entry that waits or runs, and deliveries that are not over:
//     only of them a sender is unsure, and looks them up on the platform;
//   - the last turn that was not undone, its checkpoint and what was read from its
//     event (not the body): /undo and /retry reach it at any age;
//   - the message that shows a plan or asks a question nobody has decided on: its
//     buttons are taken away when somebody does;
//   - the last delivery of a conversation, by which its rest is measured.
var expiring = [ExpiringKinds]struct{ table, key, keyType, first, by, old, change string }{
	ExpiringBodies: {
		table: "inbound_events", key: "id", keyType: "uuid", first: firstUUID, by: "accepted_ms",
		old: `t.accepted_ms < $1 AND t.state NOT IN ('waiting', 'running')
			AND (t.raw IS NOT NULL OR t.data IS NOT NULL) AND (t.raw IS NOT NULL OR NOT ` + lastTurn + `)`,
		change: `UPDATE inbound_events AS t SET raw = NULL, data = CASE WHEN ` + lastTurn + ` THEN data END`,
	},
	ExpiringDeliveries: {
		table: "deliveries", key: "id", keyType: "text",
		old: `t.created_ms < $1 AND t.state IN ('sent', 'failed')
			AND NOT EXISTS (SELECT 1 FROM inbound_events e WHERE e.id = t.event_id AND e.state IN ('waiting', 'running'))
			AND t.seq < (SELECT c.delivery_seq FROM remote_agent_conversations c WHERE c.id = t.conversation_id)
			AND NOT EXISTS (SELECT 1 FROM plans p
				WHERE p.conversation_id = t.conversation_id AND p.state IN ('proposed', 'approved', 'executing') AND p.delivery_id = t.id)
			AND NOT EXISTS (SELECT 1 FROM approvals a
				WHERE a.conversation_id = t.conversation_id AND a.state = 'waiting' AND a.delivery_id = t.id)`,
		change: `DELETE FROM deliveries AS t`,
	},
	ExpiringCheckpoints: {
		table: "inbound_events", key: "id", keyType: "uuid", first: firstUUID, by: "accepted_ms",
		old: `t.accepted_ms < $1 AND t.state NOT IN ('waiting', 'running')
			AND t.checkpoint_seq IS NOT NULL AND NOT ` + lastTurn,
		change: `UPDATE inbound_events AS t SET checkpoint_seq = NULL, checkpoint_ref = NULL`,
	},
	ExpiringButtons: {
		table: "buttons", key: "id", keyType: "text",
		old:    `t.expires_ms < $1`,
		change: `DELETE FROM buttons AS t`,
	},
}

// firstUUID is below all ids.
const firstUUID = "00000000-0000-0000-0000-000000000000"

// CountExpired counts what Prune would take away of a kind.
func (t *Care) CountExpired(ctx context.Context, kind Expiring, before time.Time) (n int64, err error) {
	e := expiring[kind]
	_, err = t.tx.one(ctx, []any{&n}, `SELECT count(*) FROM `+e.table+` t WHERE `+e.old, millis(before))
	return n, wrap(err, "count what is past its retention")
}

// PrunePlace is where Prune goes on; the zero value is the beginning.
type PrunePlace struct {
	at  int64
	key string
}

// Prune takes away up to limit rows of a kind that are older than before, of events
// their content. It looks for them behind a place in a transaction that only reads,
// so that the one that writes holds nobody up for longer than these rows take. It
// returns how many it took and the place to go on from, which is the beginning when
// nothing is left.
func (s *Store) Prune(ctx context.Context, kind Expiring, before time.Time, after PrunePlace, limit int) (n int64, next PrunePlace, err error) {
	keys, next, err := s.pruneNext(ctx, kind, before, after, page(limit))
	if err != nil || len(keys) == 0 {
		return 0, PrunePlace{}, wrap(err, "look for what is past its retention")
	}
	err = s.InTx(ctx, func(t *Tx) error {
		if next == (PrunePlace{}) {
			t.erases() // once for all batches: it empties SQLite's log
		}
		e := expiring[kind]
		chosen, list, err := t.Care().oneOf(keys, e.keyType, 2)
		if err != nil {
			return err
		}
		n, err = t.exec(ctx, e.change+` WHERE t.`+e.key+chosen+` AND `+e.old, millis(before), list)
		return err
	})
	return n, next, wrap(err, "take away what is past its retention")
}

// pruneNext finds what Prune takes next, and where it goes on then.
func (s *Store) pruneNext(ctx context.Context, kind Expiring, before time.Time, after PrunePlace, limit int) (keys []string, next PrunePlace, err error) {
	e := expiring[kind]
	after.key = cmp.Or(after.key, e.first)
	args := []any{millis(before), after.key, limit}
	at, behind, order := `0`, `t.`+e.key+` > $2`, `t.`+e.key
	if e.by != "" {
		at = `t.` + e.by
		behind = at + ` >= $4 AND (` + at + ` > $4 OR ` + behind + `)`
		order = at + `, ` + order
		args = append(args, after.at)
	}
	err = s.InRead(ctx, func(t *Tx) error {
		keys, next = nil, PrunePlace{}
		return t.each(ctx, func(scan func(...any) error) error {
			err := scan(text{&next.key}, &next.at)
			keys = append(keys, next.key)
			return err
		}, `SELECT t.`+e.key+`, `+at+` FROM `+e.table+` t WHERE `+behind+` AND `+e.old+` ORDER BY `+order+` LIMIT $3`, args...)
	})
	if len(keys) < limit {
		next = PrunePlace{}
	}
	return keys, next, err
}

// oneOf is a condition on a column before it: that it is one of keys, $place, and
// that argument. Type is that of the column on PostgreSQL.
func (t *Care) oneOf(keys []string, keyType string, place int) (condition, arg string, err error) {
	list, err := encodeJSON(keys, fault.Invalid, "keys")
	if err != nil || t.tx.pg == nil {
		return fmt.Sprintf(` IN (SELECT value FROM json_each($%d))`, place), list, err
	}
	// A list of JSON strings is one of an array's but for the brackets.
	return fmt.Sprintf(` = ANY(CAST($%d AS %s[]))`, place, keyType), "{" + strings.Trim(list, "[]") + "}", nil
}
