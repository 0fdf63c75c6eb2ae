package spend_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/spend"
)

const (
	chatID = "01900000-0000-7000-8000-000000000001"
	repoID = "01900000-0000-7000-8000-000000000002"
)

func encoded(list ...spend.Use) []byte {
	var d spend.Day
	for _, u := range list {
		d.Add(u)
	}
	return d.Encode()
}

func TestATurnCountsOnceInEachSum(t *testing.T) {
	t.Parallel()
	use := func(entry, model string, spread bool) spend.Use {
		return spend.Use{EntryID: entry, Spread: spread, Actor: "test/42", ConversationID: chatID, CodebaseID: repoID, Model: model, Input: 10, Output: 1, Micros: 5, Known: true}
	}
	first := encoded(use("a", "big", false), use("a", "small", false), use("a", "small", false), use("b", "big", false), use("late", "big", true), use("", "big", false))
	second := encoded(use("late", "big", true), use("late", "small", true), spend.Use{EntryID: "c", Actor: "test/77", Model: "(demo)", Input: 3})
	sum := func(turns int, records int64) spend.Sum {
		return spend.Sum{Turns: turns, InputTokens: 10 * records, OutputTokens: records, Micros: 5 * records}
	}
	demo := spend.Sum{Turns: 1, InputTokens: 3, UnpricedToken: 3}
	all := sum(4, 8)
	all.InputTokens, all.UnpricedToken = all.InputTokens+3, 3
	last := sum(2, 2)
	last.InputTokens, last.UnpricedToken = last.InputTokens+3, 3
	for by, want := range map[spend.By][]spend.Group{
		spend.ByModel:        {{Key: "big", Sum: sum(3, 5)}, {Key: "small", Sum: sum(2, 3)}, {Key: "(demo)", Sum: demo}},
		spend.ByPerson:       {{Key: "test/42", Sum: sum(3, 8)}, {Key: "test/77", Sum: demo}},
		spend.ByConversation: {{Key: chatID, Sum: sum(3, 8)}, {Key: "", Sum: demo}},
		spend.ByCodebase:     {{Key: repoID, Sum: sum(3, 8)}, {Key: "", Sum: demo}},
		spend.ByDay:          {{Key: "2026-11-21", Sum: last}, {Key: "2026-11-20", Sum: sum(3, 6)}},
	} {
		tally := spend.NewTally(by, spend.Filter{})
		for day, body := range map[int64][]byte{20777: first, 20778: second} {
			if err := tally.Add(day, body); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, tally.Groups(0)); diff != "" || tally.Sum() != all {
			t.Errorf("by %s: in all %+v, want %+v (-want +got):\n%s", by, tally.Sum(), all, diff)
		}
		if got := tally.Groups(1); len(got) != 1 || got[0] != want[0] {
			t.Errorf("the first by %s is %+v, want %+v", by, got, want[0])
		}
	}
}

func TestATallyObservesPersonAndRepository(t *testing.T) {
	t.Parallel()
	body := encoded(
		spend.Use{EntryID: "a", Actor: "test/42", CodebaseID: repoID, Model: "m", Input: 1},
		spend.Use{EntryID: "a", Actor: "test/42", Model: "m", Input: 10},
		spend.Use{EntryID: "b", Spread: true, Actor: "test/77", CodebaseID: repoID, Model: "m", Input: 100},
	)
	for _, tt := range []struct {
		filter spend.Filter
		want   spend.Sum
	}{
		{spend.Filter{Actor: "test/42"}, spend.Sum{Turns: 1, InputTokens: 11, UnpricedToken: 11}},
		{spend.Filter{CodebaseID: repoID}, spend.Sum{Turns: 2, InputTokens: 101, UnpricedToken: 101}},
		{spend.Filter{Actor: "test/42", CodebaseID: repoID}, spend.Sum{Turns: 1, InputTokens: 1, UnpricedToken: 1}},
		{spend.Filter{Actor: "test/4"}, spend.Sum{}},
	} {
		tally := spend.NewTally(spend.ByModel, tt.filter)
		if err := tally.Add(1, body); err != nil || tally.Sum() != tt.want {
			t.Errorf("%+v: %+v, %v, want %+v", tt.filter, tally.Sum(), err, tt.want)
		}
		if n := len(tally.Groups(0)); n != min(tt.want.Turns, 1) {
			t.Errorf("%+v: %d groups", tt.filter, n)
		}
	}
}

