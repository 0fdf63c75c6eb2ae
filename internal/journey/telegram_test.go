package journey_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/emulator/telegram"
)

func TestConversationSurvivesRestarts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "first question")
		w.seesText(ann, "echo: first question [1 messages]")

		w.restart()
		w.says(ann, "second question")
		w.seesText(ann, "echo: second question [3 messages]")

		w.says(ann, "/reset")
		w.seesText(ann, "Session ended")
		w.restart()
		w.says(ann, "third question")
		w.seesText(ann, "echo: third question [1 messages]")

		if told := w.posted(ann); len(told) != 4 {
			t.Errorf("the person sees %d messages of the bot, want 4: %q", len(told), told)
		}
	})
}

func TestMessagesSentWhileTheBotIsDownAreAnswered(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		for i := range 5 {
			w.says(ann, fmt.Sprintf("question %d", i))
		}
		w.start()
		for i := range 5 {
			w.seesText(ann, fmt.Sprintf("echo: question %d [%d messages]", i, 2*i+1))
		}
	})
}

// answersOf leaves out what is said beside the answers where they are late.
func answersOf(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !strings.HasPrefix(text, "echo: ") })
}

func TestConversationsRunAtOnceAndInOrder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "*", "MAX_CONCURRENT_CONVERSATIONS": "3"}).start()
		const chats, each = 12, 4
		for i := range each {
			for c := range chats {
				w.says(int64(1000+c), fmt.Sprintf("message %d", i))
			}
		}
		for c := range chats {
			chat := int64(1000 + c)
			texts := w.sees(chat, "all answers", func(texts []string) bool {
				answers := answersOf(texts)
				return len(answers) == each && strings.HasSuffix(answers[each-1], "messages]")
			})
			for i, text := range answersOf(texts) {
				if want := fmt.Sprintf("echo: message %d [%d messages]", i, 2*i+1); text != want {
					t.Errorf("chat %d, answer %d is %q, want %q", chat, i, text, want)
				}
			}
		}
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		gate := emulator.NewGate()
		w.ai.Enqueue(openai.Reply(openai.Delta("This is the beginning "), openai.Delta("of a long answer"), openai.Gate(gate)))
		w.start()
		w.says(ann, "tell me a long story")
		w.seesText(ann, "of a long answer") // partial text is shown while the model is silent

		w.says(ann, "this waits")
		w.says(ann, "/status")
		w.seesText(ann, "Running for", "1 queued")

		begin := time.Now()
		w.says(ann, "/stop")
		w.seesText(ann, "This is the beginning of a long answer", "Stopped after")
		w.seesText(ann, "⏹ Stopped.", "1 queued message was dropped")
		t.Logf("stopped after %s", time.Since(begin))
		if err := w.ai.Wait(w.ctx(), func(s openai.Stats) bool { return s.Canceled == 1 }); err != nil {
			t.Error("the model's request was not canceled")
		}

		w.says(ann, "go on") // the stopped text stays in the session
		w.seesText(ann, "echo: go on [3 messages]")
		requests := w.ai.Requests()
		history := requests[len(requests)-1].Messages
		if got := history[len(history)-2].Text(); got != "This is the beginning of a long answer" {
			t.Errorf("the model is told that it said %q", got)
		}
	})
}

// TestWhoBlocksTheBotEndsItsWork, and finds it as before when they are back.
func TestWhoBlocksTheBotEndsItsWork(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		stuck := w.hang()
		w.start()
		w.says(ann, "tell me a long story")
		w.seesText(ann, stuck)
		w.tg.Person(ann).Blocks()
		if err := w.ai.Wait(w.ctx(), func(s openai.Stats) bool { return s.Canceled == 1 }); err != nil {
			t.Error("the model's request was not canceled")
		}
		w.tg.Person(ann).Unblocks()
		w.says(ann, "go on")
		w.seesText(ann, "echo: go on")
	})
}

