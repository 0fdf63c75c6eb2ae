package journey_test

import (
	"fmt"
	"testing"
)

// What is sent right behind a command that changes what a message begins with is
// answered after it, however close the two are.
func TestAMessageRightBehindNewStartsTheNewSession(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		w.settles()
		for i := range 25 {
			text := fmt.Sprint("fresh ", i)
			w.says(ann, "/new")
			w.says(ann, text)
			w.seesText(ann, fmt.Sprintf("echo: %s [1 messages]", text))
		}
		w.settles()
		if got := w.rows("SELECT count(*) FROM remote_agent_sessions")[0]; got != "26" {
			t.Errorf("there are %s sessions, want 26", got)
		}
		for i := range 5 {
			text := fmt.Sprint("forked ", i)
			w.says(ann, "/fork")
			w.says(ann, text)
			w.seesText(ann, fmt.Sprintf("echo: %s [", text))
		}
		w.settles()
		if got := w.rows("SELECT count(*) FROM remote_agent_sessions WHERE parent_session_id IS NOT NULL")[0]; got != "5" {
			t.Errorf("there are %s forks, want 5", got)
		}
	})
}
