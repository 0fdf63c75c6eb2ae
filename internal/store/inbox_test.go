//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestEntryRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		want := b.accept(t, "chat", "1", func(e *sessions.Entry) {
			e.In.Text = "NUL \x00 and \u00e9"
			e.In.Quotes = []messages.Quote{{Relation: "reply to", Author: "Bo", Text: "x"}}
			e.AcceptedAt = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
			e.NextAt = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Inbox().Entry(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
			return err
		})
	})
}

func TestEventIsStoredOnceUnderConcurrency(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var mu sync.Mutex
		fresh := 0
		errs := together(40, func(i int) error {
			_, ok, err := b.tryAccept(t, "chat", fmt.Sprint(i%4))
			mu.Lock()
			defer mu.Unlock()
			if ok {
				fresh++
			}
			return err
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		c := b.conversation(t, "chat")
		if got := b.counts(t).events; got != 4 || fresh != 4 || c.InboxSeq != 4 {
			t.Errorf("%d rows, %d fresh, last number %d; want 4 of each", got, fresh, c.InboxSeq)
		}
	})
}

func TestInboxNumbersHaveNoGapsAndNoInversions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const callers, perCaller = 16, 8
		got := make([][]int64, callers)
		errs := together(callers, func(i int) error {
			for n := range perCaller {
				e, _, err := b.tryAccept(t, "chat", fmt.Sprintf("%d-%d", i, n))
				if err != nil {
					return err
				}
				// A duplicate in between takes no number.
				if _, fresh, err := b.tryAccept(t, "chat", fmt.Sprintf("%d-%d", i, n)); fresh || err != nil {
					return fmt.Errorf("duplicate: fresh %v, %w", fresh, err)
				}
				got[i] = append(got[i], e.Seq)
			}
			return nil
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		var all []int64
		for i, seqs := range got {
			if !slices.IsSorted(seqs) {
				t.Errorf("caller %d got %v: a later message before an earlier one", i, seqs)
			}
			all = append(all, seqs...)
		}
		slices.Sort(all)
		for i, seq := range all {
			if seq != int64(i+1) {
				t.Fatalf("number %d is %d: a gap or a repetition", i, seq)
			}
		}
	})
}

func TestEntriesOfSeveralConversationsInOneTransactionDoNotDeadlock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		chats := []string{"a", "b"}
		errs := together(4, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				for n := range chats {
					chat := chats[(n+i)%len(chats)] // each caller in another order
					c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(chat), "demo")
					if err != nil {
						return err
					}
					e := sessions.Entry{ConversationID: c.ID, In: inbound(chat, fmt.Sprintf("%s%d", chat, i))}
					if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		if got := b.counts(t).events; got != 8 {
			t.Errorf("%d events, want 8", got)
		}
	})
}

func TestNextEntryGoesByNumber(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		first := b.accept(t, "chat", "1", func(e *sessions.Entry) { e.NextAt = time.Now().Add(time.Hour) })
		second := b.accept(t, "chat", "2")
		b.accept(t, "chat", "3", func(e *sessions.Entry) { e.Lane = sessions.LaneControl })
		b.accept(t, "other", "4")
		next := func() (id string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				e, _, err := tx.Inbox().NextEntry(ctx, first.ConversationID)
				id = e.ID
				return err
			})
			return id
		}
		update := func(id string, u sessions.EntryUpdate) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Inbox().UpdateEntry(ctx, id, u) })
		}
		if got := next(); got != first.ID {
			t.Errorf("next is %s, want the first whatever its time", got)
		}
		update(first.ID, sessions.EntryUpdate{State: new(sessions.EntryRunning), Attempts: new(1)})
		if got := next(); got != first.ID {
			t.Errorf("next is %s, want the running one", got)
		}
		update(first.ID, sessions.EntryUpdate{State: new(sessions.EntryDone)})
		if got := next(); got != second.ID {
			t.Errorf("next is %s, want the second", got)
		}
		update(second.ID, sessions.EntryUpdate{State: new(sessions.EntryFailed), Error: new("why")})
		if got := next(); got != "" {
			t.Errorf("next is %s, want none", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			e, err := tx.Inbox().Entry(ctx, first.ID)
			if e.Attempts != 1 || e.State != sessions.EntryDone {
				t.Errorf("first: %+v", e)
			}
			return err
		})
	})
}

