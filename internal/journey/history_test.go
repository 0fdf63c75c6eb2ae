package journey_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/emulator/telegram"
)

// People find again what was said: in a list, by words, as a transcript.
func TestEarlierSessionsAreListedSearchedAndShown(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/sessions")
		w.seesText(ann, "There are no sessions here yet")
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(
			openai.Calls(call("read_file", `{"path":"sum.sh"}`)).WithUsage(900, 100), openai.Text("It adds numbers, says `the` *model*.").WithUsage(900, 100),
		)
		w.says(ann, "what does the deploy script do? [click](https://evil.example) `x`")
		w.seesText(ann, "It adds numbers")
		w.says(ann, "/new")
		w.seesText(ann, "new session")
		for i := range 15 {
			w.says(ann, fmt.Sprint("question number ", i))
			w.seesText(ann, fmt.Sprint("echo: question number ", i))
		}
		w.restart()

		w.says(ann, "/sessions")
		list := w.seesText(ann, "2 sessions here", "active: question number 0", "30 messages", "what does the deploy script do?", "1 tool call", "2k tokens", "/sessions show 2")
		if strings.Index(list, "question number 0") > strings.Index(list, "deploy script") {
			t.Errorf("the newest session is not the first: %s", list)
		}
		w.says(ann, "/sessions DEPLOY scr*")
		w.seesText(ann, "in 1,", "user: what does the deploy script do?")
		w.says(ann, "/sessions words that nobody said")
		w.seesText(ann, "No messages here contain")
		w.says(ann, "/sessions ...")
		w.seesText(ann, "✖ Specify at least one word")

		w.says(ann, "/sessions show 1")
		shown := w.seesText(ann, "Session 1", "openai test-model", "user: what does the deploy script do? [click]", "calls read_file", "assistant: It adds numbers", "The full session is attached")
		if strings.Contains(shown, "goes on") || strings.Contains(shown, "before") {
			t.Errorf("of an ended, short session: %s", shown)
		}
		file := w.seesFile(ann, "session-1.md")
		if !strings.Contains(file, "### Call of read_file") || !strings.Contains(file, `{"path":"sum.sh"}`) || !strings.Contains(file, "### Result of read_file") {
			t.Errorf("in a private chat the file is whole, and it is:\n%s", file)
		}
		w.says(ann, "/sessions 2")
		shown = w.seesText(ann, "Session 2", "Active", "question number 14", "/sessions show 2 before 19")
		if strings.Contains(shown, "question number 8\n") || !strings.Contains(shown, "question number 9\n") {
			t.Errorf("the last 12 messages begin with question 9: %s", shown)
		}
		w.says(ann, "/sessions show 2 before 19")
		w.seesText(ann, "Session 2", "question number 8\n", "question number 3\n", "/sessions show 2 before 7")

		for wrong, want := range map[string]string{
			"show": "Specify a", "show 3": `no session "3" here`, "before 9": `no session "9" here`, "show 1 before x": "Specify a message number",
			"before 1": "No earlier entries", "show ........": "no session",
		} {
			w.says(ann, "/sessions "+wrong)
			w.seesText(ann, want)
		}
		w.listsMessages()
	})
}

// listsMessages reads the same as an operator does.
func (w *world) listsMessages() {
	w.t.Helper()
	list := func(q app.MessageQuery) string {
		return w.operator("list messages", func(env app.Env) error { return app.ListMessages(w.t.Context(), w.config(), env, q) })
	}
	conversation := fmt.Sprint("telegram/", ann)
	first := list(app.MessageQuery{Conversation: conversation, Limit: 3})
	for _, part := range []string{"deploy script", `(calls read_file {"path":"sum.sh"})`, "(result of read_file", "more: --after "} {
		if !strings.Contains(first, part) {
			w.t.Errorf("the first page has no %q:\n%s", part, first)
		}
	}
	_, cursor, _ := strings.Cut(strings.TrimSpace(first), "more: --after ")
	second := list(app.MessageQuery{Conversation: conversation, Limit: 2, After: cursor})
	if !strings.Contains(second, "It adds numbers") || !strings.Contains(second, "question number 0") || strings.Contains(second, "read_file") {
		w.t.Errorf("the second page:\n%s", second)
	}
	if newest := list(app.MessageQuery{Conversation: conversation, Desc: true, Limit: 1}); !strings.Contains(newest, "question number 14") {
		w.t.Errorf("the newest message:\n%s", newest)
	}
	lines := strings.Split(strings.TrimSpace(list(app.MessageQuery{JSON: true, Limit: 1000})), "\n")
	if len(lines) != 4+30 {
		w.t.Errorf("%d messages as JSON, want 34", len(lines))
	}
	var m struct {
		Seq    int64 `json:"seq"`
		Blocks []struct {
			Kind string          `json:"kind"`
			Data json.RawMessage `json:"data_json"`
		} `json:"blocks"`
	}
	if err := json.Unmarshal([]byte(lines[1]), &m); err != nil || m.Seq != 2 || m.Blocks[0].Kind != "tool_call" || !strings.Contains(string(m.Blocks[0].Data), "read_file") {
		w.t.Errorf("as JSON: %s, %v", lines[1], err)
	}
	if !strings.Contains(lines[2], `"success":true,"summary":"`) {
		w.t.Errorf("a result says nothing of what its call did: %s", lines[2])
	}
}

