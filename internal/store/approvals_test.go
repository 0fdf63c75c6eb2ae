//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

const noSuchID = "01900000-0000-7000-8000-000000000000"

// question stores what a turn asks a person.
func (b bundle) question(tb testing.TB, e sessions.Entry, change ...func(*approval.Approval)) approval.Approval {
	tb.Helper()
	a, err := b.tryQuestion(tb, e, change...)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func (b bundle) tryQuestion(tb testing.TB, e sessions.Entry, change ...func(*approval.Approval)) (a approval.Approval, err error) {
	tb.Helper()
	err = b.try(tb, func(ctx context.Context, tx *store.Tx) error {
		a = approval.Approval{
			ConversationID: e.ConversationID, EntryID: e.ID, CallID: "call_1", Tool: "bash", Arguments: `{"command":"go test"}`,
			Kind: assistant.KindExecute, Title: "go test", Requester: "test/42",
		}
		for _, f := range change {
			f(&a)
		}
		return tx.Questions().InsertApproval(ctx, &a)
	})
	return a, err
}

// decide settles an approval without asking who may.
func (b bundle) decide(tb testing.TB, a approval.Approval, state approval.State) error {
	tb.Helper()
	return b.try(tb, func(ctx context.Context, tx *store.Tx) error {
		a.State, a.DecidedBy, a.DecidedAt = state, "test/1", time.Now()
		return tx.Questions().SettleApproval(ctx, a)
	})
}

func (b bundle) approval(tb testing.TB, number int64) (a approval.Approval) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		a, err = tx.Questions().Approval(ctx, number)
		return err
	})
	return a
}

func TestApprovalRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s, code := b.session(t, e.ConversationID), b.codebase(t, "app", "")
		want := b.question(t, e, func(a *approval.Approval) {
			*a = approval.Approval{
				ConversationID: e.ConversationID, SessionID: s.ID, EntryID: e.ID, CodebaseID: code.ID, CallID: "call_1",
				Tool: "bash", Arguments: "{\"command\":\"echo é \x00 \xff\"}", Kind: assistant.KindExecute, Title: "echo é\x00",
				Detail: "```sh\necho \U0001f600\x00\xff\n```", Rule: "echo é", Requester: "test/42", DeliveryID: "d1",
				Number: 99, SHA256: "of something else", State: approval.Allowed, DecidedBy: "left over", DecidedAt: time.Now(), Note: "from a copy",
			}
		})
		if want.Rule != "echo é" || want.Title != "echo é\uFFFD" {
			t.Errorf("rule %q, title %q", want.Rule, want.Title)
		}
		if want.Number != 1 || want.State != approval.Waiting || want.DecidedBy != "" || !want.DecidedAt.IsZero() || want.Note != "" ||
			want.ExpiresAt.Sub(want.CreatedAt) != approval.TTL || time.Since(want.CreatedAt) > time.Minute {
			t.Errorf("assigned: %+v", want)
		}
		// What was asked, as it is stored, is what the sum is of: on both databases.
		if asked := `{"command":"echo é ` + "\uFFFD \uFFFD" + `"}`; want.Arguments != asked || want.SHA256 != approval.Sum("bash", asked) {
			t.Errorf("asked about %q with sum %s", want.Arguments, want.SHA256)
		}
		check := func(when string) {
			t.Helper()
			if diff := cmp.Diff(want, b.approval(t, want.Number)); diff != "" {
				t.Errorf("%s: approval (-want +got):\n%s", when, diff)
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, ok, err := tx.Questions().CallApproval(ctx, e.ID, "call_1")
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Errorf("%s: of the call %v (-want +got):\n%s", when, ok, diff)
				}
				return err
			})
		}
		check("stored")
		// Where it is shown is on record before and after the decision, and changes
		// nothing else.
		shown := want
		shown.DeliveryID, shown.DecidedBy, shown.Note, shown.Title = "d2", "test/666", "sneaked in", "other"
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Questions().SettleApproval(ctx, shown) })
		want.DeliveryID = "d2"
		check("shown")
		want.State, want.DecidedBy, want.DecidedAt, want.Note = approval.Allowed, "test/1", time.Now().Truncate(time.Millisecond).UTC(), "go on é"
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Questions().SettleApproval(ctx, want) })
		check("allowed")
		shown.DeliveryID, shown.State = "d3", approval.Waiting
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Questions().SettleApproval(ctx, shown) })
		want.DeliveryID = "d3"
		check("shown again")
		if err := b.InRead(t.Context(), func(tx *store.Tx) error { // nothing can be locked in it
			_, err := tx.Questions().Approval(t.Context(), want.Number)
			return err
		}); err != nil {
			t.Errorf("in a snapshot: %v", err)
		}
		endsOfTheirOwn(t, b)
	})
}

