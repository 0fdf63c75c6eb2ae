//go:build unix

package journey_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/waittest"
)

// TestCrashSlack kills the bot while it answers a mention, at every
// named point and in the middle of its calls to Slack, and starts it again.
// Slack can be asked what was posted, so there must be one answer and not even
// a stray placeholder. Answers are streamed, or edited where Slack opens no
// streams, or posted when they are complete.
func TestCrashSlack(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"Socket", "HTTP"} {
		for _, mode := range []string{"stream", "edit", "batch"} {
			t.Run(transport+"/"+mode, func(t *testing.T) {
				t.Parallel()
				newSlackCrash(t, transport, mode).killEverywhere()
			})
		}
	}
}

// slackCrash is a database with the bots that are killed over it.
type slackCrash struct {
	*world
	t     *testing.T
	mode  string
	dir   string
	procs []*process

	// victim dies as soon as Slack has carried out a call that makes a change
	// of the kind that it is armed for, and before it hears of it.
	mu     sync.Mutex
	victim *process
	armed  slack.ChangeKind
	slow   bool // the model takes so long that a message shows the turn

	held *emulator.Gate // stops the model in the middle of its answers
}

func newSlackCrash(t *testing.T, transport, mode string) *slackCrash {
	t.Helper()
	c := &slackCrash{t: t, mode: mode, dir: t.TempDir(), held: emulator.NewGate()}
	// A bot that is dead for a while must not miss what was not acknowledged.
	retries := make([]time.Duration, 200)
	for i := range retries {
		retries[i] = 50 * time.Millisecond
	}
	c.world = newSlackWorldWith(t, "", transport, slack.Options{Retries: retries, OnChange: c.changed})
	c.with(map[string]string{"DATA_DIR": filepath.Join(c.dir, "data"), "SLACK_STREAMING_MODE": strings.Replace(mode, "edit", "stream", 1)})
	if mode == "edit" {
		c.sl.InjectFunc(func(call slack.Call) slack.Fault {
			if call.Method == "chat.startStream" {
				return slack.Refuse("channel_type_not_supported")
			}
			return slack.Fault{}
		})
	}
	c.ai.Script(func(r openai.Request) openai.Response {
		text := r.LastUserText()
		answer := wholeAnswer(text[strings.LastIndex(text, "question"):])
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.armed == slack.ChangeStreamed {
			return openai.Reply(openai.Delta(answer[:12]), openai.Gate(c.held), openai.Delta(answer[12:]))
		}
		if c.slow {
			return openai.Reply(openai.Delta(answer[:12]), openai.Pause(2500*time.Millisecond), openai.Delta(answer[12:]))
		}
		return openai.Pieces(answer, 12)
	})
	t.Cleanup(func() { endAll(t, c.procs) })
	return c
}

// wholeAnswer is the answer to a question, which nobody could confuse with
// another or with a part of it.
func wholeAnswer(question string) string {
	return "This is the whole answer to " + question + ", from its first word to its end."
}

// endAll ends what still runs of several processes, and shows what the last ones wrote if
// the test failed.
func endAll(t *testing.T, procs []*process) {
	t.Helper()
	for _, p := range procs {
		_ = p.cmd.Process.Kill() // gone already, except for the last
		<-p.done
	}
	if !t.Failed() {
		return
	}
	for _, p := range procs[max(0, len(procs)-2):] {
		t.Logf("%s wrote:\n%s", p.name, p.out)
	}
}

// launch starts the bot and waits until it is ready. One that dies before is
// replaced: Slack can owe it an event about what the bot itself did last, which
// is enough to come to the first points, and which another one hears before.
func (c *slackCrash) launch(name, point string) *process {
	c.t.Helper()
	for range 5 {
		p, err := startProcess(c.t, c.dir, name, point, c.env)
		if err != nil {
			c.t.Fatal(err)
		}
		c.procs = append(c.procs, p)
		dead := false
		err = p.await(c.t.Context(), "ready", func(ctx context.Context) error {
			select {
			case <-p.done:
				dead = true
				return nil
			default:
				return p.askReady(ctx)
			}
		})
		if err != nil {
			c.t.Fatal(err)
		}
		if !dead {
			return p
		}
		if err := p.killed(); err != nil || point == "" {
			c.t.Fatalf("%s died while it started: %v", name, err)
		}
		c.recover("an early death at "+point, func() {})
	}
	c.t.Fatalf("nobody lives long enough to die at %q", point)
	return nil
}

