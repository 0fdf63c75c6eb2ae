package journey_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/waittest"
)

// reached returns the console of the running bot, as bot chat does.
func (w *world) reached() console.Backend {
	w.t.Helper()
	b, err := app.Running(w.ctx(), w.config())
	if err != nil || b == nil {
		w.t.Fatalf("the bot is not reached: %v", err)
	}
	return b
}

// local runs a journey on a bot with no platform of others.
func local(t *testing.T) *world {
	return newWorld(t, "").migrated().with(map[string]string{"TELEGRAM_BOT_TOKEN": "", "TELEGRAM_API_URL": "", "TELEGRAM_ALLOWED_USER_IDS": ""})
}

// A question from a script is answered on its output; a failure is none of it.
func TestAScriptAsksARunningBot(t *testing.T) {
	t.Parallel()
	w := local(t).start()
	ask := func(text string) (string, string, error) {
		var out, rest bytes.Buffer
		err := console.Question{Text: text, Conversation: "script", Out: &out, Errors: &rest}.Ask(w.ctx(), w.reached())
		return out.String(), rest.String(), err
	}
	w.ai.Enqueue(openai.Text("**Looks**", " good."))
	if out, rest, err := ask("review this"); out != "**Looks** good.\n" || rest != "" || err != nil {
		t.Errorf("out %q, rest %q, %v", out, rest, err)
	}
	w.ai.Enqueue(openai.Unauthorized())
	if out, rest, err := ask("again"); out != "" || !strings.Contains(rest, "key") || err == nil {
		t.Errorf("out %q, rest %q, %v", out, rest, err)
	}
}

// A picture that is named with @ reaches the model.
func TestAPictureFromTheConsole(t *testing.T) {
	t.Parallel()
	w := local(t).start()
	file := filepath.Join(t.TempDir(), "holiday photo.jpg")
	if err := os.WriteFile(file, holiday(t, 1800, 1200).Data, 0o600); err != nil {
		t.Fatal(err)
	}
	w.ai.Enqueue(openai.Text("A beach."))
	var out bytes.Buffer
	if err := (console.Question{Text: `what is @"` + file + `"?`, Conversation: "q", Out: &out, Errors: io.Discard}).Ask(w.ctx(), w.reached()); err != nil {
		t.Fatal(err)
	}
	files := w.ai.Requests()[0].Files()
	if len(files) != 1 || out.String() != "A beach.\n" {
		t.Fatalf("%d files, answered %q", len(files), out.String())
	}
	isShown(t, files[0].MediaType, files[0].Data)
}

// A client that leaves in the middle of an answer stops nothing: the answer is in the
// transcript, and the next client goes on from there.
func TestAnAnswerGoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	w := local(t).start()
	gate := emulator.NewGate()
	w.ai.Enqueue(openai.Reply(openai.Delta("Half"), openai.Gate(gate), openai.Delta(" and whole.")))
	b := w.reached()
	watching, err := b.Watch(w.ctx(), "left")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Say(w.ctx(), "left", console.Message{Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := watching.Next(w.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Text, "Half") {
			break
		}
	}
	if err := watching.Close(); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	waittest.Until(t, "the turn ends", func() bool {
		state, err := w.reached().State(w.ctx(), "left")
		return err == nil && !state.Busy
	})
	got := w.operator("messages", func(env app.Env) error {
		return app.ListMessages(w.ctx(), w.config(), env, app.MessageQuery{Conversation: "console/left", Limit: 10})
	})
	if !strings.Contains(got, "Half and whole.") {
		t.Errorf("the transcript has %q", got)
	}
}

