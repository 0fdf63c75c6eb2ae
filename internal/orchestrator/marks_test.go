package orchestrator_test

import (
	"slices"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
)

// TestMarkOfAnOutcomeStays: where marks tell how a turn ended, the one that says that a
// message arrived is not taken away when its turn begins.
func TestMarkOfAnOutcomeStays(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OutcomeMarks = true
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		waits := w.Chat.Say("second")
		w.Pass(time.Second)
		w.Model.Release()
		w.Pass(5 * time.Second)
		if got := w.Chat.Marks(waits); !slices.Equal(got, []platform.Mark{platform.MarkSeen, platform.MarkDone}) {
			t.Errorf("the marks were %q", got)
		}
	})
}

// TestNoticeOfATurnComesWithItsAnswer and waits for no sweep.
func TestNoticeOfATurnComesWithItsAnswer(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("hello", func(r *ot.Errands) (string, error) {
			r.Tell(assistant.Notice{Text: "A plugin is missing."})
			return "Hello.", nil
		})
		w.Start()
		w.Chat.Say("hello")
		w.Settle()
		w.Chat.Find("Hello.")
		w.Chat.Find("⚠ A plugin is missing.")
	})
}
