//go:build unix

package journey_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/waittest"
)

// TestForkIsMadeOnceWhereverTheBotDies kills the bot between the steps of a fork into
// a thread of its own, and starts it again: there is one thread, one fork in it, and
// one answer.
func TestForkIsMadeOnceWhereverTheBotDies(t *testing.T) {
	t.Parallel()
	c := newSlackCrash(t, "Socket", "batch")
	person := c.sl.User(slackAn).In(channel)
	for n, point := range []failpoint.Point{failpoint.ForkStored, failpoint.ForkOpened, failpoint.ForkPlaced} {
		p := c.launch(string(point), string(point))
		question := fmt.Sprint("question ", n)
		asked := person.Mentions(question)
		c.threadEnds(asked.TS, wholeAnswer(question))
		person.InThread(asked.TS).Mentions("/fork thread")
		select {
		case <-p.done:
		case <-waittest.Late(t):
			t.Fatalf("nobody died at %q", point)
		}
		if err := p.killed(); err != nil {
			t.Fatal(err)
		}
		again := c.launch("after "+string(point), "")
		c.threadShows(asked.TS, "continues with 2 messages")
		root := c.waitRoot("🍴 Fork: " + question)
		c.threadShows(root, "This fork continues with 2 messages")
		c.settles()
		roots, told, opened := 0, 0, 0
		for _, m := range c.sl.Channel(channel).Roots() {
			if m.User == c.sl.BotUser() && strings.Contains(m.Plain, question) {
				roots++
			}
		}
		for _, text := range c.sl.Thread(channel, asked.TS).Texts() {
			told += strings.Count(text, "continues with")
		}
		for _, text := range c.sl.Thread(channel, root).Texts() {
			opened += strings.Count(text, "This fork continues")
		}
		if roots != 1 || told != 1 || opened != 1 {
			t.Errorf("%s: %d threads, %d answers, %d beginnings", point, roots, told, opened)
		}
		got := strings.Join(c.rows(`SELECT
			(SELECT count(*) FROM remote_agent_sessions WHERE parent_session_id IS NOT NULL),
			(SELECT count(*) FROM remote_agent_conversations WHERE platform_conversation_id LIKE 'fork~%'),
			(SELECT count(*) FROM audit_log WHERE action = 'session.fork'), (SELECT count(*) FROM audit_log WHERE action = 'session.fork_failed')`), "")
		if want := fmt.Sprintf("%d | 0 | %d | 0", n+1, n+1); got != want {
			t.Errorf("%s: forks, those without a place, and what the audit has of them: %s, want %s", point, got, want)
		}
		if err := again.end(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}
