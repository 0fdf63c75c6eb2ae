package store

import (
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

const pairingColumns = `
	p.number, p.platform_type, p.user_id, p.name, p.platform_conversation_id, p.code, p.state, p.cards, p.asked_ms, p.decided_by, p.decided_ms`

func (t *People) onePairing(ctx context.Context, where string, args ...any) (p sessions.Pairing, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanPairing(&p), `SELECT `+pairingColumns+` FROM pairings p WHERE `+where, args...)
	return p, ok, wrap(err, "read who requests access")
}

func scanPairing(p *sessions.Pairing) []any {
	return []any{
		&p.Number, (*string)(&p.Platform), (*string)(&p.UserID), &p.Name, &p.Conversation, &p.Code, (*string)(&p.State), wordList[messages.DeliveryID]{&p.Cards},
		msTime{&p.AskedAt}, &p.DecidedBy, msTime{&p.DecidedAt},
	}
}

// Pairing implements sessions.PeopleStore.
func (t *People) Pairing(ctx context.Context, p messages.Platform, id messages.UserID) (sessions.Pairing, bool, error) {
	return t.onePairing(ctx, `p.platform_type = $1 AND p.user_id = $2`, string(p), string(id))
}

// PairingByNumber returns a request by its number.
func (t *People) PairingByNumber(ctx context.Context, number int64) (sessions.Pairing, bool, error) {
	return t.onePairing(ctx, `p.number = $1`, number)
}

// PairingByCode returns a request by its code.
func (t *People) PairingByCode(ctx context.Context, code string) (sessions.Pairing, bool, error) {
	return t.onePairing(ctx, `p.code = $1`, code)
}

// PairingsSince implements sessions.PeopleStore. The oldest is the first.
func (t *People) PairingsSince(ctx context.Context, since time.Time) ([]sessions.Pairing, error) {
	return rowsOf(ctx, t.tx, "list who requests access", scanPairing, `SELECT `+pairingColumns+` FROM pairings p
		WHERE p.state = 'waiting' AND p.asked_ms > $1
		ORDER BY p.asked_ms, p.number LIMIT $2`, millis(since), 10*sessions.MaxPairings)
}

// AskPairing implements sessions.PeopleStore. Too many are sessions.MaxPairings of the
// last sessions.PairingTTL that nobody allowed. Requests that mean nothing any more are
// deleted.
func (t *People) AskPairing(ctx context.Context, p *sessions.Pairing) (bool, error) {
	since := p.AskedAt.Add(-sessions.PairingTTL)
	_, err := t.tx.exec(ctx, `
		DELETE FROM pairings WHERE platform_type = $1 AND user_id = $2 OR asked_ms <= $3 AND decided_ms <= $3`,
		string(p.Platform), string(p.UserID), millis(since))
	if err != nil {
		return false, wrap(err, "drop old requests")
	}
	var n int
	if _, err := t.tx.one(ctx, []any{&n}, `SELECT count(*) FROM pairings WHERE state <> 'allowed'`); err != nil || n >= sessions.MaxPairings {
		return false, wrap(err, "count requests")
	}
	ok, err := t.tx.one(ctx, []any{&p.Number}, `
		INSERT INTO pairings (platform_type, user_id, name, platform_conversation_id, code, state, asked_ms)
		VALUES ($1, $2, $3, $4, $5, 'waiting', $6) RETURNING number`,
		string(p.Platform), string(p.UserID), p.Name, p.Conversation, p.Code, millis(p.AskedAt))
	p.State = sessions.PairingWaiting
	return ok, wrap(err, "store a request to be let in")
}

// SaveCards records by which deliveries owners are asked about a request.
func (t *People) SaveCards(ctx context.Context, number int64, cards []messages.DeliveryID) error {
	return t.tx.run(ctx, "record who was asked", `UPDATE pairings SET cards = $2 WHERE number = $1`, number, joinWords(cards))
}

// SettlePairing decides a request that waits. Of two callers at once one is told so;
// for the other, and for one that is decided already, it is a fault.Conflict.
func (t *People) SettlePairing(ctx context.Context, number int64, state sessions.PairingState, by string) error {
	n, err := t.tx.exec(ctx, `
		UPDATE pairings SET state = $2, decided_by = $3, decided_ms = {now} WHERE number = $1 AND state = 'waiting'`,
		number, string(state), by)
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "That was already decided.")
	}
	return wrap(err, "decide a request to be let in")
}
