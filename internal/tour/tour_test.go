package tour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.RunIfHelper() // the bot runs programs confined, with this very test as the helper
	if os.Getenv(ChildMark) != "" {
		os.Exit(runBot())
	}
	goleak.VerifyTestMain(m)
}

// runBot is the bot, as cmd/bot runs it.
func runBot() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := app.LoadConfig(config.Source{Environ: os.Environ()})
	if err == nil {
		err = app.Run(ctx, cfg, app.Env{
			Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Version: "test",
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Lookup: os.LookupEnv,
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	return path
}

func TestTour(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Run(t.Context(), Options{Out: &out, Fast: true, Width: 1000, Version: "test", Program: self(t), Environ: []string{"PATH=" + os.Getenv("PATH")}}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text := out.String()
	t.Log(text)
	rest := text
	for _, want := range []string{ // in this order
		"scripted, not an AI",
		"1. A question with a screenshot", "Hi! I am Ann", "the name is missing", "the model was sent the picture",
		"2. A second question", "you like tea", "the model was sent 3 messages",
		"/clone http://127.0.0.1", "Cloned", "Correct the variable", "version 2",
		"presses [Approve and run]", "sh test.sh", "presses [Always allow this]", "the sandbox ran the test: FAIL", "(SIGKILL)",
		"The test passes.", "ran the test again: ok",
		"Changes on", "draft pull request", `"Greet people by name", a draft`,
		"/status", "Running for", "/stop", "request was canceled",
		"2 of 5", "80 °C",
		"Telegram answered 429", "the next edit came",
		"Eve     Hello", "private bot", "Eve got 1 message for her two; the model was asked 0 times",
		"messages accepted  12", "answers            12", "lost               0", "doubled            0", "stray messages     0",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing or out of order", want)
		}
		rest = after
	}
	if !strings.Contains(text, "wind carried in.\n\n        ⏹ Stopped after ") {
		t.Error("what was said before /stop is not kept")
	}
	if strings.ContainsAny(text, "\x1b\r") {
		t.Error("there are terminal codes in a plain output")
	}
	if n := len(regexp.MustCompile(`(?m)^\d+\. `).FindAllString(text, -1)); n != len(scenes) {
		t.Errorf("%d scenes are shown, want %d", n, len(scenes))
	}
	if strings.Contains(text, token) || strings.Contains(text, modelKey) {
		t.Error("a credential is on the screen")
	}
}

func TestInteractive(t *testing.T) {
	t.Parallel()
	program := self(t)
	in, typing := io.Pipe()
	out := &watcher{want: "You said: hello", seen: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), Options{Out: out, Fast: true, Input: in, Program: program, Environ: []string{"PATH=" + os.Getenv("PATH")}})
	}()
	if _, err := io.WriteString(typing, "hello\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-out.seen:
	case err := <-done:
		t.Fatalf("the tour ended early: %v\n%s", err, out.text.String())
	}
	if err := typing.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// watcher tells when a text is on the screen. The screen writes one at a time.
type watcher struct {
	text strings.Builder
	want string
	seen chan struct{}
	told bool
}

func (w *watcher) Write(p []byte) (int, error) {
	w.text.Write(p)
	if !w.told && strings.Contains(w.text.String(), w.want) {
		w.told = true
		close(w.seen)
	}
	return len(p), nil
}

// TestTheLedgerFindsWhatIsWrong makes sure that the sums at the end are counted.
func TestTheLedgerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	accepted := []question{{"a", 1, "answer a"}, {"b", 2, "answer b"}, {"c", 3, "answer c"}}
	got := sumUp(accepted, []telegram.Message{
		{ID: 1, Text: "the answer b", Edits: 2}, {ID: 2, Text: "answer c"}, {ID: 3, Text: "answer c again"}, {ID: 4, Text: "…"},
		{ID: 5, Text: "✋ a-1: run it?"}, {ID: 6}, // beside a question, and a file
	}, []string{"✋ a-1"})
	want := sums{accepted: 3, answers: 2, lost: []string{"a"}, doubled: []string{"c"}, stray: 1, edits: 2}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sums{})); diff != "" {
		t.Error(diff)
	}
	if err := got.err(); !errors.Is(err, errLost) || !errors.Is(err, errDoubled) {
		t.Errorf("error = %v", err)
	}
}

func TestATerminalShowsAMessageGrow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(Options{Out: &out, Terminal: true, Width: 48})
	message := func(id int, text string, edits int) telegram.Message {
		return telegram.Message{ID: id, ChatID: ann, FromBot: true, Text: text, Edits: edits}
	}
	s.changed(telegram.Change{Kind: telegram.ChangeSent, Message: message(1, "…", 0)})
	s.changed(telegram.Change{Kind: telegram.ChangeEdited, Message: message(1, "one", 1)})
	s.changed(telegram.Change{Kind: telegram.ChangeSent, Message: message(2, "status", 0)})
	s.changed(telegram.Change{Kind: telegram.ChangeEdited, Message: message(1, "one two", 2)})
	s.settle()
	s.settle()
	want := clear + "Bot     …" + clear + "Bot     one" +
		clear + "Bot     one\n" + clear + "Bot     status" +
		clear + "Bot     status\n" + clear + "Bot     one two" +
		clear + "Bot     one two\n        (the same message, edited)\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if got := s.line("Bot", strings.Repeat("a long text ", 20)); len([]rune(got)) > 48 || !strings.HasSuffix(got, "long text") {
		t.Errorf("line = %q", got)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	got := wrap("one two three\n\nfour extraordinarily", 9)
	if diff := cmp.Diff([]string{"one two", "three", "", "four", "extraordinarily"}, got); diff != "" {
		t.Error(diff)
	}
}

// What the narrator says breaks between words, as what is said in the chats does.
func TestTheNarratorFitsTheScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(Options{Out: &out, Width: 40})
	s.header("A title", "The bot, its database, its sandbox and git are real.", "answers            12")
	s.scene(1, "A scene", "A placeholder comes at once and is edited while the model writes.")
	want := "\nA title\nThe bot, its database, its sandbox and\ngit are real.\nanswers            12\n" +
		"\n1. A scene\n   A placeholder comes at once and is\n   edited while the model writes.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
