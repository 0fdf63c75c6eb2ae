package resident

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrimGoesOnUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*trimEvery+time.Second)
		defer cancel()
		n := 0
		trim(ctx, func() { n++ })
		if n != 3 {
			t.Errorf("pages were given back %d times in three minutes, want 3", n)
		}
	})
}

// TestRoomIsTakenBack: not parallel, for it changes what holds for the whole process.
func TestRoomIsTakenBack(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	defer debug.SetGCPercent(percent())
	for _, c := range []struct{ before, during int }{{50, roomy}, {roomy + 1, roomy + 1}, {-1, -1}} {
		debug.SetGCPercent(c.before)
		back := GiveRoom()
		if p := percent(); p != c.during {
			t.Errorf("at %d there is room for %d, want %d", c.before, p, c.during)
		}
		back()
		if p := percent(); p != c.before {
			t.Errorf("afterwards %d holds, want %d", p, c.before)
		}
	}
}
