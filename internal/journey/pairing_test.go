package journey_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/store/storetest"
)

var pairingCode = regexp.MustCompile(`\b[B-Z]{3}-[B-Z]{3}\b`)

// codeIn returns the code in a text.
func codeIn(t *testing.T, text string) string {
	t.Helper()
	code := pairingCode.FindString(text)
	if code == "" {
		t.Fatalf("there is no code in %q", text)
	}
	return code
}

// owned has Ann and Bob own the bot, and lets nobody else in.
func (w *world) owned() *world {
	return w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "", "TELEGRAM_OWNER_IDS": "42,77"})
}

// greet has people write, so that the bot knows their private chats.
func (w *world) greet(people ...int64) {
	for _, p := range people {
		w.says(p, "good morning")
		w.seesText(p, "echo: good morning")
	}
}

// newestCard returns the newest message to somebody that contains a text.
func (w *world) newestCard(user int64, part string) (card telegram.Message) {
	w.t.Helper()
	err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool {
		for _, m := range l.Chat(user).FromBot() {
			if strings.Contains(m.Text, part) {
				card = m
			}
		}
		return strings.Contains(card.Text, part)
	})
	if err != nil {
		w.t.Fatalf("%d does not see %q but %q", user, part, w.tg.ChatView(user).BotTexts())
	}
	return card
}

// TestAColleagueIsPaired is the whole of it in Telegram: the first message of somebody
// whom nobody knows, two owners who press differently, a restart in between.
func TestAColleagueIsPaired(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.owned().start()
		w.tg.AddUser(telegram.User{ID: eve, FirstName: "**Eve**\n# `Boss`\u202e @everyone\u2066"})
		w.says(eve, "my secret first words")
		w.seesText(eve, "private bot", "Ask its owner", "666") // nobody could be asked
		w.greet(ann, bob)

		w.says(eve, "/whoami")
		code := codeIn(t, w.seesText(eve, "This is a private bot", "waiting for an owner", "666"))
		card := w.newestCard(ann, code+".\n") // whole: its beginning comes first, and notifies
		if !strings.HasPrefix(card.Text, "👤 **Eve** # 'Boss' @everyone asks to use this bot: Telegram, ID 666, code "+code+".\n") || strings.Contains(card.Text, "secret") {
			t.Errorf("the card says %q", card.Text)
		}
		w.newestCard(bob, code)
		allow, allowData := w.button(ann, "Allow")
		no, noData := w.button(bob, "No")
		w.button(ann, "Allow, read only")
		w.says(ann, "/people")
		w.seesText(ann, "telegram/666", "waiting for an owner", code)
		if out := w.listPeople(); !strings.Contains(out, "telegram/666") || !strings.Contains(out, code) {
			t.Errorf("bot person list says %q", out)
		}

		w.restart()
		w.tg.Person(ann).Presses(allow, allowData)
		w.seesText(ann, "telegram/666 can use the bot now")
		w.seesText(eve, "An owner has let you in")
		w.says(eve, "am I in?")
		w.seesText(eve, "echo: am I in?")
		for _, owner := range []int64{ann, bob} {
			w.sees(owner, "a card without buttons", func([]string) bool {
				for _, m := range w.tg.ChatView(owner).FromBot() {
					if strings.Contains(m.Text, code) && strings.Contains(m.Text, "✔ Allowed by telegram/42") {
						return len(m.Keyboard()) == 0
					}
				}
				return false
			})
		}

		w.tg.Person(ann).Presses(allow, allowData)
		w.seesText(ann, "lready decided", "Nothing else happened")
		w.tg.Person(bob).Presses(no, noData)
		w.seesText(bob, "lready decided: ✔ Allowed by telegram/42")
		w.says(eve, "still in?")
		w.seesText(eve, "echo: still in?")

		w.says(bob, "/people remove 666")
		w.seesText(bob, "telegram/666 can no longer use the bot")
		w.says(eve, "and now?")
		w.says(eve, "/whoami")
		w.sees(eve, "a refusal without a code", func(texts []string) bool { return strings.Contains(texts[len(texts)-1], "Ask its owner") })
		w.settles()
		audit := strings.Join(w.rows(`SELECT actor || ' ' || action || ' ' || target FROM audit_log WHERE action LIKE 'person.%' ORDER BY id`), "\n")
		if want := "telegram/666 person.ask telegram/666\ntelegram/42 person.allow telegram/666\ntelegram/77 person.remove telegram/666"; audit != want {
			t.Errorf("the audit log has\n%s\nwant\n%s", audit, want)
		}
		if n := w.rows(`SELECT count(*) FROM pairings`)[0]; n != "1" {
			t.Errorf("%s requests are stored, want one", n)
		}
	})
}

