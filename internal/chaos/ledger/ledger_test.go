package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"remote-agent/internal/chaos/ledger"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func isDots(text string) bool { return strings.HasSuffix(text, "…") }

// book has one conversation with a message of each kind, all accepted, and what a
// service that keeps its promises shows.
func book(t *testing.T) (b *ledger.Book, shown []string) {
	t.Helper()
	b = &ledger.Book{}
	if c := b.Open(); c != 0 {
		t.Fatalf("the first conversation is %d", c)
	}
	for i, kind := range []ledger.Kind{ledger.Short, ledger.Long, ledger.Slow, ledger.Short} {
		at := begin.Add(time.Duration(i) * time.Minute)
		n, text := b.Say(0, kind, at)
		if asks := ledger.Asks("Ann: " + text); len(asks) != 1 || asks[0] != (ledger.Ask{N: n, Kind: kind}) {
			t.Fatalf("%q asks %v", text, asks)
		}
		b.Accept(0, n, at.Add(time.Second))
		b.Accept(0, n, at.Add(time.Hour)) // is acknowledged again
		answer := ledger.Answer(0, n, kind)
		b.See(answer[0], at.Add(2*time.Second))
		b.See(strings.Join(answer, "\n\n"), at.Add(time.Duration(n)*10*time.Second))
		if kind == ledger.Long { // in two messages
			shown = append(shown, strings.Join(answer[:4], "\n\n"), strings.Join(answer[4:], "\n\n"))
			continue
		}
		shown = append(shown, strings.Join(answer, "\n\n"))
	}
	return b, shown
}

func judge(b *ledger.Book, shown []string) ledger.Verdict {
	return b.Judge(func(int) []string { return shown }, isDots)
}

func TestKeptPromises(t *testing.T) {
	t.Parallel()
	b, shown := book(t)
	v := judge(b, append(shown, "…", "The service was restarted.", ledger.Answer(0, 3, ledger.Slow)[0]+" …"))
	if v.Said != 4 || v.Accepted != 4 || v.Once != 4 || v.Strays != 2 || v.Notices != 1 || v.Broken(2) || len(v.Problems) > 0 {
		t.Errorf("the verdict is %+v", v)
	}
	if !v.Broken(1) {
		t.Error("a stray that nothing explains breaks no promise")
	}
	if v.Ack.Longest != time.Second || v.Wait.Longest != 30*time.Second || v.Wait.P50 != 2*time.Second {
		t.Errorf("it took %+v to accept and %+v to answer", v.Ack, v.Wait)
	}
	if len(v.Told) != 1 || !strings.Contains(v.Told[0], "restarted") {
		t.Errorf("what was told is %q", v.Told)
	}
}

// TestBrokenPromises shows what a service would that breaks each of its promises.
func TestBrokenPromises(t *testing.T) {
	t.Parallel()
	type counts struct{ lost, twice, disorder, garbled int }
	for name, tc := range map[string]struct {
		change func(shown []string) []string
		want   counts
	}{
		"nothing is answered": {func([]string) []string { return nil }, counts{lost: 4}},
		"one is not answered": {func(s []string) []string { return s[1:] }, counts{lost: 1}},
		"the end is missing":  {func(s []string) []string { return slices.Delete(s, 2, 3) }, counts{lost: 1}},
		"one paragraph is missing": {func(s []string) []string {
			s[3] = strings.Join(strings.Split(s[3], "\n\n")[:2], "\n\n")
			return s
		}, counts{lost: 1}},
		"an answer breaks off":     {func(s []string) []string { s[3] = s[3][:len(s[3])-10]; return s }, counts{lost: 1, garbled: 1}},
		"an answer is twice there": {func(s []string) []string { return append(s, s[4]) }, counts{twice: 1}},
		"an answer is twice in a message": {func(s []string) []string {
			s[0] += "\n\n" + s[0]
			return s
		}, counts{twice: 1}},
		"half an answer is twice there": {func(s []string) []string { return slices.Insert(s, 2, s[1]) }, counts{twice: 1, disorder: 1}},
		"the last two are exchanged":    {func(s []string) []string { s[3], s[4] = s[4], s[3]; return s }, counts{disorder: 1}},
		"halves are exchanged":          {func(s []string) []string { s[1], s[2] = s[2], s[1]; return s }, counts{disorder: 1}},
		"words are changed":             {func(s []string) []string { s[0] = strings.Replace(s[0], "short", "brief", 1); return s }, counts{lost: 1, garbled: 1}},
		"words are added":               {func(s []string) []string { s[0] += " By the way."; return s }, counts{garbled: 1}},
		"an answer of somebody else": {func(s []string) []string {
			return append(s, ledger.Answer(1, 1, ledger.Short)[0])
		}, counts{garbled: 1}},
		"an answer to nothing": {func(s []string) []string {
			return append(s, ledger.Answer(0, 5, ledger.Short)[0])
		}, counts{garbled: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, shown := book(t)
			v := judge(b, tc.change(shown))
			if got := (counts{v.Lost, v.Twice, v.Disorder, v.Garbled}); got != tc.want || !v.Broken(100) || len(v.Problems) == 0 {
				t.Errorf("the verdict is %+v, want %+v", v, tc.want)
			}
		})
	}
}

