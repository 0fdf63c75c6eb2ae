package turn

import (
	"cmp"
	"fmt"
	"testing"
)

// TestPlaces spreads conversations over processes evenly: whoever accepts a message agrees with
// the others where it falls to, and if one goes only its own move.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	at := func(owner string, takers ...string) *Turns {
		return &Turns{owner: owner, config: Config{Takers: func() []string { return takers }}}
	}
	a, b, fewer := at("a", "b", "c"), at("b", "a", "c"), at("a", "c")
	got := make(map[string]int)
	for n := range keys {
		key := fmt.Sprint("telegram:", n)
		place := a.Elsewhere(key)
		got[place]++
		if next := fewer.Elsewhere(key); place != "b" && next != place {
			t.Fatalf("%s falls to %q, and to %q without b, whose it was not", key, place, next)
		}
		if theirs := b.Elsewhere(key); cmp.Or(theirs, "b") != cmp.Or(place, "a") {
			t.Fatalf("%s falls to %q where a accepts, and to %q where b does", key, place, theirs)
		}
	}
	for _, place := range []string{"", "b", "c"} {
		const want = keys / 3
		if n := got[place]; n < want*95/100 || n > want*105/100 {
			t.Errorf("%d conversations fall to %q, want about %d", n, place, want)
		}
	}
	for _, alone := range []*Turns{at("a"), {owner: "a"}} {
		if place := alone.Elsewhere("telegram:1"); place != "" {
			t.Errorf("with nobody else a conversation falls to %q", place)
		}
	}
}
