//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/assistant"
	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// begin begins a run of the turn that a has begun.
func (b bundle) begin(tb testing.TB, a admitted, again bool) (run sessions.BegunRun) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		var msgs []messages.Message
		if !again {
			msgs = append(msgs, messages.NewText(messages.RoleUser, "question"))
		}
		run, err = tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: a.session.ID, EntryID: a.entry.ID, Model: "m", Again: again}, msgs...)
		return err
	})
	return run
}

// ends commits the end of a run, and what was used since it began.
func (b bundle) ends(tb testing.TB, a admitted, number int64, end sessions.RunEnd, tokens int64) {
	tb.Helper()
	c := commit.Changes{Run: &commit.Run{SessionID: a.session.ID, Number: number, RunEnd: end}}
	if tokens > 0 {
		c.Usage = &spend.Record{
			EntryID: a.entry.ID, ConversationID: a.entry.ConversationID, Actor: "test/1", Assistant: "demo", Model: "m",
			Usage: assistant.Usage{InputTokens: tokens, OutputTokens: 1}, Micros: 10 * tokens, Known: true,
		}
	}
	if _, err := b.Commit(tb.Context(), a.lease, c); err != nil {
		tb.Fatal(err)
	}
}

// stands returns how a session and its runs stand.
func (b bundle) stands(tb testing.TB, id string) (status sessions.Status, runs []sessions.Run) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		s, err := tx.Sessions().Session(ctx, id)
		if err != nil {
			return err
		}
		status = s.Status
		runs, err = tx.Sessions().Runs(ctx, id, "", 0, 10)
		return err
	})
	return status, runs
}

func TestASessionStandsAsItsLastRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		for i, tt := range []struct {
			end  sessions.RunEnd
			want sessions.Status
		}{
			{sessions.RunEnd{Status: sessions.RunCompleted, Model: "m2", Took: 1500 * time.Millisecond}, sessions.Completed},
			{sessions.RunEnd{Status: sessions.RunFailed, Error: "no key", Took: time.Second}, sessions.Failed},
			{sessions.RunEnd{Status: sessions.RunStopped, Error: "stopped"}, sessions.Completed},
			{sessions.RunEnd{Status: sessions.RunFailed, Error: "no key"}, sessions.Failed},
			{sessions.RunEnd{Status: sessions.RunInterrupted}, sessions.Completed},
		} {
			run := b.begin(t, a, false)
			if status, _ := b.stands(t, a.session.ID); status != sessions.Running || run.Number != int64(i+1) {
				t.Errorf("run %d has number %d, and the session is %s", i+1, run.Number, status)
			}
			b.ends(t, a, run.Number, tt.end, 0)
			status, runs := b.stands(t, a.session.ID)
			if r := runs[i]; status != tt.want || r.Status != tt.end.Status || r.Error != tt.end.Error || r.FinishedAt.Before(r.StartedAt) {
				t.Errorf("after a run that %s the session is %s: %+v", tt.end.Status, status, r)
			}
		}
		_, runs := b.stands(t, a.session.ID)
		if r := runs[0]; r.Model != "m2" || r.Duration == nil || *r.Duration != 1500*time.Millisecond || r.EntryID != a.entry.ID || r.CostMicros != nil {
			t.Errorf("the first run: %+v", r)
		}
		if r := runs[2]; r.Model != "m" || r.Duration != nil {
			t.Errorf("a run of which less is known: %+v", r)
		}
	})
}

func TestARunThatWasPutAsideGoesOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		run := b.begin(t, a, false)
		b.ends(t, a, run.Number, sessions.RunEnd{Status: sessions.RunRunning, Took: time.Second}, 5)
		status, runs := b.stands(t, a.session.ID)
		if r := runs[0]; status != sessions.Running || !r.Waiting || !r.FinishedAt.IsZero() || r.InputTokens != 5 {
			t.Errorf("put aside, the session is %s: %+v", status, r)
		}
		if again := b.begin(t, a, true); again.Number != run.Number {
			t.Errorf("it goes on as run %d", again.Number)
		}
		if _, runs := b.stands(t, a.session.ID); runs[0].Waiting {
			t.Errorf("it goes on and waits: %+v", runs[0])
		}
		b.ends(t, a, run.Number, sessions.RunEnd{Status: sessions.RunCompleted, Took: 2 * time.Second}, 7)
		cost := int64(120)
		took := 3 * time.Second
		want := []sessions.Run{{
			SessionID: a.session.ID, Number: 1, EntryID: a.entry.ID, Status: sessions.RunCompleted, Duration: &took,
			Model: "m", InputTokens: 12, OutputTokens: 2, CostMicros: &cost,
		}}
		status, runs = b.stands(t, a.session.ID)
		if diff := cmp.Diff(want, runs, cmpopts.IgnoreFields(sessions.Run{}, "StartedAt", "FinishedAt")); diff != "" || status != sessions.Completed {
			t.Errorf("the session is %s (-want +got):\n%s", status, diff)
		}
	})
}

