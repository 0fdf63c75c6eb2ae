package acp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/emulator/acpagent"
)

const dyingTest = "ACP_DYING_TEST"

// TestNoAgentOutlivesATestThatDies starts this test binary again for one test that
// starts a stubborn agent with a child and panics, as all do at the timeout of go
// test.
func TestNoAgentOutlivesATestThatDies(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dying := exec.CommandContext(t.Context(), self, "-test.run=^TestThatDies$")
	dying.Env = append(os.Environ(), dyingTest+"=1")
	out, err := dying.CombinedOutput()
	found := regexp.MustCompile(`(?m)^the agent is (\d+), its child (\d+)$`).FindStringSubmatch(string(out))
	if err == nil || len(found) != 3 || !strings.Contains(string(out), "panic: this test dies") {
		t.Fatalf("it did not die as it should: %v\n%s", err, out)
	}
	for _, text := range found[1:] {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "process "+text+" ends", func() bool { return !running(pid) })
	}
}

// TestThatDies is the other half of TestNoAgentOutlivesATestThatDies.
func TestThatDies(t *testing.T) { //nolint:paralleltest // it is alone
	if os.Getenv(dyingTest) == "" {
		t.Skip("runs in a process of its own")
	}
	child := filepath.Join(t.TempDir(), "pid")
	w := start(t, acpagent.Does(acpagent.Step{Deaf: true}, acpagent.Step{Fork: child}, acpagent.Step{Say: "I begin."}, acpagent.Step{Hang: true}))
	for event, err := range w.Run(t.Context(), question("Hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(assistant.TextDelta); ok {
			pid, err := os.ReadFile(child)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("the agent is %d, its child %s\n", w.starts(t)[0], pid)
			go panic("this test dies")
			select {}
		}
	}
}
