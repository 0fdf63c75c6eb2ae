package chaos_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/chaos"
)

// TestACommandBeforeEachKill has a command that notes where the data is, and whether
// the process stands still.
func TestACommandBeforeEachKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook, notes := filepath.Join(dir, "hook"), filepath.Join(dir, "notes")
	script := "#!/bin/sh\necho \"$1\" >> " + notes + "\ngrep -h ^State: /proc/$PPID/task/*/children /proc/[0-9]*/status 2>/dev/null | grep -c 'T (stopped)' >> " + notes + "\n"
	if err := os.WriteFile(hook, []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	report := run(t, chaos.Options{Platform: "telegram", For: 20 * time.Second, Kills: 2, JustKill: true, OnKill: hook, Seed: 1, Faults: -1, Patience: time.Second})
	text, err := os.ReadFile(notes) //nolint:gosec // as above
	lines := strings.Fields(string(text))
	if err != nil || report.Kills != 2 || len(lines) != 4 {
		t.Fatalf("%d kills, the command noted %q (%v)", report.Kills, text, err)
	}
	for i := 0; i < len(lines); i += 2 {
		if filepath.Base(lines[i]) != "data0" || lines[i+1] == "0" {
			t.Errorf("before a kill the data is in %s, and %s processes stand still", lines[i], lines[i+1])
		}
	}
}
