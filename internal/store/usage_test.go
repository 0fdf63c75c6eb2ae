//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// use records what a turn used.
func (b bundle) use(tb testing.TB, records ...spend.Record) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		for _, r := range records {
			if err := tx.Spending().AddUsage(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b bundle) sum(tb testing.TB, f store.UsageFilter) (s spend.Sum) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		s, err = tx.Spending().SumUsage(ctx, f)
		return err
	})
	return s
}

func TestUsageIsSummedByFilter(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		here, there := b.accept(t, "here", "1"), b.accept(t, "there", "2")
		second := b.accept(t, "here", "3")
		s, app := b.session(t, here.ConversationID), b.codebase(t, "app", "")
		today := time.Now().UTC().Truncate(time.Hour) // nothing is used long before its message is accepted
		record := func(e sessions.Entry, actor string, at time.Time, in, out int64, micros int64, change ...func(*spend.Record)) spend.Record {
			r := spend.Record{
				EntryID: e.ID, ConversationID: e.ConversationID, Actor: actor, Assistant: "openai", Model: "m", At: at,
				Usage: assistant.Usage{InputTokens: in, OutputTokens: out}, Micros: micros, Known: micros >= 0,
			}
			for _, f := range change {
				f(&r)
			}
			return r
		}
		b.use(t,
			record(here, "test/42", today.Add(-time.Millisecond), 1, 2, 1000, func(r *spend.Record) { r.SessionID, r.CodebaseID = s.ID, app.ID }),
			record(here, "test/42", today, 10, 20, 2000, func(r *spend.Record) { r.CodebaseID = app.ID }), // the same turn goes on
			record(second, "test/77", today.Add(time.Hour), 100, 200, -1),                                 // no price is known
			record(there, "test/42", today.Add(time.Hour), 1000, 2000, 0),                                 // it cost nothing
			spend.Record{Actor: "test/42", Assistant: "claude", At: today.Add(2 * time.Hour), Micros: 5, Known: true,
				Usage: assistant.Usage{InputTokens: 10000, CachedTokens: 9000, WrittenTokens: 500}},
		)
		for name, tt := range map[string]struct {
			filter store.UsageFilter
			want   spend.Sum
		}{
			"All":                 {store.UsageFilter{}, spend.Sum{Turns: 3, InputTokens: 11111, OutputTokens: 2222, Micros: 3005, UnpricedToken: 300}},
			"Turn":                {store.UsageFilter{EntryID: here.ID}, spend.Sum{Turns: 1, InputTokens: 11, OutputTokens: 22, Micros: 3000}},
			"TurnWithoutPrice":    {store.UsageFilter{EntryID: second.ID}, spend.Sum{Turns: 1, InputTokens: 100, OutputTokens: 200, UnpricedToken: 300}},
			"NoSuchTurn":          {store.UsageFilter{EntryID: noSuchID}, spend.Sum{}},
			"Conversation":        {store.UsageFilter{ConversationID: here.ConversationID}, spend.Sum{Turns: 2, InputTokens: 111, OutputTokens: 222, Micros: 3000, UnpricedToken: 300}},
			"Codebase":            {store.UsageFilter{CodebaseID: app.ID}, spend.Sum{Turns: 1, InputTokens: 11, OutputTokens: 22, Micros: 3000}},
			"Person":              {store.UsageFilter{Actor: "test/42"}, spend.Sum{Turns: 2, InputTokens: 11011, OutputTokens: 2022, Micros: 3005}},
			"NobodyLikeThat":      {store.UsageFilter{Actor: "test/4"}, spend.Sum{}},
			"Today":               {store.UsageFilter{Since: today}, spend.Sum{Turns: 3, InputTokens: 11110, OutputTokens: 2220, Micros: 2005, UnpricedToken: 300}},
			"PersonToday":         {store.UsageFilter{Actor: "test/42", Since: today}, spend.Sum{Turns: 2, InputTokens: 11010, OutputTokens: 2020, Micros: 2005}},
			"Tomorrow":            {store.UsageFilter{Since: today.AddDate(0, 0, 1)}, spend.Sum{}},
			"HereToday":           {store.UsageFilter{ConversationID: here.ConversationID, Since: today}, spend.Sum{Turns: 2, InputTokens: 110, OutputTokens: 220, Micros: 2000, UnpricedToken: 300}},
			"AllOfThemTogether":   {store.UsageFilter{EntryID: here.ID, ConversationID: here.ConversationID, CodebaseID: app.ID, Actor: "test/42", Since: today}, spend.Sum{Turns: 1, InputTokens: 10, OutputTokens: 20, Micros: 2000}},
			"TurnOfAnotherPerson": {store.UsageFilter{EntryID: here.ID, Actor: "test/77"}, spend.Sum{}},
			"TurnElsewhere":       {store.UsageFilter{EntryID: here.ID, ConversationID: there.ConversationID}, spend.Sum{}},
		} {
			if diff := cmp.Diff(tt.want, b.sum(t, tt.filter)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if err := b.InRead(t.Context(), func(tx *store.Tx) error {
			s, err := tx.Spending().SumUsage(t.Context(), store.UsageFilter{Actor: "test/77"})
			if s.Turns != 1 {
				t.Errorf("in a snapshot: %+v", s)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		largeSums(t, b)
	})
}

func TestUsageIsSummedByKind(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		here, there := b.accept(t, "here", "1"), b.accept(t, "there", "2")
		app := b.codebase(t, "app", "")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SaveIdentity(ctx, sessions.Identity{Platform: "test", UserID: "42", Name: "Ann", Role: sessions.User})
		})
		today := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		record := func(e sessions.Entry, actor, codebase, model string, at time.Time, micros int64) spend.Record {
			return spend.Record{EntryID: e.ID, ConversationID: e.ConversationID, CodebaseID: codebase, Actor: actor, Assistant: "claude", Model: model,
				At: at, Usage: assistant.Usage{InputTokens: 10, OutputTokens: 1}, Micros: micros, Known: micros >= 0}
		}
		const odd = 9_007_199_254_740_993 // no float has it
		b.use(t,
			record(here, "test/42", app.ID, "big", today.Add(-time.Millisecond), 7),
			record(here, "test/42", app.ID, "small", today, 1),
			record(there, "test/77", "", "", today.Add(24*time.Hour-time.Millisecond), -1),
			record(there, "test/77", "", "big", today.Add(24*time.Hour), odd-7),
		)
		groups := func(by spend.By, f store.UsageFilter, limit int) (got []spend.Group) {
			if err := b.InRead(t.Context(), func(tx *store.Tx) (err error) {
				got, _, err = tx.Spending().UsageBy(t.Context(), by, f, limit)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return got
		}
		sum := func(turns int, records, micros, unpriced int64) spend.Sum {
			return spend.Sum{Turns: turns, InputTokens: 10 * records, OutputTokens: records, Micros: micros, UnpricedToken: unpriced}
		}
		group := func(key, name string, s spend.Sum) spend.Group { return spend.Group{Key: key, Name: name, Sum: s} }
		for name, tt := range map[string]struct {
			by     spend.By
			filter store.UsageFilter
			limit  int
			want   []spend.Group
		}{
			"Person":       {spend.ByPerson, store.UsageFilter{}, 0, []spend.Group{group("test/77", "", sum(1, 2, odd-7, 11)), group("test/42", "Ann", sum(1, 2, 8, 0))}},
			"Codebase":     {spend.ByCodebase, store.UsageFilter{}, 0, []spend.Group{group("", "", sum(1, 2, odd-7, 11)), group(app.ID, "app", sum(1, 2, 8, 0))}},
			"Model":        {spend.ByModel, store.UsageFilter{}, 0, []spend.Group{group("big", "", sum(2, 2, odd, 0)), group("small", "", sum(1, 1, 1, 0)), group("(claude)", "", sum(1, 1, 0, 11))}},
			"Day":          {spend.ByDay, store.UsageFilter{}, 0, []spend.Group{group("2026-11-22", "", sum(1, 1, odd-7, 0)), group("2026-11-21", "", sum(2, 2, 1, 11)), group("2026-11-20", "", sum(1, 1, 7, 0))}},
			"Conversation": {spend.ByConversation, store.UsageFilter{}, 1, []spend.Group{group(there.ConversationID, "test/there", sum(1, 2, odd-7, 11))}},
			"OneDay":       {spend.ByModel, store.UsageFilter{Since: today, Until: today.Add(24 * time.Hour)}, 0, []spend.Group{group("small", "", sum(1, 1, 1, 0)), group("(claude)", "", sum(1, 1, 0, 11))}},
			"OnePerson":    {spend.ByDay, store.UsageFilter{Actor: "test/42"}, 0, []spend.Group{group("2026-11-21", "", sum(1, 1, 1, 0)), group("2026-11-20", "", sum(1, 1, 7, 0))}},
			"Nobody":       {spend.ByPerson, store.UsageFilter{Actor: "test/4"}, 0, nil},
		} {
			if diff := cmp.Diff(tt.want, groups(tt.by, tt.filter, tt.limit)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		err := b.InRead(t.Context(), func(tx *store.Tx) error {
			_, _, err := tx.Spending().UsageBy(t.Context(), "actor", store.UsageFilter{}, 0)
			return err
		})
		wantKind(t, err, fault.Invalid)
	})
}

// largeSums do not overflow.
func largeSums(t *testing.T, b bundle) {
	most := spend.Priced(spend.Record{Actor: "test/99", Assistant: "openai", Usage: assistant.Usage{CostUSD: 1e300, InputTokens: 1 << 50}})
	for range 100 {
		b.use(t, most)
	}
	got := b.sum(t, store.UsageFilter{Actor: "test/99"})
	if got.Micros != 100*most.Micros || got.InputTokens != 100<<50 {
		t.Errorf("100 of the largest are %+v", got)
	}
}

// TestUsageOutlivesWhatItWasFor keeps the sums of a person and a day when a
// conversation is deleted: deleting lifts no budget.
func TestUsageOutlivesWhatItWasFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s, app := b.session(t, e.ConversationID), b.codebase(t, "app", "")
		begin := time.Now().Add(-time.Second)
		b.use(t, spend.Record{
			EntryID: e.ID, ConversationID: e.ConversationID, SessionID: s.ID, CodebaseID: app.ID, Actor: "test/42", Assistant: "openai",
			Usage: assistant.Usage{InputTokens: 7}, Micros: 9, Known: true,
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Conversations().DeleteConversation(ctx, e.ConversationID); err != nil {
				return err
			}
			return tx.Registry().Delete(ctx, app.ID)
		})
		want := spend.Sum{Turns: 1, InputTokens: 7, Micros: 9}
		if diff := cmp.Diff(want, b.sum(t, store.UsageFilter{Actor: "test/42", Since: begin})); diff != "" {
			t.Errorf("of the person (-want +got):\n%s", diff)
		}
		if got := b.sum(t, store.UsageFilter{ConversationID: e.ConversationID}); got != (spend.Sum{}) {
			t.Errorf("of a conversation that is gone: %+v", got)
		}
		for name, r := range map[string]spend.Record{
			"conversation": {ConversationID: noSuchID}, "codebase": {CodebaseID: noSuchID},
		} {
			r.Actor, r.Assistant = "test/42", "openai"
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Spending().AddUsage(ctx, r) })
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("of no %s: %v, want fault.NotFound", name, err)
			}
		}
	})
}