func TestStrangersAreRefusedOnceADay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		for i := range 5 {
			w.says(eve, fmt.Sprintf("let me in %d", i))
		}
		w.says(eve, "/status")
		w.tg.Person(eve).In(-100).Says("@acme_bot hello")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		w.seesText(eve, "private bot", "666") // it has no record: a restart before it is sent would lose it
		w.restart()
		w.says(eve, "again")
		w.says(ann, "still there?")
		w.seesText(ann, "echo: still there?")
		w.settles()
		if texts := w.tg.ChatView(eve).BotTexts(); len(texts) != 1 {
			t.Errorf("the stranger sees %q", texts)
		}
		if texts := w.tg.ChatView(-100).BotTexts(); len(texts) != 0 {
			t.Errorf("the group sees %q", texts)
		}
		for _, r := range w.ai.Requests() {
			if text := r.LastUserText(); strings.Contains(text, "let me in") || strings.Contains(text, "again") {
				t.Errorf("the model was asked %q", text)
			}
		}
	})
}

func TestPlanThenExecuteStartsAFreshSession(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "we talk about the project first")
		w.seesText(ann, "echo: we talk")

		w.ai.Enqueue(openai.Text("1. Add the flag.\n2. Test it."))
		w.says(ann, `/command-invoke plan-feature "Add dark mode"`)
		w.seesText(ann, "Add the flag")
		w.restart()

		w.ai.Enqueue(openai.Text("Done, both steps."))
		w.says(ann, "/execute quickly")
		w.seesText(ann, "Done, both steps.")

		requests := w.ai.Requests()
		planning, executing := requests[len(requests)-2], requests[len(requests)-1]
		if text := planning.LastUserText(); !strings.Contains(text, "Add dark mode") || strings.Contains(text, "plan-feature") {
			t.Errorf("the planning prompt is %q", text)
		}
		roles := executing.Roles()
		if roles[0] == "system" {
			roles = roles[1:]
		}
		if len(roles) != 1 {
			t.Errorf("executing sees earlier messages: %v", roles)
		}
		if text := executing.LastUserText(); !strings.Contains(text, "Add the flag") || !strings.Contains(text, "quickly") {
			t.Errorf("the executing prompt is %q", text)
		}
		w.says(ann, "and now?") // goes on in the executing session
		w.seesText(ann, "echo: and now? [3 messages]")
	})
}

func TestModelErrors(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		t.Log("a passing error is retried, and the answer comes in the same message")
		w.ai.Enqueue(openai.Overloaded())
		w.says(ann, "one")
		w.seesText(ann, "echo: one [1 messages]")

		t.Log("a cut answer is never shown as complete")
		w.ai.Enqueue(openai.Reply(openai.Delta("half an ans"), openai.Cut()))
		w.says(ann, "two")
		w.seesText(ann, "echo: two [3 messages]")

		t.Log("a final error is visible and the chat goes on")
		w.ai.Enqueue(openai.Unauthorized())
		w.says(ann, "three")
		w.seesText(ann, "✖", "saved")
		w.says(ann, "four")
		w.seesText(ann, "echo: four [5 messages]") // the one that failed is not repeated

		t.Log("an overflow is answered with a smaller window once, then said clearly")
		w.ai.Enqueue(openai.ContextOverflow(1000, 2000), openai.ContextOverflow(1000, 2000))
		w.says(ann, "five")
		w.seesText(ann, "too long for the model")

		for _, text := range w.tg.ChatView(ann).BotTexts() {
			if strings.Contains(text, "half an ans") || strings.Contains(text, key) {
				t.Errorf("a person sees %q", text)
			}
		}
		if told := w.posted(ann); len(told) != 5 {
			t.Errorf("5 questions have %d messages: %q", len(told), told)
		}
	})
}

