package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/waittest"
)

// piped returns a file with a text, as a shell connects one to the input.
func piped(t *testing.T, text string) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name) //nolint:gosec // made above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// What a script gets: the answer and nothing else on stdout, and an exit code.
func TestChatInAScript(t *testing.T) {
	environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "LOG_LEVEL=error"}
	for name, tc := range map[string]struct {
		stdin  string
		args   []string
		code   int
		stdout []string // nothing: it is empty
		stderr string
	}{
		"question and text": {"+ added\n", []string{"chat", "review", "this"}, exitOK, []string{"review this", "+ added"}, ""},
		"text only":         {"hello\nthere\n", []string{"chat"}, exitOK, []string{`"hello there"`}, ""},
		"a failure":         {"", []string{"chat", "demo unauthorized"}, exitFailed, nil, "bot: The question was not answered."},
		"nothing":           {"\n", []string{"chat"}, exitUsage, nil, "there is nothing to ask"},
		"too much":          {strings.Repeat("x", maxPiped+1), []string{"chat", "a"}, exitUsage, nil, "longer than 1 MiB"},
		"a bad name":        {"", []string{"chat", "-c", "../x", "a"}, exitUsage, nil, "not a valid conversation name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tc.args, process{environ: environ, stdin: piped(t, tc.stdin), stdout: &stdout, stderr: &stderr})
			if code != tc.code || !strings.Contains(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.Len() > 0 {
				t.Errorf("code %d, stderr %q", code, stderr.String())
			}
			for _, want := range tc.stdout {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("stdout %q has no %q", stdout.String(), want)
				}
			}
			if tc.stdout == nil && stdout.Len() > 0 || strings.Contains(stdout.String(), "\x1b") {
				t.Errorf("stdout %q", stdout.String())
			}
		})
	}
}

// What is piped into the daemon ends it, and a script learns from its exit code whether
// everything was answered, also where nobody can be told the answers.
func TestPipedMessagesInAScript(t *testing.T) {
	environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "LOG_LEVEL=error"}
	for name, tc := range map[string]struct {
		stdin  string
		broken bool
		code   int
		stderr string
	}{
		"answered":     {"hello\nthere\n", false, exitOK, ""},
		"a failure":    {"demo unauthorized\nhello\n", false, exitFailed, "bot: Not every message was answered."},
		"out of reach": {"hello\n", true, exitFailed, "no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var stdout, stderr bytes.Buffer
			proc := process{environ: environ, stdin: piped(t, tc.stdin), stdout: &stdout, stderr: &stderr}
			if tc.broken {
				proc.stdout = full{}
			}
			ctx := waittest.Context(t.Context(), t)
			code := run(ctx, nil, proc)
			if ctx.Err() != nil || code != tc.code || !strings.Contains(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.Len() > 0 {
				t.Errorf("code %d, %v, stderr %q", code, ctx.Err(), stderr.String())
			}
		})
	}
}

// While the bot is halted a question waits, and says so and how that ends.
func TestAQuestionWhileHalted(t *testing.T) {
	environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "LOG_LEVEL=error"}
	if r := bot(t, environ, "chat", "hello"); r.code != exitOK {
		t.Fatal(r)
	}
	if r := bot(t, environ, "halt", "--reason", "a move"); r.code != exitOK {
		t.Fatal(r)
	}
	told := make(chan string, 1)
	resumed := make(chan int)
	go func() {
		<-told
		resumed <- run(t.Context(), []string{"resume"}, process{environ: environ, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard})
	}()
	var stdout bytes.Buffer
	ctx := waittest.Context(t.Context(), t)
	code := run(ctx, []string{"chat", "how are you"}, process{environ: environ, stdin: strings.NewReader(""), stdout: &stdout, stderr: tells(told)})
	if ctx.Err() != nil {
		t.Fatal("it waits and says nothing")
	}
	if again := <-resumed; code != exitOK || again != exitOK || strings.Contains(stdout.String(), "halted") || !strings.Contains(stdout.String(), "how are you") {
		t.Errorf("code %d, resume %d, stdout %q", code, again, stdout.String())
	}
}

// Ctrl-C ends a question whose bot runs for it at once, and nobody goes on with it later.
func TestAQuestionThatIsStopped(t *testing.T) {
	environ := []string{"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "LOG_LEVEL=error", "SHUTDOWN_GRACE=1h"}
	asked, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(asked, []string{"chat", "demo slow 3000"}, process{environ: environ, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
	}()
	running := func() bool { return strings.Contains(bot(t, environ, "sessions", "list").stdout, "running") }
	waittest.Until(t, "the turn runs", running)
	interrupt()
	select {
	case got := <-code:
		if got != exitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), "bot: Stopped.") || running() {
			t.Errorf("code %d, stdout %q, stderr %q, running %v", got, stdout.String(), stderr.String(), running())
		}
	case <-waittest.Context(t.Context(), t).Done():
		t.Fatal("it goes on")
	}
}

// tells passes on the first text that says that the bot is halted.
type tells chan string

func (to tells) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "halted: a move. Your message is saved") {
		select {
		case to <- string(p):
		default:
		}
	}
	return len(p), nil
}

func TestPipedTextIsFenced(t *testing.T) {
	t.Parallel()
	if got, want := fenced("a ``` b ```` c"), "`````\na ``` b ```` c\n`````"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