// TestUsageForgetsWhatIsDeleted lets no record refer to what is gone.
func TestUsageForgetsWhatIsDeleted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for i, deletion := range []struct{ query, left string }{
			{`DELETE FROM inbound_events`, "conversation session"},
			{`DELETE FROM remote_agent_sessions`, "event conversation"},
			{`DELETE FROM remote_agent_conversations`, "event"},
		} {
			e := b.accept(t, fmt.Sprint("chat ", i), fmt.Sprint(i))
			s := b.session(t, e.ConversationID)
			b.use(t, spend.Record{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: s.ID, Actor: fmt.Sprint("test/", i), Assistant: "openai"})
			var left string
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := store.Exec(ctx, tx, deletion.query); err != nil {
					return err
				}
				var err error
				left, err = store.String(ctx, tx, `SELECT
					CASE WHEN event_id IS NULL THEN '' ELSE 'event ' END || CASE WHEN conversation_id IS NULL THEN '' ELSE 'conversation ' END ||
					CASE WHEN session_id IS NULL THEN '' ELSE 'session' END FROM usage_records WHERE actor = $1`, fmt.Sprint("test/", i))
				return err
			})
			if strings.TrimSpace(left) != deletion.left {
				t.Errorf("after %s the record refers to %q, want %q", deletion.query, left, deletion.left)
			}
		}
	})
}

