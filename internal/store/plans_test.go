//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// propose stores a plan as the first version of a new one, or with a number as
// the next version of that.
func (b bundle) propose(tb testing.TB, conversationID string, number int64, text string) plan.Plan {
	tb.Helper()
	var p plan.Plan
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		p = plan.Plan{
			Number: number, ConversationID: conversationID, Goal: "fix it", Text: text,
			Author: "assistant", Requester: "test/42", Head: "abc",
		}
		return tx.Proposals().InsertPlan(ctx, &p)
	})
	return p
}

func (b bundle) settle(tb testing.TB, p plan.Plan, state plan.State) error {
	tb.Helper()
	return b.try(tb, func(ctx context.Context, tx *store.Tx) error {
		p.State = state
		return tx.Proposals().SettlePlan(ctx, p)
	})
}

// states returns the state of every version by "number.version".
func (b bundle) states(tb testing.TB, plans ...plan.Plan) map[string]plan.State {
	tb.Helper()
	got := map[string]plan.State{}
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		for _, p := range plans {
			state, err := store.String(ctx, tx, `SELECT state FROM plans WHERE id = $1`, p.ID)
			if err != nil {
				return err
			}
			got[fmt.Sprintf("%d.%d", p.Number, p.Version)] = plan.State(state)
		}
		return nil
	})
	return got
}

func TestPlanRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s := b.session(t, e.ConversationID)
		var want plan.Plan
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			want = plan.Plan{
				ConversationID: e.ConversationID, SessionID: s.ID, EntryID: e.ID, Goal: "fix é", Text: "1. look\x00 \U0001f600",
				Author: "assistant", Requester: "test/42", Head: "abc123", DeliveryID: "d1",
				State: plan.Done, DecidedBy: "left over", DecidedAt: time.Now(), Note: "from a copy",
			}
			return tx.Proposals().InsertPlan(ctx, &want)
		})
		if want.ID == "" || want.Number != 1 || want.Version != 1 || want.State != plan.Proposed || want.SHA256 != plan.Sum(want.Text) ||
			want.DecidedBy != "" || want.Note != "" || want.ExpiresAt.Sub(want.CreatedAt) != plan.TTL || time.Since(want.CreatedAt) > time.Minute {
			t.Errorf("assigned: %+v", want)
		}
		check := func(when string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.Proposals().Plan(ctx, want.Number)
				if err != nil {
					return err
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: plan (-want +got):\n%s", when, diff)
				}
				latest, ok, err := tx.Proposals().LatestPlan(ctx, e.ConversationID)
				if diff := cmp.Diff(want, latest); diff != "" || !ok {
					t.Errorf("%s: latest plan %v (-want +got):\n%s", when, ok, diff)
				}
				return err
			})
		}
		check("stored")
		want.DecidedBy, want.DecidedAt, want.Note = "test/42", time.Now().Truncate(time.Millisecond).UTC(), "go on"
		if err := b.settle(t, want, plan.Approved); err != nil {
			t.Fatal(err)
		}
		want.State = plan.Approved
		check("approved")
		if err := b.InRead(t.Context(), func(tx *store.Tx) error { // nothing can be locked in it
			_, _, err := tx.Proposals().LatestPlan(t.Context(), e.ConversationID)
			return err
		}); err != nil {
			t.Errorf("in a snapshot: %v", err)
		}
	})
}

