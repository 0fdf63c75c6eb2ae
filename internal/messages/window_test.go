package messages_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"remote-agent/internal/messages"
)

// growing is a session to which turns are added, and the windows of its turns.
type growing struct {
	session []messages.Message
	turns   int
}

// add adds a turn with that many calls of tools, and returns the session as it is
// when the model is asked.
func (g *growing) add(calls, size int) []messages.Message {
	number := func(m messages.Message) {
		m.Seq = int64(len(g.session) + 1)
		g.session = append(g.session, m)
	}
	g.turns++
	number(user(fmt.Sprintf("question %04d%s", g.turns, strings.Repeat(" x", size))))
	asked := len(g.session)
	for i := range calls {
		id := fmt.Sprint(g.turns, "-", i)
		number(call(id))
		number(result(id, strings.Repeat("y", size)))
	}
	number(bot("answer"))
	return g.session[:asked]
}

func TestTheBeginningOfACutWindowLasts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size, calls := rapid.IntRange(0, 20).Draw(t, "size"), rapid.IntRange(0, 2).Draw(t, "calls")
		var g, one growing
		one.add(calls, size)
		turn := messages.EstimateAll(one.session)
		budget := turn * rapid.IntRange(12, 30).Draw(t, "turns that fit")
		var cuts []int              // the turns after which a window began elsewhere than the one before
		var first int64             // number of the message that the windows begin with
		var kept []messages.Message // the window of the last turn, as a process keeps it
		differ := 0                 // how often that began elsewhere than the one of a process that just started
		for range 90 {
			before := int64(0)
			if len(kept) > 0 {
				before = kept[len(kept)-1].Seq
			}
			asked := g.add(calls, size)
			window := messages.Window(asked, budget)
			kept = messages.Window(append(slices.Clip(kept), asked[before:]...), budget)
			tokens := messages.EstimateAll(kept)
			if tokens > budget || len(kept) < len(asked) && tokens < budget/2-2*turn {
				t.Fatalf("turn %d: a window of %d tokens, budget %d", g.turns, tokens, budget)
			}
			if kept[0].Seq != first && first != 0 {
				cuts = append(cuts, g.turns)
				checkRules(t, kept)
			}
			if first = kept[0].Seq; window[0].Seq != first {
				differ++
			}
		}
		// A cell of the grid is at least a quarter of the budget, but for the rounding
		// to turns.
		least := budget/turn/4 - 2
		for i := 1; i < len(cuts); i++ {
			if cuts[i]-cuts[i-1] < least {
				t.Fatalf("%d turns fit, and windows were cut after turns %v", budget/turn, cuts)
			}
		}
		if differ > g.turns/2 {
			t.Errorf("%d of %d windows begin elsewhere where the one before is known", differ, g.turns)
		}
		if len(cuts) == 0 {
			t.Fatal("nothing was cut")
		}
	})
}

func TestTurnsOfAnySizeAreCutWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var g growing
		budget := rapid.IntRange(0, 3000).Draw(t, "budget")
		for range 15 {
			asked := g.add(rapid.IntRange(0, 4).Draw(t, "calls"), rapid.IntRange(0, 300).Draw(t, "size"))
			window := messages.Window(asked, budget)
			if repaired := messages.Repair(window); len(repaired) != len(window) {
				t.Fatalf("a window needs repair: %+v", window)
			}
			if tokens := messages.EstimateAll(window); tokens > budget && turns(window) > 1 {
				t.Fatalf("a window of %d turns has %d tokens, budget %d", turns(window), tokens, budget)
			}
		}
	})
}