func TestStopEntriesStopsWhatWaitsAndMarksTheRest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		before := b.accept(t, "chat", "0", func(e *sessions.Entry) { e.State = sessions.EntryStopped })
		running := b.accept(t, "chat", "1", func(e *sessions.Entry) { e.State = sessions.EntryRunning })
		waiting := b.accept(t, "chat", "2")
		b.accept(t, "chat", "2 edited", func(e *sessions.Entry) { e.State = sessions.EntryIgnored }) // which is no message of its own
		stop := b.accept(t, "chat", "3", func(e *sessions.Entry) { e.Lane = sessions.LaneControl })
		later := b.accept(t, "chat", "4")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Inbox().StopEntries(ctx, stop.ConversationID, stop.Seq)
			if err != nil {
				return err
			}
			if len(got) != 1 || got[0].ID != waiting.ID || got[0].State != sessions.EntryStopped {
				t.Errorf("stopped %+v, want the waiting one", got)
			}
			if _, err := tx.Inbox().StopEntries(ctx, stop.ConversationID, 1); err != nil {
				return err
			}
			if got, err = tx.Inbox().StoppedEntries(ctx, stop.ConversationID, stop.Seq); err != nil || len(got) != 1 || got[0].ID != waiting.ID {
				t.Errorf("stopped while one runs: %+v, %v; want the one that waited", got, err)
			}
			if got, err = tx.Inbox().StoppedEntries(ctx, stop.ConversationID, 1); err != nil || len(got) != 1 || got[0].ID != before.ID {
				t.Errorf("stopped before: %+v, %v; want what was stopped then", got, err)
			}
			c, err := tx.Conversations().Conversation(ctx, stop.ConversationID)
			if c.StopSeq != stop.Seq {
				t.Errorf("stop number %d, want %d: it never goes back", c.StopSeq, stop.Seq)
			}
			return err
		})
		for _, want := range []struct {
			id    string
			state sessions.EntryState
		}{{running.ID, sessions.EntryRunning}, {waiting.ID, sessions.EntryStopped}, {stop.ID, sessions.EntryWaiting}, {later.ID, sessions.EntryWaiting}} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				e, err := tx.Inbox().Entry(ctx, want.id)
				if e.State != want.state {
					t.Errorf("entry %d is %s, want %s", e.Seq, e.State, want.state)
				}
				return err
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Inbox().CountWaiting(ctx, stop.ConversationID)
			if n != 2 {
				t.Errorf("%d wait or run, want 2", n)
			}
			return err
		})
	})
}

func TestReplaceWaitingChangesOnlyWhatHasNotStarted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		edit := func(text string) (done bool) {
			in := inbound("chat", "edit")
			in.Text = text
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				done, err = tx.Inbox().ReplaceWaiting(ctx, e.ConversationID, e.In.Message, in)
				return err
			})
			return done
		}
		if !edit("better") {
			t.Error("a waiting message was not replaced")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryRunning), Attempts: new(1)})
		})
		if edit("too late") {
			t.Error("a message was replaced while its turn ran")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Inbox().Entry(ctx, e.ID)
			if got.In.Text != "better" {
				t.Errorf("text is %q", got.In.Text)
			}
			return err
		})
	})
}

func TestRawEventsAreKeptOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for name, raw := range map[string]messages.RawEvent{
			"with an id": {Platform: "test", Account: "bot", Event: "7", Raw: []byte("{\x00\xff"), Reason: "no chat \x00"},
			"without":    {Platform: "test", Account: "bot", Raw: []byte("garbage")},
		} {
			for i, want := range []bool{true, false} {
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					fresh, err := tx.Inbox().KeepRaw(ctx, raw)
					if fresh != want {
						t.Errorf("%s, time %d: fresh %v", name, i+1, fresh)
					}
					return err
				})
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := store.Count(ctx, tx, `SELECT count(*) FROM inbound_events WHERE state = 'raw' AND length(raw) > 0`)
			if n != 2 {
				t.Errorf("%d raw events, want 2", n)
			}
			return err
		})
	})
}

func TestControlWorkFindsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		control := func(at time.Time) func(*sessions.Entry) {
			return func(e *sessions.Entry) { e.Lane, e.AcceptedAt = sessions.LaneControl, at }
		}
		old := b.accept(t, "chat", "1", control(now.Add(-time.Minute)))
		b.accept(t, "chat", "2", control(now))
		b.accept(t, "chat", "3", func(e *sessions.Entry) { e.AcceptedAt = now.Add(-time.Hour) })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Inbox().ControlWork(ctx, now.Add(-time.Second), 10)
			if len(got) != 1 || got[0].ID != old.ID {
				t.Errorf("got %+v, want the old one", got)
			}
			return err
		})
	})
}

