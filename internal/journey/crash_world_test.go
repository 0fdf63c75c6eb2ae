//go:build unix

package journey_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/waittest"
)

// crashWorld is a database with the bots that are killed over it, between
// emulators and people that live on.
type crashWorld struct {
	t      *testing.T
	name   string
	dir    string
	env    map[string]string
	tg     *telegram.Server
	ai     *openai.Server
	people *people
	rnd    *rand.Rand // of the goroutine that kills

	talking sync.WaitGroup
	hush    context.CancelFunc // ends the talking

	procs []*process // all that were started
	kills []kill
}

// kill is one death by SIGKILL.
type kill struct {
	process *process
	where   string
}

// newCrashWorld starts the emulators. Everything ends with the test.
func newCrashWorld(t *testing.T, name, databaseURL string, seed uint64, people *people) *crashWorld {
	t.Helper()
	w := &crashWorld{
		t: t, name: name, dir: t.TempDir(), people: people, hush: func() {},
		tg:  telegram.New(telegram.Options{Token: token, BotUsername: "acme_bot", KeepCalls: -1, KeepEdits: 8, OnChange: people.sees}),
		ai:  openai.New(openai.Options{APIKey: key, KeepRequests: 20, OnDone: func(openai.Request, openai.Outcome) { people.event() }}),
		rnd: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // to be repeated, not to be secret
	}
	people.tg = w.tg
	w.ai.Script(people.model)
	w.tg.InjectFunc(func(telegram.Call) telegram.Fault {
		people.event()
		return telegram.Fault{}
	})
	for _, start := range []func() error{w.tg.Start, w.ai.Start} {
		if err := start(); err != nil {
			t.Fatalf("start an emulator: %v", err)
		}
	}
	w.env = map[string]string{
		"LISTEN_ADDR":                  "127.0.0.1:0",
		"DATABASE_URL":                 databaseURL,
		"OPENAI_API_KEY":               key,
		"OPENAI_BASE_URL":              w.ai.URL(),
		"OPENAI_MODEL":                 "test-model",
		"CONTEXT_TOKENS":               "8000", // some of the history, also in long runs
		"TELEGRAM_BOT_TOKEN":           token,
		"TELEGRAM_API_URL":             w.tg.URL(),
		"TELEGRAM_ALLOWED_USER_IDS":    "42,77,1001,1002",
		"TELEGRAM_SEND_RATE":           "0",
		"TELEGRAM_CHAT_SEND_RATE":      "0",
		"MAX_CONCURRENT_CONVERSATIONS": "4", // fewer than there are chats
		"SHUTDOWN_GRACE":               "5s",
	}
	t.Cleanup(w.close)
	return w
}

// close ends what still runs, and shows what the last processes wrote if the
// test failed.
func (w *crashWorld) close() {
	w.quiet()
	for _, p := range w.procs {
		_ = p.cmd.Process.Kill() // gone already, except for the last
		<-p.done
	}
	w.tg.Close()
	w.ai.Close()
	if !w.t.Failed() {
		return
	}
	for _, p := range w.procs[max(0, len(w.procs)-3):] {
		w.t.Logf("%s wrote:\n%s", p.name, p.out)
	}
}

// talk lets people talk in all chats until quiet is called.
func (w *crashWorld) talk(seed uint64, withCommands bool) {
	ctx, hush := context.WithCancel(context.Background())
	w.hush = hush
	for _, c := range w.people.chats {
		rnd := rand.New(rand.NewPCG(seed, uint64(c.index)+1)) //nolint:gosec // as above
		w.talking.Go(func() { w.people.talk(ctx, c, rnd, withCommands) })
	}
}

func (w *crashWorld) quiet() {
	w.hush()
	w.talking.Wait()
}

// launch starts a bot in a data directory. It dies at point, a failpoint with
// the number of the pass that is the last, or nowhere.
func (w *crashWorld) launch(data, point string) (*process, error) {
	env := maps.Clone(w.env)
	env["DATA_DIR"] = filepath.Join(w.dir, data)
	name := fmt.Sprintf("%s, process %d (%s)", w.name, len(w.procs)+1, point)
	p, err := startProcess(w.t, w.dir, name, point, env)
	if err != nil {
		return nil, err
	}
	w.procs = append(w.procs, p)
	return p, nil
}

// point chooses at which pass of a failpoint a process dies.
func (w *crashWorld) point(p failpoint.Point) string {
	passes := map[failpoint.Point]int{
		failpoint.Received: 3, failpoint.Stored: 3, failpoint.MidStream: 40, failpoint.SentUnrecorded: 10,
	}[p]
	return fmt.Sprintf("%s:%d", p, 1+w.rnd.IntN(max(passes, 6)))
}

// diesAt waits until a process has killed itself at its failpoint.
func (w *crashWorld) diesAt(p *process, point failpoint.Point) error {
	select {
	case <-p.done:
	case <-waittest.Late(w.t):
		return fmt.Errorf("%s did not come to its point", p.name)
	}
	if err := p.killed(); err != nil {
		return err
	}
	w.kills = append(w.kills, kill{p, string(point)})
	return nil
}

// killAfter kills a process some time after its next calls.
func (w *crashWorld) killAfter(p *process, calls int, pause time.Duration) error {
	ctx := waittest.Context(w.t.Context(), w.t)
	until := w.people.calls() + calls
	if err := w.people.changed.Wait(ctx, func() bool { return w.people.calls() >= until }); err != nil {
		return fmt.Errorf("%s did not make %d calls", p.name, calls)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.done:
	}
	if err := p.end(syscall.SIGKILL); err != nil {
		return err
	}
	if err := p.killed(); err != nil {
		return err
	}
	w.kills = append(w.kills, kill{p, "random"})
	return nil
}

// answered waits until everything that was said before a moment is answered, which
// takes within at the most on an idle machine.
func (w *crashWorld) answered(before time.Time, commands bool, within time.Duration) error {
	ctx := waittest.Context(w.t.Context(), w.t, within)
	var open []string
	err := w.people.changed.Wait(ctx, func() bool {
		open = w.people.unanswered(before, commands)
		return len(open) == 0
	})
	if err != nil {
		w.stuck()
		return fmt.Errorf("%s: not answered, and %w: %v", w.name, context.Cause(ctx), open[:min(len(open), 10)])
	}
	return nil
}

// rest waits until the bot has nothing to do: all is answered and acknowledged,
// and the database says so too. Only it knows that the last words that people
// see are not those of a turn that is still to be settled.
func (w *crashWorld) rest() error {
	w.quiet()
	if err := w.answered(time.Now(), true, time.Minute); err != nil {
		return err
	}
	ctx := waittest.Context(w.t.Context(), w.t, time.Minute)
	if err := w.tg.WaitFor(ctx, func() bool { return len(w.tg.Pending()) == 0 }); err != nil {
		return fmt.Errorf("%s: updates %v are never acknowledged", w.name, w.tg.Pending())
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		rec, err := w.records()
		if err != nil {
			return fmt.Errorf("read the database: %w", err)
		}
		if len(rec.open) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not come to rest: %v", w.name, rec.open[:min(len(rec.open), 10)])
		}
	}
}