// What used to be refused beside a running bot is done by it.
func TestCommandsBesideARunningBot(t *testing.T) {
	w := local(t)
	folder := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
		git := exec.CommandContext(t.Context(), gittest.Git(t), args...)
		git.Dir = folder
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	w.start()
	cfg := w.config()
	cfg.WorkspacePath = t.TempDir() // that of the bot counts
	do := func(what string, run func(ctx context.Context, env app.Env) error, want string) {
		t.Helper()
		got := w.operator(what, func(env app.Env) error { return run(w.ctx(), env) })
		if !strings.Contains(got, want) {
			t.Errorf("%s says %q, not %q", what, got, want)
		}
	}
	t.Chdir(filepath.Dir(folder))
	do("repo add", func(ctx context.Context, env app.Env) error { return app.Repo(ctx, cfg, env, app.RepoAdd, "project") }, "added project in "+folder)
	do("repo sync", func(ctx context.Context, env app.Env) error { return app.Repo(ctx, cfg, env, app.RepoSync, "") }, "project")
	var out bytes.Buffer
	w.ai.Enqueue(openai.Text("Hello."))
	for _, text := range []string{"/repos", "hi"} {
		if err := (console.Question{Text: text, Conversation: "q", Out: &out, Errors: io.Discard}).Ask(w.ctx(), w.reached()); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(out.String(), "project") || !strings.Contains(out.String(), "Hello.") {
		t.Errorf("the bot says %q", out.String())
	}
	do("repo rm", func(ctx context.Context, env app.Env) error {
		return app.Repo(ctx, cfg, env, app.RepoRemove, "project")
	}, "removed project")
	do("person forget", func(ctx context.Context, env app.Env) error { return app.ForgetPerson(ctx, cfg, env, "console/local") }, "deleted;")
	do("retention", func(ctx context.Context, env app.Env) error { return app.Retention(ctx, cfg, env, false) }, "removed 0")
	do("migrate up", func(ctx context.Context, env app.Env) error { return app.Migrate(ctx, cfg, env, true) }, "applied")
	do("scrub", func(ctx context.Context, env app.Env) error { return app.Scrub(ctx, cfg, env) }, "rewrote")
	do("sessions rm", func(ctx context.Context, env app.Env) error {
		return app.RemoveConversation(ctx, cfg, env, "console/q", true)
	}, "removed the conversation")
	_, err := w.cli(func(env app.Env) error { return app.Repo(w.ctx(), cfg, env, app.RepoRemove, "nothere") })
	if !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "nothere") {
		t.Errorf("an error comes back as %v", err)
	}
}

// What was typed at the console is in a file besides, which goes with what it belongs to
// and is named where it stays.
func TestDeletionsReachWhatWasTyped(t *testing.T) {
	t.Parallel()
	w := local(t).start()
	typed := filepath.Join(w.env["DATA_DIR"], "console_history")
	ask := func(conversation string) {
		t.Helper()
		w.ai.Enqueue(openai.Text("Hello."))
		if err := (console.Question{Text: "hi", Conversation: conversation, Out: io.Discard, Errors: io.Discard}).Ask(w.ctx(), w.reached()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(typed, []byte("\"hi\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(conversation string) string {
		return w.operator("sessions rm", func(env app.Env) error {
			return app.RemoveConversation(w.ctx(), w.config(), env, conversation, true)
		})
	}
	gone := func(what string) {
		t.Helper()
		if _, err := os.Lstat(typed); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %s the file is there: %v", what, err)
		}
	}
	ask("script")
	if said := remove("console/script"); !strings.Contains(said, typed) {
		t.Errorf("the file is not named: %s", said)
	}
	ask(console.Local)
	if said := remove("console/local"); !strings.Contains(said, "deleted the history") || strings.Contains(said, typed) {
		t.Errorf("said %s", said)
	}
	gone("the removal of the conversation")
	ask(console.Local)
	w.operator("person forget", func(env app.Env) error { return app.ForgetPerson(w.ctx(), w.config(), env, "console/local") })
	gone("the removal of the person")
}

// What is no command at the socket is refused by name, and the bot goes on.
func TestNoCommandAtTheSocket(t *testing.T) {
	t.Parallel()
	w := local(t).start()
	client := localsocket.Client(filepath.Join(w.env["DATA_DIR"], "bot.sock"))
	defer client.CloseIdleConnections()
	for name, tc := range map[string]struct{ call, given, says string }{
		"unknown":       {"explode", "{}", "another version"},
		"garbage":       {"repo", "\x00", "not valid"},
		"unknown field": {"repo", `{"Action":"remove","Everything":true}`, "Everything"},
		"oversize":      {"repo", `{"What":"` + strings.Repeat("x", 2<<20) + `"}`, "longer than 1 MiB"},
		"unknown deed":  {"repo", `{"Action":"burn","What":"x"}`, "burn"},
	} {
		r, err := client.Post("http://bot/calls/"+tc.call, "application/json", strings.NewReader(tc.given)) //nolint:noctx // local
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || !strings.Contains(string(text), tc.says) || strings.Contains(string(text), `"error":""`) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	w.reached()
}