// endsOfTheirOwn are kept in milliseconds, as what is returned says.
func endsOfTheirOwn(t *testing.T, b bundle) {
	e := b.accept(t, "chat", "ends")
	end := time.Now().Add(time.Minute)
	a := b.question(t, e, func(a *approval.Approval) { a.ExpiresAt = end })
	if diff := cmp.Diff(a, b.approval(t, a.Number)); diff != "" {
		t.Errorf("what was returned is not what is stored (-returned +stored):\n%s", diff)
	}
	if d := a.ExpiresAt.Sub(end); d < -time.Millisecond || d > 0 {
		t.Errorf("expires %s after %s", d, end)
	}
}

func TestApprovalsThatCannotBe(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		for name, change := range map[string]func(*approval.Approval){
			"NoConversation": func(a *approval.Approval) { a.ConversationID = noSuchID },
			"NoEntry":        func(a *approval.Approval) { a.EntryID = noSuchID },
			"NoSession":      func(a *approval.Approval) { a.SessionID = noSuchID },
			"NoCodebase":     func(a *approval.Approval) { a.CodebaseID = noSuchID },
		} {
			if _, err := b.tryQuestion(t, e, change); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v, want fault.NotFound", name, err)
			}
		}
		if _, err := b.tryQuestion(t, e, func(a *approval.Approval) { a.Requester = strings.Repeat("x", 301) }); !fault.Is(err, fault.Invalid) {
			t.Errorf("a requester that is too long: %v", err)
		}
		a := b.question(t, e)
		wantKind(t, b.decide(t, a, "odd"), fault.Invalid)
		for _, number := range []int64{0, -1, 999} {
			wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Questions().Approval(ctx, number)
				return err
			}), fault.NotFound)
			wantKind(t, b.decide(t, approval.Approval{Number: number}, approval.Waiting), fault.NotFound)
			if err := b.decide(t, approval.Approval{Number: number}, approval.Allowed); err == nil {
				t.Errorf("a-%d, which is not there, was allowed", number)
			}
		}
		if got := b.approval(t, a.Number); got.State != approval.Waiting || got.DecidedBy != "" {
			t.Errorf("after what was refused: %+v", got)
		}
	})
}

func TestApprovalIsSettledOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		all := []approval.State{approval.Allowed, approval.Denied, approval.Expired, approval.Canceled}
		for _, first := range all {
			a := b.question(t, e)
			if err := b.decide(t, a, first); err != nil {
				t.Fatal(err)
			}
			before := b.approval(t, a.Number)
			for _, second := range all {
				err := b.decide(t, a, second)
				wantKind(t, err, fault.Conflict)
				if !strings.Contains(fault.Public(err), a.Name()) {
					t.Errorf("%q does not name it", fault.Public(err))
				}
			}
			if diff := cmp.Diff(before, b.approval(t, a.Number)); diff != "" {
				t.Errorf("%s, and then (-before +after):\n%s", first, diff)
			}
		}
	})
}

