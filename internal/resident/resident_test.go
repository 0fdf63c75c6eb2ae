package resident

import (
	"runtime/debug"
	"testing"
)

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
