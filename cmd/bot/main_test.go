package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/tour"
)

// helperEnv turns the test binary into a program that waits for signals.
const helperEnv = "BOT_TEST_SIGNALS"

func TestMain(m *testing.M) {
	sandbox.RunIfHelper() // see main
	if os.Getenv(tour.ChildMark) != "" {
		main() // bot demo started it
	}
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	ctx, _, _ := awaitSignals()
	_, endHangups := hangups()
	_, unread := fmt.Fprintln(os.Stderr, "a line of the log")
	if unread != nil && os.Getenv(helperEnv) == "command" {
		endHangups()
		_, _ = fmt.Fprintln(os.Stderr, "another one")
	}
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("stopping")
	select {} // a stop that hangs
}

type result struct {
	code           int
	stdout, stderr string
}

// bot runs the command line in an empty directory.
func bot(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, process{environ: environ, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
	return result{code, stdout.String(), stderr.String()}
}

func TestHelpListsCommandsFirst(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h"}} {
		r := bot(t, nil, args...)
		if r.code != exitOK || r.stderr != "" {
			t.Errorf("%v: code %d, stderr %q", args, r.code, r.stderr)
		}
		lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
		if len(lines) >= 40 {
			t.Errorf("%v: %d lines, fewer than 40 fit a screen", args, len(lines))
		}
		for _, line := range lines {
			if len(line) > 80 {
				t.Errorf("%v: wider than 80 columns: %q", args, line)
			}
		}
		for _, want := range []string{"serve", "config", "migrate", "agent", "version", "demo", "bench"} {
			if !strings.Contains(r.stdout, " "+want+" ") {
				t.Errorf("%v: no command %s", args, want)
			}
		}
	}
}

func TestHelpOfServeListsTheOptions(t *testing.T) {
	r := bot(t, nil, "help", "serve")
	if r.code != exitOK || !strings.Contains(r.stdout, "--no-console") {
		t.Errorf("code %d, or no flag of its own", r.code)
	}
	for _, o := range config.Options(app.Sections()...) {
		if !strings.Contains(r.stdout, "--"+o.Flag()+" ") || !strings.Contains(r.stdout, "$"+o.Name) {
			t.Errorf("no flag or variable for %s", o.Name)
		}
		if o.Secret && strings.Contains(r.stdout, strings.TrimSuffix("--"+o.Flag(), "-file")+" ") {
			t.Errorf("%s can be given as an argument", o.Name)
		}
	}
}

