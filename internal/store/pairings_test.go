//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func request(n int, at time.Time) sessions.Pairing {
	return sessions.Pairing{
		Platform: "test", UserID: messages.UserID(fmt.Sprint("u", n)), Name: "Eve", Conversation: "c",
		Code: fmt.Sprintf("BCD-%c%c%c", "BCDFG"[n/25%5], "BCDFG"[n/5%5], "BCDFG"[n%5]), AskedAt: at,
	}
}

func TestARequestIsDecidedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := request(1, time.Now().Truncate(time.Millisecond).UTC())
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if ok, err := tx.People().AskPairing(ctx, &p); err != nil || !ok || p.Number == 0 {
				t.Fatalf("asked: %t, %v, number %d", ok, err, p.Number)
			}
			list, err := tx.People().PairingsSince(ctx, p.AskedAt.Add(-time.Millisecond))
			if err != nil || len(list) != 1 {
				t.Fatalf("waiting: %v, %v", list, err)
			}
			if err := tx.People().SaveCards(ctx, p.Number, []messages.DeliveryID{"d-1", "d-2"}); err != nil {
				return err
			}
			p.Cards = []messages.DeliveryID{"d-1", "d-2"}
			for name, look := range map[string]func() (sessions.Pairing, bool, error){
				"person": func() (sessions.Pairing, bool, error) { return tx.People().Pairing(ctx, p.Platform, p.UserID) },
				"code":   func() (sessions.Pairing, bool, error) { return tx.People().PairingByCode(ctx, p.Code) },
				"number": func() (sessions.Pairing, bool, error) { return tx.People().PairingByNumber(ctx, p.Number) },
			} {
				got, ok, err := look()
				if err != nil || !ok || cmp.Diff(p, got) != "" {
					t.Errorf("by %s: %t, %v, (-want +got):\n%s", name, ok, err, cmp.Diff(p, got))
				}
			}
			if list, err := tx.People().PairingsSince(ctx, p.AskedAt); err != nil || len(list) != 0 {
				t.Errorf("after it wait %v, %v", list, err)
			}
			return tx.People().SettlePairing(ctx, p.Number, sessions.PairingAllowed, "test/ann")
		})
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SettlePairing(ctx, p.Number, sessions.PairingDenied, "test/bob")
		}), fault.Conflict)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, _, err := tx.People().Pairing(ctx, p.Platform, p.UserID)
			if got.State != sessions.PairingAllowed || got.DecidedBy != "test/ann" || time.Since(got.DecidedAt) > time.Minute {
				t.Errorf("it is %+v", got)
			}
			if list, err := tx.People().PairingsSince(ctx, p.AskedAt.Add(-time.Millisecond)); err != nil || len(list) != 0 {
				t.Errorf("what is decided waits: %v, %v", list, err)
			}
			return err
		})
	})
}

func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		ask := func(n int, at time.Time) (ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				p := request(n, at)
				ok, err = tx.People().AskPairing(ctx, &p)
				return err
			})
			return ok
		}
		for n := range sessions.MaxPairings {
			if !ask(n, now.Add(time.Duration(n)*time.Second)) {
				t.Fatalf("request %d is refused", n)
			}
		}
		if ask(100, now.Add(time.Hour)) {
			t.Error("one more is taken")
		}
		if !ask(3, now.Add(time.Hour)) {
			t.Error("whoever asks again does not take the place of their own request")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { // who is let in makes room
			p, _, err := tx.People().Pairing(ctx, "test", "u5")
			if err != nil {
				return err
			}
			return tx.People().SettlePairing(ctx, p.Number, sessions.PairingAllowed, "cli")
		})
		if !ask(100, now.Add(time.Hour)) || ask(101, now.Add(time.Hour)) {
			t.Error("who was let in does not make room for one")
		}
		if !ask(102, now.Add(sessions.PairingTTL+30*time.Second)) {
			t.Error("requests that have expired take room")
		}
	})
}

// A reader is stored so that a binary that knows no readers takes them for strangers.
func TestReaders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		eve := sessions.Identity{Platform: "test", UserID: "eve", Name: "Eve", Role: sessions.Reader}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.People().SetRole(ctx, eve, "test/ann", false); err != nil {
				return err
			}
			if err := tx.People().SaveIdentity(ctx, sessions.Identity{Platform: "test", UserID: "eve", Name: "Eva", RefusedAt: time.Now()}); err != nil {
				return err
			}
			a, err := tx.People().Access(ctx, "test", "eve")
			if err != nil || a.Role != sessions.Reader || a.Name != "Eva" {
				t.Errorf("access: %+v, %v", a, err)
			}
			list, err := tx.People().Roles(ctx)
			if err != nil || len(list) != 1 || list[0].Role != sessions.Reader {
				t.Errorf("roles: %+v, %v", list, err)
			}
			return nil
		})
		for role, want := range map[sessions.Role]sessions.Role{sessions.User: sessions.User, sessions.Stranger: sessions.Stranger} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				eve.Role = role
				if err := tx.People().SetRole(ctx, eve, "cli", false); err != nil {
					return err
				}
				a, err := tx.People().Access(ctx, "test", "eve")
				if a.Role != want {
					t.Errorf("as %s they are %s", role, a.Role)
				}
				return err
			})
		}
	})
}

// A card is rewritten whether or not its message is known, and one that was given up
// stays so.
func TestRewriteDelivery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "1", "e-1")
		for _, d := range []messages.Delivery{
			{State: messages.DeliverySending}, {State: messages.DeliverySent, Message: "m"}, {State: messages.DeliveryFailed},
		} {
			want := d.State
			d.ConversationID, d.Text, d.Final = e.ConversationID, "asks", true
			d.Buttons = []messages.Button{{ID: "b", Label: "Allow"}}
			text := "decided"
			switch want {
			case messages.DeliverySent:
				want = messages.DeliveryPlaced
			case messages.DeliveryFailed:
				text = "asks"
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
					return err
				}
				if err := tx.Deliveries().RewriteDelivery(ctx, d.ID, "decided"); err != nil {
					return err
				}
				got, err := tx.Deliveries().Delivery(ctx, d.ID)
				if got.State != want || got.Text != text || (len(got.Buttons) == 0) != (text == "decided") || got.Message != d.Message {
					t.Errorf("%s became %s: %q, %v, %q", d.State, got.State, got.Text, got.Buttons, got.Message)
				}
				return err
			})
		}
	})
}

// Who was turned away takes room until that is over: a crowd that is refused one by one does
// not ask an owner a thousand times. And the answer is remembered from when it was given,
// however late that was.
func TestWhoWasTurnedAwayTakesRoom(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		long := now.Add(-sessions.PairingTTL - time.Hour)
		ask := func(n int, at time.Time) (p sessions.Pairing, ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				p = request(n, at)
				ok, err = tx.People().AskPairing(ctx, &p)
				return err
			})
			return p, ok
		}
		first, _ := ask(0, long)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SettlePairing(ctx, first.Number, sessions.PairingDenied, "cli")
		})
		for n := range sessions.MaxPairings - 1 {
			if _, ok := ask(n+1, now); !ok {
				t.Fatalf("request %d is refused", n+1)
			}
		}
		if _, ok := ask(100, now); ok {
			t.Error("who was turned away just now makes room")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			p, ok, err := tx.People().Pairing(ctx, "test", first.UserID)
			if !ok || p.State != sessions.PairingDenied {
				t.Errorf("the decision is forgotten: %+v", p)
			}
			return err
		})
	})
}
