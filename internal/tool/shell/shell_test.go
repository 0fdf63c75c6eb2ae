package shell_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/tool"
	"remote-agent/internal/tool/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ends keeps the start and the end of what is written to it.
type ends struct {
	head, tail   []byte
	limit, total int
}

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	e.total += n
	if room := e.limit - len(e.head); room > 0 {
		take := min(room, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	e.tail = append(e.tail, p...)
	if over := len(e.tail) - e.limit; over > 0 {
		e.tail = e.tail[over:]
	}
	return n, nil
}

// plainRunner runs programs without any sandbox, in a process group.
func plainRunner(ctx context.Context, c shell.Command) (shell.Outcome, error) {
	timed, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	out := &ends{limit: c.Head}
	cmd := exec.CommandContext(timed, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, out, out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	o := shell.Outcome{Head: out.head, Tail: out.tail, Total: int64(out.total), TimedOut: ctx.Err() == nil && timed.Err() != nil}
	if cmd.ProcessState != nil {
		o.ExitCode = cmd.ProcessState.ExitCode()
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok || o.TimedOut {
		err = nil
	}
	return o, errors.Join(err, ctx.Err())
}

func newShell(t *testing.T) (tool.Tool, string) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	return shell.New(plainRunner, shell.Options{Dir: dir}), dir
}

func raw(t *testing.T, args map[string]any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRun(t *testing.T) {
	t.Parallel()
	x, dir := newShell(t)
	if err := os.WriteFile(filepath.Join(dir, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		command, want string
		fails         bool
	}{
		"Output":    {"ls; echo error >&2", "here\nerror\n[exit code 0, ", false},
		"ExitCode":  {"echo no; exit 3", "no\n[exit code 3, ", true},
		"NoOutput":  {"true", "(no output)\n[exit code 0, ", false},
		"NoProgram": {"no-such-program", "command not found\n[exit code 127, ", true},
		"Colors":    {`printf '\033[31mred\033[0m\033]0;title\007\r\n1%%\r50%%\r100%%\n\000x'`, "red\n100%\nx\n[exit code 0", false},
		"BadUTF8":   {`printf 'a\377b'`, "a\uFFFDb\n[exit", false},
		"NoInput":   {"cat; echo done", "done\n[exit code 0, ", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := x.Run(t.Context(), raw(t, map[string]any{"command": tt.command}))
			if err != nil || !strings.Contains(got.Content, tt.want) || got.IsError != tt.fails {
				t.Errorf("Run = %+v, %v, want %q", got, err, tt.want)
			}
			if !strings.HasPrefix(got.Note, "exit ") || !strings.HasSuffix(got.Note, " s") {
				t.Errorf("note is %q", got.Note)
			}
		})
	}
}

func TestLongOutputKeepsItsEnds(t *testing.T) {
	t.Parallel()
	x, _ := newShell(t)
	got, err := x.Run(t.Context(), raw(t, map[string]any{"command": "echo first; seq 1000000; echo last"}))
	if err != nil || len(got.Content) > shell.MaxOutput+200 {
		t.Fatalf("%d bytes, %v", len(got.Content), err)
	}
	if !strings.HasPrefix(got.Content, "first\n1\n2\n") || !strings.Contains(got.Content, "1000000\nlast\n[exit code 0") || !strings.Contains(got.Content, "… 6823371 bytes left out …") {
		t.Errorf("content is %q … %q", got.Content[:40], got.Content[len(got.Content)-60:])
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	x, _ := newShell(t)
	got, err := x.Run(t.Context(), raw(t, map[string]any{"command": "echo before; sleep 100 & wait", "timeout_seconds": 1}))
	if err != nil || !got.IsError || !strings.HasPrefix(got.Content, "before\n[ended because it ran longer than 1s") || !strings.HasPrefix(got.Note, "timed out") {
		t.Errorf("Run = %+v, %v", got, err)
	}
}

// TestLimits: whoever reads how a command ended learns which limit it went over.
func TestLimits(t *testing.T) {
	t.Parallel()
	x := shell.New(func(context.Context, shell.Command) (shell.Outcome, error) {
		return shell.Outcome{ExitCode: 137, Over: "it used more than 4 GiB of memory"}, nil
	}, shell.Options{Dir: t.TempDir()})
	got, err := x.Run(t.Context(), raw(t, map[string]any{"command": "x"}))
	if err != nil || !got.IsError || !strings.Contains(got.Content, "[ended because it used more than 4 GiB of memory, ") || !strings.HasPrefix(got.Note, "ended: it used more than 4 GiB of memory, ") {
		t.Errorf("Run = %+v, %v", got, err)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	x, dir := newShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	pipe := filepath.Join(dir, "started")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(pipe) // returns when the command has started
		cancel()
	}()
	got, err := x.Run(ctx, raw(t, map[string]any{"command": "echo before; echo > started; sleep 100"}))
	if err != nil || !got.IsError || !strings.HasPrefix(got.Content, "before\n[stopped before it ended") {
		t.Errorf("Run = %+v, %v", got, err)
	}
}

func TestRunnerFails(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.Unavailable, "The sandbox does not start.")
	x := shell.New(func(context.Context, shell.Command) (shell.Outcome, error) { return shell.Outcome{}, down }, shell.Options{})
	if _, err := x.Run(t.Context(), raw(t, map[string]any{"command": "ls"})); fault.Public(err) != "The sandbox does not start." {
		t.Errorf("Run = %v", err)
	}
}

func TestCommandOfTheRunner(t *testing.T) {
	t.Parallel()
	var seen shell.Command
	x := shell.New(func(_ context.Context, c shell.Command) (shell.Outcome, error) {
		seen = c
		return shell.Outcome{}, nil
	}, shell.Options{Dir: "/work", Shell: []string{"sh", "-c"}, Timeout: time.Second, MaxTimeout: time.Minute, Note: "There is no network."})
	if _, err := x.Run(t.Context(), raw(t, map[string]any{"command": "-x $HOME", "timeout_seconds": 7})); err != nil {
		t.Fatal(err)
	}
	want := shell.Command{Argv: []string{"sh", "-c", "-x $HOME"}, Dir: "/work", Timeout: 7 * time.Second, Head: 32 << 10, Tail: 32 << 10}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if spec := x.Spec(); !json.Valid(spec.Schema) || !bytes.Contains(spec.Schema, []byte(`"maximum":60`)) || !strings.HasSuffix(spec.Description, "There is no network.") {
		t.Errorf("spec is %s %s", spec.Description, spec.Schema)
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	x := shell.New(nil, shell.Options{})
	long := "echo " + strings.Repeat("x", 600)
	tests := map[string]struct{ command, summary, rule, detail string }{
		"Simple":   {"go test ./...", "go test ./...", "go test ./...", "```sh\ngo test ./...\n```\n\nThe assistant says: because\n\nTime limit: 2 min"},
		"Lines":    {"ls\nrm -rf x", "ls …", "", "```sh\nls\nrm -rf x\n```"},
		"Return":   {"ls\rrm -rf x", "lsrm -rf x", "", "```sh\nls\rrm -rf x\n```"},
		"Long":     {long, tool.Line(long, tool.MaxSummary), "", long},
		"Hidden":   {"rm \u202ea", "rm a", "", "cannot be seen: U+202E"},
		"Backtick": {"echo ```\nrm", "echo ``` …", "", "````sh\necho ```\nrm\n````"},
	}
	for name, tt := range tests {
		got, err := x.Effect(t.Context(), raw(t, map[string]any{"command": tt.command, "description": "because"}))
		if err != nil || got.Kind != assistant.KindExecute || got.Summary != tt.summary || got.Rule != tt.rule || !strings.Contains(got.Detail, tt.detail) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	x := shell.New(func(context.Context, shell.Command) (shell.Outcome, error) {
		t.Error("a wrong command was run")
		return shell.Outcome{}, nil
	}, shell.Options{})
	for _, args := range []map[string]any{
		{}, {"command": " \n"}, {"command": "a\x00b"}, {"command": strings.Repeat("x", 70<<10)}, {"command": "ls", "timeout_seconds": 601},
		{"command": "ls", "timeout_seconds": -1}, {"command": "ls", "timeout_seconds": int64(1) << 62}, {"command": "ls", "dir": "/"}, {"command": []string{"ls"}},
	} {
		_, effectErr := x.Effect(t.Context(), raw(t, args))
		_, runErr := x.Run(t.Context(), raw(t, args))
		if !fault.Is(effectErr, fault.Invalid) || !fault.Is(runErr, fault.Invalid) {
			t.Errorf("%.80v: %v, %v", args, effectErr, runErr)
		}
	}
}
