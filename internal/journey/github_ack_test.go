package journey_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/openai"
)

// BenchmarkGitHubAck sends 200 signed deliveries a second for five seconds to the
// whole program on SQLite, and reports how long each acknowledgement takes, which
// is given after the event is durable. Each delivery is a new issue that begins a
// turn with a worktree of its own, and all that belongs to it shares the
// processor, the emulated GitHub included. The load does not wait for answers to
// what was sent before. Nothing is judged. Run it with -bench GitHubAck
// -benchtime 1x -run '^$'.
func BenchmarkGitHubAck(b *testing.B) {
	reportAcks(b, githubAcks)
}

// githubAcks returns how long each delivery of a load took until it was
// acknowledged at the first attempt.
func githubAcks(b *testing.B, perSecond, seconds int) []time.Duration {
	b.Helper()
	w := newWorld(b, "")
	w.level = slog.LevelError
	h := w.withGitHub(sumRepo, "webhook")
	w.with(map[string]string{"GITHUB_SWEEP_EVERY": "5m", "SHUTDOWN_GRACE": "1s", "TELEGRAM_BOT_TOKEN": ""}).start()
	h.SetHook(github.Hook{Secret: ghSecret}) // without an address: each is sent below, and timed
	url := "http://" + w.addr + "/webhooks/github"
	gina := h.Person("gina").In(ghRepo)
	took := make([]time.Duration, perSecond*seconds)
	var sending sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range took {
		<-tick.C
		sent := gina.OpenIssue(fmt.Sprintf("Issue %d", i), "@remote-agent hello")
		sending.Go(func() {
			begin := time.Now()
			attempt, err := h.Send(w.ctx(), sent.Deliveries[0], url)
			took[i] = time.Since(begin)
			if err != nil || attempt.StatusCode != http.StatusAccepted {
				b.Errorf("delivery %d: %+v, %v", i, attempt, err)
			}
		})
	}
	begun := len(w.ai.Requests())
	sending.Wait()
	b.Logf("%d deliveries in %d s, %d turns answered meanwhile", len(took), seconds, begun)
	return took
}

// TestGitHubAcknowledgementWaitsForNobody holds up the model, git and every call
// to GitHub. A delivery is acknowledged all the same: the handler stores it and
// does nothing else. When they go on, it is answered.
func TestGitHubAcknowledgementWaitsForNobody(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		h := w.withGitHub(sumRepo, "webhook")
		held := emulator.NewGate()
		t.Cleanup(held.Open) // else nothing that hangs ends
		h.start()
		h.git.Authorize(func(_, password, repo string, push bool) bool {
			return held.Pass(t.Context()) == nil && h.Allows(password, repo, push)
		})
		h.InjectFunc(func(github.Call) github.Fault { return github.Fault{Gate: held} })
		w.ai.Enqueue(openai.Reply(openai.Gate(held), openai.Delta("Here I am.")))

		sent := h.Person("gina").In(ghRepo).OpenIssue("Slow", "@remote-agent are you there?")
		if err := h.WaitSettled(w.ctx(), sent); err != nil {
			t.Fatal("the delivery was not acknowledged while everything hangs")
		}
		for _, guid := range sent.Deliveries {
			d := h.Delivery(guid)
			if !d.Acked || len(d.Attempts) != 1 || d.Attempts[0].StatusCode != http.StatusAccepted {
				t.Errorf("the delivery: %+v", d.Attempts)
			}
		}
		if got := w.rows("SELECT count(*) FROM inbound_events WHERE state IN ('waiting', 'running')"); fmt.Sprint(got) != "[1]" {
			t.Errorf("%v messages are stored and not answered, want one", got)
		}
		held.Open()
		h.sees(sent.Number, "Here I am.")
	})
}