func TestHelpOfACommandShowsItsOwnFlags(t *testing.T) {
	own := bot(t, nil, "bench", "--help")
	if own.code != exitOK || !strings.Contains(own.stdout, "--turns ") || strings.Contains(own.stdout, "--telegram-") {
		t.Errorf("code %d: not exactly its own flags:\n%s", own.code, own.stdout)
	}
	group := bot(t, nil, "help", "backup")
	if !strings.Contains(group.stdout, "\nCommands:\n  backup create ") {
		t.Errorf("no list of subcommands:\n%s", group.stdout)
	}
	for _, args := range [][]string{{"help", "nonsense"}, {"nonsense", "--help"}, {"-h", "nonsense"}, {"backup", "nonsense", "-h"}} {
		if r := bot(t, nil, args...); r.code != exitUsage || !strings.Contains(r.stderr, `no command "nonsense"`) || r.stdout != "" {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestAMisspelledCommandGetsAWholeSentence(t *testing.T) {
	for name, want := range map[string]string{
		"nonsense": "bot has no command \"nonsense\"; see bot --help\n",
		"persion":  "bot has no command \"persion\"; did you mean person or version? Or see bot --help\n",
	} {
		if r := bot(t, nil, name); r.code != exitUsage || !strings.HasSuffix(r.stderr, want) {
			t.Errorf("bot %s: code %d, %q", name, r.code, r.stderr)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	flag, command := bot(t, nil, "--version"), bot(t, nil, "version")
	if flag != command || flag.code != exitOK || !strings.HasPrefix(flag.stdout, "bot ") {
		t.Errorf("--version: %+v, version: %+v", flag, command)
	}
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string][]string{
		"re":                 {"repo", "resume", "retention"},
		"backup ":            {"create", "list", "restore", "verify"},
		"he":                 {"help"},
		"n":                  {":4"}, // nothing
		"serve --no-cons":    {"--no-console"},
		"serve --telegram-b": {"--telegram-bot-token-file"},
		"completion ":        {"bash", "fish", "zsh"},
		"costs --by ":        {"codebase", "conversation", "day", "model", "person", "repository"},
	} {
		r := bot(t, nil, append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, " ")...)...)
		got := strings.Fields(strings.Split(r.stdout, "\n:")[0]) // what follows is for the shell
		slices.Sort(got)
		if r.code != exitOK || !slices.Equal(got, want) {
			t.Errorf("%q: code %d, got %q, want %q", line, r.code, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r := bot(t, nil, "completion", shell); r.code != exitOK || !strings.Contains(r.stdout, "bot") {
			t.Errorf("%s: %+v", shell, r)
		}
	}
	if r := bot(t, nil, "completion", "tcsh"); r.code != exitUsage || !strings.Contains(r.stderr, "bash") {
		t.Errorf("an unknown shell: %+v", r)
	}
}

// A mistake in a command leads to the help that explains this command.
func TestAMistakeLeadsToHelp(t *testing.T) {
	for line, want := range map[string]string{
		"sessions list --bogus": "bot: unknown flag: --bogus; see bot sessions list --help\n",
		"chaos --kills=-1":      "and --rate not zero; see bot chaos --help\n",
		"statsu":                "; see bot --help\n",
		"help nonsense":         "; see bot --help\n",
	} {
		if r := bot(t, nil, strings.Split(line, " ")...); r.code != exitUsage || !strings.HasSuffix(r.stderr, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestManualPage(t *testing.T) {
	r := bot(t, nil, "man")
	if r.code != exitOK || !strings.HasPrefix(r.stdout, ".TH BOT 1") {
		t.Fatalf("code %d, begins with %.40q", r.code, r.stdout)
	}
	for _, want := range []string{"backup", "telegram", "bot"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("nothing about %s", want)
		}
	}
}

func TestUsageErrorsExitWith2(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"--nonsense"}, {"migrate", "down"}, {"--telegram-bot-token=1:hunter2"}, {"config"}} {
		r := bot(t, nil, args...)
		if r.code != exitUsage || strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "bot: ") || strings.Contains(r.stderr, "hunter2") {
			t.Errorf("%q: code %d, stderr %q", args, r.code, r.stderr)
		}
	}
}

func TestEveryProblemIsALineAndExitsWith2(t *testing.T) {
	r := bot(t, []string{"TURN_TIMEOUT=5", "TELEGRAM_BOT_TOKEN=hunter2"}, "serve", "--log-level", "loud")
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if r.code != exitUsage || len(lines) != 3 {
		t.Fatalf("code %d, stderr %q", r.code, r.stderr)
	}
	for i, want := range []string{"TURN_TIMEOUT", "TELEGRAM_BOT_TOKEN", "--log-level"} {
		if !strings.HasPrefix(lines[i], "bot: "+want) || strings.Contains(lines[i], "hunter2") {
			t.Errorf("line %d = %q", i, lines[i])
		}
	}
}

func TestConfigShow(t *testing.T) {
	r := bot(t, []string{"OPENAI_API_KEY=hunter2"}, "config", "show", "--openai-model=abc")
	if r.code != exitOK || strings.Contains(r.stdout, "hunter2") || !strings.Contains(r.stdout, "abc  (flag --openai-model)") {
		t.Errorf("code %d, stdout %s", r.code, r.stdout)
	}
}

func TestConfigReadsEnvFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.env")
	if err := os.WriteFile(path, []byte("LOG_LEVEL=debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := bot(t, nil, "--env-file", path, "config", "show")
	if r.code != exitOK || !strings.Contains(r.stdout, "debug  (other.env)") {
		t.Errorf("code %d, stdout %s, stderr %s", r.code, r.stdout, r.stderr)
	}
}

func TestVersion(t *testing.T) {
	if r := bot(t, nil, "version"); r.code != exitOK || !strings.HasPrefix(r.stdout, "bot ") {
		t.Errorf("%+v", r)
	}
	r := bot(t, nil, "version", "--json")
	var v map[string]string
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v["go"] != runtime.Version() {
		t.Errorf("%+v (%v)", r, err)
	}
}

func TestHealthcheck(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(status)
	}))
	addr := server.Listener.Addr().String()
	if r := bot(t, []string{"LISTEN_ADDR=" + addr}, "healthcheck"); r.code != exitOK {
		t.Errorf("healthy: %+v", r)
	}
	status = http.StatusServiceUnavailable
	if r := bot(t, []string{"LISTEN_ADDR=" + addr}, "healthcheck"); r.code != exitFailed {
		t.Errorf("unhealthy: %+v", r)
	}
	server.Close()
	if r := bot(t, []string{"LISTEN_ADDR=" + addr}, "healthcheck"); r.code != exitFailed || !strings.Contains(r.stderr, "no daemon answers") {
		t.Errorf("gone: %+v", r)
	}
}

func TestExitCodeOfErrors(t *testing.T) {
	t.Parallel()
	const token = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	cases := map[string]struct {
		err  error
		code int
		line string
	}{
		"none":         {nil, exitOK, ""},
		"invalid":      {fmt.Errorf("start: %w", &fault.Error{Kind: fault.Invalid, Public: "DATA_DIR is bad: fix it", Err: errors.New("x")}), exitUsage, "bot: DATA_DIR is bad: fix it\n"},
		"unauthorized": {fault.New(fault.Unauthorized, "TELEGRAM_BOT_TOKEN was refused"), exitUsage, "bot: TELEGRAM_BOT_TOKEN was refused\n"},
		"names option": {&fault.Error{Kind: fault.Unavailable, Public: "DATABASE_URL: nobody answers at db", Err: errors.New("x")}, exitUsage, "bot: DATABASE_URL: nobody answers at db\n"},
		"unavailable":  {fault.Wrap(errors.New("DATABASE_URL x"), fault.Unavailable, "ping"), exitFailed, "bot: unavailable: ping: DATABASE_URL x\n"},
		"failed":       {errors.New("post bot" + token + "/x:\nEOF"), exitFailed, "bot: post bot[redacted]/x: EOF\n"},
		"stopped":      {&fault.Error{Kind: fault.Canceled, Public: "Stopped. What was saved stays.", Err: context.Canceled}, exitFailed, "bot: Stopped. What was saved stays.\n"},
	}
	for name, tc := range cases {
		var stderr bytes.Buffer
		p := &program{process: process{stderr: &stderr}}
		if code := p.exitCode(tc.err); code != tc.code || stderr.String() != tc.line {
			t.Errorf("%s: code %d, %q", name, code, stderr.String())
		}
	}
}

func TestLogsOfAConsoleGoToAPrivateFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	cfg, err := app.LoadConfig(config.Source{Environ: []string{"DATA_DIR=" + dir, "OPENAI_API_KEY=hunter2hunter2", "LOG_LEVEL=debug"}})
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	log, closeLog, err := newLogger(&levels{console: true}, cfg, &stderr, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("Quiet", "key", "hunter2hunter2")
	log.Warn("Loud", "key", "hunter2hunter2")
	closeLog()

	path := filepath.Join(dir, "log", "bot.log")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.Contains(text, "Quiet") || !strings.Contains(text, "Loud") {
		t.Errorf("file = %s", text)
	}
	if s := stderr.String(); strings.Contains(s, "Quiet") || !strings.Contains(s, "Loud") {
		t.Errorf("stderr = %s", s)
	}
	if strings.Contains(text+stderr.String(), "hunter2") {
		t.Error("a secret is in the log")
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700, dir: 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", p, info.Mode(), err, want)
		}
	}
}

