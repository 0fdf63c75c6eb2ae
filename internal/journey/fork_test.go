package journey_test

import (
	"strings"
	"testing"

	"remote-agent/internal/app"
)

// A person goes on from the middle of what was said, and so does an operator with an
// earlier session; what was said stays.
func TestForkGoesOnFromAMessage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "/fork")
		w.seesText(ann, "✖ There is no session here to fork")
		for _, text := range []string{"one", "two"} {
			w.says(ann, text)
			w.seesText(ann, "echo: "+text)
		}
		w.settles()
		first := w.rows("SELECT CAST(id AS TEXT) FROM remote_agent_sessions")[0]
		w.says(ann, "/fork 5")
		w.seesText(ann, "✖ The session has 4 messages: choose 1 to 4.")
		w.says(ann, "/fork zero")
		w.seesText(ann, "✖ Specify how many messages to keep: /fork 4")
		w.says(ann, "/fork 2")
		w.seesText(ann, "continues with 2 messages of 4", "nothing is deleted")
		w.says(ann, "/undo")
		w.seesText(ann, "Nothing was undone: there is no turn since the fork. The first 2 messages")
		w.restart()
		w.says(ann, "another two")
		w.seesText(ann, "echo: another two [3 messages]")
		if told := w.asked(); !strings.Contains(told, "user: one\n") || strings.Contains(told, "user: two\n") {
			t.Errorf("the fork has read %s", told)
		}
		w.settles()
		forks := w.rows("SELECT CAST(parent_session_id AS TEXT), last_seq FROM remote_agent_sessions WHERE active")
		if len(forks) != 1 || forks[0] != first+" | 4" {
			t.Errorf("the active session continues %q, want %s", forks, first)
		}

		w.says(ann, "/undo")
		w.seesText(ann, "↩ Undid the last turn: 2 messages")
		w.says(ann, "/retry")
		w.sees(ann, "that nothing was taken back, once more", func(texts []string) bool {
			return strings.Count(strings.Join(texts, "\n"), "there is no turn since the fork") == 2
		})
		undone := w.rows("SELECT count(*) FROM agent_messages WHERE undone AND session_id = '" + first + "'")
		if all := w.rows("SELECT count(*) FROM agent_messages WHERE undone"); undone[0] != "0" || all[0] != "2" {
			t.Errorf("%v messages are taken back, %v of them before the fork", all, undone)
		}

		t.Log("the operator, while the bot is stopped")
		w.shutdown()
		printed := w.operator("fork", func(env app.Env) error {
			if err := app.ForkSession(t.Context(), w.config(), env, first, -1); err == nil {
				t.Error("a session goes on from before its beginning")
			}
			return app.ForkSession(t.Context(), w.config(), env, first, 0)
		})
		if !strings.Contains(printed, "continues with 4 of 4 messages") {
			t.Errorf("printed %q", printed)
		}
		w.start()
		w.says(ann, "three")
		w.seesText(ann, "echo: three [5 messages]")

		t.Log("not while something runs")
		shown := w.hang()
		w.says(ann, "long")
		w.seesText(ann, shown)
		w.says(ann, "/fork")
		w.seesText(ann, "✖ Something is still running or queued here.")
		w.says(ann, "/stop")
		w.seesText(ann, "⏹ Stopped")
		w.settles()
		got := strings.Join(w.rows("SELECT action, count(*) FROM audit_log WHERE action = 'session.fork' GROUP BY action"), "; ")
		if got != "session.fork | 2" {
			t.Errorf("the audit says %q", got)
		}
	})
}
