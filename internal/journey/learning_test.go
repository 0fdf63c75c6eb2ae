package journey_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// teaches reports whether a request asks what can be learned.
func teaches(r openai.Request) bool {
	return strings.HasPrefix(r.Messages[0].Text(), "You take notes about one person")
}

// obedient answers people with how many messages it read, and proposes every
// line that it is asked to learn from.
func obedient(r openai.Request) openai.Response {
	if !teaches(r) {
		return counting(r)
	}
	var asked struct {
		Messages []struct {
			Message int
			Text    string
		}
	}
	if err := json.Unmarshal([]byte(r.LastUserText()), &asked); err != nil {
		return openai.Text("not JSON: " + err.Error())
	}
	type note struct {
		Message  int    `json:"message"`
		Quote    string `json:"quote"`
		Fact     string `json:"fact"`
		Category string `json:"category"`
	}
	var notes []note
	for _, m := range asked.Messages {
		for line := range strings.Lines(m.Text) {
			line = strings.TrimSpace(line)
			notes = append(notes, note{m.Message, line, line, "preference"})
		}
	}
	encoded, err := json.Marshal(map[string]any{"facts": notes, "episodes": []note{}})
	if err != nil {
		return openai.Text(err.Error())
	}
	return openai.Text(string(encoded)).WithUsage(300, 40)
}

// eachLearningWorld runs a journey with Telegram, Slack and a learner, on both
// databases.
func eachLearningWorld(t *testing.T, journey func(t *testing.T, w *world)) {
	t.Helper()
	run := func(t *testing.T, w *world) {
		t.Helper()
		w.with(map[string]string{"TELEGRAM_BOT_TOKEN": token, "MEMORY_LEARNING": "on", "MODEL_CHEAP": "openai:cheap-model"})
		w.ai.Script(obedient)
		journey(t, w)
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		run(t, newSlackWorld(t, "", "Socket").migrated())
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		run(t, newSlackWorld(t, storetest.PostgresMigratedURL(t), "Socket"))
	})
}

// lessons returns the requests that asked what can be learned.
func (w *world) lessons() (list []openai.Request) {
	for _, r := range w.ai.Requests() {
		if teaches(r) {
			list = append(list, r)
		}
	}
	return list
}

// shows asks a command in the private Telegram chat until its answer has every
// part: learning takes its time.
func (w *world) shows(user int64, text string, parts ...string) string {
	w.t.Helper()
	for late := waittest.Late(w.t); ; {
		answers := len(w.tg.ChatView(user).BotTexts())
		w.says(user, text)
		texts := w.sees(user, "an answer to "+text, func(texts []string) bool { return len(texts) > answers && texts[len(texts)-1] != "…" })
		last := texts[len(texts)-1]
		if containsAll(last, parts) {
			return last
		}
		select {
		case <-late:
			w.t.Fatalf("%s shows %q, want %q in it", text, last, parts)
		default:
		}
	}
}

// inSlack asks in a new thread and returns what the model read for it.
func (w *world) inSlack(user, text string) string {
	w.t.Helper()
	asked := w.sl.User(user).In(channel).Mentions(text)
	w.threadShows(asked.TS, "answered")
	for _, r := range w.ai.Requests() {
		if !teaches(r) && strings.Contains(r.LastUserText(), text) {
			var all strings.Builder
			for _, m := range r.Messages {
				all.WriteString(m.Text() + "\n")
			}
			return all.String()
		}
	}
	w.t.Fatalf("the model was not asked %q", text)
	return ""
}

// dm says something to the bot in a direct message in Slack and waits for an
// answer that has every part.
func (w *world) dm(user, text string, parts ...string) string {
	w.t.Helper()
	sent := w.sl.User(user).Says(text)
	m, err := w.sl.WaitMessage(w.ctx(), w.sl.DM(user), "", func(m slack.Message) bool {
		return m.User == w.sl.BotUser() && m.TS > sent.TS && containsAll(m.Plain, parts)
	})
	if err != nil {
		w.t.Fatalf("%q is not answered with %q", text, parts)
	}
	return m.Plain
}

var shownCode = regexp.MustCompile(`/link ([A-Z2-7]{26})`)

