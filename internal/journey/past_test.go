package journey_test

import (
	"strings"
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// The assistant reads what happened in its own conversation before, with seed 003's
// example query, and nothing of another one.
func TestAgentReadsItsOwnPast(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		w.start()
		w.says(bob, "the secret of bob")
		w.seesText(bob, "echo: the secret of bob")
		w.says(ann, "an earlier question")
		w.seesText(ann, "echo: an earlier question")
		w.says(ann, "/new")
		w.seesText(ann, "new session")

		read := func(chat int64, says func(string), query string) string {
			w.ai.Enqueue(openai.Calls(call("sqlite3_reader", `{"query":"`+query+`","limit":100}`)), openai.Text("Read "+query[len(query)-8:]))
			says(query)
			w.seesText(chat, "Read "+query[len(query)-8:])
			w.settles()
			requests := w.ai.Requests()
			last := requests[len(requests)-1].Messages
			return last[len(last)-1].Text()
		}
		private := func(text string) { w.says(ann, text) }
		if got := read(ann, private, "SELECT * FROM agent_sessions WHERE status = 'running'"); !strings.Contains(got, `"agent_name"`) ||
			strings.Count(got, `"running"`) != 1 || strings.Contains(got, "bob") {
			t.Errorf("the running sessions: %s", got)
		}
		if got := read(ann, private, "SELECT content FROM agent_messages ORDER BY created_at, id"); !strings.Contains(got, "an earlier question") || strings.Contains(got, "bob") {
			t.Errorf("the messages: %s", got)
		}
		if got := read(ann, private, "SELECT tool_name, request FROM agent_tool_calls LIMIT 9"); !strings.Contains(got, "sqlite3_reader") || !strings.Contains(got, "agent_messages") {
			t.Errorf("the calls: %s", got)
		}

		t.Log("where others read along, what tools were given is left out")
		inGroup := func(text string) { w.tg.Person(ann).In(group).Says("@acme_bot " + text) }
		read(group, inGroup, "SELECT 'first' FROM agent_sessions")
		if got := read(group, inGroup, "SELECT tool_name, request FROM agent_tool_calls LIMIT 8"); !strings.Contains(got, `["sqlite3_reader",null]`) || strings.Contains(got, "first") {
			t.Errorf("the calls of a group: %s", got)
		}
	})
}
