//go:build unix

package journey_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// TestCrashDuringATool kills the bot while a command of the model runs:
// the command dies with it, is not run again, and the model is told; a command
// that was only asked for runs after the restart, once.
func TestCrashDuringATool(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"SQLite": func(testing.TB) string { return "" }, "PostgreSQL": storetest.PostgresURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashDuringATool(t, newWorld(t, url(t)))
		})
	}
}

func crashDuringATool(t *testing.T, w *world) {
	_, url := w.withRepository(sumRepo)
	w.with(map[string]string{"PATH": os.Getenv("PATH"), "LOG_FORMAT": "json"})
	life := 0
	launch := func() *process {
		life++
		env := maps.Clone(w.env)
		env["LISTEN_ADDR"] = freePort(t)
		p, err := startProcess(t, t.TempDir(), fmt.Sprintf("life %d", life), "", env)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.end(syscall.SIGKILL) })
		return p
	}
	first := launch()
	w.says(ann, "/clone "+url)
	w.seesText(ann, "Cloned")
	w.ai.Enqueue(openai.Calls(
		call("bash", `{"command":"echo x >> runs; touch began; sleep 600"}`), call("bash", `{"command":"echo y >> after"}`),
	))
	w.says(ann, "run both")
	w.press(ann, "Run it")
	w.waitTree("began")
	w.ai.Enqueue(openai.Text("I know that the first was interrupted."))
	if err := first.end(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	launch()
	w.patient(func() { w.seesText(ann, "a-2", "echo y >> after") })
	w.says(ann, "/approve a-2")
	w.seesText(ann, "I know that the first was interrupted.")

	got := w.rows("SELECT status, error_details FROM agent_tool_calls ORDER BY id")
	if len(got) != 2 || !strings.HasPrefix(got[0], "failed | interrupted, may have run") || !strings.HasPrefix(got[1], "completed") {
		t.Errorf("the calls: %q", got)
	}
	requests := w.ai.Requests()
	told := ""
	for _, m := range requests[len(requests)-1].Messages {
		told += m.Text() + "\n"
	}
	if !strings.Contains(told, "interrupted") {
		t.Errorf("the model was not told: %s", told)
	}
	for _, tree := range w.trees("runs") {
		for file, want := range map[string]string{"runs": "x\n", "after": "y\n"} {
			if text, err := os.ReadFile(filepath.Join(tree, file)); err != nil || string(text) != want {
				t.Errorf("%s holds %q (%v), want %q", file, text, err, want)
			}
		}
	}
	for _, line := range sleepers(t) {
		t.Errorf("a program outlived the bot: %s", line)
	}
}

// patient gives a wait the time that a dead replica takes to be replaced.
func (w *world) patient(wait func()) {
	w.slow = takeover
	defer func() { w.slow = 0 }()
	wait()
}

// sleepers lists programs that run "sleep 600", where that can be seen.
func sleepers(t *testing.T) (found []string) {
	t.Helper()
	for late := waittest.Late(t); ; {
		found = nil
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range lines {
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), "echo x >> runs; touch began; sleep 600") {
				found = append(found, path+" "+string(text))
			}
		}
		if len(found) == 0 {
			return nil
		}
		select {
		case <-late:
			return found
		case <-time.After(20 * time.Millisecond):
		}
	}
}
