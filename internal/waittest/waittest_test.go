package waittest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// limited is a test whose binary is ended at a time.
type limited struct {
	*testing.T
	at time.Time
}

// Deadline implements what a test binary with a timeout says.
func (l limited) Deadline() (time.Time, bool) { return l.at, !l.at.IsZero() }

// Time stands still in synctest while something is measured, so that only the load
// of the machine counts there.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		after       time.Duration // the end of the test binary
		besides     []time.Duration
		least, most time.Duration
	}{
		"InTheEnd":        {0, nil, patience, slowest * patience},
		"LaterForALongOp": {0, []time.Duration{time.Minute}, patience + time.Minute, slowest * (patience + time.Minute)},
		"BeforeTheBinary": {cleanup + 5*time.Second, nil, 5 * time.Second, 5 * time.Second},
		"NoTimeLeft":      {cleanup / 2, nil, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := limited{T: t}
				if tt.after > 0 {
					one.at = time.Now().Add(tt.after)
				}
				begin := time.Now()
				ctx := Context(t.Context(), one, tt.besides...)
				<-ctx.Done()
				if took := time.Since(begin); took < tt.least || took > tt.most {
					t.Errorf("it ended after %s, want %s to %s", took, tt.least, tt.most)
				}
				if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

func TestAWaitEndsWithItsParent(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	ctx := Context(parent, t)
	cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}

func TestUntilAsksAgain(t *testing.T) {
	t.Parallel()
	n := 0
	Until(t, "three times", func() bool { n++; return n == 3 })
	if n != 3 {
		t.Errorf("asked %d times", n)
	}
}

func TestAMachineIsNeverTooQuickOrTooSlow(t *testing.T) {
	t.Parallel()
	if m := measure(); m < instrumented || m > slowest {
		t.Errorf("measured %.1f", m)
	}
	if TooLong(time.Second, time.Second) || !TooLong(time.Hour, time.Second) || Scaled(time.Second) < time.Second {
		t.Error("an hour passes for a second")
	}
}
