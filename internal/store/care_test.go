//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/commit"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// answered makes a conversation with one answered message: an ended session, a
// tool call, an entry with its raw body and a sent delivery.
func (b bundle) answered(t *testing.T, chat string) (sessions.Session, sessions.Entry) {
	t.Helper()
	e := b.accept(t, chat, "event of "+chat)
	s := b.session(t, e.ConversationID)
	b.say(t, s.ID, e.ID, textOf(messages.RoleUser, "question"), textOf(messages.RoleAssistant, "answer"))
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		if err := storetest.Calls(ctx, tx, sessions.ToolCall{SessionID: s.ID, CallID: "1", Name: "shell", Request: "{}", Status: sessions.ToolCompleted, Response: `"done"`}); err != nil {
			return err
		}
		d := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Text: "answer", Final: true, State: messages.DeliverySent}
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return err
		}
		return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone), SessionID: &s.ID})
	})
	return s, e
}

func TestRemoveSessionTakesItsTextsEverywhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s, e := b.answered(t, "one")
		kept, other := b.answered(t, "two")
		want := store.Removed{Sessions: 1, Messages: 2, ToolCalls: 1, Deliveries: 1, Inbox: 1}
		var measured, removed store.Removed
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			if measured, err = tx.Care().MeasureSession(ctx, s.ID); err != nil {
				return err
			}
			if _, err := tx.Sessions().Session(ctx, s.ID); err != nil {
				t.Error("measuring removed it")
			}
			removed, err = tx.Care().RemoveSession(ctx, s.ID)
			return err
		})
		if diff := cmp.Diff([]store.Removed{want, want}, []store.Removed{measured, removed}); diff != "" {
			t.Errorf("counts (-want +measured, removed):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			entry, err := tx.Inbox().Entry(ctx, e.ID)
			if err != nil || entry.In.Text != "" || entry.In.Raw != nil || entry.State != sessions.EntryDone {
				t.Errorf("entry = %+v, %v; want it settled and empty", entry, err)
			}
			if seen, err := tx.Inbox().HasEntry(ctx, e.In); err != nil || !seen {
				t.Errorf("HasEntry = %v, %v: a redelivery has to stay a duplicate", seen, err)
			}
			if list, err := tx.Deliveries().EntryDeliveries(ctx, e.ID); err != nil || len(list) != 0 {
				t.Errorf("deliveries = %v, %v", list, err)
			}
			if _, err := tx.Sessions().Session(ctx, kept.ID); err != nil {
				t.Errorf("the other session: %v", err)
			}
			if list, err := tx.Deliveries().EntryDeliveries(ctx, other.ID); err != nil || len(list) != 1 {
				t.Errorf("the other deliveries = %v, %v", list, err)
			}
			return nil
		})
		for id, kind := range map[string]fault.Kind{s.ID: fault.NotFound, "nonsense": fault.Invalid} {
			wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Care().RemoveSession(ctx, id)
				return err
			}), kind)
		}
	})
}

func TestSessionsAtWorkAreNotRemoved(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(t *testing.T, b bundle, s sessions.Session, e sessions.Entry){
		"Message": func(t *testing.T, b bundle, _ sessions.Session, _ sessions.Entry) { b.accept(t, "one", "another") },
		"Answer": func(t *testing.T, b bundle, _ sessions.Session, e sessions.Entry) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Deliveries().AddDelivery(ctx, delivery(e, "on its way"))
			})
		},
		"Question": func(t *testing.T, b bundle, s sessions.Session, e sessions.Entry) {
			b.question(t, e, func(a *approval.Approval) { a.SessionID = s.ID })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				s, e := b.answered(t, "one")
				work(t, b, s, e)
				wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Care().RemoveSession(ctx, s.ID)
					return err
				}), fault.Conflict)
				wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Care().RemoveConversation(ctx, s.ConversationID)
					return err
				}), fault.Conflict)
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					old, err := tx.Care().OldSessions(ctx, time.Now().Add(time.Hour), "", 100)
					if len(old) != 0 {
						t.Errorf("old sessions: %v; want none", old)
					}
					return err
				})
				removed, err := b.SweepSessions(t.Context(), time.Now().Add(time.Hour), 100, "system")
				if err != nil || removed != (store.Removed{}) {
					t.Errorf("sweep = %+v, %v; want nothing", removed, err)
				}
			})
		})
	}
}