// TestATallyOfDaysWithOtherPeople: who is wanted has another place on each day.
func TestATallyOfDaysWithOtherPeople(t *testing.T) {
	t.Parallel()
	mine, other := spend.Use{EntryID: "a", Actor: "test/42", Model: "m", Input: 1}, spend.Use{EntryID: "b", Actor: "test/77", Model: "m", Input: 100}
	tally := spend.NewTally(spend.ByModel, spend.Filter{Actor: "test/42"})
	for day, body := range [][]byte{encoded(mine, other), encoded(other, mine), encoded(other)} {
		if err := tally.Add(int64(day), body); err != nil {
			t.Fatal(err)
		}
	}
	want := spend.Sum{Turns: 2, InputTokens: 2, UnpricedToken: 2}
	if got := tally.Groups(100); tally.Sum() != want || len(got) != 1 || got[0] != (spend.Group{Key: "m", Sum: want}) {
		t.Errorf("%+v, %+v, want %+v", tally.Sum(), got, want)
	}
}

// TestADayIsReadAsItWasWritten: numbers of every length, and names that look like ids.
func TestADayIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 63, 64, 127, 128, 8191, 8192, 1 << 20, 1 << 40, 1<<62 - 1} {
		for _, name := range []string{"", "m", chatID, strings.ToUpper("01900000-0000-7000-8000-00000000000a"), "urn:uuid:" + chatID, strings.Repeat("ä", 100)} {
			use := spend.Use{EntryID: "e", ConversationID: name, Input: n, Output: n / 2, Micros: n, Known: true}
			tally := spend.NewTally(spend.ByConversation, spend.Filter{})
			err := tally.Add(1, encoded(use))
			want := spend.Group{Key: name, Sum: spend.Sum{Turns: 1, InputTokens: n, OutputTokens: n / 2, Micros: n}}
			if got := tally.Groups(0); err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		}
	}
}

// TestATurnOfSeveralDaysStaysOne: also where only one of its records on a day says so, and
// one that says nothing of that comes later.
func TestATurnOfSeveralDaysStaysOne(t *testing.T) {
	t.Parallel()
	use := spend.Use{EntryID: "e", Model: "m", Input: 1}
	spread := use
	spread.Spread = true
	other := spread
	other.EntryID = "f"
	tally := spend.NewTally(spend.ByModel, spend.Filter{})
	for day, body := range [][]byte{encoded(use, spread, use, other), encoded(spread, other)} {
		if err := tally.Add(int64(day), body); err != nil {
			t.Fatal(err)
		}
	}
	if sum := tally.Sum(); sum.Turns != 2 || sum.InputTokens != 6 {
		t.Errorf("%+v, want two turns", sum)
	}
}

// TestADayIsSmall: what needs no place of its own has none.
func TestADayIsSmall(t *testing.T) {
	t.Parallel()
	use := spend.Use{EntryID: "e", ConversationID: chatID, Model: "m", Input: 1}
	once, twice := encoded(use), encoded(use, use)
	if len(once) != len(twice) {
		t.Errorf("a second record like the first adds %d bytes", len(twice)-len(once))
	}
	use.EntryID = "f"
	if more := encoded(use, spend.Use{EntryID: "g", ConversationID: chatID, Model: "m"}); len(more) != len(once) {
		t.Errorf("a second turn like the first adds %d bytes", len(more)-len(once))
	}
	use.ConversationID = strings.ToUpper("01900000-0000-7000-8000-00000000000a")
	if plain := encoded(use); len(plain) != len(once)+20 {
		t.Errorf("an id saves %d bytes, want 20", len(plain)-len(once))
	}
}