// listPeople is what `bot person list` prints.
func (w *world) listPeople() string {
	w.t.Helper()
	out, err := w.cli(func(env app.Env) error { return app.ListPeople(w.ctx(), w.config(), env, false) })
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestSomebodyWhoIsNotLetIn is asked about once a day, and an owner may let them in
// nevertheless; an operator does so by the code.
func TestSomebodyWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.owned().start()
		w.greet(ann)
		w.tg.Person(eve).In(-100).Says("@acme_bot let me in") // never in groups
		w.says(eve, "let me in")
		code := codeIn(t, w.seesText(eve, "waiting for an owner"))
		w.newestCard(ann, code)
		w.says(eve, "hello?") // within the hour
		w.says(ann, "/people deny "+strings.ToLower(strings.ReplaceAll(code, "-", "")))
		w.seesText(ann, "telegram/666 was refused", "for a day")
		w.newestCard(ann, "✖ Refused by telegram/42")
		w.says(eve, "/whoami")
		w.seesText(eve, "declined your request")
		w.says(eve, "please")
		w.restart()
		w.says(eve, "please!")
		w.says(ann, "/people allow BCD-FGH")
		w.seesText(ann, "That code has expired")
		w.says(ann, "/people deny 666")
		w.seesText(ann, "Specify the code")
		if n := len(w.tg.ChatView(-100).BotTexts()); n != 0 {
			t.Errorf("the group was told %d things", n)
		}
		if n := strings.Count(strings.Join(w.tg.ChatView(ann).BotTexts(), "\n"), "asks to use this bot"); n != 1 {
			t.Errorf("the owner was asked %d times", n)
		}
		w.says(ann, "/people allow 666 read-only")
		w.seesText(ann, "telegram/666 can use the bot now, read only")
		w.says(eve, "a question")
		w.seesText(eve, "echo: a question")
		w.says(eve, "/mode auto")
		w.seesText(eve, "read-only access")
		w.says(ann, "/people allow telegram/666")
		w.sees(ann, "that they may change things", func(texts []string) bool {
			return texts[len(texts)-1] == "telegram/666 can use the bot now."
		})
		w.says(eve, "/mode ask")
		w.sees(eve, "that the mode is set", func(texts []string) bool { return !strings.Contains(texts[len(texts)-1], "read-only access") })

		w.says(555, "hi")
		other := codeIn(t, w.seesText(555, "waiting for an owner"))
		if out := w.person(app.AllowReader, other); !strings.Contains(out, "telegram/555 can use the bot now, read only") {
			t.Errorf("bot person allow --read-only says %q", out)
		}
		w.seesText(555, "An owner has let you in with read-only access")
		w.newestCard(ann, "✔ Allowed, read only, by cli")
		w.says(555, "/people")
		w.seesText(555, "Only an owner")
	})
}

// TestACardThatIsGone has an owner delete the card, decide by the code all the same,
// and switch pairing off.
func TestACardThatIsGone(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.owned().start()
		w.greet(ann)
		w.says(eve, "let me in")
		code := codeIn(t, w.seesText(eve, "waiting for an owner"))
		w.tg.Person(ann).Deletes(w.newestCard(ann, code).ID)
		w.says(ann, "/people allow "+code)
		w.seesText(ann, "telegram/666 can use the bot now")
		w.says(eve, "am I in?")
		w.seesText(eve, "echo: am I in?")
		w.settles()

		w.with(map[string]string{"PAIRING": "off"}).restart()
		w.says(555, "/start 0123456789")
		w.seesText(555, "That code has expired", "Ask its owner", "555")
		w.says(555, "/whoami") // is answered although a refusal was sent today
		w.sees(555, "two answers", func(texts []string) bool { return len(texts) == 2 && strings.Contains(texts[1], "555") })
		if n := w.rows(`SELECT count(*) FROM pairings`)[0]; n != "1" {
			t.Errorf("%s requests are stored", n)
		}
	})
}

