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

func delivery(e sessions.Entry, text string) *messages.Delivery {
	return &messages.Delivery{
		ConversationID: e.ConversationID, EventID: e.ID, ReplyTo: e.In.Message, Text: text, Final: true,
		CreatedAt: time.Now().Truncate(time.Millisecond).UTC(),
	}
}

// What stands in a message until its text does is not kept once the text stands there.
func TestASentDeliveryKeepsNoPlaceholder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		d := *delivery(e, "A long answer.")
		d.Placeholder = "A long …"
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().AddDelivery(ctx, &d) })
		for _, state := range []messages.DeliveryState{messages.DeliverySending, messages.DeliveryPlaced, messages.DeliverySent} {
			d.State, d.Message = state, "99"
			want := "A long …"
			if state == messages.DeliverySent {
				want = ""
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().RecordSending(ctx, d, d.Text) })
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.Deliveries().Delivery(ctx, d.ID)
				if got.Placeholder != want || got.Text != d.Text {
					t.Errorf("%s: placeholder %q and text %q, want %q", state, got.Placeholder, got.Text, want)
				}
				return err
			})
		}
	})
}

// A question is decided on while it is being sent.
func TestRecordSendingKeepsATextThatChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		sent := *delivery(e, "may I?")
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().AddDelivery(ctx, &sent) })
		decided := sent
		decided.Text, decided.NextAt = "may I? yes", time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().UpdateDelivery(ctx, decided) })
		sent.State, sent.Message = messages.DeliverySent, "99"
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Deliveries().RecordSending(ctx, sent, "may I?")
		})
		want := decided
		want.State, want.Message, want.NextAt = messages.DeliveryPlaced, "99", time.Time{}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().Delivery(ctx, sent.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("a text that changed (-want +got):\n%s", diff)
			}
			return err
		})
		want.State = messages.DeliverySent
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Deliveries().RecordSending(ctx, want, want.Text)
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().Delivery(ctx, sent.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the text that was sent (-want +got):\n%s", diff)
			}
			return err
		})
		sent.State, sent.Message = messages.DeliverySending, "" // its message is gone, another one is on its way
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Deliveries().RecordSending(ctx, sent, "may I?")
		})
		want.State, want.Message = messages.DeliverySending, ""
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().Delivery(ctx, sent.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("a text that changed, in a message that is gone (-want +got):\n%s", diff)
			}
			return err
		})
		sent.ID, sent.Message = "none", "99"
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().RecordSending(ctx, sent, "") }), fault.NotFound)
	})
}

func TestDeliveryRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		want := *delivery(e, "")
		want.Placeholder, want.Final, want.OnlyFor = "...", false, "42"
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().AddDelivery(ctx, &want) })
		if want.ID == "" || want.Seq != 1 || want.State != messages.DeliveryPending {
			t.Fatalf("assigned: %+v", want)
		}
		want.State, want.Message, want.Text, want.Final = messages.DeliveryPlaced, "99", "the answer", true
		want.Attempts, want.Error, want.NextAt = 2, "429", time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().UpdateDelivery(ctx, want) })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().EntryDeliveries(ctx, e.ID)
			if diff := cmp.Diff([]messages.Delivery{want}, got); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			return err
		})
		want.Buttons, want.OnlyFor = []messages.Button{
			{ID: "aB_-9", Label: "Approve ✔ \\u0000 \"now\"", Style: messages.ButtonPrimary}, {ID: "x", Label: "Edit"},
		}, "é"
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().UpdateDelivery(ctx, want) })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().Delivery(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with buttons (-want +got):\n%s", diff)
			}
			return err
		})
		want.ID = "none"
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Deliveries().Delivery(ctx, "none")
			return err
		}), fault.NotFound)
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().UpdateDelivery(ctx, want) }), fault.NotFound)
	})
}

func TestButtonsAreStoredWithADelivery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		want := *delivery(e, "decide")
		want.OnlyFor = "42"
		want.Buttons = []messages.Button{{ID: "x", Label: "nul \x00 it", Style: messages.ButtonDanger}}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().AddDelivery(ctx, &want) })
		want.Buttons = []messages.Button{{ID: "x", Label: "nul \ufffd it", Style: messages.ButtonDanger}}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().OpenDeliveries(ctx, e.ConversationID, false)
			if diff := cmp.Diff([]messages.Delivery{want}, got); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			return err
		})
		// A message that was edited loses its buttons.
		want.Buttons = nil
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().UpdateDelivery(ctx, want) })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Deliveries().Delivery(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("without buttons (-want +got):\n%s", diff)
			}
			return err
		})
	})
}