// linked links Ann's account in Slack with the one in Telegram.
func (w *world) linked() {
	w.t.Helper()
	w.says(ann, "/link")
	code := shownCode.FindStringSubmatch(w.seesText(ann, "/link "))
	if code == nil {
		w.t.Fatal("no code is shown")
	}
	w.keepsNoTraceOf(code[1])
	w.dm(slackAn, "link "+code[1], "Linked with", "telegram/42")
	w.seesText(ann, "slack/"+slackAn, "sent your code")
}

// keepsNoTraceOf checks that a text is not in the SQLite database.
func (w *world) keepsNoTraceOf(text string) {
	w.t.Helper()
	if w.env["DATABASE_URL"] != "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(w.env["DATA_DIR"], "bot.db*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("there is no database: %v", err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		if strings.Contains(string(raw), text) {
			w.t.Errorf("%s has it", filepath.Base(f))
		}
	}
}

// A preference that was told in one chat is learned, used a day later on another
// platform by the same person and by nobody else, corrected, shown and forgotten.
func TestWhatAPersonSaysIsLearnedAndUsedElsewhere(t *testing.T) {
	t.Parallel()
	eachLearningWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "I prefer "+canary+" over everything else")
		w.seesText(ann, "answered")
		today := time.Now().UTC().Format(time.DateOnly)
		w.shows(ann, "/memory", "Memories about you: 1", canary, "preference", "learned from what you wrote in your private chat on telegram on "+today)
		lesson := w.lessons()[0]
		if lesson.Model != "cheap-model" || len(lesson.Messages) != 2 || len(lesson.Tools) > 0 {
			t.Errorf("learned by the request %+v", lesson)
		}
		w.linked()

		w.ahead.Store(int64(24 * time.Hour))
		if text := w.inSlack(slackAn, "what should I choose?"); !strings.Contains(text, canary) || !strings.Contains(text, "1 day ago") || !strings.Contains(text, "do not repeat it") {
			t.Errorf("a day later the model read of Ann in Slack: %s", text)
		}
		if text := w.inSlack(slackBo, "what should he choose?"); strings.Contains(text, canary) {
			t.Errorf("of Bob it read: %s", text)
		}
		w.shows(ann, "/memory edit 1 I prefer tea over everything else", "Updated memory 1")
		if text := w.inSlack(slackAn, "and what should I take now?"); !strings.Contains(text, "prefer tea over") {
			t.Errorf("after the correction: %s", text)
		}
		w.shows(ann, "/forget all yes", "Deleted all")
		if text := w.inSlack(slackAn, "and what is left to choose?"); strings.Contains(text, "prefer tea") {
			t.Errorf("after forgetting: %s", text)
		}
		w.shows(ann, "/memory off", "Memory is off for you")
		before := len(w.lessons())
		if text := w.inSlack(slackAn, "I prefer cocoa over tea now"); strings.Contains(text, "remembered about you") {
			t.Errorf("with memory off: %s", text)
		}
		w.shows(ann, "/memory on", "Memory is on for you")
		w.says(ann, "I prefer juice over all of that")
		w.shows(ann, "/memory", "juice")
		for _, r := range w.lessons()[before:] {
			if strings.Contains(r.LastUserText(), "cocoa") {
				t.Error("the model was asked about what was said with memory off")
			}
		}
	})
}

// A code that is asked for with a slash command is shown to that person alone, and
// so is what became of it; in a group it is refused and worthless.
func TestALinkCodeIsShownToOnePersonAlone(t *testing.T) {
	t.Parallel()
	eachLearningWorld(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		w.start()
		whispered := func(part string) string {
			found := ""
			_, err := w.sl.WaitEphemeral(w.ctx(), channel, slackAn, func(text string) bool {
				if strings.Contains(text, part) {
					found = text
				}
				return found != ""
			})
			if err != nil {
				t.Fatalf("Ann is not told %q alone", part)
			}
			return found
		}
		w.sl.User(slackAn).In(channel).Slash("/agent", "link")
		code := shownCode.FindStringSubmatch(whispered("/link "))
		if code == nil {
			t.Fatal("no code is shown")
		}
		w.tg.Person(ann).In(group).Says("/link@acme_bot")
		w.seesText(group, "private chat")
		w.says(ann, "/link "+code[1])
		w.seesText(ann, "Linked with slack/"+slackAn)
		whispered("sent your code")
		for _, m := range w.sl.Channel(channel).FromBot() {
			if strings.Contains(m.Plain, code[1]) || strings.Contains(m.Plain, "linked") {
				t.Errorf("the channel reads %q", m.Plain)
			}
		}
		w.says(ann, "/unlink slack/"+slackAn)
		w.seesText(ann, "Unlinked")
		w.says(ann, "/link")
		shown := shownCode.FindStringSubmatch(w.seesText(ann, "/link "))
		w.sl.User(slackBo).In(channel).Mentions("link " + shown[1])
		if _, err := w.sl.WaitMessage(w.ctx(), channel, "", func(m slack.Message) bool { return strings.Contains(m.Plain, "no longer valid") }); err != nil {
			t.Error("a code in a channel is not refused")
		}
		w.dm(slackAn, "link "+shown[1], "That code is wrong")
	})
}

