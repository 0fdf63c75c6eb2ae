//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

var allBys = []spend.By{spend.ByDay, spend.ByPerson, spend.ByCodebase, spend.ByModel, spend.ByConversation}

// records are all records, as the database has them.
type record struct {
	entry, actor, conversation, codebase, model string
	in, out, micros, at                         int64
	known                                       bool
}

func (b bundle) records(t *testing.T) (list []record) {
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		list = nil
		return store.Each(ctx, tx, func(scan func(...any) error) error {
			var r record
			err := scan(&r.entry, &r.actor, &r.conversation, &r.codebase, &r.model, &r.in, &r.out, &r.micros, &r.known, &r.at)
			list = append(list, r)
			return err
		}, `SELECT COALESCE(CAST(event_id AS TEXT), ''), actor, COALESCE(CAST(conversation_id AS TEXT), ''), COALESCE(CAST(codebase_id AS TEXT), ''),
			CASE WHEN model = '' THEN '(' || ai_assistant_type || ')' ELSE model END, input_tokens, output_tokens, COALESCE(cost_micros, 0), cost_micros IS NOT NULL, at_ms
			FROM usage_records`)
	})
	return list
}

// key is what a record is put together with others by.
func (r record) key(by spend.By) string {
	return map[spend.By]string{
		spend.ByPerson: r.actor, spend.ByConversation: r.conversation, spend.ByCodebase: r.codebase, spend.ByModel: r.model,
		spend.ByDay: time.UnixMilli(r.at).UTC().Format(time.DateOnly),
	}[by]
}

// plainly makes sums of records one by one.
func plainly(list []record, by spend.By, f store.UsageFilter) (groups map[string]spend.Sum, all spend.Sum) {
	groups = make(map[string]spend.Sum)
	entries := make(map[[2]string]bool)
	add := func(s *spend.Sum, r record, group string) {
		s.InputTokens += r.in
		s.OutputTokens += r.out
		s.Micros += r.micros
		if !r.known {
			s.UnpricedToken += r.in + r.out
		}
		if counted := [2]string{group, r.entry}; r.entry != "" && !entries[counted] {
			entries[counted] = true
			s.Turns++
		}
	}
	for _, r := range list {
		switch {
		case f.Actor != "" && r.actor != f.Actor, f.CodebaseID != "" && r.codebase != f.CodebaseID, f.ConversationID != "" && r.conversation != f.ConversationID,
			!f.Since.IsZero() && r.at < f.Since.UnixMilli(), !f.Until.IsZero() && r.at >= f.Until.UnixMilli():
			continue
		}
		s := groups[r.key(by)]
		add(&s, r, "of "+r.key(by))
		groups[r.key(by)] = s
		add(&all, r, "all")
	}
	return groups, all
}

// sumsAreThoseOfTheRecords for every question in list.
func (b bundle) sumsAreThoseOfTheRecords(t *testing.T, when string, filters []store.UsageFilter) {
	t.Helper()
	list := b.records(t)
	for _, f := range filters {
		for _, by := range allBys {
			var groups []spend.Group
			var all spend.Sum
			if err := b.InRead(t.Context(), func(tx *store.Tx) (err error) {
				groups, all, err = tx.Spending().UsageBy(t.Context(), by, f, 0)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			wanted, wantAll := plainly(list, by, f)
			got := make(map[string]spend.Sum, len(groups))
			for _, g := range groups {
				got[g.Key] = g.Sum
			}
			ordered := slices.IsSortedFunc(groups, func(a, b spend.Group) int {
				if by == spend.ByDay {
					return cmp.Compare(b.Key, a.Key)
				}
				return cmp.Or(cmp.Compare(b.Micros, a.Micros), cmp.Compare(b.UnpricedToken, a.UnpricedToken))
			})
			if diff := gocmp.Diff(wanted, got); diff != "" || all != wantAll || !ordered || len(groups) != len(got) {
				t.Fatalf("%s, by %s of %+v: in all %+v, want %+v; %d groups in order: %v (-want +got):\n%s", when, by, f, all, wantAll, len(groups), ordered, diff)
			}
		}
	}
}

// sumUpAll sums up all days that are over, and returns how many there were.
func (b bundle) sumUpAll(t *testing.T, now time.Time) int {
	t.Helper()
	days, err := b.UsageToSum(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range days {
		if err := b.SumUsageDay(t.Context(), day); err != nil {
			t.Fatal(err)
		}
	}
	return len(days)
}

func (b bundle) summedDays(t *testing.T) (n int) {
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = store.Count(ctx, tx, `SELECT count(*) FROM usage_days`)
		return err
	})
	return n
}

// used is what somebody does at random, from 1 to 40 November.
type usedAtRandom struct {
	b         bundle
	rand      *rand.Rand
	now       time.Time
	entries   []sessions.Entry
	codebases []string
}

func (u *usedAtRandom) pick(list ...string) string { return list[u.rand.IntN(len(list))] }

// turn accepts a message on some day and uses a model for it once or a few times, some of
// them on another day.
func (u *usedAtRandom) turn(t *testing.T) {
	at := u.now.Add(-time.Duration(u.rand.Int64N(int64(40 * 24 * time.Hour))))
	e := u.b.accept(t, u.pick("here", "there", "elsewhere"), fmt.Sprint(len(u.entries)))
	u.b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `UPDATE inbound_events SET accepted_ms = $1 WHERE id = $2`, at.UnixMilli(), e.ID)
	})
	u.entries = append(u.entries, e)
	for range 1 + u.rand.IntN(3) {
		if u.rand.IntN(3) == 0 {
			at = at.Add(time.Duration(u.rand.Int64N(int64(48*time.Hour))) - 12*time.Hour)
		}
		u.use(t, e, at)
	}
}