// TestOneOfManyApproves lets people press buttons at the same moment.
func TestOneOfManyApproves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		a := b.question(t, b.accept(t, "chat", "1"))
		var settled atomic.Int64
		var winner atomic.Value
		decisions := []approval.Decision{approval.Once, approval.Deny}
		errs := together(50, func(i int) error {
			who := fmt.Sprint("test/", i)
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				now, err := tx.Questions().Approval(ctx, a.Number)
				if err != nil {
					return err
				}
				now.State, err = approval.Decide(now, decisions[i%2], approval.Decider{Actor: who, Owner: true}, a.SHA256, time.Now())
				if err != nil {
					return err
				}
				now.DecidedBy, now.DecidedAt = who, time.Now()
				return tx.Questions().SettleApproval(ctx, now)
			})
			if err == nil {
				settled.Add(1)
				winner.Store(who)
			} else if fault.Is(err, fault.Conflict) {
				err = nil
			}
			return err
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		if got := b.approval(t, a.Number); settled.Load() != 1 || got.State == approval.Waiting || got.DecidedBy != winner.Load() {
			t.Errorf("%d callers settled it, the last one %v; it is %s by %s", settled.Load(), winner.Load(), got.State, got.DecidedBy)
		}
	})
}

// TestApprovalsAreReadUnderTheLockOfTheConversation is what makes a decision and
// the end of the turn that asked wait for each other.
func TestApprovalsAreReadUnderTheLockOfTheConversation(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	e := b.accept(t, "chat", "1")
	a, elsewhere := b.question(t, e), b.question(t, b.accept(t, "other", "2"))
	var lease sessions.Lease
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		lease, _, _, err = tx.Leases().ClaimLease(ctx, e.ConversationID, "me", time.Minute)
		return err
	})
	read := func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Questions().Approval(ctx, a.Number)
		return err
	}
	hold := func(ctx context.Context, tx *store.Tx) error { _, err := tx.Leases().HoldLease(ctx, lease); return err }
	impatient := func(fn func(ctx context.Context, tx *store.Tx) error) error {
		return b.try(t, func(ctx context.Context, tx *store.Tx) error {
			if err := store.Exec(ctx, tx, `SET LOCAL lock_timeout = '50ms'`); err != nil {
				return err
			}
			return fn(ctx, tx)
		})
	}
	for _, order := range [][2]func(ctx context.Context, tx *store.Tx) error{{read, hold}, {hold, read}, {read, read}} {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := order[0](ctx, tx); err != nil {
				return err
			}
			wantKind(t, impatient(order[1]), fault.Unavailable)
			if err := impatient(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Questions().Approval(ctx, elsewhere.Number)
				return err
			}); err != nil {
				t.Errorf("an approval of another conversation waited: %v", err)
			}
			return nil
		})
	}
}

func TestApprovalsNeverChange(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e, other := b.accept(t, "chat", "1"), b.conversation(t, "other")
		a := b.question(t, e)
		refused := func(says, set string) {
			t.Helper()
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `UPDATE approvals SET `+set+` WHERE number = $1`, a.Number)
			})
			wantKind(t, err, fault.Invalid)
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: the database said %v", set, err)
			}
		}
		for _, set := range []string{
			`request = '{}'`, `sha256 = '` + approval.Sum("bash", "{}") + `'`, `tool_name = 'fetch'`, `tool_call_id = 'call_2'`, `kind = 'read'`,
			`title = 'ls'`, `detail = 'harmless'`, `rule = 'rm -rf /'`, `requester = 'test/666'`, `conversation_id = '` + other.ID + `'`,
			`created_ms = 0`, `expires_ms = expires_ms + 1`, `state = 'allowed', request = request || ' '`,
		} {
			refused("does not change", set)
		}
		if err := b.decide(t, a, approval.Denied); err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{"allowed", "waiting", "expired", "canceled"} {
			refused("settled once", `state = '`+state+`'`)
		}
		if got := b.approval(t, a.Number); got.State != approval.Denied || got.Title != a.Title {
			t.Errorf("it became %+v", got)
		}
	})
}

