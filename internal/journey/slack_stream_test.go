package journey_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
)

// TestSlackStreamsAndOwnStop plays a turn in a workspace with agent sessions: the
// answer grows in one message, Slack's own Stop ends it once, and the thread goes
// on.
func TestSlackStreamsAndOwnStop(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"Socket", "HTTP"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			w := newSlackWorldWith(t, "", transport, slack.Options{
				AgentSessions: true, StreamIdle: 30 * time.Second, Limits: slack.PublishedLimits(),
			})
			w.start()
			ann := w.sl.User(slackAn).In(channel)
			gate := emulator.NewGate()
			defer gate.Open()
			w.ai.Enqueue(openai.Reply(openai.Delta("I begin "), openai.Delta("with the first "), openai.Gate(gate), openai.Delta("and end.")))
			asked := ann.Mentions("do it")
			grows := w.threadShows(asked.TS, "I begin with the first")
			if grows.Stream != slack.Streaming {
				t.Errorf("the answer is not streamed: %q, %q", grows.Plain, grows.Stream)
			}
			if s := w.sl.Thread(channel, asked.TS).Session.Status; s != "processing" {
				t.Errorf("the session is %q", s)
			}

			ann.Stops(asked.TS)
			stopped := w.threadShows(asked.TS, "I begin with the first", "Stopped after")
			if stopped.TS != grows.TS {
				t.Errorf("the end is another message: %q", w.sl.Thread(channel, asked.TS).Texts())
			}
			w.ended(asked.TS)

			ann.InThread(asked.TS).Says("and now?")
			w.threadShows(asked.TS, "echo:", "and now?")
			w.ended(asked.TS)
			texts := w.sl.Thread(channel, asked.TS).Texts()
			if n := strings.Count(strings.Join(texts, "\n"), "⏹ Stopped. "); n != 1 || len(texts) != 3 {
				t.Errorf("the thread says %d times that it was stopped: %q", n, texts)
			}
			for _, m := range w.sl.Thread(channel, asked.TS).FromBot() {
				if m.Stream == slack.Streaming || m.Stream == slack.StreamKilled {
					t.Errorf("%q is %s", m.Plain, m.Stream)
				}
			}
			if v := w.sl.Violations(); len(v) != 0 {
				t.Errorf("violations: %+v", v)
			}
		})
	}
}

// ended waits until Slack shows no more that the bot works in a thread.
func (w *world) ended(root string) {
	w.t.Helper()
	err := w.sl.WaitFor(w.ctx(), func() bool { return w.sl.Thread(channel, root).Session.Status != "processing" })
	if err != nil {
		w.t.Errorf("the session is still %q", w.sl.Thread(channel, root).Session.Status)
	}
}
