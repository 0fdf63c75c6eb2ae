package orchestrator_test

import (
	"testing"

	"remote-agent/internal/orchestrator/orchestratortest"
)

func TestMessageIsAnswered(t *testing.T) {
	orchestratortest.Run(t, func(w *orchestratortest.World) {
		w.Model.On("hello", orchestratortest.Say("Hello to you."))
		w.Start()
		w.Chat.Say("hello")
		w.Settle()
		w.Chat.Want("Hello to you.")
		if got := w.States("hello"); got != "done" {
			t.Errorf("the entry is %q, want done", got)
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	})
}