// Nothing is learned of what a person quotes, forwards or attaches, and one who
// repeats the message of another teaches nothing of themself.
func TestNothingIsLearnedOfQuotes(t *testing.T) {
	t.Parallel()
	eachLearningWorld(t, func(t *testing.T, w *world) {
		w.start()
		quoted := "> I prefer " + canary + " too\nI like my tea number1 very hot"
		w.says(ann, quoted)
		w.seesText(ann, "answered")
		w.shows(ann, "/memory", "Memories about you: 1", "my tea number1")
		root := w.sl.User(slackBo).In(channel).Mentions("I prefer bobs " + canary)
		w.threadShows(root.TS, "answered")
		w.sl.User(slackAn).In(channel).InThread(root.TS).Mentions("I like my tea number2 very cold")
		w.threadShows(root.TS, "[3 messages]")
		w.linked()
		list := w.shows(ann, "/memory", "my tea number2")
		if strings.Contains(list, canary) {
			t.Errorf("Ann's memory has the words of others: %s", list)
		}
		for _, r := range w.lessons() {
			text := r.LastUserText()
			if strings.Contains(text, "my tea") && strings.Contains(text, canary) {
				t.Errorf("the model read of Ann: %s", text)
			}
		}
	})
}

// A profile without memory remembers nothing by itself, either.
func TestNothingIsLearnedUnderAProfileWithoutMemory(t *testing.T) {
	t.Parallel()
	eachLearningWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.profiles("name: forgetful\nmemory: {enabled: false}\n")
		w.says(ann, "/agent forgetful")
		w.seesText(ann, "forgetful")
		w.says(ann, "I like my tea number1 very hot")
		w.seesText(ann, "answered")
		w.says(ann, "/agent default")
		w.seesText(ann, "default")
		w.says(ann, "I like my tea number2 very cold")
		list := w.shows(ann, "/memory", "my tea number2")
		if strings.Contains(list, "number1") {
			t.Errorf("Ann's memory has what was said where nothing is remembered: %s", list)
		}
		for _, r := range w.lessons() {
			if strings.Contains(r.LastUserText(), "number1") {
				t.Errorf("the model read: %s", r.LastUserText())
			}
		}
	})
}

// The service ends while the model is asked: what was said is learned after the
// restart, once.
func TestARestartInTheMiddleOfLearning(t *testing.T) {
	t.Parallel()
	eachLearningWorld(t, func(t *testing.T, w *world) {
		asked := make(chan struct{}, 100)
		var held atomic.Bool
		held.Store(true)
		w.ai.Script(func(r openai.Request) openai.Response {
			if held.Load() && teaches(r) {
				asked <- struct{}{}
				return openai.Reply(openai.Delta(`{"facts":[`), openai.Gate(emulator.NewGate()))
			}
			return obedient(r)
		})
		w.start()
		w.says(ann, "I prefer "+canary+" over everything else")
		w.seesText(ann, "answered")
		select {
		case <-asked:
		case <-w.ctx().Done():
			t.Fatal("the model is not asked what can be learned")
		}
		w.says(ann, "and while that is going on?") // the next turn does not wait for it
		w.seesText(ann, "[3 messages]")
		w.shutdown()
		held.Store(false)
		w.start()
		w.shows(ann, "/memory", "Memories about you: 1", canary, "confidence 50%")
		w.restart()
		w.shows(ann, "/memory", "Memories about you: 1", "confidence 50%")
	})
}
