package chaos

import (
	"syscall"
	"testing"
	"time"
)

// TestWorkIsThatOfTheProcess compares what /proc says with what the process is told itself.
func TestWorkIsThatOfTheProcess(t *testing.T) {
	own := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for own() < 100*time.Millisecond { // which is ten times as long as /proc can tell apart
	}
	before := own()
	work, err := workOf("self")
	if err != nil || work < before-30*time.Millisecond || work > own()+30*time.Millisecond {
		t.Errorf("/proc says %v (%v), the process has worked for %v", work, err, before)
	}
}