func TestApprovalsOfATurn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		here, there := b.accept(t, "here", "1"), b.accept(t, "there", "2")
		named := func(call, tool, arguments string) func(*approval.Approval) {
			return func(a *approval.Approval) { a.CallID, a.Tool, a.Arguments = call, tool, arguments }
		}
		first := b.question(t, here, named("call_1", "bash", "1"))
		again := b.question(t, here, named("call_1", "bash", "2")) // the same call with other arguments
		limit := b.question(t, here, named("continue-1", approval.ToolContinue, "{}"))
		elsewhere := b.question(t, there, named("call_1", "bash", "1"))
		waiting := func(conversation string, limit int) (numbers []int64) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Questions().WaitingApprovals(ctx, conversation, limit)
				for _, a := range list {
					numbers = append(numbers, a.Number)
				}
				return err
			})
			return numbers
		}
		ofEntry := func(id string) (numbers []int64) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Questions().EntryApprovals(ctx, id)
				for _, a := range list {
					numbers = append(numbers, a.Number)
				}
				return err
			})
			return numbers
		}
		counted := func(tool string, state approval.State) (n int64) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				n, err = tx.Questions().CountApprovals(ctx, here.ID, tool, state)
				return err
			})
			return n
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			newest, ok, err := tx.Questions().CallApproval(ctx, here.ID, "call_1")
			if !ok || newest.Number != again.Number {
				t.Errorf("the newest of the call is %s, want %s", newest.Name(), again.Name())
			}
			if err != nil {
				return err
			}
			for _, id := range [][2]string{{here.ID, "call_2"}, {noSuchID, "call_1"}, {there.ID, "continue-1"}} {
				if _, ok, err := tx.Questions().CallApproval(ctx, id[0], id[1]); ok || err != nil {
					t.Errorf("call %v: there is one, %v", id, err)
				}
			}
			return nil
		})
		for what, got := range map[string][2][]int64{
			"here":            {waiting(here.ConversationID, 50), {first.Number, again.Number, limit.Number}},
			"the oldest here": {waiting(here.ConversationID, 2), {first.Number, again.Number}},
			"there":           {waiting(there.ConversationID, 50), {elsewhere.Number}},
			"everywhere":      {waiting("", 50), {first.Number, again.Number, limit.Number, elsewhere.Number}},
			"of the turn":     {ofEntry(here.ID), {first.Number, again.Number, limit.Number}},
			"of no turn":      {ofEntry(noSuchID), nil},
		} {
			if diff := cmp.Diff(got[1], got[0]); diff != "" {
				t.Errorf("what waits %s (-want +got):\n%s", what, diff)
			}
		}
		for a, state := range map[*approval.Approval]approval.State{&first: approval.Allowed, &limit: approval.Allowed, &elsewhere: approval.Allowed} {
			if err := b.decide(t, *a, state); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]int64{again.Number}, waiting("", 50)); diff != "" {
			t.Errorf("what still waits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{again.Number}, ofEntry(here.ID)); diff != "" {
			t.Errorf("what the turn still waits for (-want +got):\n%s", diff)
		}
		for state, want := range map[approval.State]int64{approval.Allowed: 1, approval.Waiting: 1, approval.Denied: 0} {
			if got := counted("bash", state); got != want {
				t.Errorf("%d of bash are %s, want %d", got, state, want)
			}
		}
		if got := counted(approval.ToolContinue, approval.Allowed); got != 1 {
			t.Errorf("the turn may go on %d times, want once", got)
		}
		buttonsOfApprovals(t, b)
	})
}

// buttonsOfApprovals are kept like those of plans.
func buttonsOfApprovals(t *testing.T, b bundle) {
	a := b.question(t, b.accept(t, "chat", "buttons"))
	for _, d := range []approval.Decision{approval.Once, approval.Always, approval.Deny} {
		want := command.Button{
			ID: "b-" + string(d), ConversationID: a.ConversationID, On: command.OnApproval, Decision: string(d), Number: a.Number, SHA256: a.SHA256,
			ExpiresAt: a.ExpiresAt,
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Buttons().SaveButton(ctx, want); err != nil {
				return err
			}
			got, err := tx.Buttons().Button(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", d, diff)
			}
			return err
		})
	}
}

func TestApprovalsWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s, code := b.session(t, e.ConversationID), b.codebase(t, "app", "")
		a := b.question(t, e, func(a *approval.Approval) { a.SessionID, a.CodebaseID = s.ID, code.ID })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, sql := range []string{
				`DELETE FROM remote_agent_sessions WHERE id = '` + s.ID + `'`,
				`DELETE FROM remote_agent_codebases WHERE id = '` + code.ID + `'`,
				`DELETE FROM inbound_events WHERE id = '` + e.ID + `'`,
			} {
				if err := store.Exec(ctx, tx, sql); err != nil {
					return fmt.Errorf("%s: %w", sql, err)
				}
			}
			return nil
		})
		want := a
		want.SessionID, want.CodebaseID, want.EntryID = "", "", ""
		if diff := cmp.Diff(want, b.approval(t, a.Number)); diff != "" {
			t.Errorf("without turn, session and codebase (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().DeleteConversation(ctx, e.ConversationID)
		})
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Questions().Approval(ctx, a.Number)
			return err
		}), fault.NotFound)
		// No button and no "/approve a-1" can mean another question later.
		if next := b.question(t, b.accept(t, "chat", "2")); next.Number <= a.Number {
			t.Errorf("number %d after %d was deleted", next.Number, a.Number)
		}
	})
}

func TestAllowRules(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		app, other := b.codebase(t, "app", ""), b.codebase(t, "other", "")
		save := func(codebase, tool, rule, by string) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Questions().SaveRule(ctx, approval.Rule{CodebaseID: codebase, Tool: tool, Rule: rule, CreatedBy: by})
			})
		}
		for _, r := range [][3]string{
			{app.ID, "bash", "go test ./..."},
			{app.ID, "bash", "go test ./..."}, // once more, by somebody else
			{app.ID, "bash", "go test ./... "},
			{app.ID, "fetch_url", "go test ./..."},
			{other.ID, "bash", "go vet"},
		} {
			if err := save(r[0], r[1], r[2], "test/42"); err != nil {
				t.Fatal(err)
			}
		}
		if err := save(app.ID, "bash", "go test ./...", "test/77"); err != nil {
			t.Fatal(err)
		}
		wantKind(t, save(noSuchID, "bash", "x", "test/42"), fault.NotFound)
		list := func(codebase string) (rules []approval.Rule) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				rules, err = tx.Questions().Rules(ctx, codebase)
				return err
			})
			return rules
		}
		rules := list(app.ID)
		var texts []string
		for i, r := range rules {
			texts = append(texts, r.Tool+": "+r.Rule)
			if r.CodebaseID != app.ID || r.CreatedBy != "test/42" || time.Since(r.CreatedAt) > time.Minute || i > 0 && r.ID <= rules[i-1].ID {
				t.Errorf("rule %+v", r)
			}
		}
		if diff := cmp.Diff([]string{"bash: go test ./...", "bash: go test ./... ", "fetch_url: go test ./..."}, texts); diff != "" {
			t.Fatalf("rules (-want +got):\n%s", diff)
		}
		has := func(codebase, tool, rule string) (ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				ok, err = tx.Questions().HasRule(ctx, codebase, tool, rule)
				return err
			})
			return ok
		}
		// Byte by byte: nothing that only looks the same is allowed.
		for _, r := range []struct {
			codebase, tool, rule string
			want                 bool
		}{
			{app.ID, "bash", "go test ./...", true},
			{app.ID, "bash", "go test ./... ", true},
			{app.ID, "bash", "GO TEST ./...", false},
			{app.ID, "bash", " go test ./...", false},
			{app.ID, "bash", "go test ./...; rm -rf /", false},
			{app.ID, "bash", "go test %", false},
			{app.ID, "bash", "", false},
			{app.ID, "Bash", "go test ./...", false},
			{app.ID, "bash", "go vet", false},
			{other.ID, "bash", "go vet", true},
			{other.ID, "bash", "go test ./...", false},
			{noSuchID, "bash", "go test ./...", false},
		} {
			if got := has(r.codebase, r.tool, r.rule); got != r.want {
				t.Errorf("rule %q of %s: %v, want %v", r.rule, r.tool, got, r.want)
			}
		}
		revoke := func(codebase string, id int64) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Questions().DeleteRule(ctx, codebase, id) })
		}
		wantKind(t, revoke(other.ID, rules[0].ID), fault.NotFound) // of another codebase
		wantKind(t, revoke(app.ID, 999), fault.NotFound)
		if err := revoke(app.ID, rules[0].ID); err != nil {
			t.Fatal(err)
		}
		wantKind(t, revoke(app.ID, rules[0].ID), fault.NotFound)
		if has(app.ID, "bash", "go test ./...") || !has(app.ID, "fetch_url", "go test ./...") || len(list(app.ID)) != 2 {
			t.Errorf("after one was revoked: %+v", list(app.ID))
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Registry().Delete(ctx, app.ID) })
		if left := list(app.ID); len(left) != 0 || len(list(other.ID)) != 1 {
			t.Errorf("rules of a deleted codebase: %+v", left)
		}
		rulesThatWouldNotBeKept(t, b)
	})
}

