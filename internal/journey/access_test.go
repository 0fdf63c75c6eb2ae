package journey_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/emulator/telegram"
)

func TestOwnerLinkLetsOnePersonInOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": ""})
		w.start()
		link := regexp.MustCompile(`https://t\.me/acme_bot\?start=([A-Za-z0-9_-]+)`).FindStringSubmatch(w.printed.String())
		if link == nil {
			t.Fatalf("no owner link was printed:\n%s", w.printed.String())
		}
		w.says(eve, "/start wrong-code")
		w.seesText(eve, "private bot")
		w.says(ann, "/start "+link[1])
		w.seesText(ann, "You are the owner")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		w.says(eve, "/start "+link[1]) // used up
		w.says(ann, "/whoami")
		w.seesText(ann, "role owner")

		w.printed.Reset()
		w.restart()
		if text := w.printed.String(); strings.Contains(text, "start=") {
			t.Errorf("another owner link was printed although there is an owner:\n%s", text)
		}
		w.says(ann, "again")
		w.seesText(ann, "echo: again")
		texts := w.tg.ChatView(eve).BotTexts() // one for each code, the second once it has arrived
		if len(texts) > 2 || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(text, "That code has expired") }) {
			t.Errorf("the stranger sees %q", texts)
		}
	})
}

func TestPersonTakenOffTheListDuringTheWaitIsNotAnswered(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"SHUTDOWN_GRACE": "50ms"})
		stuck := w.hang()
		w.start()
		w.says(bob, "a long one")
		w.seesText(bob, stuck)
		w.says(bob, "and another")
		w.says(bob, "/status")
		w.seesText(bob, "1 queued")
		w.shutdown()
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "42"}).start()
		w.seesText(bob, "You can no longer use this bot")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		for _, r := range w.ai.Requests() {
			if r.LastUserText() == "and another" {
				t.Error("the model was asked for somebody who may not")
			}
		}
	})
}

func TestGroupNeedsAMention(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		w.start()
		a, b := w.tg.Person(ann).In(group), w.tg.Person(bob).In(group)
		a.Says("nobody asked the bot")
		asked := a.Says("@acme_bot what is up?")
		w.seesText(group, "what is up?", "[1 messages]")
		answer := w.tg.ChatView(group).FromBot()[0]
		if answer.ReplyTo != asked.MessageID {
			t.Errorf("the answer replies to %d, want %d", answer.ReplyTo, asked.MessageID)
		}
		b.ReplyingTo(answer.ID).Says("and why?")
		w.seesText(group, "and why?", "[3 messages]")
		a.Says("/status@acme_bot")
		w.seesText(group, "Idle")
		a.Says("/status@other_bot")
		a.InTopic(7).Says("@acme_bot in a topic")
		w.seesText(group, "in a topic", "[1 messages]") // a conversation of its own
		if n := len(w.tg.ChatView(group).FromBot()); n != 4 {
			t.Errorf("the group sees %d messages of the bot: %q", n, w.tg.ChatView(group).BotTexts())
		}
	})
}

func TestGroupMigrationKeepsTheSession(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const before, after = int64(-5), int64(-1005)
		w.tg.AddChat(telegram.Chat{ID: before, Type: telegram.Group, Title: "Team"})
		w.start()
		w.tg.Person(ann).In(before).Says("@acme_bot one")
		w.seesText(before, "one", "[1 messages]")
		w.tg.Migrate(before, after)
		w.tg.Person(ann).In(after).Says("@acme_bot two")
		w.seesText(after, "two", "[3 messages]")
	})
}

func TestDemoConversationIsPutAsideForARealAssistant(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		real := map[string]string{"OPENAI_API_KEY": w.env["OPENAI_API_KEY"], "OPENAI_BASE_URL": w.env["OPENAI_BASE_URL"]}
		w.with(map[string]string{"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}).start()
		w.says(ann, "hello")
		w.seesText(ann, "demo")
		w.shutdown()
		w.with(real).start()
		w.says(ann, "are you real?")
		w.seesText(ann, "started with the assistant demo", "openai")
		w.seesText(ann, "echo: are you real? [1 messages]")
		w.restart()
		w.says(ann, "still?")
		w.seesText(ann, "echo: still? [3 messages]")
	})
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.tg.Person(ann).Sends(telegram.Attachment{
			Kind: "document", Name: "crash.log", MIME: "text/plain", Data: []byte("panic: the flux capacitor"),
		}, "what is this?")
		w.seesText(ann, "what is this?")
		w.tg.Person(ann).Sends(telegram.Attachment{Kind: "photo", Name: "cat.jpg", MIME: "image/jpeg", Data: []byte("\xff\xd8\xff")}, "")
		w.seesText(ann, "photo.jpg: the picture is damaged")
		requests := w.ai.Requests()
		if text := requests[0].LastUserText(); len(requests) != 1 || !strings.Contains(text, "crash.log") || !strings.Contains(text, "flux capacitor") {
			t.Errorf("the model reads %q in %d requests", text, len(requests))
		}
	})
}

func TestMalformedUpdatesAreKeptAndSkipped(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		for _, raw := range []string{
			`{"update_id":%d,"message":{"message_id":"x"}}`,
			`{"update_id":%d,"message":{"message_id":1,"from":{"id":42},"chat":{"id":42,"type":"private"},"text":"/x","entities":[{"type":"bot_command","offset":-5,"length":9000}]}}`,
			`{"update_id":%d,"brand_new_kind":{"a":[1,2,3]}}`,
		} {
			w.tg.DeliverRaw(ann, func(id int64) string { return strings.Replace(raw, "%d", itoa(id), 1) })
		}
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
	})
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{
			"TELEGRAM_MODE": "webhook", "TELEGRAM_WEBHOOK_SECRET": "0123456789abcdef0123", "PUBLIC_URL": "http://" + freePort(t),
		})
		w.env["LISTEN_ADDR"] = strings.TrimPrefix(w.env["PUBLIC_URL"], "http://")
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		w.shutdown()
		w.says(ann, "are you there?") // delivered again when the bot is back
		w.start()
		w.seesText(ann, "echo: are you there? [3 messages]")
		if n := len(w.tg.ChatView(ann).FromBot()); n != 2 {
			t.Errorf("two questions have %d messages", n)
		}
	})
}

// lockedBuffer is a buffer that the bot writes and the test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}