func TestLogsWithoutATerminalAreJSON(t *testing.T) {
	t.Parallel()
	for format, check := range map[string]func(string) bool{
		"auto": func(s string) bool { return json.Valid([]byte(s)) },
		"json": func(s string) bool { return json.Valid([]byte(s)) },
		"text": func(s string) bool { return strings.Contains(s, "INF Started n=1") },
	} {
		cfg, err := app.LoadConfig(config.Source{Environ: []string{"LOG_FORMAT=" + format}})
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		log, closeLog, err := newLogger(&levels{}, cfg, &stderr, nil)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("Started", slog.Int("n", 1))
		closeLog()
		if !check(stderr.String()) {
			t.Errorf("%s: %q", format, stderr.String())
		}
	}
}

// Whatever keeps the start from a folder or a host names the option and what it holds.
func TestAStartThatFailsNamesTheOption(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no programs of assistants there")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for option, value := range map[string]string{"AGENT_HOME": file + "/x", "WORKSPACE_PATH": file + "/x", "GIT_ALLOWED_HOSTS": "no such"} {
		r := bot(t, []string{option + "=" + value, "LISTEN_ADDR=127.0.0.1:0", "LOG_LEVEL=error", "CLAUDE_COMMAND=/bin/true"}, "chat", "hi")
		named, _, _ := strings.Cut(value, " ")
		if r.code != exitUsage || !strings.Contains(r.stderr, option) || !strings.Contains(r.stderr, strings.TrimSuffix(named, "/x")) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: code %d, stderr %q", option, r.code, r.stderr)
		}
	}
}