func TestARunWhoseProcessDiedIsInterrupted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		b.begin(t, a, false)
		b.do(t, func(ctx context.Context, tx *store.Tx) error { // it was at work for a while, and used something
			if err := tx.Spending().AddUsage(ctx, spend.Record{EntryID: a.entry.ID, ConversationID: a.entry.ConversationID, Actor: "test/1", Assistant: "demo", Usage: assistant.Usage{InputTokens: 3}}); err != nil {
				return err
			}
			if err := store.Exec(ctx, tx, `UPDATE agent_runs SET started_ms = started_ms - 60000`); err != nil {
				return err
			}
			return store.Exec(ctx, tx, `UPDATE usage_records SET at_ms = at_ms - 30000`)
		})
		run := b.begin(t, a, true)
		b.ends(t, a, run.Number, sessions.RunEnd{Status: sessions.RunCompleted}, 9)
		status, runs := b.stands(t, a.session.ID)
		if len(runs) != 2 || status != sessions.Completed {
			t.Fatalf("the session is %s: %+v", status, runs)
		}
		if r := runs[0]; r.Status != sessions.RunInterrupted || r.InputTokens != 3 || r.FinishedAt.IsZero() || r.Duration != nil {
			t.Errorf("the first run: %+v", r)
		}
		if r := runs[1]; r.Status != sessions.RunCompleted || r.InputTokens != 9 || r.EntryID != a.entry.ID {
			t.Errorf("the second run: %+v", r)
		}
	})
}

func TestAnOpenRunEndsWithItsEntry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		end := func(entry string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Sessions().EndOpenRun(ctx, a.session.ID, entry, sessions.RunEnd{Status: sessions.RunFailed, Error: "too many attempts"})
			})
		}
		run := b.begin(t, a, false)
		end(a.session.ID) // no entry of a run
		if status, _ := b.stands(t, a.session.ID); status != sessions.Running {
			t.Errorf("the session is %s", status)
		}
		end(a.entry.ID)
		status, runs := b.stands(t, a.session.ID)
		if status != sessions.Failed || runs[0].Status != sessions.RunFailed || runs[0].Error != "too many attempts" {
			t.Errorf("the session is %s: %+v", status, runs)
		}
		b.ends(t, a, run.Number, sessions.RunEnd{Status: sessions.RunCompleted}, 0) // ended runs stay as they are
		if _, runs := b.stands(t, a.session.ID); runs[0].Status != sessions.RunFailed {
			t.Errorf("it ended twice: %+v", runs[0])
		}
	})
}

func TestRunsAreListedByStatusAndGoWithTheirSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		for _, status := range []sessions.RunStatus{sessions.RunFailed, sessions.RunCompleted, sessions.RunFailed} {
			b.ends(t, a, b.begin(t, a, false).Number, sessions.RunEnd{Status: status, Error: "what somebody said"}, 0)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, tt := range []struct {
				status sessions.RunStatus
				after  int64
				limit  int
				want   []int64
			}{{"", 0, 2, []int64{1, 2}}, {"", 2, 2, []int64{3}}, {sessions.RunFailed, 0, 9, []int64{1, 3}}, {sessions.RunStopped, 0, 9, nil}} {
				list, err := tx.Sessions().Runs(ctx, a.session.ID, tt.status, tt.after, tt.limit)
				var got []int64
				for _, r := range list {
					got = append(got, r.Number)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
					t.Errorf("%+v: %v (-want +got):\n%s", tt, err, diff)
				}
			}
			_, err := tx.Sessions().Runs(ctx, "7", "", 0, 9)
			wantKind(t, err, fault.Invalid)
			if err := tx.Sessions().DeleteSession(ctx, a.session.ID); err != nil {
				return err
			}
			if n, err := store.Count(ctx, tx, `SELECT count(*) FROM agent_runs`); n != 0 {
				t.Errorf("%d runs are left, %v", n, err)
			}
			return nil
		})
	})
}

func TestSessionsAreFoundByWhatRunsAndWhatFailed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		ids := make(map[sessions.Status]string)
		for chat, status := range map[string]sessions.RunStatus{"1": "", "2": sessions.RunFailed, "3": sessions.RunCompleted} {
			a := b.admit(t, chat, chat)
			run := b.begin(t, a, false)
			running := sessions.EntryRunning
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Inbox().UpdateEntry(ctx, a.entry.ID, sessions.EntryUpdate{State: &running, SessionID: &a.session.ID})
			})
			if status != "" {
				b.ends(t, a, run.Number, sessions.RunEnd{Status: status}, 0)
			}
			s, _ := b.stands(t, a.session.ID)
			ids[s] = a.session.ID
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for status, id := range ids {
				browsed, err := tx.Pages().BrowseSessions(ctx, store.BrowseSessionsQuery{Status: status, Limit: 9})
				if err != nil || len(browsed) != 1 || browsed[0].ID != id {
					t.Errorf("browsed by %s: %+v, %v", status, browsed, err)
				}
				listed, err := tx.Lists().Sessions(ctx, store.SessionFilter{Status: status})
				if err != nil || len(listed) != 1 || listed[0].ID != id {
					t.Errorf("listed by %s: %+v, %v", status, listed, err)
				}
				n, err := store.Count(ctx, tx, `SELECT count(*) FROM agent_sessions WHERE status = $1`, string(status))
				if n != 1 || err != nil {
					t.Errorf("%d rows of the view are %s, %v", n, status, err)
				}
			}
			return nil
		})
	})
}

func TestAnImportedRunDoesNotRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "1").ID)
		row := map[string]json.RawMessage{"session_id": json.RawMessage(`"` + s.ID + `"`), "entry_id": json.RawMessage(`"` + s.ID + `"`)}
		for column, value := range map[string]string{
			"number": "1", "status": `"running"`, "started_ms": "5", "finished_ms": "null", "duration_ms": "null", "model": `"m"`,
			"input_tokens": "1", "output_tokens": "2", "cost_micros": "null", "error": "null",
		} {
			row[column] = json.RawMessage(value)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Portable().ImportRow(ctx, "run", row) })
		if _, runs := b.stands(t, s.ID); len(runs) != 1 || runs[0].Status != sessions.RunInterrupted || runs[0].FinishedAt.IsZero() || runs[0].Error != store.ErrRestored {
			t.Errorf("the run: %+v", runs)
		}
	})
}
