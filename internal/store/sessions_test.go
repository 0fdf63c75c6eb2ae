//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/store/storetest"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func TestOneActiveSessionPerConversation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		var made atomic.Int64
		for _, err := range together(20, func(int) error {
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"})
				return err
			})
			if err == nil {
				made.Add(1)
			}
			return err
		}) {
			wantKind(t, err, fault.Conflict)
		}
		if made.Load() != 1 {
			t.Errorf("%d active sessions were made, want 1", made.Load())
		}
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `
				INSERT INTO remote_agent_sessions (conversation_id, ai_assistant_type) VALUES ($1, 'demo')`, c.ID)
		})
		wantKind(t, err, fault.Conflict)
	})
}

func TestSessionLifeCycle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		var first sessions.Session
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, ok, err := tx.Sessions().ActiveSession(ctx, c.ID); ok || err != nil {
				t.Errorf("an active session before the first: %v, %v", ok, err)
			}
			var err error
			first, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{
				ConversationID: c.ID, Assistant: "demo", AgentName: "coder", Model: "m1", SystemPrompt: "be good", Config: []byte(`{"mode":"edit"}`), UserPrompt: "hi",
			})
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(
				tx.Sessions().UpdateSession(ctx, first.ID, sessions.SessionUpdate{AssistantSessionID: new("ext-1")}),
				tx.Sessions().UpdateSession(ctx, first.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{sessions.MetaLastCommand: "plan-feature", "n": 1.0}}),
				tx.Sessions().UpdateSession(ctx, first.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{"n": 2.0}}),
				tx.Sessions().RecordTurn(ctx, first.ID, sessions.TurnRecord{
					Model: "m2", Result: "ok", InputTokens: 10, OutputTokens: 2, SystemPrompt: "be better", Config: []byte(`{"mode":"ask"}`),
				}),
				tx.Sessions().RecordTurn(ctx, first.ID, sessions.TurnRecord{Result: "ok 2", InputTokens: 1, OutputTokens: 1}),
			)
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, ok, err := tx.Sessions().ActiveSession(ctx, c.ID)
			want := first
			want.AssistantSessionID, want.Model, want.Result, want.InputTokens, want.OutputTokens = "ext-1", "m2", "ok 2", 11, 3
			want.SystemPrompt, want.Config = "be better", []byte(`{"mode":"ask"}`)
			want.Metadata = sessions.Metadata{sessions.MetaLastCommand: "plan-feature", "n": 2.0}
			if diff := cmp.Diff(want, got); diff != "" || !ok {
				t.Errorf("active %v (-want +got):\n%s", ok, diff)
			}
			return err
		})
		for range 2 { // ending twice changes nothing
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Sessions().DeactivateSession(ctx, first.ID, "reset")
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			ended, err := tx.Sessions().Session(ctx, first.ID)
			if ended.Active || ended.Status != sessions.Completed || ended.Metadata[sessions.MetaEndReason] != "reset" ||
				ended.EndedAt.Before(ended.StartedAt) || ended.Metadata.LastCommand() != "plan-feature" {
				t.Errorf("ended session: %+v", ended)
			}
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			next, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, ParentID: first.ID, Assistant: "demo"})
			if next.ParentID != first.ID || !next.Active || next.Status != sessions.Completed {
				t.Errorf("next session: %+v", next)
			}
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Sessions().DeleteSession(ctx, first.ID) })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			next, ok, err := tx.Sessions().ActiveSession(ctx, c.ID)
			if !ok || next.ParentID != "" {
				t.Errorf("after its parent is gone: %+v, %v", next, ok)
			}
			return err
		})
	})
}

func TestViewHasTheColumnsOfSeed003(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: s.ID, EntryID: s.ID}, messages.NewText(messages.RoleUser, "x"))
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := store.Count(ctx, tx, `
				SELECT count(*) FROM (
					SELECT id, agent_name, provider, model, system_prompt, user_prompt, config, status, started_at, ended_at, result, error
					FROM agent_sessions
					WHERE status = 'running' AND provider = 'demo' AND started_at BETWEEN $1 AND $2 AND ended_at IS NULL) AS v`,
				time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Minute).Unix())
			if n != 1 {
				t.Errorf("%d rows in the view for session %s, want 1", n, s.ID)
			}
			return err
		})
	})
}

