package journey_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
)

// cli runs what a command of the command line runs, beside the running bot, with
// the bot's configuration.
func (w *world) cli(run func(env app.Env) error) (string, error) {
	w.t.Helper()
	var out bytes.Buffer
	err := run(app.Env{Stdout: &out, Stderr: &out, Version: "test", Log: slog.New(slog.DiscardHandler)})
	return out.String(), err
}

// person changes what an account may do, from the command line.
func (w *world) person(do app.Change, account string) string {
	w.t.Helper()
	out, err := w.cli(func(env app.Env) error { return app.ChangePerson(w.ctx(), w.config(), env, do, account) })
	if err != nil {
		w.t.Fatalf("%s %s: %v", do, account, err)
	}
	return out
}

// claim makes somebody the owner with the code that the start prints.
func (w *world) claim(user int64) {
	w.t.Helper()
	link := regexp.MustCompile(`https://t\.me/acme_bot\?start=([A-Za-z0-9_-]+)`).FindStringSubmatch(w.printed.String())
	if link == nil {
		w.t.Fatalf("no owner link was printed:\n%s", w.printed.String())
	}
	w.says(user, "/start "+link[1])
	w.seesText(user, "You are the owner")
}

// TestFinding2AnOwnerIsReplacedByAnotherList is the finding itself: the first owner
// is still served after a restart with another list.
func TestFinding2AnOwnerIsReplacedByAnotherList(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]map[string]string{
		"another list of people": {"TELEGRAM_ALLOWED_USER_IDS": "77"},
		"a list of owners":       {"TELEGRAM_OWNER_IDS": "77"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, w *world) {
				w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": ""}).start()
				w.claim(ann)
				w.shutdown()
				w.printed.Reset()
				w.with(after).start()
				if text := w.printed.String(); !strings.Contains(text, "telegram/42 is no longer an owner") {
					t.Errorf("the start does not say that the claim is overruled:\n%s", text)
				}
				w.says(ann, "am I still served?")
				w.seesText(ann, "private bot")
				w.says(bob, "/whoami")
				w.seesText(bob, "role "+map[bool]string{true: "owner", false: "user"}[after["TELEGRAM_OWNER_IDS"] != ""])
				if n := len(w.ai.Requests()); n != 0 {
					t.Errorf("the model was asked %d times for the first owner", n)
				}
			})
		})
	}
}

// TestFinding2AnOwnerIsRemovedBesideARunningBot takes the role away on the command
// line, also on SQLite, whose data directory the bot has locked.
func TestFinding2AnOwnerIsRemovedBesideARunningBot(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": ""}).start()
		w.claim(ann)
		if out := w.person(app.AddOwner, "telegram/77"); !strings.Contains(out, "telegram/77 is an owner now") {
			t.Errorf("owner add: %s", out)
		}
		w.says(bob, "/owner")
		w.seesText(bob, "telegram/42", "joined with a one-time code", "telegram/77", "by cli")
		w.says(bob, "/owner rm 77")
		w.seesText(bob, "cannot give up the role yourself")
		if out := w.person(app.RemoveOwner, "telegram/42"); !strings.Contains(out, "no longer an owner and can no longer use the bot") {
			t.Errorf("owner rm: %s", out)
		}
		w.says(ann, "hello?")
		w.seesText(ann, "private bot")
		w.restart() // nothing revives it
		w.says(bob, "/people list")
		w.sees(bob, "the list after the restart", func(texts []string) bool {
			return strings.Contains(texts[len(texts)-1], "owner, the person at the console") && strings.Count(strings.Join(texts, "\n"), "the person at the console") == 2
		})
		if texts := w.tg.ChatView(bob).BotTexts(); strings.Contains(texts[len(texts)-1], "telegram/42") {
			t.Errorf("a former owner is listed: %q", texts[len(texts)-1])
		}
		audit := strings.Join(w.rows("SELECT actor, action, target FROM audit_log ORDER BY id"), "\n")
		for _, want := range []string{"telegram/42 | owner.claim | telegram/42", "cli | owner.add | telegram/77", "cli | owner.remove | telegram/42"} {
			if !strings.Contains(audit, want) {
				t.Errorf("the audit has no %q:\n%s", want, audit)
			}
		}
	})
}

