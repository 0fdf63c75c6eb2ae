package journey_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/emulator/telegram"
)

const forumChat = int64(-1001234567890)

// inTopic waits for a text of the bot in a topic.
func (w *world) inTopic(chat int64, topic int, parts ...string) {
	w.t.Helper()
	var texts []string
	err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool {
		texts = nil
		for _, m := range l.Chat(chat).FromBot() {
			if m.ThreadID == topic {
				texts = append(texts, m.Text)
			}
		}
		for _, text := range texts {
			if containsAll(text, parts) {
				return true
			}
		}
		return false
	})
	if err != nil {
		w.t.Fatalf("the topic %d does not show %q; it shows %q", topic, parts, texts)
	}
}

// A fork gets a topic and files of its own: what is done there changes nothing here,
// nor the other way round.
func TestForkIntoATopicOfItsOwn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.tg.AddChat(telegram.Chat{ID: forumChat, Type: telegram.Supergroup, Title: "Team"})
		_, url := w.withRepository(sumRepo)
		w.start()
		here := w.tg.Person(ann).In(forumChat)
		here.Says("/clone@acme_bot " + url)
		w.seesText(forumChat, "Cloned")
		w.ai.Enqueue(openai.Calls(call("write_file", `{"path":"note.txt","content":"from the first turn"}`)), openai.Text("I wrote it."))
		here.Says("@acme_bot write a note")
		w.seesText(forumChat, "I wrote it.")
		here.Says("@acme_bot second thing")
		w.seesText(forumChat, "second thing [5 messages]")
		w.settles()

		t.Log("where there are no topics, or none may be opened, nothing is forked")
		here.Says("/fork@acme_bot 4 thread")
		w.seesText(forumChat, "✖ This chat has no topics.")
		w.tg.AddChat(telegram.Chat{ID: forumChat, Type: telegram.Supergroup, Title: "Team", IsForum: true})
		here.Says("/fork@acme_bot 4 topic")
		w.seesText(forumChat, "✖ The bot cannot open topics here. Make it an administrator")
		here.Says("/fork@acme_bot 99 topic")
		w.seesText(forumChat, "✖ The session has 6 messages: choose 1 to 6.")
		if got := w.rows("SELECT count(*) FROM remote_agent_conversations")[0]; got != "1" || len(w.tg.Topics(forumChat)) != 0 {
			t.Errorf("%s conversations after forks that failed, topics %v", got, w.tg.Topics(forumChat))
		}

		here.PromotesBot()
		here.Says("/fork@acme_bot 4 thread")
		w.seesText(forumChat, "continues with 4 messages of 6 and a copy of the files as they are now. Nothing changes here.")
		topics := w.tg.Topics(forumChat)
		if len(topics) != 1 || topics[0].Name != "🍴 Fork: write a note" {
			t.Fatalf("topics: %v", topics)
		}
		topic := topics[0].ID
		w.inTopic(forumChat, topic, "This fork continues with 4 messages of 6. Its files are a copy")
		link := fmt.Sprintf("https://t.me/c/1234567890/%d", topic)
		linked := false
		for _, m := range w.tg.Ledger().Chat(forumChat).FromBot() {
			for _, e := range m.Entities {
				linked = linked || e.URL == link
			}
		}
		if !linked {
			t.Errorf("no message links to %s", link)
		}
		w.settles()
		sessions := w.rows(`SELECT c.platform_conversation_id, s.last_seq, p.conversation_id <> s.conversation_id, p.active
			FROM remote_agent_sessions s JOIN remote_agent_sessions p ON p.id = s.parent_session_id JOIN remote_agent_conversations c ON c.id = s.conversation_id`)
		if len(sessions) != 1 || !strings.HasPrefix(sessions[0], fmt.Sprintf("%d:%d | 4 | ", forumChat, topic)) || strings.Contains(sessions[0], "false") {
			t.Errorf("forks: %q", sessions)
		}

		t.Log("it goes on from message 4, across a restart, with files of its own")
		w.restart()
		there := here.InTopic(topic)
		w.ai.Enqueue(openai.Calls(call("read_file", `{"path":"note.txt"}`)), openai.Calls(call("write_file", `{"path":"note.txt","content":"from the fork"}`)), openai.Text("It is rewritten."))
		there.Says("@acme_bot rewrite the note")
		w.inTopic(forumChat, topic, "It is rewritten.")
		told := w.asked()
		if !strings.Contains(told, "write a note") || strings.Contains(told, "second thing") || !strings.Contains(told, "from the first turn") {
			t.Errorf("the fork has read %s", told)
		}
		there.Says("/diff@acme_bot")
		w.settles()
		w.ai.Enqueue(openai.Calls(call("read_file", `{"path":"note.txt"}`)), openai.Text("Read."))
		here.Says("@acme_bot what does it say?")
		w.seesText(forumChat, "Read.")
		if told := w.asked(); !strings.Contains(told, "second thing") || strings.Contains(told, "from the fork") {
			t.Errorf("beside the fork it reads %s", told)
		}

		t.Log("undo there takes back what was done there, and no more")
		there.Says("/undo@acme_bot")
		w.inTopic(forumChat, topic, "↩ Undid the last turn: 6 messages")
		there.Says("/undo@acme_bot")
		w.inTopic(forumChat, topic, "Nothing was undone: there is no turn since the fork. The first 4 messages")
		w.settles()
		if got := w.rows("SELECT action, count(*) FROM audit_log WHERE action LIKE 'session.fork%' GROUP BY action ORDER BY action"); strings.Join(got, "; ") != "session.fork | 3; session.fork_failed | 2" {
			t.Errorf("the audit says %q", got)
		}
	})
}