func TestTelegramFaults(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		t.Log("a flood wait is honored and the answer arrives once")
		w.tg.Inject("editMessageText", telegram.FloodWait(2*time.Second))
		w.says(ann, "one")
		w.seesText(ann, "echo: one")

		t.Log("an ambiguous first send leaves at most a stray placeholder")
		w.tg.Inject("sendMessage", telegram.Fault{End: platformapi.After})
		w.says(ann, "two")
		w.seesText(ann, "echo: two")

		t.Log("an ambiguous edit is repeated without harm")
		w.settles()
		w.tg.Inject("editMessageText", telegram.Fault{End: platformapi.After})
		edits := w.tg.Count("editMessageText")
		w.says(ann, "three")
		w.seesText(ann, "echo: three")
		w.settles()
		if w.tg.Count("editMessageText") < edits+2 {
			t.Fatal("the ambiguous edit was not repeated")
		}

		t.Log("a deleted placeholder becomes a new message")
		w.tg.Inject("editMessageText", telegram.Refuse(400, "Bad Request: message to edit not found"))
		w.says(ann, "four")
		w.seesText(ann, "echo: four")

		counts := map[string]int{}
		for _, text := range w.tg.ChatView(ann).BotTexts() {
			counts[text]++
		}
		for text, n := range counts {
			if strings.HasPrefix(text, "echo") && n != 1 {
				t.Errorf("%q is there %d times", text, n)
			}
		}
	})
}

func TestLongAnswerIsSplitAndComplete(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		var b strings.Builder
		const lines = 300 // four messages; more of them are shown by their ends
		for i := range lines {
			fmt.Fprintf(&b, "Line %03d of a long answer with 🌍 and *stars*.\n\n", i)
		}
		w.ai.Enqueue(openai.Pieces(b.String(), 500))
		w.start()
		w.says(ann, "long please")
		texts := w.sees(ann, "the last line", func(texts []string) bool {
			return len(texts) > 1 && strings.Contains(texts[0], "Line 000") && strings.Contains(texts[len(texts)-1], fmt.Sprintf("Line %03d", lines-1))
		})
		all := strings.Join(texts, "\n")
		for i := range lines {
			if n := strings.Count(all, fmt.Sprintf("Line %03d", i)); n != 1 {
				t.Fatalf("line %d is there %d times", i, n)
			}
		}
		w.says(ann, "next")
		w.seesText(ann, "echo: next [3 messages]")
	})
}

func TestGracefulStopPutsRunningTurnsBack(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		gate := emulator.NewGate()
		w.with(map[string]string{"SHUTDOWN_GRACE": "100ms"})
		w.ai.Enqueue(openai.Reply(openai.Delta("I begin"), openai.Delta(" and hang"), openai.Gate(gate)))
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "and hang")
		w.restart()
		w.seesText(ann, "echo: hello [1 messages]")
		if told := w.posted(ann); len(told) != 1 {
			t.Errorf("one question has %d messages: %q", len(told), told)
		}
	})
}

func TestEditReplacesAMessageThatWaits(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		gate := emulator.NewGate()
		w.ai.Enqueue(openai.Reply(openai.Delta("working"), openai.Delta(" on it"), openai.Gate(gate), openai.Delta(", done")))
		w.start()
		first := w.says(ann, "first")
		w.seesText(ann, "on it")
		second := w.says(ann, "secnod")
		w.tg.Person(ann).Edits(second.MessageID, "second")
		w.tg.Person(ann).Edits(first.MessageID, "too late")
		w.says(ann, "/status") // its answer proves that the edits were taken in before it
		w.seesText(ann, "1 queued")
		gate.Open()
		w.seesText(ann, "echo: second [3 messages]")
	})
}

func TestUnknownCommandNamesTheNearest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "/staus")
		w.seesText(ann, "/staus", "/status")
		w.says(ann, "/whoami")
		w.seesText(ann, "42", "user")
		w.says(ann, "/help@acme_bot")
		w.seesText(ann, "/help all every command")
		if texts := w.tg.ChatView(ann).BotTexts(); strings.Count(texts[len(texts)-1], "\n") >= 10 {
			t.Errorf("the short help has more than ten lines:\n%s", texts[len(texts)-1])
		}
		if n := w.ai.Stats().Received; n != 0 {
			t.Errorf("commands caused %d model requests", n)
		}
	})
}
