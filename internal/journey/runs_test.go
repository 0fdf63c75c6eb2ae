//go:build unix

package journey_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

const (
	runsQuery    = "SELECT status FROM agent_runs ORDER BY started_ms, number"
	workingQuery = "SELECT id FROM agent_sessions WHERE status = 'running'" // seed 003's example
	failedQuery  = "SELECT id FROM agent_sessions WHERE status = 'failed'"
)

// stands checks what seed 003's queries find, and what became of each turn.
func (w *world) stands(working, failed int, runs string) {
	w.t.Helper()
	if n, m := len(w.rows(workingQuery)), len(w.rows(failedQuery)); n != working || m != failed {
		w.t.Errorf("%d sessions run and %d have failed, want %d and %d", n, m, working, failed)
	}
	if got := strings.Join(w.rows(runsQuery), " "); got != runs {
		w.t.Errorf("runs %q, want %q", got, runs)
	}
}

// A session runs while something runs in it, has failed if its last turn has, and is
// completed otherwise, whether it goes on or not.
func TestASessionStandsAsItsTurnsGo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		key := w.newKey("dashboard", "sessions:read")
		list := func(status string) string {
			return w.operator("sessions list", func(env app.Env) error {
				return app.ListSessions(t.Context(), w.config(), env, app.SessionQuery{Status: status, Limit: 50})
			})
		}

		w.ai.Enqueue(openai.Fail(400, "invalid_request_error", "", "that is no request"))
		w.says(ann, "this will fail")
		w.seesText(ann, "✖")
		w.settles()
		w.stands(0, 1, "failed")
		if got := list("failed"); !strings.Contains(got, "failed     active") || strings.Contains(list("completed"), "active") {
			t.Errorf("listed as failed: %q", got)
		}
		w.says(ann, "/sessions")
		w.seesText(ann, "active, failed: this will fail")

		w.ai.Enqueue(openai.Text("done"))
		w.says(ann, "this will do")
		w.seesText(ann, "done")
		w.settles()
		w.stands(0, 0, "failed completed")

		shown := w.hang()
		w.says(ann, "this takes long")
		w.seesText(ann, shown)
		w.stands(1, 0, "failed completed running")
		if rows := w.items("/sessions?status=running", key); len(rows) != 1 || rows[0]["ended_at"] != nil {
			t.Errorf("the API has running %v", rows)
		}
		w.says(ann, "/new") // the turn goes on in the ended session
		w.seesText(ann, "finishes in the old one")
		if rows := w.items("/sessions?status=running", key); len(rows) != 1 || rows[0]["ended_at"] == nil {
			t.Errorf("the API has running %v", rows)
		}
		w.says(ann, "/stop")
		w.seesText(ann, "Stopped after")
		w.settles()
		w.stands(0, 0, "failed completed stopped")

		sessions := w.items("/sessions?conversation="+url.QueryEscape("telegram/"+itoa(ann)), key)
		if len(sessions) != 1 || sessions[0]["status"] != "completed" {
			t.Fatalf("sessions %v", sessions)
		}
		id := fmt.Sprint(sessions[0]["id"])
		for i, row := range w.items("/runs?session="+id, key) {
			if row["number"] != float64(i+1) || row["finished_at"] == nil || row["duration_ms"] == nil || row["model"] != "test-model" ||
				(row["error"] == nil) != (row["status"] == "completed") {
				t.Errorf("run %d: %v", i+1, row)
			}
		}
		printed := w.operator("sessions runs", func(env app.Env) error { return app.ListRuns(t.Context(), w.config(), env, id) })
		if strings.Count(printed, "\n") != 3 || !strings.Contains(printed, "answered 400 invalid_request") {
			t.Errorf("the runs as printed:\n%s", printed)
		}

		w.shutdown()
		w.operator("sessions rm", func(env app.Env) error { return app.RemoveSession(t.Context(), w.config(), env, id, true) })
		w.stands(0, 0, "")
	})
}

// A turn that waits for a person runs, in one run; a retry belongs to the run, too.
func TestARunWaitsForADecision(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"PATH": os.Getenv("PATH")}).start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(openai.Fail(429, "rate_limit_error", "", "slow down").WithHeader("Retry-After", "1"),
			openai.Calls(call("bash", `{"command":"echo x"}`)), openai.Text("It said x."))
		w.says(ann, "run it")
		w.patient(func() { w.seesText(ann, "a-1") })
		waittest.Until(t, "the run is put aside", func() bool { return fmt.Sprint(w.rows("SELECT count(*) FROM agent_runs WHERE waiting")) == "[1]" })
		w.stands(1, 0, "running")
		w.says(ann, "/approve a-1")
		w.seesText(ann, "It said x.")
		w.settles()
		w.stands(0, 0, "completed")

		t.Log("it is stopped while nobody works on it")
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"echo y"}`)))
		w.says(ann, "run that, too")
		w.seesText(ann, "a-2")
		waittest.Until(t, "the run is put aside", func() bool { return fmt.Sprint(w.rows("SELECT count(*) FROM agent_runs WHERE waiting")) == "[1]" })
		waittest.Until(t, "its worker gives it up", func() bool {
			return fmt.Sprint(w.rows("SELECT count(*) FROM remote_agent_conversations WHERE lease_until > 0")) == "[0]"
		})
		w.says(ann, "/stop")
		w.seesText(ann, "⏹ Stopped before it was done")
		w.settles()
		w.stands(0, 0, "completed stopped")
	})
}

// A run whose process was killed is interrupted, and another one goes on.
func TestAKilledRunIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"SQLite": func(testing.TB) string { return "" }, "PostgreSQL": storetest.PostgresURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, url(t))
			w.with(map[string]string{"LOG_FORMAT": "json"})
			launch := func(name string) *process {
				env := maps.Clone(w.env)
				env["LISTEN_ADDR"] = freePort(t)
				p, err := startProcess(t, t.TempDir(), name, "", env)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.end(syscall.SIGKILL) })
				return p
			}
			first := launch("first")
			shown := w.hang()
			w.says(ann, "and then it is killed")
			w.seesText(ann, shown)
			if err := first.end(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.stands(1, 0, "running")
			w.ai.Enqueue(openai.Text("Here I am again."))
			launch("second")
			w.patient(func() { w.seesText(ann, "Here I am again.") })
			waittest.Until(t, "the turn is settled", func() bool { return len(w.rows(workingQuery)) == 0 })
			w.stands(0, 0, "interrupted completed")
			entries := w.rows("SELECT DISTINCT entry_id FROM agent_runs")
			if len(entries) != 1 {
				t.Errorf("the runs belong to %v", entries)
			}
		})
	}
}
