package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/child"
)

// TestAFrozenProcessStandsStill at once, and not a moment later: what is done before a kill copies
// its files. One that ends instead is not waited for.
func TestAFrozenProcessStandsStill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, err := child.Start(dir, filepath.Join(dir, "log"), nil, "/bin/sh", "-c", "while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	b := &bot{process: process}
	for range 200 {
		if err := b.freeze(); err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID()))
		if err != nil || !strings.Contains(string(status), "T (stopped)") {
			t.Fatalf("it does not stand still: %v\n%s", err, status)
		}
		if err := b.thaw(); err != nil {
			t.Fatal(err)
		}
	}
	process.Kill()
	if err := b.freeze(); err != nil && !process.Ended() {
		t.Errorf("one that has been killed: %v", err)
	}
	<-process.Done()
}

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
