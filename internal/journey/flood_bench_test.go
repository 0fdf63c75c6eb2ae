package journey_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
)

var (
	floodSeconds = flag.Int("flood-seconds", 10, "how long the benchmark of strangers floods, at most 60")
	floodRate    = flag.Int("flood-rate", 1000, "how many strangers write a second in that benchmark, on all platforms together")
)

// BenchmarkStrangers measures how long an allowed user waits for an answer in
// Telegram, alone and while strangers write on Telegram, Slack and GitHub. Bot,
// emulators and load are one process. Nothing is judged. Run it with
// -bench Strangers -benchtime 1x -run '^$' -timeout 5m -args -flood-seconds 60.
func BenchmarkStrangers(b *testing.B) {
	for b.Loop() {
		w := newSlackWorld(b, "", "HTTP")
		w.level = slog.LevelError
		w.with(map[string]string{
			"TELEGRAM_BOT_TOKEN": token, "TELEGRAM_SEND_RATE": "30", "SHUTDOWN_GRACE": "1s",
		})
		h := w.withGitHub(sumRepo, "webhook")
		w.ai.Script(func(r openai.Request) openai.Response { return openai.Text("heard: " + r.LastUserText()) })
		h.start()
		open := h.Person("gina").In(ghRepo).OpenIssue("Open to all", "Say what you think.").Number
		seconds := min(*floodSeconds, 60)
		w.answers(10) // warms up
		quiet := w.answers(4 * seconds)

		ctx, stop := context.WithCancel(b.Context())
		var load sync.WaitGroup
		written := 0
		load.Go(func() { written = w.flood(ctx, h, open, *floodRate) })
		flooded := w.answers(4 * seconds)
		stop()
		load.Wait()

		ms := func(took []time.Duration, share float64) float64 {
			return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
		}
		b.ReportMetric(ms(quiet, .5), "quiet-p50-ms")
		b.ReportMetric(ms(quiet, .95), "quiet-p95-ms")
		b.ReportMetric(ms(flooded, .5), "flooded-p50-ms")
		b.ReportMetric(ms(flooded, .95), "flooded-p95-ms")
		b.ReportMetric(float64(written), "strangers")
	}
}

// answers has an allowed user, another one each time so that no rate of a chat
// counts, ask four times a second, and returns how long each answer took, sorted.
func (w *world) answers(n int) (took []time.Duration) {
	w.t.Helper()
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		who := ann
		if i%2 == 1 {
			who = bob
		}
		question := fmt.Sprintf("question %s", newCanary())
		begin := time.Now()
		w.says(who, question)
		err := w.tg.WaitFor(w.ctx(), func() bool { // seesText looks at every chat of the flood
			return slices.Contains(w.tg.ChatView(who).BotTexts(), "heard: "+question)
		})
		if err != nil {
			w.t.Fatal("an allowed user was not answered in time")
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// floodPeople is how many strangers there are. The emulators keep a chat for each.
const floodPeople = 6000

// flood lets strangers write, a third of them on each platform, until ctx is done. It returns how many there were.
func (w *world) flood(ctx context.Context, h *hub, issue, perSecond int) (n int) {
	const steps = 50 // a second
	tick := time.NewTicker(time.Second / steps)
	defer tick.Stop()
	for begin := time.Now(); ctx.Err() == nil; <-tick.C {
		for due := int(time.Since(begin).Seconds() * float64(perSecond)); n < due && ctx.Err() == nil; n++ {
			who := n % floodPeople
			switch n % 3 {
			case 0:
				w.says(firstStranger+int64(who), "let me in")
			case 1:
				w.sl.User(fmt.Sprintf("UX%d", who)).In(channel).Delivered(slack.Copy{Type: "app_mention"}).Mentions("let me in")
			default:
				h.Person(fmt.Sprintf("stranger%d", who)).In(ghRepo).Comment(issue, "@remote-agent let me in")
			}
		}
	}
	return n
}