// A turn goes on in the session that it began in, although somebody has ended that with /new
// meanwhile: the session stays until the turn is over. What waits for the next session does
// not keep it.
func TestATurnKeepsTheSessionThatWasEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		work func(t *testing.T, b bundle, s sessions.Session, e sessions.Entry)
		left int // sessions that have to stay
	}{
		"Turn": {func(t *testing.T, b bundle, s sessions.Session, _ sessions.Entry) {
			turn := b.accept(t, "one", "another")
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Inbox().UpdateEntry(ctx, turn.ID, sessions.EntryUpdate{State: new(sessions.EntryRunning), SessionID: &s.ID})
			})
		}, 1},
		"Answer": {func(t *testing.T, b bundle, _ sessions.Session, e sessions.Entry) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Deliveries().AddDelivery(ctx, delivery(e, "on its way"))
			})
		}, 1},
		"Question": {func(t *testing.T, b bundle, s sessions.Session, e sessions.Entry) {
			b.question(t, e, func(a *approval.Approval) { a.SessionID = s.ID })
		}, 1},
		"Message": {func(t *testing.T, b bundle, _ sessions.Session, _ sessions.Entry) { b.accept(t, "one", "another") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				s, e := b.answered(t, "one")
				test.work(t, b, s, e)
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					return tx.Sessions().DeactivateSession(ctx, s.ID, "reset")
				})
				var old []string
				b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
					old, err = tx.Care().OldSessions(ctx, time.Now().Add(time.Hour), "", 100)
					return err
				})
				err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Care().RemoveSession(ctx, s.ID)
					return err
				})
				if refused := fault.Is(err, fault.Conflict); refused != (test.left == 1) || !refused && err != nil || len(old) != 1-test.left {
					t.Errorf("removed: %v, old sessions: %v", err, old)
				}
			})
		})
	}
}

// A plan that waits for somebody, or is being carried out, stays when the session that made
// it goes.
func TestOpenPlansOutliveTheirSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s, e := b.answered(t, "one")
		var p plan.Plan
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			p = plan.Plan{ConversationID: e.ConversationID, SessionID: s.ID, EntryID: e.ID, Text: "1. look"}
			return tx.Proposals().InsertPlan(ctx, &p)
		})
		var removed store.Removed
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			removed, err = tx.Care().RemoveSession(ctx, s.ID)
			return err
		})
		if removed.Plans != 0 || b.counted(t, "plans WHERE state = 'proposed'") != 1 {
			t.Errorf("removed = %+v, and the plan with it", removed)
		}
	})
}

func TestRetentionGoesByAge(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s, e := b.answered(t, "one")
		waiting := b.accept(t, "two", "waiting")
		for _, c := range []struct {
			before         time.Time
			raws, sessions int64
		}{{time.Now().Add(-time.Hour), 0, 0}, {time.Now().Add(time.Hour), 1, 1}, {time.Now().Add(time.Hour), 0, 0}} {
			counted, pruned := b.expire(t, store.ExpiringBodies, c.before)
			if counted != c.raws || pruned != c.raws {
				t.Errorf("counted %d and pruned %d bodies, want %d", counted, pruned, c.raws)
			}
			removed, err := b.SweepSessions(t.Context(), c.before, 10, "system")
			if err != nil || removed.Sessions != c.sessions {
				t.Errorf("removed = %+v, %v; want %d sessions", removed, err, c.sessions)
			}
			if n := b.counted(t, "audit_log WHERE action = 'session.remove' AND actor = 'system' AND target = '"+s.ID+"'"); c.sessions > 0 && n != 1 {
				t.Errorf("%d rows of the audit log say that the session was removed", n)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if left, err := tx.Inbox().Entry(ctx, waiting.ID); err != nil || left.In.Text == "" || left.In.Raw == nil {
				t.Errorf("a waiting message was emptied: %+v, %v", left, err)
			}
			if left, err := tx.Inbox().Entry(ctx, e.ID); err != nil || left.In.Text != "" {
				t.Errorf("an old message was kept: %+v, %v", left, err)
			}
			_, err := tx.Sessions().Session(ctx, s.ID)
			wantKind(t, err, fault.NotFound)
			return nil
		})
	})
}

func TestSettleRestoredEndsWhatWasOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		_, done := b.answered(t, "quiet")
		e := b.accept(t, "busy", "1")
		b.accept(t, "busy", "2")
		d := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Text: "old answer", Final: true}
		session := b.session(t, e.ConversationID)
		b.sayInChat(t, "c1", "m1", "said before the copy was made")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: session.ID, EntryID: e.ID})
			return err
		})
		var settled store.Settled
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
				return err
			}
			if err := tx.Inbox().SaveCursor(ctx, "github/x", "2026"); err != nil {
				return err
			}
			settled, err = tx.Care().SettleRestored(ctx, "notice")
			return err
		})
		if waits := b.untaken(t, "", "", 9); waits != "" {
			t.Errorf("%s would be answered again", waits)
		}
		if diff := cmp.Diff(store.Settled{Entries: 2, Deliveries: 1, Conversations: 1}, settled); diff != "" {
			t.Errorf("settled (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if n, err := tx.Inbox().CountWaiting(ctx, e.ConversationID); err != nil || n != 0 {
				t.Errorf("%d messages wait, %v", n, err)
			}
			if old, err := tx.Deliveries().Delivery(ctx, d.ID); err != nil || old.State != messages.DeliveryFailed {
				t.Errorf("old delivery = %+v, %v; want it failed", old, err)
			}
			if open, err := tx.Deliveries().OpenDeliveries(ctx, e.ConversationID, true); err != nil || len(open) != 1 || open[0].Text != "notice" {
				t.Errorf("notices = %+v, %v; want one", open, err)
			}
			if open, err := tx.Deliveries().OpenDeliveries(ctx, done.ConversationID, true); err != nil || len(open) != 0 {
				t.Errorf("notices in a quiet conversation: %+v, %v", open, err)
			}
			runs, err := tx.Sessions().Runs(ctx, session.ID, sessions.RunInterrupted, 0, 9)
			if err != nil || len(runs) != 1 || runs[0].Error != store.ErrRestored || runs[0].FinishedAt.IsZero() {
				t.Errorf("interrupted runs: %+v, %v", runs, err)
			}
			if s, err := tx.Sessions().Session(ctx, session.ID); err != nil || s.Status != sessions.Completed {
				t.Errorf("the session is %s, %v", s.Status, err)
			}
			if position, err := tx.Inbox().Cursor(ctx, "github/x"); err != nil || position != "" {
				t.Errorf("cursor = %q, %v: old events would be read again", position, err)
			}
			return nil
		})
	})
}

