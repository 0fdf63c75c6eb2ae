//go:build unix

package journey_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// TestCrashGitHub kills the bot while it answers an issue, at every
// named point and in the middle of its calls to GitHub, and starts it again.
// GitHub does not deliver by itself what the dead bot did not take, and lists
// what was posted: there must be one comment for each turn, complete, and none
// that was deleted to make it so.
func TestCrashGitHub(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"batch", "stream"} {
		t.Run("SQLite/"+mode, func(t *testing.T) {
			t.Parallel()
			c := newGitHubCrash(t, newWorld(t, ""), mode)
			for i, way := range githubWays(mode) {
				c.die(i, way)
				c.recover(i, way)
			}
			c.check()
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		c := newGitHubCrash(t, newWorld(t, storetest.PostgresURL(t)), "batch")
		// Both turns wait for the leases of the dead at the same time.
		ways := []string{string(failpoint.SentUnrecorded), string(failpoint.MidStream)}
		for i, way := range ways {
			c.die(i, way)
		}
		c.w.slow = takeover
		c.recover(0, "everything")
		c.check()
	})
}

// githubWays are the ways to die: at a point, in a call that GitHub carries out
// while nobody hears the answer, or either while a review comment is answered.
func githubWays(mode string) []string {
	if mode == "stream" {
		return []string{
			"call issues/create-comment", // the comment that grows
			string(failpoint.MidStream),
			"call issues/update-comment",
			string(failpoint.AnswerStored),
			string(failpoint.SentUnrecorded),
		}
	}
	// First this one: later there is something that the sweep at the start stores
	// once more.
	ways := []string{string(failpoint.Stored)}
	for _, p := range failpoint.Points() {
		if p != failpoint.Stored {
			ways = append(ways, string(p))
		}
	}
	return append(ways, "call issues/create-comment", "line call pulls/create-review-comment", "line "+string(failpoint.SentUnrecorded))
}

// githubCrash is a database with the bots that are killed over it.
type githubCrash struct {
	*hub
	t     *testing.T
	dir   string
	procs []*process
	asked []asked
	pull  int // a pull request with lines to comment on

	// victim dies in the next call of the operation that it is armed for, after
	// GitHub has the request and before it hears of it.
	mu     sync.Mutex
	victim *process
	armed  string
}

// asked is a question in an issue or, with a comment, about a line.
type asked struct {
	way     string
	number  int
	comment int64
	answer  string
}

// resumed reports whether the turn had not ended when the bot died. Then the
// mark of its end comes after the restart. A bot that dies later may leave the
// eyes: marks are not on record.
func (a asked) resumed() bool {
	return slices.Contains([]failpoint.Point{
		failpoint.Received, failpoint.Stored, failpoint.Claimed, failpoint.BeforeModel, failpoint.MidStream,
	}, failpoint.Point(a.way))
}

func newGitHubCrash(t *testing.T, w *world, mode string) *githubCrash {
	t.Helper()
	c := &githubCrash{t: t, hub: w.withGitHub(sumRepo, "webhook"), dir: t.TempDir()}
	w.with(map[string]string{
		"PATH": os.Getenv("PATH"), "LISTEN_ADDR": freePort(t), "TELEGRAM_BOT_TOKEN": "", "GITHUB_STREAMING_MODE": mode,
	})
	c.SetHook(github.Hook{URL: "http://" + w.env["LISTEN_ADDR"] + "/webhooks/github", Secret: ghSecret})
	c.git.Run(ghRepo, nil, "branch", "feature", "main")
	c.git.CommitTo(ghRepo, "feature", []gittest.Entry{{Path: "sum.sh", Data: "#!/bin/sh\necho $(($1 + $2))\n"}})
	c.InjectFunc(func(call github.Call) github.Fault {
		c.inCall(call.Operation)
		return github.Fault{}
	})
	w.ai.Script(func(r openai.Request) openai.Response {
		text := r.LastUserText()
		answer := wholeAnswer(text[strings.LastIndex(text, "question"):])
		if mode == "stream" { // for so long that the comment that grows is there also where a slow machine begins late
			return openai.Reply(openai.Delta(answer[:12]), openai.Pause(time.Second), openai.Delta(answer[12:]))
		}
		return openai.Pieces(answer, 12)
	})
	t.Cleanup(func() { endAll(t, c.procs) })
	return c
}