// TestPeopleAreLetInAndRemovedByAnOwnerInTheChat covers what runs, what waits and
// buttons of somebody who is removed.
func TestPeopleAreLetInAndRemovedByAnOwnerInTheChat(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "", "TELEGRAM_OWNER_IDS": "42"}).start()
		w.says(bob, "let me in")
		w.seesText(bob, "private bot", "77")
		w.says(ann, "/people allow @bob")
		w.seesText(ann, "is not a telegram ID")
		w.says(ann, "/people allow 77")
		w.seesText(ann, "telegram/77 can use the bot now")
		w.says(bob, "/people allow 666")
		w.seesText(bob, "Only an owner")
		w.says(bob, "/clone "+url)
		w.seesText(bob, "Cloned")

		t.Log("what waits for a decision is refused at once, and so is its button")
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"echo no > never"}`)))
		w.says(bob, "run it")
		w.seesText(bob, "a-1", "echo no")
		message, data := w.button(bob, "Run it")
		w.says(ann, "/people remove telegram/77")
		w.seesText(ann, "telegram/77 can no longer use the bot")
		w.tg.Person(bob).Presses(message, data)
		w.seesText(bob, "no longer use this bot")
		w.seesText(bob, "not run")
		if found := w.trees("never"); len(found) > 0 {
			t.Errorf("the command ran in %v", found)
		}

		t.Log("what runs is stopped, and what waits behind it is not begun")
		w.person(app.AllowPerson, "telegram/77")
		stuck := w.hang()
		w.says(bob, "a long one")
		w.seesText(bob, stuck)
		w.says(bob, "and another")
		w.says(bob, "/status") // what waits is accepted before the removal
		w.seesText(bob, "1 queued")
		w.person(app.RemovePerson, "telegram/77")
		w.seesText(bob, "Stopped: the person who asked can no longer use the bot")
		w.sees(bob, "the waiting message refused", func(texts []string) bool {
			n := 0
			for _, text := range texts {
				n += strings.Count(text, "so this was not started")
			}
			return n >= 2
		})
		for _, r := range w.ai.Requests() {
			if r.LastUserText() == "and another" {
				t.Error("the model was asked for somebody who was removed")
			}
		}
	})
}

// TestFinding7HaltStopsEverythingUntilResume is the switch that finding 7 misses.
func TestFinding7HaltStopsEverythingUntilResume(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_OWNER_IDS": "42", "TELEGRAM_ALLOWED_USER_IDS": "77"})
		stuck := w.hang()
		w.start()
		w.says(bob, "a long one")
		w.seesText(bob, stuck)
		w.says(bob, "/halt")
		w.seesText(bob, "Only an owner")
		w.says(ann, "/halt it goes wild")
		w.seesText(ann, "Halted. Running work is being stopped")
		w.seesText(bob, stuck, "Stopped after", "the bot was halted")
		w.says(bob, "and now?")
		w.seesText(bob, "The bot is halted: it goes wild", "saved", "/resume")
		w.says(bob, "hello?") // told once
		w.says(bob, "/status")
		w.seesText(bob, "halted by telegram/42", "2 queued")
		w.shutdown()
		w.printed.Reset()
		w.start()
		if text := w.printed.String(); !strings.Contains(text, "HALTED    by telegram/42") {
			t.Errorf("the start does not show the halt:\n%s", text)
		}
		if ready := w.ready(); !strings.HasPrefix(ready["halt"], "halted since ") {
			t.Errorf("/readyz: %v", ready)
		}
		w.says(ann, "not even for owners")
		w.seesText(ann, "The bot is halted")
		if n := len(w.ai.Requests()); n != 1 {
			t.Errorf("the model was asked %d times, want once before the halt", n)
		}
		out, err := w.cli(func(env app.Env) error { return app.Resume(w.ctx(), w.config(), env) })
		if err != nil || !strings.Contains(out, "Resumed after a halt by telegram/42") {
			t.Errorf("resume: %s %v", out, err)
		}
		w.seesText(bob, "echo: and now?")
		w.seesText(bob, "echo: hello?")
		w.seesText(ann, "echo: not even for owners")
		if ready := w.ready(); ready["halt"] != "not halted" {
			t.Errorf("/readyz: %v", ready)
		}
		told := 0
		for _, text := range w.tg.ChatView(bob).BotTexts() {
			told += strings.Count(text, "The bot is halted")
		}
		if told != 1 {
			t.Errorf("told %d times that the bot is halted", told)
		}
		audit := strings.Join(w.rows("SELECT actor, action FROM audit_log ORDER BY id"), "\n")
		if !strings.Contains(audit, "telegram/42 | service.halt") || !strings.Contains(audit, "cli | service.resume") {
			t.Errorf("audit:\n%s", audit)
		}
	})
}

// TestHaltReachesAnotherReplica halts through the database that two bots share.
func TestHaltReachesAnotherReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.PostgresURL(t))
	stuck := w.hang()
	w.with(map[string]string{"SHUTDOWN_GRACE": "20s"}).start()
	w.says(ann, "a long one")
	w.seesText(ann, stuck)
	second := w.replica()
	w.stop() // the first gives up its poll, and lets its turn run on
	second.start()
	if _, err := w.cli(func(env app.Env) error { return app.Halt(w.ctx(), w.config(), env, "") }); err != nil {
		t.Fatal(err)
	}
	w.seesText(ann, stuck, "the bot was halted")
	second.says(ann, "and you?")
	second.seesText(ann, "The bot is halted")
	if _, err := w.cli(func(env app.Env) error { return app.Resume(w.ctx(), w.config(), env) }); err != nil {
		t.Fatal(err)
	}
	second.seesText(ann, "echo: and you?")
	second.shutdown()
}

// ready returns what /readyz says, by check.
func (w *world) ready() map[string]string {
	w.t.Helper()
	response, err := http.Get("http://" + w.addr + "/readyz") //nolint:noctx // a test's own server
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("/readyz: %s %v %s", response.Status, err, text)
	}
	var body struct {
		Checks []struct{ Name, Info string } `json:"checks"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		w.t.Fatal(err)
	}
	checks := make(map[string]string)
	for _, c := range body.Checks {
		checks[c.Name] = c.Info
	}
	return checks
}
