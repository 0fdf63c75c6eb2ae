package api

import (
	"fmt"
	"testing"
	"time"
)

func TestLimitsStaySmall(t *testing.T) {
	t.Parallel()
	l := newLimits(1, 2)
	now := time.Now()
	for i := range 3 * maxLimited {
		l.take(fmt.Sprint(i), now)
		if len(l.of) > maxLimited {
			t.Fatalf("%d names after %d", len(l.of), i+1)
		}
	}
	// Those that may do everything again go first.
	l = newLimits(1, 2)
	for i := range maxLimited - 1 {
		l.take(fmt.Sprint(i), now)
	}
	later := now.Add(time.Minute)
	l.take("busy", later)
	l.take("busy", later)
	l.take("new", later)
	if len(l.of) != 2 || l.wait("busy", later) == 0 {
		t.Errorf("%d names, busy waits %s", len(l.of), l.wait("busy", later))
	}
}

func TestAWaitIsNotCounted(t *testing.T) {
	t.Parallel()
	l := newLimits(1, 1)
	now := time.Now()
	if l.wait("a", now) != 0 || l.knows("a") || l.any() {
		t.Error("asking remembers a name")
	}
	if l.take("a", now) != 0 || l.take("a", now) != time.Second || l.take("a", now) != time.Second || l.wait("a", now) != time.Second {
		t.Error("a refused use is counted")
	}
	if l.take("a", now.Add(time.Second)) != 0 {
		t.Error("after the wait it is refused")
	}
}