// TestStrangersDoNotFloodOwners lets 1,500 strangers ask to be let in.
func TestStrangersDoNotFloodOwners(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.owned().with(map[string]string{"TELEGRAM_SEND_RATE": "30"}).start()
		w.greet(ann)
		for i := range int64(strangersInFlood) {
			w.says(firstStranger+i, "let me in")
		}
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		if n := w.refusals(); n > 20 {
			t.Errorf("%d strangers were answered before the owner", n)
		}
		w.settles()
		cards := strings.Count(strings.Join(w.tg.ChatView(ann).BotTexts(), "\n"), "asks to use this bot")
		if rows := w.rows(`SELECT count(*) FROM pairings`)[0]; cards == 0 || cards > 20 || len(rows) > 2 {
			t.Errorf("the owner has %d cards, and %s requests are stored", cards, rows)
		}
	})
}

// inSlack has Ann own the bot in Slack, and lets nobody else in.
func inSlack(w *world) *world {
	return w.with(map[string]string{"SLACK_ALLOWED_USER_IDS": "", "SLACK_OWNER_IDS": slackAn})
}

// alone waits for a message of the bot to somebody alone.
func (w *world) alone(user string, parts ...string) slack.Message {
	w.t.Helper()
	return w.threadIn(w.sl.DM(user), "", parts...)
}

// TestAColleagueMayReadInSlack lets somebody in who may ask and change nothing.
func TestAColleagueMayReadInSlack(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		inSlack(w).start()
		w.sl.User(slackAn).Says("good morning")
		w.alone(slackAn, "echo:", "good morning")
		w.sl.User(slackEv).In(channel).Mentions("let me in") // others read along
		w.sl.User(slackEv).Says("let me in")
		code := codeIn(t, w.alone(slackEv, "waiting for an owner").Plain)
		card := w.alone(slackAn, "asks to use this bot: Slack", slackEv, code)
		w.sl.User(slackAn).Clicks(card.TS, buttonID(t, card, "Allow, read only"))
		w.alone(slackEv, "An owner has let you in with read-only access")
		w.alone(slackAn, code, "✔ Allowed, read only, by")

		w.sl.User(slackEv).Says("/clone " + url)
		w.alone(slackEv, "read-only access")
		w.ai.Enqueue(openai.Calls(call("write_file", `{"path":"never","content":"x"}`)))
		w.ai.Enqueue(openai.Text("I only read."))
		w.sl.User(slackEv).Says("change it")
		w.alone(slackEv, "I only read.")
		if found := w.trees("never"); len(found) > 0 {
			t.Errorf("a file was written in %v", found)
		}
	})
}

// TestPairingHoldsOnAllReplicasAtOnce has one replica ask and another one decide.
func TestPairingHoldsOnAllReplicasAtOnce(t *testing.T) {
	t.Parallel()
	w := inSlack(newSlackWorld(t, storetest.PostgresMigratedURL(t), "HTTP")).start()
	second := w.replica()
	second.sl = w.sl
	second.env["LISTEN_ADDR"] = freePort(t)
	second.start()
	through := func(r *world) {
		front := "http://" + r.env["LISTEN_ADDR"] + "/webhooks/slack/"
		w.sl.UseHTTP(slack.Endpoints{Events: front + "events", Commands: front + "commands", Interactions: front + "interactions"})
	}
	w.sl.User(slackAn).Says("good morning")
	w.alone(slackAn, "echo:", "good morning")
	for i := range 3 {
		user := fmt.Sprintf("UEVE%d", i)
		through(w)
		w.sl.User(user).Says("let me in")
		code := codeIn(t, w.alone(user, "waiting for an owner").Plain)
		card := w.alone(slackAn, user, code)
		through(second)
		w.sl.User(slackAn).Clicks(card.TS, buttonID(t, card, "Allow"))
		w.alone(user, "An owner has let you in")
		through(w)
		w.sl.User(user).Says("am I in?")
		w.alone(user, "echo:", "am I in?")
	}
	second.shutdown()
}