func TestModelTiers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		read := func() (tiers map[string]spend.Tier) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				tiers, err = tx.Spending().Tiers(ctx)
				return err
			})
			return tiers
		}
		if got := read(); len(got) != 0 {
			t.Errorf("before any was set: %v", got)
		}
		for _, want := range []map[string]spend.Tier{
			{"fast": {Provider: "openai", Model: "gpt-5-mini", Description: "quick é \"quoted\""}, "smart": {Provider: "anthropic", Model: "claude-opus-4-6"}},
			{"cheap": {Model: "gpt-5-nano"}},
			{},
			{"fast": {Model: "a"}, "smart": {Model: "b"}, "cheap": {Model: "c"}},
		} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Spending().SaveTiers(ctx, want) })
			if diff := cmp.Diff(want, read()); diff != "" {
				t.Errorf("tiers (-want +got):\n%s", diff)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := store.Count(ctx, tx, `SELECT count(*) FROM models_config`)
			if n != 1 {
				t.Errorf("%d rows of tiers, want 1", n)
			}
			return err
		})
		// A row in the terms of seed 004, as a person would write it.
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `INSERT INTO models_config (smart) VALUES ('{"provider": "openai", "model_name": "gpt-5", "temperature": 1}')`)
		})
		if diff := cmp.Diff(map[string]spend.Tier{"smart": {Provider: "openai", Model: "gpt-5"}}, read()); diff != "" {
			t.Errorf("a row by hand (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE models_config SET fast = '[1]'`)
		})
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error { _, err := tx.Spending().Tiers(ctx); return err })
		if err == nil || !strings.Contains(err.Error(), "fast") {
			t.Errorf("a row that makes no sense: %v", err)
		}
	})
}