func TestADayThatWasDamagedIsNotRead(t *testing.T) {
	t.Parallel()
	good := encoded(spend.Use{EntryID: "a", Actor: "test/42", Model: "m", Input: 1}, spend.Use{EntryID: "a", Model: "n"})
	for at := range good {
		bad := slices.Clone(good)
		bad[at] ^= 1
		tally := spend.NewTally(spend.ByModel, spend.Filter{})
		if tally.Add(1, bad) == nil || tally.Add(1, good[:at]) == nil || tally.Sum() != (spend.Sum{}) {
			t.Errorf("a wrong byte %d was read: %+v", at, tally.Sum())
		}
	}
}

// TestPartsOfADay: each question finds a part with what it asks for, and nothing else.
func TestPartsOfADay(t *testing.T) {
	t.Parallel()
	use := spend.Use{EntryID: "e", Actor: "test/42", ConversationID: chatID, CodebaseID: repoID, Model: "m", Input: 1}
	of := func(f func(u *spend.Use)) spend.Use {
		u := spend.Use{EntryID: "e", Input: 1}
		f(&u)
		return u
	}
	want := map[string]spend.Use{
		spend.Part(spend.ByPerson, spend.Filter{}):                of(func(u *spend.Use) { u.Actor = use.Actor }),
		spend.Part(spend.ByConversation, spend.Filter{}):          of(func(u *spend.Use) { u.ConversationID = use.ConversationID }),
		spend.Part(spend.ByCodebase, spend.Filter{}):              of(func(u *spend.Use) { u.CodebaseID = use.CodebaseID }),
		spend.Part(spend.ByModel, spend.Filter{}):                 of(func(u *spend.Use) { u.Model = use.Model }),
		spend.Part(spend.ByDay, spend.Filter{}):                   of(func(*spend.Use) {}),
		spend.Part(spend.ByModel, spend.Filter{Actor: use.Actor}): use,
	}
	if diff := cmp.Diff(want, use.Parts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	use.Actor = ""
	if n := len(use.Parts()); n != 5 {
		t.Errorf("%d parts of a record of nobody, want 5", n)
	}
	if part := spend.Part(spend.ByModel, spend.Filter{Actor: "test/42", CodebaseID: repoID}); part != "" {
		t.Errorf("a repository is asked of %q alone", part)
	}
}

// What is damaged adds nothing, and ends nothing.
func FuzzADayThatWasDamaged(f *testing.F) {
	good := encoded(spend.Use{EntryID: "a", Actor: "test/42", Model: "m", Input: 1}, spend.Use{EntryID: "a", Actor: "test/42", Model: "n"}, spend.Use{EntryID: chatID, Spread: true, Model: "o"})
	f.Add(good, 3, byte(1))
	f.Add([]byte{}, 0, byte(0))
	f.Fuzz(func(t *testing.T, body []byte, at int, by byte) {
		if len(body) > 0 {
			body[uint(at)%uint(len(body))] ^= by //nolint:gosec // any place
		}
		tally := spend.NewTally(spend.ByModel, spend.Filter{})
		if err := tally.Add(1, body); err != nil && tally.Sum() != (spend.Sum{}) {
			t.Errorf("what cannot be read added %+v", tally.Sum())
		}
	})
}

func BenchmarkTally(b *testing.B) {
	var list []spend.Use
	for i := range 550 {
		list = append(list, spend.Use{
			EntryID: string(rune('a' + i)), Actor: "telegram/" + string(rune('0'+i%200)), ConversationID: chatID[:33] + string("0123456789abcdef"[i%16]) + string("0123456789abcdef"[i/16%16]) + "0",
			CodebaseID: repoID, Model: "m" + string(rune('0'+i%4)), Input: 1000, Output: 100, Micros: 900, Known: true,
		})
	}
	body := encoded(list...)
	b.ReportMetric(float64(len(body)), "bytes")
	for b.Loop() {
		tally := spend.NewTally(spend.ByConversation, spend.Filter{})
		for day := range int64(365) {
			if err := tally.Add(day, body); err != nil {
				b.Fatal(err)
			}
		}
	}
}
