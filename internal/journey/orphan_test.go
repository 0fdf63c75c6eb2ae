//go:build unix

package journey_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/waittest"
)

const dyingTest = "JOURNEY_DYING_TEST"

// TestNothingOutlivesATestThatDies starts this test binary again for one test that
// starts a bot and panics, as all do at the timeout of go test.
func TestNothingOutlivesATestThatDies(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dying := exec.CommandContext(t.Context(), self, "-test.run=^TestThatDies$", "-test.v")
	dying.Env = append(os.Environ(), dyingTest+"=1")
	out, err := dying.Output()
	if err == nil || !strings.Contains(string(out), "panic") && !strings.Contains(errorOutput(err), "panic") {
		t.Fatalf("it did not die: %v\n%s", err, out)
	}
	bot := 0
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if pid, ok := strings.CutPrefix(lines.Text(), "the bot is "); ok {
			bot, err = strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if bot == 0 {
		t.Fatalf("it started no bot:\n%s", out)
	}
	waittest.Until(t, "the bot ends", func() bool { return !alive(bot) })
}

// errorOutput is what a process wrote to stderr.
func errorOutput(err error) string {
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return string(exit.Stderr)
	}
	return ""
}

// alive reports whether a process runs, and does not just wait to be collected.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// TestThatDies is the other half of TestNothingOutlivesATestThatDies.
func TestThatDies(t *testing.T) { //nolint:paralleltest // it is alone
	if os.Getenv(dyingTest) == "" {
		t.Skip("runs in a process of its own")
	}
	w := newWorld(t, "")
	p, err := startProcess(t, t.TempDir(), "bot", "", w.env)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ready(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, p.out)
	}
	fmt.Printf("\nthe bot is %d\n", p.cmd.Process.Pid)
	go panic("this test dies")
	select {}
}