func TestLeaseFences(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		claim := func(owner string, ttl time.Duration) (l sessions.Lease, ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				l, _, ok, err = tx.Leases().ClaimLease(ctx, c.ID, owner, ttl)
				return err
			})
			return l, ok
		}
		hold := func(l sessions.Lease) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				held, err := tx.Leases().HoldLease(ctx, l)
				if err != nil {
					return err
				}
				if held.Owner != l.Owner || held.Epoch != l.Epoch {
					t.Errorf("held %+v under %+v", held, l)
				}
				// A write that a lost lease must not leave behind.
				return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{Cwd: new(l.Owner)})
			})
		}
		first, ok := claim("a", time.Hour)
		if !ok || first.Epoch != 1 {
			t.Fatalf("first claim: %+v, %v", first, ok)
		}
		for _, owner := range []string{"a", "b"} {
			if _, ok := claim(owner, time.Hour); ok {
				t.Errorf("%s claimed a live lease", owner)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Inbox().StopEntries(ctx, c.ID, 7); err != nil {
				return err
			}
			news, err := tx.Leases().Apply(ctx, first, commit.Changes{Renew: -time.Second}) // runs out at once
			if news.StopSeq != 7 {
				t.Errorf("renewal says stop at %d, want 7", news.StopSeq)
			}
			return err
		})
		if err := hold(first); err != nil {
			t.Errorf("a lease that ran out and that nobody took: %v", err)
		}
		second, ok := claim("b", time.Hour)
		if !ok || second.Epoch != 2 {
			t.Fatalf("second claim: %+v, %v", second, ok)
		}
		lost := map[string]error{
			"hold": hold(first),
			"renew": b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Leases().Apply(ctx, first, commit.Changes{Renew: time.Hour})
				return err
			}),
			"release": b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Leases().Apply(ctx, first, commit.Changes{Release: &commit.Release{Anyway: true}})
				return err
			}),
		}
		for name, err := range lost {
			if !errors.Is(err, sessions.ErrLeaseLost) || !fault.Is(err, fault.Conflict) {
				t.Errorf("%s with a lost lease: %v", name, err)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Conversations().Conversation(ctx, c.ID)
			if got.Cwd != "a" || got.Owner != "b" || !got.Leased {
				t.Errorf("after the lost writes: %+v", got)
			}
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Leases().Apply(ctx, second, commit.Changes{Release: &commit.Release{Anyway: true}})
			return err
		})
		if err := hold(second); !errors.Is(err, sessions.ErrLeaseLost) {
			t.Errorf("holding a released lease: %v", err)
		}
		if third, ok := claim("b", time.Hour); !ok || third.Epoch != 3 {
			t.Errorf("claim after release: %+v, %v", third, ok)
		}
	})
}

func TestOneOfManyClaimsTheLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		var won atomic.Int64
		errs := together(20, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, _, ok, err := tx.Leases().ClaimLease(ctx, c.ID, string(rune('a'+i)), time.Hour)
				if ok {
					won.Add(1)
				}
				return err
			})
		})
		if len(errs) > 0 || won.Load() != 1 {
			t.Errorf("%d won, errors %v; want 1 and none", won.Load(), errs)
		}
	})
}

func TestNamedLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		acquire := func(owner string, ttl time.Duration) (ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				ok, err = tx.Leases().AcquireNamed(ctx, "poll", owner, ttl)
				return err
			})
			return ok
		}
		release := func(owner string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Leases().ReleaseNamed(ctx, "poll", owner) })
		}
		steps := []bool{acquire("a", time.Hour), acquire("a", time.Hour), !acquire("b", time.Hour)}
		release("b")
		steps = append(steps, !acquire("b", time.Hour))
		release("a")
		steps = append(steps, acquire("b", -time.Second), acquire("a", time.Hour), !acquire("b", time.Hour))
		for i, ok := range steps {
			if !ok {
				t.Errorf("step %d went wrong", i+1)
			}
		}
	})
}

func TestClearLeases(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c, said, later := b.conversation(t, "chat"), b.accept(t, "chat", "1"), time.Now().Add(time.Hour)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, _, err := tx.Leases().ClaimLease(ctx, c.ID, "dead", time.Hour)
			if err != nil {
				return err
			}
			if _, err = tx.Leases().AcquireNamed(ctx, "poll", "dead", time.Hour); err != nil {
				return err
			}
			for _, state := range []messages.DeliveryState{messages.DeliveryPending, messages.DeliverySending, messages.DeliveryPlaced} {
				d := messages.Delivery{ConversationID: c.ID, Text: "an answer to a command", Control: true, State: state, NextAt: later}
				if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
					return err
				}
			}
			if err := storetest.Apply(ctx, tx, c.ID, commit.Changes{Lessons: []commit.Lesson{{Entry: said.ID, Account: "test/42", Due: time.Now()}}}); err != nil {
				return err
			}
			_, err = tx.Lessons().ClaimLessons(ctx, "dead", time.Now(), later, 9)
			return err
		})
		if err := b.ClearLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		alone := b.Dialect() == "sqlite"
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, ok, err := tx.Leases().ClaimLease(ctx, c.ID, "b", time.Hour)
			if ok != alone {
				t.Errorf("claimed %v, want %v", ok, alone)
			}
			if err != nil {
				return err
			}
			ok, err = tx.Leases().AcquireNamed(ctx, "poll", "b", time.Hour)
			if ok != alone {
				t.Errorf("acquired %v, want %v", ok, alone)
			}
			return err
		})
		held := map[bool]int{true: 0, false: 3}[alone]
		if n := b.counted(t, "deliveries WHERE next_ms > 0"); n != held {
			t.Errorf("%d answers to commands are the dead process's, want %d", n, held)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.Lessons().ClaimLessons(ctx, "b", time.Now(), later, 9)
			if (len(list) == 1) != alone {
				t.Errorf("lessons: %+v", list)
			}
			return err
		})
	})
}