// rulesThatWouldNotBeKept are not offered, and nothing is allowed by what is left of them.
func rulesThatWouldNotBeKept(t *testing.T, b bundle) {
	e, code := b.accept(t, "chat", "1"), b.codebase(t, "strange", "")
	for _, rule := range []string{"rm \xff", "rm \x00"} {
		a := b.question(t, e, func(a *approval.Approval) { a.CodebaseID, a.Rule = code.ID, rule })
		if a.Rule != "" || b.approval(t, a.Number).Rule != "" {
			t.Errorf("offers always for %q as %q", rule, a.Rule)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Questions().SaveRule(ctx, approval.Rule{CodebaseID: code.ID, Tool: "bash", Rule: "rm \uFFFD", CreatedBy: "test/42"}); err != nil {
				return err
			}
			ok, err := tx.Questions().HasRule(ctx, code.ID, "bash", rule)
			if ok {
				t.Errorf("%q is allowed by a rule for something else", rule)
			}
			return err
		})
	}
}

// TestAYesThatWasNotHeard is known by how its call ended, and only the newest of a turn counts.
func TestAYesThatWasNotHeard(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const unheard = "not run: nobody heard"
		a := b.admit(t, "1", "a")
		if err := b.adds(t, a, false, messages.NewText(messages.RoleUser, "question"), asks("lost", "begun", "other", "no", "open")); err != nil {
			t.Fatal(err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.Calls().BeginToolCall(ctx, a.session.ID, "begun")
			return err
		})
		for call, why := range map[string]string{"lost": unheard, "begun": unheard, "other": "exit 1", "no": unheard} {
			if err := b.adds(t, a, false, messages.NewToolResult(call, why, true)); err != nil {
				t.Fatal(err)
			}
		}
		asked := func(call string, state approval.State) approval.Approval {
			q := b.question(t, a.entry, func(q *approval.Approval) { q.CallID, q.SessionID = call, a.session.ID })
			if err := b.decide(t, q, state); err != nil {
				t.Fatal(err)
			}
			return q
		}
		var q approval.Approval
		for call, want := range map[string]bool{"lost": true, "begun": false, "other": false, "open": false, "nobody's": false} {
			q = asked(call, approval.Allowed)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, ok, err := tx.Questions().UnheardApproval(ctx, a.entry.ID, q.SHA256, unheard)
				if ok != want || ok && got.Number != q.Number {
					t.Errorf("of %s: %s, %v", call, got.Name(), ok)
				}
				return err
			})
		}
		asked("lost", approval.Allowed)
		asked("no", approval.Denied)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, other := range [][2]string{{a.entry.ID, q.SHA256}, {a.entry.ID, approval.Sum("bash", "")}, {noSuchID, q.SHA256}} {
				if got, ok, err := tx.Questions().UnheardApproval(ctx, other[0], other[1], unheard); ok || err != nil {
					t.Errorf("%v: %s, %v", other, got.Name(), err)
				}
			}
			return nil
		})
	})
}