func TestSettingsSurvive(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		if c.Settings != (sessions.Settings{}) {
			t.Errorf("settings of a new conversation: %+v", c.Settings)
		}
		read := func() map[string]sessions.Settings {
			got := make(map[string]sessions.Settings)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				byID, err := tx.Conversations().Conversation(ctx, c.ID)
				if err != nil {
					return err
				}
				byKey, err := tx.Conversations().FindConversation(ctx, key("chat"))
				if err != nil {
					return err
				}
				locked, _, err := tx.Conversations().GetOrCreateConversation(ctx, key("chat"), "demo")
				got["by id"], got["by key"], got["locked"] = byID.Settings, byKey.Settings, locked.Settings
				return err
			})
			return got
		}
		for _, want := range []sessions.Settings{
			{Mode: "ask", Model: "gpt-5 \"é\" \x00", Verbose: new(2), Worktree: noSuchID},
			{Verbose: new(0)}, // which is not the same as none
			{Mode: "auto"},
			{},
		} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{Settings: &want})
			})
			// Another change leaves them alone.
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{Cwd: new("sub")})
			})
			want.Model = strings.ReplaceAll(want.Model, "\x00", "\uFFFD")
			for how, got := range read() {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		}
		// What a person wrote by hand and cannot be read does not lose the rest.
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE remote_agent_conversations SET settings = '{"mode": 7}' WHERE id = $1`, c.ID)
		})
		for how, got := range read() {
			if got != (sessions.Settings{}) {
				t.Errorf("%s: nonsense is read as %+v", how, got)
			}
		}
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE remote_agent_conversations SET settings = 'mode=ask' WHERE id = $1`, c.ID)
		})
		wantKind(t, err, fault.Invalid)
		settingsComeWithTheLease(t, b)
	})
}

