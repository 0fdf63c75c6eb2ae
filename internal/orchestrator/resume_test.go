package orchestrator_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// hub is a platform like GitHub: it says who may, what was said before, and which
// repository it is about. Its process dies as often as it is told to in each step.
type hub struct {
	w                      *ot.World
	asked, read, prepared  int // how often
	dieAsked, dieRead, die int // how often each step ends the process
	refuses                bool
	worktrees
}

func newHub(w *ot.World) *hub {
	h := &hub{w: w}
	w.Chat.Caps.SessionContext = true
	w.Chat.Earlier = func(messages.Inbound) ([]messages.Quote, error) {
		h.read++
		h.dies(&h.dieRead)
		return []messages.Quote{{Relation: "issue", Author: "gina", Text: "The sum is wrong."}}, nil
	}
	gateFor(w, func(messages.Inbound) (bool, error) {
		h.asked++
		h.dies(&h.dieAsked)
		return !h.refuses, nil
	})
	w.Configure = func(c *orchestrator.Config, _ *store.Store) {
		c.Access = map[messages.Platform]orchestrator.AccessRule{ot.PlatformName: {}}
		c.Worktrees = h
	}
	return h
}

func (h *hub) dies(times *int) {
	if *times > 0 {
		*times--
		h.w.Process().Die()
	}
}

// Prepare implements orchestrator.Worktrees.
func (h *hub) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	h.prepared++
	if h.dies(&h.die); h.w.Process().Dead() {
		runtime.Goexit()
	}
	return h.worktrees.Prepare(ctx, conv, entry, call)
}

// says has gina ask something about a repository, and starts processes until one of
// them lives.
func (h *hub) says(text string) messages.Inbound {
	in := h.w.Chat.Say(text, ot.In("issue"), ot.With(func(in *messages.Inbound) {
		in.Repository = &messages.Repository{URL: "https://git.example/acme/web.git"}
	}))
	h.w.Settle()
	h.livesAgain()
	return in
}

func (h *hub) livesAgain() {
	for range 20 {
		if !h.w.Process().Dead() {
			return
		}
		h.w.Start()
		h.w.Settle()
	}
	h.w.T.Fatal("every process died")
}

func TestKillDuringPreparationCostsOneStep(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		h := newHub(w)
		w.Model.On("why?", ot.Say("Because."))
		w.Start()
		h.dieRead, h.die = 2, 3
		h.says("why?")
		w.Chat.WantIn("issue", "Because.", "The branch is new.")
		// Once when the message came in, and once before the turn; the processes that
		// died since have asked nobody.
		if h.asked > 2 {
			t.Errorf("asked %d times who gina is", h.asked)
		}
		if h.read != 3 {
			t.Errorf("read the issue %d times, of which 2 ended the process", h.read)
		}
		if h.prepared != 4 {
			t.Errorf("prepared the files %d times", h.prepared)
		}
		if asked := w.Model.Asked(); len(asked) != 1 || !strings.Contains(asked[0], "The sum is wrong.") {
			t.Errorf("the model was told %q", asked)
		}
		if left := w.Value(`SELECT count(*) FROM inbound_events WHERE preparation IS NOT NULL`); left != "0" {
			t.Errorf("%s preparations are left when the turn is over", left)
		}
	})
}

func TestOldPermissionIsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after    time.Duration
		answered bool
	}{"Fresh": {30 * time.Second, true}, "Old": {61 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				h := newHub(w)
				w.Start()
				h.die = 1
				w.Chat.Say("delete it", ot.In("issue"), ot.With(func(in *messages.Inbound) {
					in.Repository = &messages.Repository{URL: "https://git.example/acme/web.git"}
				}))
				w.Settle()
				if !w.Process().Dead() {
					t.Fatal("the process did not die")
				}
				h.refuses = true
				w.Pass(tt.after)
				w.Start()
				w.Settle()
				if answered := len(w.Model.Requests()) > 0; answered != tt.answered {
					t.Errorf("answered: %v", answered)
				}
			})
		})
	}
}