// arm lets the process die at the next change of a kind.
func (c *slackCrash) arm(p *process, kind slack.ChangeKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.victim, c.armed = p, kind
}

// changed is called while the bot waits for the answer to its call.
func (c *slackCrash) changed(change slack.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.victim == nil || change.Kind != c.armed || change.Message.User != c.sl.BotUser() {
		return
	}
	_ = c.victim.cmd.Process.Kill()
	<-c.victim.done
	c.victim = nil
}

// killEverywhere asks one question for each way to die, each in its own channel
// because one takes a message a second.
func (c *slackCrash) killEverywhere() {
	var roots []string
	ways := []string{"call " + string(slack.ChangeSent)}
	switch c.mode {
	case "stream":
		ways = append(ways, "call "+string(slack.ChangeStreamed), "call "+string(slack.ChangeEdited))
	case "edit":
		ways = append(ways, "call "+string(slack.ChangeEdited))
	}
	for _, p := range failpoint.Points() {
		ways = append(ways, string(p))
	}
	for i, way := range ways {
		point := way
		kind, inCall := strings.CutPrefix(way, "call ")
		if inCall {
			point = ""
		}
		p := c.launch(way, point)
		c.mu.Lock()
		c.slow = c.mode != "batch" && (kind == string(slack.ChangeEdited) || point == string(failpoint.AnswerStored))
		c.mu.Unlock()
		if inCall {
			c.arm(p, slack.ChangeKind(kind))
		}
		roots = append(roots, c.sl.User(slackAn).In(crashChannel(i)).Mentions(crashQuestion(i)).TS)
		select {
		case <-p.done:
		case <-waittest.Late(c.t):
			c.t.Fatalf("nobody died at %q", way)
		}
		if err := p.killed(); err != nil {
			c.t.Fatal(err)
		}
		if kind == string(slack.ChangeStreamed) {
			c.held.Open()
		}
		c.recover(way, func() {
			c.threadIn(crashChannel(i), roots[i], wholeAnswer(crashQuestion(i)))
		})
	}
	for i, way := range ways {
		c.checkOne(way, i, roots[i])
	}
	if n := c.sl.Count("chat.startStream"); (n > 0) != (c.mode != "batch") {
		c.t.Errorf("%d streams were asked for", n)
	}
	if lost := c.sl.Lost(); len(lost) > 0 {
		c.t.Errorf("the bot never acknowledged %d deliveries", len(lost))
	}
	c.t.Logf("%d kills, %d requests to the model", len(ways), c.ai.Stats().Received)
}

// recover starts the bot again, waits until it has done its work, and stops it.
// What Slack still wants to tell then, about the bot's own last words, a further
// process hears: the next one to be killed shall not die of it.
func (c *slackCrash) recover(way string, done func()) {
	c.t.Helper()
	for try := 0; try == 0 || try < 5 && len(c.sl.Pending()) > 0; try++ {
		p := c.launch("after "+way, "")
		done()
		if err := c.sl.WaitIdle(c.ctx()); err != nil {
			c.t.Errorf("after %q deliveries are still under way: %v", way, c.sl.Pending())
		}
		if err := p.end(syscall.SIGTERM); err != nil {
			c.t.Error(err)
		} else if p.err != nil {
			c.t.Errorf("%s did not stop in order: %v", p.name, p.err)
		}
	}
}

func crashChannel(i int) string  { return fmt.Sprintf("CK%d", i) }
func crashQuestion(i int) string { return fmt.Sprintf("question %d", i) }

// checkOne checks that all there is of the bot in a channel is the one answer in
// the thread, and that nothing was taken back to make it so.
func (c *slackCrash) checkOne(way string, i int, root string) {
	c.t.Helper()
	view := c.sl.Channel(crashChannel(i))
	shown := view.FromBot()
	if len(shown) == 2 && overMark.MatchString(shown[0].Plain) {
		shown = shown[1:] // the answer came late, and notified
	}
	if len(shown) != 1 || shown[0].ThreadTS != root || shown[0].Plain != wholeAnswer(crashQuestion(i)) || shown[0].Stream == slack.Streaming {
		c.t.Errorf("killed at %q, the bot shows %d messages: %q", way, len(shown), c.sl.Thread(crashChannel(i), root).Texts())
	}
	if len(view.Deleted)+len(view.Ephemerals) > 0 {
		c.t.Errorf("killed at %q, %d messages were deleted and %d whispered", way, len(view.Deleted), len(view.Ephemerals))
	}
}