// settingsComeWithTheLease because a turn goes by them.
func settingsComeWithTheLease(t *testing.T, b bundle) {
	c := b.conversation(t, "leased")
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		lease, _, _, err := tx.Leases().ClaimLease(ctx, c.ID, "me", time.Minute)
		if err != nil {
			return err
		}
		if err := tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{Settings: &sessions.Settings{Mode: "ask"}}); err != nil {
			return err
		}
		held, err := tx.Leases().HoldLease(ctx, lease)
		if held.Settings.Mode != "ask" {
			t.Errorf("the holder sees the mode %q", held.Settings.Mode)
		}
		return err
	})
}

func TestSharedWorktrees(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		first, second, third := b.conversation(t, "a"), b.conversation(t, "b"), b.conversation(t, "c")
		shared := func() (got map[string]string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				got, err = tx.Registry().SharedWorktrees(ctx)
				return err
			})
			return got
		}
		if got := shared(); len(got) != 0 {
			t.Errorf("nobody shares, and got %v", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for id, s := range map[string]sessions.Settings{
				first.ID:  {Mode: "edit", Model: `"worktree"`}, // only looks like it
				second.ID: {Mode: "ask", Worktree: first.ID},
				third.ID:  {Worktree: first.ID},
			} {
				if err := tx.Conversations().UpdateConversation(ctx, id, sessions.ConversationUpdate{Settings: &s}); err != nil {
					return err
				}
			}
			return nil
		})
		if diff := cmp.Diff(map[string]string{second.ID: first.ID, third.ID: first.ID}, shared()); diff != "" {
			t.Errorf("who shares (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().UpdateConversation(ctx, second.ID, sessions.ConversationUpdate{Settings: &sessions.Settings{}})
		})
		if diff := cmp.Diff(map[string]string{third.ID: first.ID}, shared()); diff != "" {
			t.Errorf("after one left (-want +got):\n%s", diff)
		}
	})
}

func TestCopyMessages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		from := b.session(t, e.ConversationID)
		to := b.session(t, b.conversation(t, "next").ID)
		said := sampleMessages()
		var want []messages.Message
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Messages().AppendMessages(ctx, from.ID, "run-1", said...); err != nil {
				return err
			}
			if _, err := tx.Messages().AppendMessages(ctx, from.ID, "run-2", messages.NewText(messages.RoleUser, "wrong"), messages.NewText(messages.RoleAssistant, "oh")); err != nil {
				return err
			}
			c := sessions.Checkpoint{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: from.ID, Seq: 5}
			if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &c}); err != nil {
				return err
			}
			if n, err := tx.Messages().UndoTurn(ctx, c); n != 2 || err != nil {
				return fmt.Errorf("undid %d: %w", n, err)
			}
			_, err := tx.Messages().AppendMessages(ctx, from.ID, "run-3", messages.NewText(messages.RoleUser, "right"), messages.NewText(messages.RoleAssistant, "yes"))
			return err
		})
		read := func(session string) (array []messages.Message) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				array, err = tx.Messages().MessagesBefore(ctx, session, 1<<40, 100)
				return err
			})
			return array
		}
		want = read(from.ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Messages().CopyMessages(ctx, from.ID, to.ID)
			if n != 6 { // of several parts each, and without the two that were taken back
				t.Errorf("copied %d messages, want 6", n)
			}
			return err
		})
		got := read(to.ID)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("copy, with numbers (-want +got):\n%s", diff)
		}
		if len(got) != 6 || got[0].Seq != 8 || got[1].Seq != 7 || got[2].Seq != 4 {
			t.Errorf("%d messages, the newest is %+v", len(got), got[0])
		}
		if diff := cmp.Diff(want, read(from.ID)); diff != "" {
			t.Errorf("the original changed (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			// The copies belong to no run: an undo or a crash of the old one does not touch them.
			runs, err := store.Count(ctx, tx, `SELECT count(*) FROM agent_messages WHERE session_id = $1 AND run_id <> ''`, to.ID)
			if runs != 0 || err != nil {
				t.Errorf("%d rows of the copy belong to a run, %v", runs, err)
			}
			seqs, err := tx.Messages().AppendMessages(ctx, to.ID, "run-4", messages.NewText(messages.RoleUser, "go on"))
			if diff := cmp.Diff([]int64{9}, seqs); diff != "" {
				t.Errorf("the next number (-want +got):\n%s", diff)
			}
			return err
		})
		copiesOfNothing(t, b)
	})
}