// On Slack a fork gets a thread of its own in the same channel, also after the call
// that opened it got no answer.
func TestForkIntoAThreadOfItsOwn(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, w *world) {
		w.start()
		person := w.sl.User(slackAn).In(channel)
		asked := person.Mentions("one")
		w.threadEnds(asked.TS, "one [1 messages]")
		person.InThread(asked.TS).Mentions("two")
		w.threadEnds(asked.TS, "two [3 messages]")
		w.settles()
		var dropped atomic.Bool
		w.sl.InjectFunc(func(call slack.Call) slack.Fault {
			if call.Method == "chat.postMessage" && strings.Contains(call.Params["text"], "Fork: one") && dropped.CompareAndSwap(false, true) {
				return slack.Fault{End: platformapi.After}
			}
			return slack.Fault{}
		})
		person.InThread(asked.TS).Mentions("/fork 2 thread")
		root := w.waitRoot("🍴 Fork: one")
		answer := w.threadShows(asked.TS, "continues with 2 messages of 4. Nothing changes here.")
		if want := "/archives/" + channel + "/p" + strings.Replace(root, ".", "", 1); !strings.Contains(answer.Text+string(answer.Blocks), want) {
			t.Errorf("no link with %q in %+v", want, answer)
		}
		w.threadShows(root, "This fork continues with 2 messages of 4. Changes here do not affect the original.")
		person.InThread(root).Says("three")
		w.threadShows(root, "three ", "[3 messages]")
		person.InThread(asked.TS).Says("four")
		w.threadShows(asked.TS, "four ", "[5 messages]")
		roots := 0
		for _, m := range w.sl.Channel(channel).Roots() {
			if m.User == w.sl.BotUser() {
				roots++
			}
		}
		if roots != 1 || !dropped.Load() {
			t.Errorf("%d threads were opened, although the first call did its work (lost its answer: %v)", roots, dropped.Load())
		}
	})
}

// A platform without places to open says so, and forks nothing.
func TestForkWhereNothingCanBeOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	w.with(map[string]string{"TELEGRAM_BOT_TOKEN": "", "TELEGRAM_API_URL": "", "TELEGRAM_ALLOWED_USER_IDS": ""}).withConsole().start()
	w.types("one")
	w.prints("echo: one")
	w.types("/fork thread")
	w.prints("Cannot open a thread or topic from", "nothing was forked")
	if got := w.rows("SELECT count(*) FROM remote_agent_sessions")[0]; got != strconv.Itoa(1) {
		t.Errorf("there are %s sessions", got)
	}
}