func TestOpenDeliveriesAreOrderedAndSeparated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		errs := together(10, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				d := delivery(e, fmt.Sprint(i))
				d.Control = i%2 == 1
				if i == 0 {
					d.State = messages.DeliverySent
				}
				return tx.Deliveries().AddDelivery(ctx, d)
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		for control, want := range map[bool]int{true: 5, false: 4} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.Deliveries().OpenDeliveries(ctx, e.ConversationID, control)
				if len(got) != want {
					t.Errorf("control %v: %d open, want %d", control, len(got), want)
				}
				for i := 1; i < len(got); i++ {
					if got[i].Seq <= got[i-1].Seq {
						t.Errorf("control %v: %d after %d", control, got[i].Seq, got[i-1].Seq)
					}
				}
				return err
			})
		}
	})
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		want := sessions.Identity{
			Platform: "test", UserID: "42", Name: "Ann", Role: sessions.Stranger,
			RefusedAt: time.UnixMilli(1).UTC(), CreatedAt: time.UnixMilli(2).UTC(),
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, ok, err := tx.People().Identity(ctx, "test", "42"); ok || err != nil {
				t.Errorf("known before it was saved: %v, %v", ok, err)
			}
			if err := tx.People().SaveIdentity(ctx, want); err != nil {
				return err
			}
			if has, err := tx.People().HasOwner(ctx, "test"); has || err != nil {
				t.Errorf("a stranger counts as owner: %v, %v", has, err)
			}
			want.Name, want.RefusedAt = "Anna", time.Time{}
			again := want
			again.CreatedAt, again.Role = time.Now(), sessions.Owner // which SetRole only gives
			if err := tx.People().SaveIdentity(ctx, again); err != nil {
				return err
			}
			got, _, err := tx.People().Identity(ctx, "test", "42")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
			if err := tx.People().SetRole(ctx, again, sessions.GrantedByCLI, false); err != nil {
				return err
			}
			if has, _ := tx.People().HasOwner(ctx, "test"); !has {
				t.Error("no owner after one was saved")
			}
			if has, _ := tx.People().HasOwner(ctx, "other"); has {
				t.Error("the owner of one platform owns another")
			}
			return err
		})
	})
}

func TestOwnerCodeWorksOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		use := func(hash string) (ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				ok, err = tx.People().UseOwnerCode(ctx, "test", hash)
				return err
			})
			return ok
		}
		save := func(hash string, expires time.Duration) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.People().SaveOwnerCode(ctx, "test", hash, time.Now().Add(expires))
			})
		}
		save("old", time.Hour)
		save("new", time.Hour)
		if use("old") || !use("new") || use("new") {
			t.Error("want: the old code replaced, the new one good once")
		}
		save("late", -time.Second)
		if use("late") {
			t.Error("an expired code was good")
		}
	})
}

func TestAuditLogOnlyGrows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "test/42", Action: "session.reset", Target: "x"})
		})
		for _, statement := range []string{`UPDATE audit_log SET actor = 'me'`, `DELETE FROM audit_log`} {
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, statement) })
			wantKind(t, err, fault.Invalid)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := store.Count(ctx, tx, `SELECT count(*) FROM audit_log WHERE actor = 'test/42' AND at_ms > 0`)
			if n != 1 {
				t.Errorf("%d lines, want 1", n)
			}
			return err
		})
	})
}

func TestATextThatWasToldLongAgoIsToldAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Now().Truncate(time.Millisecond)
		c := b.conversation(t, "one")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Deliveries().AddDelivery(ctx, &messages.Delivery{ConversationID: c.ID, Text: "a notice", CreatedAt: at}); err != nil {
				return err
			}
			for since, want := range map[time.Time]bool{at: true, at.Add(time.Millisecond): false} {
				if told, err := tx.Deliveries().ToldSince(ctx, c.ID, "a notice", since); told != want || err != nil {
					t.Errorf("told since %s: %v, %v", since, told, err)
				}
			}
			return nil
		})
	})
}