// copiesOfNothing are nothing.
func copiesOfNothing(t *testing.T, b bundle) {
	from, to := b.session(t, b.conversation(t, "nothing").ID), b.session(t, b.conversation(t, "no copy").ID)
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range []string{from.ID, noSuchID} {
			if n, err := tx.Messages().CopyMessages(ctx, id, to.ID); n != 0 || err != nil {
				t.Errorf("copied %d, %v", n, err)
			}
		}
		seqs, err := tx.Messages().AppendMessages(ctx, to.ID, "r", messages.NewText(messages.RoleUser, "first"))
		if diff := cmp.Diff([]int64{1}, seqs); diff != "" {
			t.Errorf("the first number (-want +got):\n%s", diff)
		}
		return err
	})
	err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Messages().CopyMessages(ctx, to.ID, noSuchID)
		return err
	})
	wantKind(t, err, fault.NotFound)
}

// TestTakenEntries: what a turn took in is done behind it, in its session.
func TestTakenEntries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		first := b.accept(t, "chat", "e0", func(e *sessions.Entry) { e.State = sessions.EntryRunning })
		s := b.session(t, first.ConversationID)
		done := sessions.EntryDone
		for _, event := range []messages.EventID{"e1", "e2", "e3", "e4"} {
			e := b.accept(t, "chat", string(event), func(e *sessions.Entry) {
				if event == "e2" {
					e.Lane = sessions.LaneControl
				}
			})
			u := sessions.EntryUpdate{State: &done, SessionID: &s.ID}
			switch event {
			case "e3":
				u.SessionID = nil
			case "e4":
				u.State = nil
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Inbox().UpdateEntry(ctx, e.ID, u) })
		}
		first.SessionID = s.ID
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Inbox().TakenEntries(ctx, first)
			if len(got) != 1 || got[0].In.Event != "e1" {
				t.Errorf("taken in: %+v", got)
			}
			return err
		})
	})
}

func TestWaitingEntries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var all []sessions.Entry
		for i := range 7 {
			all = append(all, b.accept(t, "chat", fmt.Sprint("e", i), func(e *sessions.Entry) {
				switch i {
				case 0:
					e.State = sessions.EntryRunning
				case 2:
					e.Lane = sessions.LaneControl
				case 4:
					e.State = sessions.EntryDone
				}
			}))
		}
		b.accept(t, "other", "x")
		waiting := func(after int64, limit int) (events []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Inbox().WaitingEntries(ctx, all[0].ConversationID, after, limit)
				for _, e := range list {
					events = append(events, string(e.In.Event))
					if e.In.Text != "text of "+string(e.In.Event) || e.State != sessions.EntryWaiting {
						t.Errorf("entry %+v", e)
					}
				}
				return err
			})
			return events
		}
		for _, tt := range []struct {
			after int64
			limit int
			want  []string
		}{
			{all[0].Seq, 20, []string{"e1", "e3", "e5", "e6"}},
			{all[0].Seq, 2, []string{"e1", "e3"}},
			{0, 20, []string{"e1", "e3", "e5", "e6"}}, // the one that runs is not among them
			{all[3].Seq, 20, []string{"e5", "e6"}},
			{all[6].Seq, 20, nil},
		} {
			if diff := cmp.Diff(tt.want, waiting(tt.after, tt.limit)); diff != "" {
				t.Errorf("behind %d, at most %d (-want +got):\n%s", tt.after, tt.limit, diff)
			}
		}
		done := sessions.EntryDone
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Inbox().UpdateEntry(ctx, all[1].ID, sessions.EntryUpdate{State: &done})
		})
		if diff := cmp.Diff([]string{"e3", "e5", "e6"}, waiting(all[0].Seq, 20)); diff != "" {
			t.Errorf("after the first was taken (-want +got):\n%s", diff)
		}
	})
}
