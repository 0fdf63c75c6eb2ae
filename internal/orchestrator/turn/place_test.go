package turn

import (
	"fmt"
	"testing"
)

// TestPlaces spreads conversations over processes: whoever accepted them takes three
// quarters of what each other one takes, everybody else who accepts agrees on the others,
// and if one goes only its own move.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	at := func(owner string, takers ...string) *Turns {
		return &Turns{owner: owner, config: Config{Takers: func() []string { return takers }}}
	}
	a, fewer := at("a", "b", "c"), at("a", "c")
	got := make(map[string]int)
	for n := range keys {
		key := fmt.Sprint("telegram:", n)
		place := a.Elsewhere(key)
		got[place]++
		if next := fewer.Elsewhere(key); place != "b" && next != place {
			t.Fatalf("%s falls to %q, and to %q without b, whose it was not", key, place, next)
		}
	}
	for place, share := range map[string]float64{"": ownShare, "b": 1, "c": 1} {
		want := keys * share / (2 + ownShare)
		if n := float64(got[place]); n < 0.95*want || n > 1.05*want {
			t.Errorf("%.0f conversations fall to %q, want about %.0f", n, place, want)
		}
	}
	for _, alone := range []*Turns{at("a"), {owner: "a"}} {
		if place := alone.Elsewhere("telegram:1"); place != "" {
			t.Errorf("with nobody else a conversation falls to %q", place)
		}
	}
}