func (u *usedAtRandom) use(t *testing.T, e sessions.Entry, at time.Time) {
	known := u.rand.IntN(4) > 0
	r := spend.Record{
		EntryID: e.ID, ConversationID: e.ConversationID, CodebaseID: u.pick(append(u.codebases, "")...), Actor: u.pick("test/42", "test/77", "test/42"), Assistant: "openai",
		Model: u.pick("big", "small", ""), At: at, Known: known, Usage: assistant.Usage{InputTokens: u.rand.Int64N(1000), OutputTokens: u.rand.Int64N(100)},
	}
	if known {
		r.Micros = u.rand.Int64N(5000)
	}
	if u.rand.IntN(8) == 0 {
		r.EntryID = ""
	}
	if u.rand.IntN(8) == 0 {
		r.ConversationID = ""
	}
	u.b.use(t, r)
}

// change does one thing of those that change records.
func (u *usedAtRandom) change(t *testing.T) {
	some := u.entries[u.rand.IntN(len(u.entries))]
	exec := func(query string, args ...any) {
		u.b.do(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, query, args...) })
	}
	switch u.rand.IntN(9) {
	case 0, 1, 2:
		u.turn(t)
	case 3: // what a model learned of an old turn
		u.b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Conversations().Conversation(ctx, some.ConversationID); err != nil {
				some.ConversationID = ""
			}
			return nil
		})
		u.use(t, some, u.now.Add(-time.Duration(u.rand.Int64N(int64(40*24*time.Hour)))))
	case 4:
		exec(`DELETE FROM inbound_events WHERE id = $1 AND conversation_id IS NOT NULL`, some.ID)
	case 5:
		if u.rand.IntN(4) == 0 {
			exec(`DELETE FROM remote_agent_conversations WHERE id = $1`, some.ConversationID)
		}
	case 6:
		exec(`UPDATE usage_records SET at_ms = at_ms - 86400000 WHERE event_id = $1`, some.ID)
	case 7:
		exec(`UPDATE usage_records SET actor = 'test/99', codebase_id = NULL WHERE at_ms % 10 = 3`)
	case 8:
		exec(`DELETE FROM usage_records WHERE at_ms % 17 = $1`, u.rand.IntN(17))
	}
}