func TestPlansThatCannotBe(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		here, there := b.conversation(t, "here"), b.conversation(t, "there")
		p := b.propose(t, here.ID, 0, "text")
		insert := func(p plan.Plan) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Proposals().InsertPlan(ctx, &p) })
		}
		const none = "01900000-0000-7000-8000-000000000000"
		wantKind(t, insert(plan.Plan{ConversationID: here.ID}), fault.Invalid)
		wantKind(t, insert(plan.Plan{ConversationID: none, Text: "x"}), fault.NotFound)
		wantKind(t, insert(plan.Plan{ConversationID: here.ID, Number: 999, Text: "x"}), fault.NotFound)
		wantKind(t, insert(plan.Plan{ConversationID: there.ID, Number: p.Number, Text: "x"}), fault.Invalid)
		wantKind(t, b.settle(t, plan.Plan{ID: none}, plan.Done), fault.NotFound)
		wantKind(t, b.settle(t, plan.Plan{ID: none}, plan.Proposed), fault.NotFound)
		wantKind(t, b.settle(t, p, "odd"), fault.Invalid)
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error { _, err := tx.Proposals().Plan(ctx, 999); return err }), fault.NotFound)
		for _, id := range []string{there.ID, none} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, ok, err := tx.Proposals().LatestPlan(ctx, id)
				if ok {
					t.Errorf("a plan in a conversation without one")
				}
				return err
			})
		}
		if diff := cmp.Diff(map[string]plan.State{"1.1": plan.Proposed}, b.states(t, p)); diff != "" {
			t.Errorf("after what was refused (-want +got):\n%s", diff)
		}
	})
}

func TestOnePlanIsOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c, other := b.conversation(t, "chat"), b.conversation(t, "other")
		elsewhere := b.propose(t, other.ID, 0, "elsewhere")
		first := b.propose(t, c.ID, 0, "one")
		edited := b.propose(t, c.ID, first.Number, "one, edited")
		if edited.Version != 2 || edited.Number != first.Number || edited.SHA256 == first.SHA256 {
			t.Errorf("next version: %+v", edited)
		}
		if err := b.settle(t, edited, plan.Executing); err != nil {
			t.Fatal(err)
		}
		second := b.propose(t, c.ID, 0, "two")
		if err := b.settle(t, second, plan.Approved); err != nil {
			t.Fatal(err)
		}
		wantKind(t, b.settle(t, edited, plan.Approved), fault.Conflict) // another one is open
		third := b.propose(t, c.ID, 0, "three")
		for _, state := range []plan.State{plan.Approved, plan.Executing, plan.Done} {
			wantKind(t, b.settle(t, second, state), fault.Conflict)
		}
		if err := b.settle(t, second, plan.Superseded); err != nil {
			t.Errorf("settling it the same way again: %v", err)
		}
		// The message that shows a plan is on record late, and reopens nothing.
		second.DeliveryID, edited.DeliveryID = "d2", "d1"
		for _, p := range []plan.Plan{second, edited} {
			if err := b.settle(t, p, plan.Proposed); err != nil {
				t.Error(err)
			}
		}
		name := func(p plan.Plan) string { return fmt.Sprintf("%d.%d", p.Number, p.Version) }
		want := map[string]plan.State{
			name(elsewhere): plan.Proposed, name(first): plan.Superseded, name(edited): plan.Executing,
			name(second): plan.Superseded, name(third): plan.Proposed,
		}
		if diff := cmp.Diff(want, b.states(t, elsewhere, first, edited, second, third)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			latest, _, err := tx.Proposals().LatestPlan(ctx, c.ID)
			if latest.ID != third.ID {
				t.Errorf("latest is %s version %d", latest.Name(), latest.Version)
			}
			if err != nil {
				return err
			}
			got, err := tx.Proposals().Plan(ctx, first.Number)
			if got.ID != edited.ID || got.DeliveryID != "d1" {
				t.Errorf("the newest version is %+v", got)
			}
			return err
		})
	})
}

func TestPlansOfOneConversationAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const callers = 20
		chats := []string{b.conversation(t, "a").ID, b.conversation(t, "b").ID}
		first := b.propose(t, chats[0], 0, "first")
		var mu sync.Mutex
		numbers := map[string]bool{}
		errs := together(callers, func(i int) error {
			var p plan.Plan
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				p = plan.Plan{ConversationID: chats[i%2], Text: fmt.Sprint("plan ", i), Requester: "test/42"}
				if i%4 == 0 {
					p.Number = first.Number
				}
				return tx.Proposals().InsertPlan(ctx, &p)
			})
			mu.Lock()
			defer mu.Unlock()
			numbers[fmt.Sprintf("%d.%d", p.Number, p.Version)] = true
			return err
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		if len(numbers) != callers || !numbers[fmt.Sprintf("%d.%d", first.Number, 1+callers/4)] {
			t.Errorf("%d different numbers, want %d: %v", len(numbers), callers, numbers)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			stored, err := store.Count(ctx, tx, `SELECT count(*) FROM plans`)
			if err != nil {
				return err
			}
			for _, chat := range chats {
				open, err := store.Count(ctx, tx, `
					SELECT count(*) FROM plans WHERE state = 'proposed' AND conversation_id = $1`, chat)
				if err != nil {
					return err
				}
				if open != 1 {
					t.Errorf("%d open plans, want 1", open)
				}
			}
			if stored != callers+1 {
				t.Errorf("%d versions stored, want %d", stored, callers+1)
			}
			return nil
		})
	})
}

// TestOneOfManyDecides lets people press buttons at the same moment, while the
// plan may be replaced.
func TestOneOfManyDecides(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"decisions only": false, "and a new version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				c := b.conversation(t, "chat")
				p := b.propose(t, c.ID, 0, "text")
				var settled, inserted atomic.Int64
				decisions := []plan.Decision{plan.Reject, plan.Execute}
				errs := together(50, func(i int) error {
					if replaced && i == 25 {
						inserted.Add(1)
						b.propose(t, c.ID, 0, "newer")
						return nil
					}
					err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
						now, err := tx.Proposals().Plan(ctx, p.Number)
						if err != nil {
							return err
						}
						now.State, err = plan.Decide(now, decisions[i%2], plan.Decider{Actor: "test/42"}, p.SHA256, time.Now())
						if err != nil {
							return err
						}
						now.DecidedBy, now.DecidedAt = "test/42", time.Now()
						return tx.Proposals().SettlePlan(ctx, now)
					})
					if err == nil {
						settled.Add(1)
					} else if fault.Is(err, fault.Conflict) {
						err = nil
					}
					return err
				})
				if len(errs) > 0 {
					t.Fatal(errs[0])
				}
				got := b.states(t, p)["1.1"]
				wins := settled.Load()
				if got == plan.Superseded && replaced {
					wins++
				}
				if wins != 1 || got == plan.Proposed {
					t.Errorf("%d callers settled the plan, which is %s; want one", settled.Load(), got)
				}
			})
		})
	}
}

// TestPlansAreReadUnderALock reads a plan while another transaction has it: the
// second one waits, which shows as the end of its patience. SQLite has one
// writer and needs no lock.
func TestPlansAreReadUnderALock(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	c := b.conversation(t, "chat")
	p := b.propose(t, c.ID, 0, "text")
	reads := map[string]func(ctx context.Context, tx *store.Tx) error{
		"Plan": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Proposals().Plan(ctx, p.Number)
			return err
		},
		"LatestPlan": func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.Proposals().LatestPlan(ctx, c.ID)
			return err
		},
		"InsertPlan": func(ctx context.Context, tx *store.Tx) error {
			return tx.Proposals().InsertPlan(ctx, &plan.Plan{ConversationID: c.ID, Text: "newer"})
		},
	}
	for first, holds := range reads {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := holds(ctx, tx); err != nil {
				return err
			}
			for second, waits := range reads {
				err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
					if err := store.Exec(ctx, tx, `SET LOCAL lock_timeout = '50ms'`); err != nil {
						return err
					}
					return waits(ctx, tx)
				})
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s did not wait for %s: %v", second, first, err)
				}
			}
			return nil
		})
	}
}

