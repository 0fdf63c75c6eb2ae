package journey_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/emulator/slack"
)

// BenchmarkSlackAck sends 200 signed events a second for five seconds over HTTP
// to the whole program on SQLite, and reports how long each acknowledgement
// takes, which is given after the event is durable. The load does not wait for
// answers to what was sent before. Each event begins a turn, and all that
// belongs to it shares the processor. Nothing is judged. Run it with
// -bench SlackAck -benchtime 1x -run '^$'.
func BenchmarkSlackAck(b *testing.B) {
	reportAcks(b, slackAcks)
}

// reportAcks reports how long the acknowledgements of a load take.
func reportAcks(b *testing.B, acks func(b *testing.B, perSecond, seconds int) []time.Duration) {
	b.Helper()
	for b.Loop() {
		took := acks(b, 200, 5)
		slices.Sort(took)
		at := func(share float64) float64 {
			return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
		}
		b.ReportMetric(at(0.50), "p50-ms")
		b.ReportMetric(at(0.95), "p95-ms")
		b.ReportMetric(at(0.99), "p99-ms")
		b.ReportMetric(at(1), "max-ms")
	}
}

// slackAcks returns how long each event of a load took until it was
// acknowledged at the first attempt.
func slackAcks(b *testing.B, perSecond, seconds int) []time.Duration {
	b.Helper()
	w := newSlackWorld(b, "", "HTTP")
	w.level = slog.LevelError
	w.with(map[string]string{"SLACK_STREAMING_MODE": "batch", "SHUTDOWN_GRACE": "1s"}).start()
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range perSecond * seconds {
		<-tick.C
		w.sl.User(slackAn).In(fmt.Sprintf("CA%d", i)).Delivered(slack.Copy{Type: "app_mention"}).Mentions("hello")
	}
	if err := w.sl.WaitIdle(w.ctx()); err != nil {
		b.Fatal("not all events were acknowledged")
	}
	var took []time.Duration
	for _, d := range w.sl.Deliveries() {
		if !d.Acked || d.Type != "app_mention" {
			continue
		}
		if len(d.Attempts) != 1 {
			b.Errorf("a delivery took %d attempts: %+v", len(d.Attempts), d.Attempts)
		}
		took = append(took, d.Attempts[0].Took)
	}
	if len(took) != perSecond*seconds {
		b.Fatalf("%d events were acknowledged, want %d", len(took), perSecond*seconds)
	}
	answered := len(w.ai.Requests())
	b.Logf("%d events in %d s, %d turns begun meanwhile", len(took), seconds, answered)
	return took
}