// What was said in one conversation is found in no other, whoever asks and
// however they name it. In a group nobody reads what tools returned.
func TestSessionsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, canary+" of Ann")
		w.seesText(ann, "echo: "+canary)
		id := fmt.Sprint(w.rows("SELECT id FROM remote_agent_sessions")[0])
		in := w.tg.Person(bob).In(group)
		in.Says("/clone@acme_bot " + url)
		w.seesText(group, "Cloned")
		w.ai.Enqueue(openai.Calls(call("read_file", `{"path":"sum.sh"}`)), openai.Text("I have read it."))
		w.tg.Person(ann).In(group).Says("@acme_bot a question for the group")
		w.seesText(group, "I have read it.")

		for _, ask := range []string{"/sessions " + canary, "/sessions " + canary + "*", "/sessions Ann"} {
			w.says(bob, ask)
			in.Says(strings.Replace(ask, "/sessions", "/sessions@acme_bot", 1))
		}
		for _, name := range []string{id, id[len(id)-8:], "2", fmt.Sprint("telegram/", ann)} {
			w.says(bob, "/sessions show "+name)
			in.Says("/sessions@acme_bot show " + name)
			w.says(bob, "/sessions before "+name)
		}
		w.says(bob, "/sessions")
		w.seesText(bob, "There are no sessions here yet")
		in.Says("/sessions@acme_bot")
		w.seesText(group, "1 session here", "a question for the group")
		in.Says("/sessions@acme_bot show 1")
		w.seesText(group, "Session 1", "calls read_file", "The full session is attached")
		file := w.seesFile(group, "session-1.md")
		if !strings.Contains(file, "Call of read_file") || !strings.Contains(file, "a question for the group") {
			t.Errorf("the file of the group is\n%s", file)
		}
		if strings.Contains(file, "sum.sh") || strings.Contains(file, "Result of") {
			t.Errorf("the group reads what a tool was given or returned:\n%s", file)
		}
		w.says(bob, "/whoami") // the last answer: all others are there
		w.seesText(bob, "role")
		in.Says("/whoami@acme_bot")
		w.seesText(group, "role")
		for chat, texts := range map[int64][]string{bob: w.tg.ChatView(bob).BotTexts(), group: w.tg.ChatView(group).BotTexts()} {
			if len(texts) < 8 {
				t.Errorf("chat %d has only %d answers: %q", chat, len(texts), texts)
			}
			for _, text := range texts {
				if strings.Contains(text, "of Ann") || strings.Contains(text, "echo: "+canary) {
					t.Errorf("chat %d reads of Ann's private chat: %q", chat, text)
				}
			}
		}
		w.says(ann, "/sessions "+canary)
		w.seesText(ann, "Messages, newest first", canary+" of Ann")
	})
}

// In Slack a bare name is enough, each thread has its own sessions, and who asks
// by a slash command gets no file that others would see.
func TestSlackSessionsOfAThread(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, w *world) {
		w.start()
		ann, bob := w.sl.User(slackAn).In(channel), w.sl.User(slackBo).In(channel)
		first := ann.Mentions("what is " + canary + "?")
		w.threadShows(first.TS, "echo:", canary)
		second := bob.Mentions("something else")
		w.threadShows(second.TS, "echo:", "something else")
		bob.InThread(second.TS).Mentions("sessions")
		w.threadShows(second.TS, "1 session here", "something else", "2 messages")
		bob.InThread(second.TS).Mentions("sessions " + canary)
		w.threadShows(second.TS, "No messages here contain")
		ann.InThread(first.TS).Mentions("sessions show 1")
		w.threadShows(first.TS, "Session 1", "what is "+canary, "The full session is attached")
		_, err := w.sl.WaitMessage(w.ctx(), channel, first.TS, func(m slack.Message) bool {
			return len(m.Files) == 1 && m.Files[0].Name == "session-1.md" && strings.Contains(string(m.Files[0].Data), canary)
		})
		if err != nil {
			t.Errorf("no file: %v", err)
		}
		bob.Slash("/agent", "sessions "+canary)
		if _, err := w.sl.WaitEphemeral(w.ctx(), channel, slackBo, func(s string) bool { return strings.Contains(s, "No messages here contain") }); err != nil {
			t.Errorf("the slash command: %v", err)
		}
		for _, text := range w.sl.Thread(channel, second.TS).Texts() {
			if strings.Contains(text, "what is "+canary) {
				t.Errorf("one thread reads of the other: %q", text)
			}
		}
	})
}