func TestPlansNeverChange(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c, other := b.conversation(t, "chat"), b.conversation(t, "other")
		next := b.propose(t, other.ID, 0, "another number")
		p := b.propose(t, c.ID, 0, "text")
		refused := func(says, set string) {
			t.Helper()
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `UPDATE plans SET `+set+` WHERE id = $1`, p.ID)
			})
			wantKind(t, err, fault.Invalid)
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: the database said %v", set, err)
			}
		}
		for _, set := range []string{
			`body = 'other'`, `sha256 = '` + plan.Sum("other") + `'`, `goal = 'other'`, `requester = 'test/666'`, `author = 'x'`,
			`number = ` + fmt.Sprint(next.Number), `version = 2`, `conversation_id = '` + other.ID + `'`, `created_ms = 0`,
			`id = '01900000-0000-7000-8000-000000000000'`, `state = 'approved', body = body || ' and more'`,
		} {
			refused("does not change", set)
		}
		if err := b.settle(t, p, plan.Rejected); err != nil {
			t.Fatal(err)
		}
		refused("settled once", `state = 'approved'`)
		got := b.states(t, p)
		if diff := cmp.Diff(map[string]plan.State{"2.1": plan.Rejected}, got); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
	})
}

func TestPlanNumbersAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		old := b.propose(t, c.ID, 0, "old")
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Conversations().DeleteConversation(ctx, c.ID) })
		fresh := b.propose(t, b.conversation(t, "chat").ID, 0, "new")
		if fresh.Number <= old.Number {
			t.Errorf("number %d after %d was deleted", fresh.Number, old.Number)
		}
	})
}

func TestButtons(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		want := command.Button{
			ID: strings.Repeat("aZ9_-", 8), ConversationID: c.ID, On: command.OnPlan, Decision: string(plan.Approve), Number: 9, SHA256: plan.Sum("x"),
			ExpiresAt: time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC(),
		}
		save := func(change func(*command.Button)) error {
			button := want
			change(&button)
			return b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Buttons().SaveButton(ctx, button) })
		}
		read := func(id string) (got command.Button, err error) {
			err = b.InRead(t.Context(), func(tx *store.Tx) (err error) {
				got, err = tx.Buttons().Button(t.Context(), id)
				return err
			})
			return got, err
		}
		if err := save(func(*command.Button) {}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // reading does not use it up
			got, err := read(want.ID)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("button, %v (-want +got):\n%s", err, diff)
			}
		}
		wantKind(t, save(func(b *command.Button) { b.Decision = string(plan.Execute) }), fault.Conflict)
		for _, id := range []string{"", want.ID + "x", "a b", "é", "a;b"} {
			wantKind(t, save(func(b *command.Button) { b.ID = id }), fault.Invalid)
		}
		wantKind(t, save(func(b *command.Button) {
			b.ID, b.ConversationID = "x", "01900000-0000-7000-8000-000000000000"
		}), fault.NotFound)
		if err := save(func(b *command.Button) { b.ID, b.ExpiresAt = "late", time.Now().Add(-time.Second) }); err != nil {
			t.Fatal(err)
		}
		if err := save(func(b *command.Button) { b.ID, b.ExpiresAt = "default", time.Time{} }); err != nil {
			t.Fatal(err)
		}
		if got, err := read("default"); err != nil || time.Until(got.ExpiresAt) < plan.TTL-time.Minute {
			t.Errorf("without an end: %+v, %v", got, err)
		}
		for _, id := range []string{"late", "none"} {
			_, err := read(id)
			wantKind(t, err, fault.NotFound)
		}
	})
}

// A plan that was carried out is not carried out again.
func TestAPlanThatIsDoneStaysDone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		p := b.propose(t, b.conversation(t, "c").ID, 0, "1. look")
		for _, state := range []plan.State{plan.Approved, plan.Executing, plan.Done} {
			if err := b.settle(t, p, state); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, b.settle(t, p, plan.Executing), fault.Conflict)
		if err := b.settle(t, p, plan.Done); err != nil {
			t.Errorf("settled the same way again: %v", err)
		}
	})
}
