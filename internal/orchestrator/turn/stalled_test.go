package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/sessions"
)

// TestTrigger: a button and a standing task count as such, whatever they begin.
func TestTrigger(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]decision{
		"message":  {},
		"command":  {begun: begunTurn{job: &command.Command{}}},
		"button":   {entry: sessions.Entry{In: messages.Inbound{Kind: messages.KindAction}}, begun: begunTurn{prompt: &command.Prompt{}}},
		"schedule": {entry: sessions.Entry{In: messages.Inbound{Schedule: 7}}, begun: begunTurn{prompt: &command.Prompt{}}},
	} {
		if got := (&run{d: d}).trigger(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&run{d: decision{begun: begunTurn{prompt: &command.Prompt{}}}}).trigger(); got != "command" {
		t.Errorf("a command of the codebase counts as %q", got)
	}
}

// TestStalledCommand: a command that says something has not stalled, and neither has one that
// is over.
func TestStalledCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &progress{job: true, begin: time.Now(), changed: make(chan struct{}, 1)}
		p.stopped, p.stop = context.WithCancel(t.Context())
		r := running{turns: map[string]*turnHandle{"a": {conversation: "a", shows: p}, "b": {conversation: "b"}}}
		for _, step := range []struct {
			do   func()
			wait time.Duration
			want metrics.Stalled
		}{
			{func() {}, stalledAfter - 1, metrics.Stalled{}},
			{func() { p.replace("Half of it is there.") }, stalledAfter - 1, metrics.Stalled{}},
			{func() {}, 1, metrics.Stalled{Command: 1}},
			{p.stop, 0, metrics.Stalled{}},
		} {
			step.do()
			time.Sleep(step.wait)
			if got := r.stalled(); got != step.want {
				t.Errorf("after %s: %+v, want %+v", time.Since(p.begin), got, step.want)
			}
		}
	})
}