func TestConversationsWithWork(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) func(*sessions.Entry) {
		return func(e *sessions.Entry) { e.AcceptedAt = time.Now().Add(-d) }
	}
	each(t, func(t *testing.T, b bundle) {
		second := b.accept(t, "due", "1", ago(time.Minute))
		b.accept(t, "later", "2", func(e *sessions.Entry) { e.NextAt = time.Now().Add(time.Hour) })
		b.accept(t, "later", "3") // due itself, but not at the head
		first := b.accept(t, "oldest", "4", ago(time.Hour))
		leased := b.accept(t, "leased", "5")
		done := b.accept(t, "done", "6", func(e *sessions.Entry) { e.State = sessions.EntryDone })
		waits := b.accept(t, "waits", "7", func(e *sessions.Entry) { e.State = sessions.EntryDone })
		open := b.accept(t, "open", "8", func(e *sessions.Entry) { e.State = sessions.EntryDone })
		replies := b.accept(t, "replies", "9", func(e *sessions.Entry) { e.State = sessions.EntryDone })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, _, _, err := tx.Leases().ClaimLease(ctx, leased.ConversationID, "w", time.Minute); err != nil {
				return err
			}
			before, later := delivery(open, "go"), delivery(open, "this one has to wait") // older than those below
			sent := delivery(done, "sent")
			sent.State = messages.DeliverySent
			notYet := delivery(waits, "rate limited")
			notYet.NextAt = time.Now().Add(time.Hour)
			unfinal := delivery(waits, "being written")
			unfinal.Final = false
			put := delivery(replies, "rate limited as well")
			put.NextAt = notYet.NextAt
			reply := delivery(replies, "of a command, which waits for no answer")
			reply.Control = true
			later.NextAt = notYet.NextAt
			for _, d := range []*messages.Delivery{sent, notYet, unfinal, delivery(waits, "behind it"), before, later, put, reply} {
				if err := tx.Deliveries().AddDelivery(ctx, d); err != nil {
					return err
				}
			}
			return nil
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Conversations().ConversationsWithWork(ctx, 10)
			want := []string{first.ConversationID, second.ConversationID, open.ConversationID, replies.ConversationID}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("conversations (-want +got):\n%s", diff)
			}
			if got, _ := tx.Conversations().ConversationsWithWork(ctx, 1); len(got) != 1 || got[0] != first.ConversationID {
				t.Errorf("with limit 1: %v, want the oldest", got)
			}
			return err
		})
	})
}

// TestOpenWorkIsGoneThroughOnce looks at the plan of a database without statistics, where
// the planner takes few for many: a crowd of 5,000 compared with itself took ten seconds.
func TestOpenWorkIsGoneThroughOnce(t *testing.T) {
	t.Parallel()
	bundle{storetest.Postgres(t)(t)}.do(t, func(ctx context.Context, tx *store.Tx) error {
		q := store.HotQueries()["ConversationsWithWork"]
		plan, err := store.PostgresPlan(ctx, tx, q.SQL, q.Args...)
		for _, table := range []string{"on inbound_events", "on deliveries"} {
			if n := strings.Count(plan, table); n != 1 {
				t.Errorf("%d scans %s in:\n%s", n, table, plan)
			}
		}
		return err
	})
}

func TestHotReadsGoByIndex(t *testing.T) {
	t.Parallel()
	open := bundleOf(t)
	for name, q := range store.HotQueries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open.do(t, func(ctx context.Context, tx *store.Tx) error {
				plan, err := store.Plan(ctx, tx, q.SQL, q.Args...)
				if err != nil {
					return err
				}
				for step := range strings.Lines(plan) {
					step = strings.TrimSpace(step)
					subquery := strings.HasPrefix(step, "SCAN (subquery-") || slices.Contains([]string{
						"SCAN newest", "SCAN work", "SCAN entries", "SCAN parts", "SCAN SUBQUERY 2", "SCAN CONSTANT ROW",
					}, step)
					if strings.HasPrefix(step, "SCAN ") && !subquery && !strings.Contains(step, "INDEX") {
						t.Errorf("a table scan: %s\nin:\n%s", step, plan)
					}
				}
				return nil
			})
		})
	}
}

func TestHotReadsCanGoByIndexOnPostgres(t *testing.T) {
	t.Parallel()
	open := bundle{storetest.Postgres(t)(t)}
	for name, q := range store.HotQueries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open.do(t, func(ctx context.Context, tx *store.Tx) error {
				plan, err := store.PostgresPlan(ctx, tx, q.SQL, q.Args...)
				if strings.Contains(plan, "Seq Scan") {
					t.Errorf("a table scan in:\n%s", plan)
				}
				return err
			})
		})
	}
}