// launch starts the bot and waits until it is ready.
func (c *githubCrash) launch(name, point string) *process {
	c.t.Helper()
	p, err := startProcess(c.t, c.dir, name, point, c.w.env)
	if err != nil {
		c.t.Fatal(err)
	}
	c.procs = append(c.procs, p)
	if err := p.readyOrDead(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-p.done:
		c.t.Fatalf("%s ended while it started: %v", name, p.err)
	default:
	}
	return p
}

// inCall kills the victim if it is armed for an operation.
func (c *githubCrash) inCall(operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.victim == nil || operation != c.armed {
		return
	}
	_ = c.victim.cmd.Process.Kill()
	<-c.victim.done
	c.victim = nil
}

// die asks a question and waits until the bot is dead.
func (c *githubCrash) die(i int, way string) {
	c.t.Helper()
	rest, line := strings.CutPrefix(way, "line ")
	operation, inCall := strings.CutPrefix(rest, "call ")
	point := rest
	if inCall {
		point = ""
	}
	p := c.launch(way, point)
	if inCall {
		c.mu.Lock()
		c.victim, c.armed = p, operation
		c.mu.Unlock()
	}
	question := fmt.Sprintf("question %d", i)
	gina := c.Person("gina").In(ghRepo)
	one := asked{way: way, answer: wholeAnswer(question)}
	if line {
		if c.pull == 0 {
			c.pull = gina.OpenPull(github.Pull{Title: "Add", Head: "feature", Base: "main"}).Number
		}
		sent := gina.ReviewComment(c.pull, "sum.sh", 2, "@remote-agent "+question)
		one.number, one.comment = c.pull, sent.Comment
	} else {
		one.number = gina.OpenIssue("Issue", "@remote-agent "+question).Number
	}
	c.asked = append(c.asked, one)
	select {
	case <-p.done:
	case <-waittest.Late(c.t):
		c.t.Fatalf("nobody died at %q", way)
	}
	if err := p.killed(); err != nil {
		c.t.Fatal(err)
	}
}

// recover starts the bot again, waits until it has done its work and has heard
// all that GitHub has to tell, and stops it: the next one to be killed shall not
// die of the past.
func (c *githubCrash) recover(from int, way string) {
	c.t.Helper()
	p := c.launch("after "+way, "")
	for _, one := range c.asked[from:] {
		c.sees(one.number, one.answer)
	}
	ctx := waittest.Context(c.t.Context(), c.t)
	err := c.WaitFor(ctx, func() bool { return len(c.Lost()) == 0 })
	if err == nil {
		err = c.WaitIdle(ctx)
	}
	if err != nil {
		c.t.Errorf("after %q, %d deliveries never arrived", way, len(c.Lost()))
	}
	c.settles()
	for _, one := range c.asked[from:] {
		if one.resumed() {
			c.reacted(one.number, 0, "+1")
		}
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		c.t.Error(err)
	} else if p.err != nil {
		c.t.Errorf("%s did not stop in order: %v", p.name, p.err)
	}
}

// late is what is left of the progress where an answer came after 5 seconds or more.
var late = regexp.MustCompile(`^✔ (Answered after|Worked for) ([5-9]|[1-9][0-9]+) s$`)

// check checks that all there is of the bot is one comment for each question,
// where it belongs.
func (c *githubCrash) check() {
	c.t.Helper()
	want := make(map[int][]asked)
	for _, one := range c.asked {
		want[one.number] = append(want[one.number], one)
	}
	for number, all := range want {
		view := c.Issue(ghRepo, number)
		// On a machine so busy that the answer comes late, it is a comment of its own, which
		// notifies, and the one that grew says only that.
		cards := 0
		shown := slices.DeleteFunc(view.FromBotComments(), func(s github.Comment) bool {
			isLate := cards < len(all) && late.MatchString(s.Text()) // one for each answer
			if isLate {
				cards++
			}
			return isLate
		})
		if len(shown) != len(all) {
			c.t.Errorf("killed at %q, the bot shows %d comments: %q", all[0].way, len(shown), view.Texts())
		}
		for _, one := range all {
			n := slices.IndexFunc(shown, func(s github.Comment) bool { return s.Text() == one.answer })
			if n < 0 || shown[n].InReplyTo != one.comment {
				c.t.Errorf("killed at %q, the answer is not where it belongs: %q", one.way, view.Texts())
			}
		}
		if len(view.Deleted) > 0 {
			c.t.Errorf("killed at %q, %d comments were deleted", all[0].way, len(view.Deleted))
		}
	}
	c.t.Logf("%d kills, %d requests to the model", len(c.asked), c.w.ai.Stats().Received)
}
