//go:build unix

package journey_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/waittest"
)

// TestFinding7EachEffectHasOneRowWhereverTheBotDies kills the bot around a call of a tool, a push and a pull request, and starts it again: each has one row in
// the audit log, and the chain holds.
func TestFinding7EachEffectHasOneRowWhereverTheBotDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	c := newGitHubCrash(t, w, "batch")
	w.ai.Script(func(r openai.Request) openai.Response {
		if roles := r.Roles(); roles[len(roles)-1] == "tool" {
			return openai.Text("That is done.")
		}
		return openai.Calls(call("write_file", `{"path":"note.txt","content":"a note"}`))
	})
	gina := c.Person("gina").In(ghRepo)
	for _, point := range failpoint.Effects() {
		p := c.launch(string(point), string(point))
		issue := gina.OpenIssue("Issue", "@remote-agent write a note").Number
		pulls := !strings.HasPrefix(string(point), "tool-")
		if pulls {
			c.sees(issue, "That is done.")
			gina.Comment(issue, "@remote-agent /pr Write a note")
		}
		select {
		case <-p.done:
		case <-waittest.Late(t):
			t.Fatalf("nobody died at %q", point)
		}
		if err := p.killed(); err != nil {
			t.Fatal(err)
		}
		again := c.launch("after "+string(point), "")
		c.sees(issue, "That is done.")
		want := map[string]int{"tool.run": 1}
		if pulls {
			c.sees(issue, "draft pull request")
			want["branch.push"], want["pull.open"] = 1, 1
			if got := strings.Fields(c.git.Run(ghRepo, nil, "rev-list", fmt.Sprintf("main..bot/issue-%d", issue))); len(got) != 1 {
				t.Errorf("%s: %d commits were pushed", point, len(got))
			}
		}
		c.settles()
		want["comment.post"] = len(c.Issue(ghRepo, issue).FromBotComments())
		got := make(map[string]int)
		for _, row := range w.rows(fmt.Sprintf(`SELECT a.action FROM audit_log a JOIN remote_agent_conversations c ON c.id = a.conversation_id
			WHERE c.platform_conversation_id LIKE '%%#%d' AND a.action IN ('tool.run', 'branch.push', 'pull.open', 'comment.post')`, issue)) {
			got[row]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the audit log has %v, want %v", point, got, want)
		}
		if err := again.end(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	out, err := w.cli(func(env app.Env) error { return app.VerifyAudit(w.ctx(), w.config(), env, "") })
	if err != nil || !strings.HasPrefix(out, "sound: ") {
		t.Errorf("verify: %s %v", out, err)
	}
	for _, row := range w.rows("SELECT detail FROM audit_log") {
		if strings.Contains(row, "a note") {
			t.Errorf("the audit log has what somebody wrote: %s", row)
		}
	}
}