// A record that moves to another day changes both of them, also one of which no message is
// known: with one, the day of the message is told anyway.
func TestARecordThatMovesChangesBothDays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
		e := b.accept(t, "here", "1")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE inbound_events SET accepted_ms = $1 WHERE id = $2`, now.AddDate(0, 0, -9).UnixMilli(), e.ID)
		})
		for i, entry := range []string{"", "", e.ID, e.ID} {
			at := now.AddDate(0, 0, -5-i%2)
			b.use(t, spend.Record{EntryID: entry, ConversationID: e.ConversationID, Actor: "test/42", Assistant: "openai", Model: "big", At: at, Usage: assistant.Usage{InputTokens: 1 << i}})
		}
		for _, entry := range []string{`event_id IS NULL`, `event_id IS NOT NULL`} {
			for _, days := range []int{-2, 3} {
				b.sumUpAll(t, now)
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					return store.Exec(ctx, tx, fmt.Sprintf(`UPDATE usage_records SET at_ms = at_ms + %d WHERE %s`, days*24*int(time.Hour/time.Millisecond), entry))
				})
				b.sumsAreThoseOfTheRecords(t, fmt.Sprintf("%s moved by %d days", entry, days), []store.UsageFilter{{}})
			}
		}
	})
}

// Of events that are deleted nothing stays that no usage needs.
func TestDeletedEventsLeaveNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		used, unused, elsewhere := b.accept(t, "here", "1"), b.accept(t, "here", "2"), b.accept(t, "here", "3")
		for _, r := range []spend.Record{{EntryID: used.ID, ConversationID: used.ConversationID}, {EntryID: elsewhere.ID}} {
			r.Actor, r.Assistant, r.Model, r.At = "test/42", "openai", "big", time.Now()
			b.use(t, r)
		}
		for _, step := range []struct {
			sql  string
			want []string
		}{
			{`DELETE FROM inbound_events WHERE id IN ('` + used.ID + `', '` + unused.ID + `', '` + elsewhere.ID + `')`, []string{elsewhere.ID}},
			{`DELETE FROM usage_records`, nil},
		} {
			var left []string
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				left = nil
				if err := store.Exec(ctx, tx, step.sql); err != nil {
					return err
				}
				return store.Each(ctx, tx, func(scan func(...any) error) error {
					var id string
					err := scan(&id)
					left = append(left, id)
					return err
				}, `SELECT CAST(event_id AS TEXT) FROM usage_spread`)
			})
			if !slices.Equal(left, step.want) {
				t.Errorf("after %s, %q are known, want %q", step.sql, left, step.want)
			}
		}
	})
}

// What was summed up says what the records say, whatever happened to them since.
func TestSumsOfDaysAreThoseOfTheirRecords(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
		u := &usedAtRandom{b: b, rand: rand.New(rand.NewPCG(1, 2)), now: now, codebases: []string{b.codebase(t, "app", "").ID, b.codebase(t, "web", "").ID}}
		today := spend.Today(now)
		filters := []store.UsageFilter{
			{}, {Actor: "test/42"}, {CodebaseID: u.codebases[0]}, {Actor: "test/77", CodebaseID: u.codebases[1]}, {Since: today.AddDate(0, 0, -29)},
			{Since: now.Add(-12 * time.Hour)}, {Since: now.Add(-100 * time.Hour), Until: now.Add(-30 * time.Hour)}, {Until: today.AddDate(0, 0, -10)},
			{Actor: "test/42", Since: today.AddDate(0, 0, -20), Until: today.AddDate(0, 0, -3)}, {Since: today, Until: today.AddDate(0, 0, 1)}, {Actor: "nobody"},
		}
		b.sumsAreThoseOfTheRecords(t, "without any", filters[:2])
		for range 40 {
			u.turn(t)
		}
		b.sumsAreThoseOfTheRecords(t, "before a day was summed up", filters)
		if n := b.sumUpAll(t, now); n < 30 {
			t.Fatalf("%d days were summed up", n)
		}
		if n := b.sumUpAll(t, now); n != 0 {
			t.Errorf("%d days were to be summed up a second time", n)
		}
		filters = append(filters, store.UsageFilter{ConversationID: u.entries[0].ConversationID})
		b.sumsAreThoseOfTheRecords(t, "when all days were summed up", filters)
		for i := range 12 {
			for range 3 {
				u.change(t)
			}
			b.sumsAreThoseOfTheRecords(t, fmt.Sprint("after change ", i), filters)
			if i%3 == 0 {
				b.sumUpAll(t, now)
				b.sumsAreThoseOfTheRecords(t, fmt.Sprint("summed up again after change ", i), filters)
			}
		}
	})
}

// A day is summed up an hour after its end, and again when somebody changed it; what is
// stored of today changes nothing.
func TestDaysAreSummedUpWhenTheyAreOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		midnight := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		use := func(at time.Time, e sessions.Entry) {
			b.use(t, spend.Record{EntryID: e.ID, ConversationID: e.ConversationID, Actor: "test/42", Assistant: "openai", At: at, Usage: assistant.Usage{InputTokens: 1}})
		}
		accept := func(name string, at time.Time) sessions.Entry {
			e := b.accept(t, "chat", name)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `UPDATE inbound_events SET accepted_ms = $1 WHERE id = $2`, at.UnixMilli(), e.ID)
			})
			return e
		}
		late := accept("late", midnight.Add(-time.Minute))
		use(midnight.Add(-time.Minute), late)
		if days, err := b.UsageToSum(t.Context(), midnight.Add(59*time.Minute)); err != nil || len(days) != 0 {
			t.Errorf("59 minutes after the day: %v, %v", days, err)
		}
		if n := b.sumUpAll(t, midnight.Add(time.Hour)); n != 1 || b.summedDays(t) != 1 {
			t.Errorf("an hour after the day %d were summed up, and %d are there", n, b.summedDays(t))
		}
		use(midnight.Add(2*time.Hour), accept("new", midnight.Add(2*time.Hour)))
		if n := b.summedDays(t); n != 1 {
			t.Errorf("a turn of today left %d days", n)
		}
		use(midnight.Add(3*time.Hour), late) // it was at work for hours
		if n := b.summedDays(t); n != 0 {
			t.Errorf("a turn of yesterday that ends today left %d days", n)
		}
		b.sumUpAll(t, midnight.Add(3*time.Hour))
		b.sumsAreThoseOfTheRecords(t, "with a turn of two days", []store.UsageFilter{{}, {Since: midnight}})

		b.do(t, func(ctx context.Context, tx *store.Tx) error { // what a later version wrote, or a disk
			return errors.Join(store.Exec(ctx, tx, `UPDATE usage_days SET body = substr(body, 2)`), store.Exec(ctx, tx, `UPDATE usage_day_parts SET body = substr(body, 2)`))
		})
		b.sumsAreThoseOfTheRecords(t, "with a damaged day", []store.UsageFilter{{}, {Actor: "test/42"}, {CodebaseID: b.codebase(t, "app", "").ID}})
	})
}