func TestDataDirThatCannotBeWrittenNamesTheOption(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openLog(file)
	if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.Public(err), "DATA_DIR "+file) {
		t.Errorf("error = %v", err)
	}
}

func TestPipedInput(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if !isPiped(r) || isPiped(null) || isPiped(strings.NewReader("")) {
		t.Error("isPiped is wrong")
	}
	if isTerminal(r) || isTerminal(&bytes.Buffer{}) {
		t.Error("isTerminal is wrong")
	}
}

func TestFirstSignalStopsAndTheSecondEnds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
		cmd.Env = append(os.Environ(), helperEnv+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for _, want := range []string{"ready\n", "stopping\n"} {
			if got, err := lines.ReadString('\n'); got != want {
				t.Fatalf("%v: line %q (%v), want %q", sig, got, err, want)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = io.Copy(io.Discard, lines)
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
			t.Errorf("%v: %v, want exit code 1", sig, err)
		}
	}
}

// TestRefusedAssistantsLeaveTheDatabaseAlone: what an assistant's options say is refused before
// the schema is brought up to date, so that the version before can still be started.
func TestRefusedAssistantsLeaveTheDatabaseAlone(t *testing.T) {
	data := t.TempDir()
	for _, option := range []string{"ACP_AGENTS=claude=/opt/none", "DEFAULT_AI_ASSISTANT=gemini"} {
		r := bot(t, []string{"DATA_DIR=" + data, "LISTEN_ADDR=127.0.0.1:0", option}, "serve", "--no-console")
		name, _, _ := strings.Cut(option, "=")
		if r.code == exitOK || !strings.Contains(r.stderr, name) {
			t.Errorf("%s: code %d, stderr %q", option, r.code, r.stderr)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(data, "bot.db*")); len(found) > 0 {
		t.Errorf("there are %q", found)
	}
}
