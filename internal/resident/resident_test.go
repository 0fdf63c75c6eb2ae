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
		ctx, cancel := context.WithTimeout(t.Context(), 3*trimEvery+time.Millisecond)
		defer cancel()
		times := map[int]int{}
		trim(ctx, func(step int) { times[step]++ })
		for step := range trimSteps {
			if times[step] != 3 {
				t.Errorf("part %d was given back %d times in three minutes, want 3", step, times[step])
			}
		}
		if len(times) != trimSteps {
			t.Errorf("there were %d steps, want %d", len(times), trimSteps)
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
		back, another := GiveRoom(), GiveRoom()
		another()
		another() // counts once
		if p := percent(); p != c.during {
			t.Errorf("at %d there is room for %d, want %d", c.before, p, c.during)
		}
		back()
		if p := percent(); p != c.before {
			t.Errorf("afterwards %d holds, want %d", p, c.before)
		}
	}
}
