package incident_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/incident"
)

// ledger tells into a list.
type ledger struct {
	open map[string]bool
	told []string
	down error
}

func (l *ledger) Begin(_ context.Context, key, text string) error { return l.set(key, true, text) }

func (l *ledger) Resolve(_ context.Context, key, text string) error { return l.set(key, false, text) }

func (l *ledger) set(key string, open bool, text string) error {
	if l.down != nil {
		return l.down
	}
	if l.open[key] != open {
		l.open[key] = open
		l.told = append(l.told, text)
	}
	return nil
}

func TestOwnersAreToldOnceAndWhenItIsOver(t *testing.T) {
	t.Parallel()
	var w incident.Watch
	l := &ledger{open: map[string]bool{}}
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	see := func(after time.Duration, bad bool) {
		t.Helper()
		err := w.Observe(t.Context(), start.Add(after), l,
			incident.Condition{Key: "platform/x", Bad: bad, Text: "x is away", Resolved: "x is back", After: 3 * time.Minute},
			incident.Condition{Key: "fine", Text: "never", Resolved: "never"})
		if !errors.Is(err, l.down) {
			t.Error(err)
		}
	}
	want := func(told ...string) {
		t.Helper()
		if !slices.Equal(l.told, told) {
			t.Errorf("told %q, want %q", l.told, told)
		}
	}
	see(0, true)
	see(2*time.Minute, true)
	see(2*time.Minute+30*time.Second, false) // a short one is none
	see(3*time.Minute, true)
	see(5*time.Minute, true)
	want()
	l.down = errors.New("the database is away")
	see(6*time.Minute, true)
	l.down = nil
	want()
	see(7*time.Minute, true)
	see(8*time.Minute, true)
	want("x is away")
	w = incident.Watch{} // after a restart the ledger still knows
	see(9*time.Minute, true)
	see(20*time.Minute, true)
	see(21*time.Minute, false)
	see(22*time.Minute, false)
	want("x is away", "x is back")
}