func TestPreparationEndsWithItsEntry(t *testing.T) {
	t.Parallel()
	at := time.Now().UTC().Truncate(time.Second)
	kept := sessions.Preparation{
		AdmittedAt: at, EarlierAt: at, Earlier: []messages.Quote{{Relation: "issue", Author: "gina", Text: "It is wrong."}}, Notice: "Using it.",
		LocatedAt: at, Repository: &messages.Repository{URL: "https://git.example/acme/web", Branch: "fix", Existing: true},
	}
	for name, end := range map[string]func(ctx context.Context, tx *store.Tx, e sessions.Entry) error{
		"Done": func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone), Preparation: &kept})
		},
		"Stopped": func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			_, err := tx.Inbox().StopEntries(ctx, e.ConversationID, e.Seq)
			return err
		},
		"Changed": func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			_, err := tx.Inbox().ReplaceWaiting(ctx, e.ConversationID, e.In.Message, e.In)
			return err
		},
		"Deleted": func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return tx.Conversations().DeleteConversation(ctx, e.ConversationID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				e := b.accept(t, "chat", "1")
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Preparation: &kept}); err != nil {
						return err
					}
					if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Error: new("an error of a try")}); err != nil {
						return err
					}
					got, err := tx.Inbox().Entry(ctx, e.ID)
					if diff := cmp.Diff(kept, got.Preparation); diff != "" {
						t.Error(diff)
					}
					return err
				})
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					if err := end(ctx, tx, e); err != nil {
						return err
					}
					got, err := tx.Inbox().Entry(ctx, e.ID)
					if diff := cmp.Diff(sessions.Preparation{}, got.Preparation); diff != "" {
						t.Errorf("it outlives its entry: %s", diff)
					}
					return err
				})
			})
		})
	}
}

func TestUnansweredCountsLoopsOfADay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		refused := func(reason string, ago time.Duration) func(e *sessions.Entry) {
			return func(e *sessions.Entry) {
				e.State, e.Error, e.AcceptedAt = sessions.EntryRefused, reason, now.Add(-ago)
			}
		}
		b.accept(t, "chat", "1", refused(sessions.ErrorLoop, 2*time.Hour))
		b.accept(t, "chat", "2", refused(sessions.ErrorLoop, time.Minute))
		b.accept(t, "chat", "3", refused("overflow", time.Minute))
		b.accept(t, "other", "4", refused(sessions.ErrorLoop, time.Minute))
		e := b.accept(t, "chat", "5")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for since, want := range map[time.Duration]int{time.Hour: 1, 24 * time.Hour: 2, time.Second: 0} {
				n, last, err := tx.Inbox().Unanswered(ctx, e.ConversationID, now.Add(-since))
				if err != nil {
					return err
				}
				if n != want || n > 0 && !last.Equal(now.Add(-time.Minute)) {
					t.Errorf("since %s: %d, the last at %s", since, n, last)
				}
			}
			return nil
		})
	})
}

// What a person has waiting is counted without what runs, and a refusal counts from the very
// moment that is asked for.
func TestWhatAPersonHasWaitingAndWasRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Now().Truncate(time.Millisecond)
		first := b.accept(t, "one", "1")
		b.accept(t, "one", "2")
		b.accept(t, "two", "3")
		refused := b.accept(t, "one", "4", func(e *sessions.Entry) {
			e.State, e.Error, e.AcceptedAt = sessions.EntryRefused, "too many", at
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Inbox().UpdateEntry(ctx, first.ID, sessions.EntryUpdate{State: new(sessions.EntryRunning)}); err != nil {
				return err
			}
			all, here, _, err := tx.Inbox().WaitingOf(ctx, first.In, first.ConversationID, 10)
			if all != 2 || here != 1 || err != nil {
				t.Errorf("%d wait, %d of them here, %v; want 2 and 1", all, here, err)
			}
			for since, want := range map[time.Time]bool{at: true, at.Add(time.Millisecond): false} {
				if got, err := tx.Inbox().RefusedSince(ctx, refused.In, "too many", since); got != want || err != nil {
					t.Errorf("refused since %s: %v, %v", since, got, err)
				}
			}
			return nil
		})
	})
}

// A session began behind a message only if all its turns did.
func TestASessionBeganBehindAMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		first, second, third := b.accept(t, "one", "1"), b.accept(t, "one", "2"), b.accept(t, "one", "3")
		s := b.session(t, first.ConversationID)
		begun := func(behind int64, turns ...sessions.Entry) (got bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				for _, e := range turns {
					if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{SessionID: &s.ID}); err != nil {
						return err
					}
				}
				got, err = tx.Inbox().BegunBehind(ctx, s, behind)
				return err
			})
			return got
		}
		if begun(second.Seq) {
			t.Error("without turns")
		}
		if !begun(second.Seq, third) {
			t.Error("with a turn behind the message it did not")
		}
		if begun(second.Seq, first) {
			t.Error("with a turn before the message, too")
		}
	})
}