// TestWhatWasNotAcceptedIsNotLost leaves a message without an acknowledgement.
func TestWhatWasNotAcceptedIsNotLost(t *testing.T) {
	t.Parallel()
	b, shown := book(t)
	b.Say(0, ledger.Short, begin)
	if v := judge(b, shown); v.Broken(0) || v.Said != 5 || v.Accepted != 4 || v.Once != 4 {
		t.Errorf("the verdict is %+v", v)
	}
	if unanswered, unaccepted := b.Waiting(0); unanswered != 1 || unaccepted != 1 {
		t.Errorf("%d wait, %d for their acknowledgement", unanswered, unaccepted)
	}
	if asks := b.Unanswered(begin.Add(time.Second)); len(asks) != 1 || asks[0].N != 5 {
		t.Errorf("not answered is %v", asks)
	}
	if said, accepted, answered := b.Totals(); said != 5 || accepted != 4 || answered != 4 {
		t.Errorf("%d, %d, %d in all", said, accepted, answered)
	}
}

// TestAnyBreachIsFound shows what an honest service does, and takes away, doubles or
// moves one message of it.
func TestAnyBreachIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &ledger.Book{}
		views := make([][]string, rapid.IntRange(1, 4).Draw(t, "conversations"))
		for c := range views {
			b.Open()
			for range rapid.IntRange(2, 6).Draw(t, "messages") {
				kind := rapid.SampledFrom([]ledger.Kind{ledger.Short, ledger.Slow, ledger.Long}).Draw(t, "kind")
				n, _ := b.Say(c, kind, begin)
				b.Accept(c, n, begin)
				views[c] = append(views[c], strings.Join(ledger.Answer(c, n, kind), "\n\n"))
			}
		}
		look := func(c int) []string { return views[c] }
		if v := b.Judge(look, isDots); v.Broken(0) || v.Once != v.Said {
			t.Fatalf("an honest service is found guilty: %+v", v)
		}
		c := rapid.IntRange(0, len(views)-1).Draw(t, "where")
		i := rapid.IntRange(0, len(views[c])-1).Draw(t, "which")
		j := rapid.IntRange(0, len(views[c])-1).Filter(func(j int) bool { return j != i }).Draw(t, "to")
		var found int
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			views[c] = slices.Delete(views[c], i, i+1)
			found = b.Judge(look, isDots).Lost
		case 1:
			views[c] = append(views[c], views[c][i])
			found = b.Judge(look, isDots).Twice
		default:
			views[c][i], views[c][j] = views[c][j], views[c][i]
			found = b.Judge(look, isDots).Disorder
		}
		if found == 0 || !b.Judge(look, isDots).Broken(0) {
			t.Fatal(fmt.Sprint("a breach is not found: ", b.Judge(look, isDots)))
		}
	})
}

// TestTimesAfterAKillAndInACrowd has two people in a crowd and one who is there anyway,
// and two kills.
func TestTimesAfterAKillAndInACrowd(t *testing.T) {
	t.Parallel()
	b := &ledger.Book{}
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	talk := func(conversation, said, accepted, answered int) {
		n, _ := b.Say(conversation, ledger.Short, at(said))
		b.Accept(conversation, n, at(accepted))
		b.See(ledger.Answer(conversation, n, ledger.Short)[0], at(answered))
	}
	regular, first, second := b.Open(), b.OpenInCrowd(), b.OpenInCrowd()
	b.Die(at(8))
	b.Die(at(10))
	talk(first, 0, 1, 5)      // before any kill
	talk(second, 0, 2, 30)    // at both: 20 s after the last one
	talk(regular, -3, -2, -1) // said before the crowd came
	talk(regular, 9, 11, 12)  // accepted after the kills
	talk(regular, 29, 29, 32) // said before the crowd is served
	talk(regular, 31, 31, 90) // said after
	v := b.Judge(func(int) []string { return nil }, isDots)
	type durations [3]int // P50, P95, longest, in seconds
	seconds := func(t ledger.Times) durations {
		return durations{int(t.P50.Seconds()), int(t.P95.Seconds()), int(t.Longest.Seconds())}
	}
	for name, got := range map[string][2]durations{
		"taken over":       {seconds(v.Takeover), {20, 20, 20}},
		"crowd accepted":   {seconds(v.CrowdAck), {1, 1, 2}},
		"crowd answered":   {seconds(v.CrowdWait), {5, 5, 30}},
		"others meanwhile": {seconds(v.OthersWaitMeanwhile), {3, 3, 3}},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %v seconds, want %v", name, got[0], got[1])
		}
	}
	if v.Crowd != 2 || v.Crowded != 2 {
		t.Errorf("a crowd of %d with %d others, want 2 and 2", v.Crowd, v.Crowded)
	}
}