// Nothing of a copy opens, decides or teaches anything any more: it may have been used up,
// decided or taken back since.
func TestNothingOfARestoredCopyCanBeUsed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Now()
		s, e := b.answered(t, "one")
		c := b.conversation(t, "told")
		for _, state := range []plan.State{plan.Proposed, plan.Approved, plan.Executing, plan.Done} {
			if p := b.propose(t, b.conversation(t, string(state)).ID, 0, "1. look"); state != plan.Proposed {
				if err := b.settle(t, p, state); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.question(t, e)
		ann := signin.Account{Platform: "test", ID: "42"}
		link, _ := signin.NewLink(ann, at)
		browser, _ := signin.NewSession(ann, "Firefox", at, signin.SessionLife)
		key, _ := newKey(t, "ci", 0, at)
		var lease sessions.Lease
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			notice := messages.Delivery{ConversationID: c.ID, Text: "an answer to a command", Final: true, Control: true}
			err = errors.Join(
				tx.SignIn().SaveSignInLink(ctx, link, at), tx.SignIn().InsertWebSession(ctx, browser), tx.SignIn().InsertAPIKey(ctx, key),
				tx.People().SaveOwnerCode(ctx, "test", "hash", at.Add(time.Hour)),
				tx.Persons().SaveLinkCode(ctx, memory.LinkCode{Account: memory.Account{Name: "test/42"}, Hash: "h", Expires: at.Add(time.Hour)}),
				storetest.Apply(ctx, tx, e.ConversationID, commit.Changes{Lessons: []commit.Lesson{{Entry: e.ID, Account: "test/42", Due: at}}}),
				tx.Buttons().SaveButton(ctx, command.Button{ID: "b", ConversationID: c.ID, Decision: "approve", Number: 1}),
				storetest.Calls(ctx, tx, sessions.ToolCall{SessionID: s.ID, CallID: "2", Name: "shell", Request: "{}", Status: sessions.ToolExecuting}),
				tx.Deliveries().AddDelivery(ctx, &notice))
			if err != nil {
				return err
			}
			if _, err := tx.Leases().AcquireNamed(ctx, "poller", "dead", time.Hour); err != nil {
				return err
			}
			lease, _, _, err = tx.Leases().ClaimLease(ctx, c.ID, "dead", time.Hour)
			return err
		})
		var settled store.Settled
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			settled, err = tx.Care().SettleRestored(ctx, "notice")
			return err
		})
		// An answer to a command alone is worth no notice.
		if diff := cmp.Diff(store.Settled{Deliveries: 1, ToolCalls: 1, Plans: 3, Approvals: 1, Keys: 1}, settled); diff != "" {
			t.Errorf("settled (-want +got):\n%s", diff)
		}
		for _, rest := range []string{
			"sign_in_links", "owner_codes", "link_codes", "memory_lessons", "buttons", "named_leases",
			"web_sessions WHERE revoked_ms = 0", "api_keys WHERE revoked_ms = 0", "agent_tool_calls WHERE status = 'executing'",
			"plans WHERE state NOT IN ('done', 'expired')", "approvals WHERE state <> 'expired'",
			"remote_agent_conversations WHERE stop_seq <> inbox_seq OR lease_owner IS NOT NULL",
		} {
			if n := b.counted(t, rest); n != 0 {
				t.Errorf("%d are left: %s", n, rest)
			}
		}
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Leases().HoldLease(ctx, lease)
			return err
		}), fault.Conflict)
		b.do(t, func(ctx context.Context, tx *store.Tx) error { // nor does the next one have the number of the old one
			next, _, ok, err := tx.Leases().ClaimLease(ctx, c.ID, "dead", time.Hour)
			if !ok || next.Epoch <= lease.Epoch+1 {
				t.Errorf("the next lease: %v, epoch %d after %d", ok, next.Epoch, lease.Epoch)
			}
			return err
		})
	})
}

func TestSnapshotIsCompleteAndChecked(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.SQLite(t)(t)}
	s, _ := b.answered(t, "one")
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := b.Snapshot(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	version, err := store.CheckFile(t.Context(), to)
	if err != nil || version != store.LatestSchema() {
		t.Errorf("CheckFile = %d, %v; want %d", version, err, store.LatestSchema())
	}
	wantKind(t, b.Snapshot(t.Context(), to), fault.Conflict)
	again, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + to, Log: storetest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close() //nolint:errcheck // a copy
	copied := bundle{again}
	copied.do(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Sessions().Session(ctx, s.ID)
		return err
	})
	if found, _ := copied.search(t, store.SearchFilter{Words: "question"}); len(found) != 1 {
		t.Errorf("the copy finds %q", found)
	}
}

// However many sessions a conversation has, measuring one looks up its own events and
// deliveries only.
func TestMeasuringASessionLooksAtItsOwn(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.SQLite(t)(t)}
	for name, query := range store.MeasureQueries() {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			plan, err := store.Plan(ctx, tx, query, "0198c2d1-7a3b-7c4d-8e5f-0123456789ab")
			for line := range strings.Lines(plan) {
				for _, table := range []string{"inbound_events ", "deliveries ", "o "} {
					whole := strings.HasPrefix(line, "SCAN "+table) || table != "o " && strings.Contains(line, "(conversation_id=?")
					if whole && strings.Contains(line, " "+table) {
						t.Errorf("%s: %s", name, line)
					}
				}
			}
			return err
		})
	}
}
