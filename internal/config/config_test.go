package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/config"
	"remote-agent/internal/option"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/platform/telegram"
)

// sections are what model APIs and platforms add to the configuration.
func sections() []option.Section {
	return []option.Section{openai.Kind(), anthropic.Kind(), telegram.Kind(), slack.Kind(), github.Kind()}
}

// load reads options from an environment and the text of a .env file.
func load(t *testing.T, dotenv string, flags map[string]string, environ ...string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(path, []byte(dotenv), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Source{Flags: flags, Environ: environ, EnvFile: path}, sections()...)
}

func mustLoad(t *testing.T, dotenv string, flags map[string]string, environ ...string) config.Config {
	t.Helper()
	c, err := load(t, dotenv, flags, environ...)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func problems(t *testing.T, err error) config.Problems {
	t.Helper()
	p, ok := config.AsProblems(err)
	if !ok {
		t.Fatalf("error is %T (%v), want Problems", err, err)
	}
	for _, line := range p {
		if strings.ContainsAny(line, "\r\n") {
			t.Errorf("problem is not one line: %q", line)
		}
	}
	return p
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", nil)
	want := config.Config{
		ListenAddr:       "127.0.0.1:3000",
		API:              true,
		DataDir:          "./data",
		Database:         config.Database{Driver: config.DriverSQLite, Path: filepath.Join("data", "bot.db")},
		WorkspacePath:    filepath.Join("data", "workspace"),
		BackupDir:        filepath.Join("data", "backups"),
		Retention:        config.Retention{Raw: 30 * 24 * time.Hour, Files: 90 * 24 * time.Hour},
		Assistant:        config.AssistantDemo,
		MaxConversations: 10,
		MaxWaiting:       50,
		Pairing:          true,
		TurnTimeout:      time.Hour,
		ShutdownGrace:    30 * time.Second,
		ContextTokens:    100_000,
		Tools:            config.Tools{Mode: "edit", Sandbox: "best", Timeout: 10 * time.Minute, MaxRounds: 50},
		Agents: config.Agents{
			Claude: "claude-agent-acp", Codex: "codex-acp", Home: filepath.Join("data", "agents"), Idle: 10 * time.Minute,
			Env: []string{
				"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME",
			},
		},
		Memory:     config.Memory{On: true, Learning: true, Model: "text-embedding-3-small"},
		Transcribe: config.Transcribe{Model: "whisper-1"},
		SignIn:     config.SignIn{Claim: "email"},
		Git:        config.Git{Hosts: []string{"github.com"}},
		Log:        config.Log{Level: slog.LevelInfo, Format: config.FormatAuto},
	}
	if diff := cmp.Diff(want, c, cmp.FilterPath(func(p cmp.Path) bool { return slices.Contains([]string{"values", "table", "Sections"}, p.String()) }, cmp.Ignore())); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestMissingEnvFileIsFineUnlessItWasAskedFor(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.env")
	_, err := config.Load(config.Source{EnvFile: missing})
	if p := problems(t, err); len(p) != 1 || !strings.HasPrefix(p[0], missing+" does not exist") {
		t.Errorf("problems = %q", p)
	}
	if _, err := config.Load(config.Source{}); err != nil {
		t.Errorf("Load without a .env file: %v", err)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		dotenv, env string
		flags       map[string]string
		want        string
		origin      string
	}{
		"default":           {want: "gpt-5-mini", origin: "default"},
		"file":              {dotenv: "OPENAI_MODEL=a", want: "a", origin: ".env"},
		"environment":       {dotenv: "OPENAI_MODEL=a", env: "OPENAI_MODEL=b", want: "b", origin: "environment"},
		"flag":              {dotenv: "OPENAI_MODEL=a", env: "OPENAI_MODEL=b", flags: map[string]string{"openai-model": "c"}, want: "c", origin: "flag --openai-model"},
		"empty environment": {dotenv: "OPENAI_MODEL=a", env: "OPENAI_MODEL=", want: "gpt-5-mini", origin: "default, empty in environment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := mustLoad(t, tc.dotenv, tc.flags, tc.env)
			if model, _ := c.Text("OPENAI_MODEL"); model != tc.want || c.Origin("OPENAI_MODEL") != tc.origin {
				t.Errorf("model = %q from %q, want %q from %q", model, c.Origin("OPENAI_MODEL"), tc.want, tc.origin)
			}
		})
	}
}

func TestEnvironmentIsNotChanged(t *testing.T) {
	before := os.Environ()
	mustLoad(t, "OPENAI_MODEL=a\nSOMETHING_ELSE=b\n", nil)
	if diff := cmp.Diff(before, os.Environ()); diff != "" {
		t.Errorf("Load changed the environment:\n%s", diff)
	}
}

func TestOlderNames(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", nil, "PORT=8080", "OPENAI_API_BASE=http://localhost:1/v1")
	if base, _ := c.Text("OPENAI_BASE_URL"); c.ListenAddr != "127.0.0.1:8080" || base != "http://localhost:1/v1" {
		t.Errorf("ListenAddr = %q, BaseURL = %q", c.ListenAddr, base)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "use OPENAI_BASE_URL") {
		t.Errorf("warnings = %q", c.Warnings)
	}
	if c := mustLoad(t, "", nil, "PORT=8080", "LISTEN_ADDR=127.0.0.1:1"); c.ListenAddr != "127.0.0.1:1" {
		t.Errorf("PORT won over LISTEN_ADDR: %q", c.ListenAddr)
	}
	if c := mustLoad(t, "LISTEN_ADDR=127.0.0.1:1", nil, "PORT=8080"); c.ListenAddr != "127.0.0.1:8080" {
		t.Errorf("the file won over the environment: %q", c.ListenAddr)
	}
}

func TestAssistantFollowsFromTheModelOptions(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"OPENAI_API_KEY=k":                      "openai",
		"OPENAI_BASE_URL=http://127.0.0.1:1/v1": "openai",
		"OPENAI_MODEL=m":                        "demo",
	} {
		if c := mustLoad(t, "", nil, env); c.Assistant != want {
			t.Errorf("%s: assistant = %q, want %q", env, c.Assistant, want)
		}
	}
	if c := mustLoad(t, "", nil, "OPENAI_API_KEY=k", "DEFAULT_AI_ASSISTANT=demo"); c.Assistant != "demo" {
		t.Errorf("assistant = %q, want demo", c.Assistant)
	}
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ driver, path, url string }{
		"sqlite:/var/lib/x.db":     {driver: "sqlite", path: "/var/lib/x.db"},
		"sqlite:x.db":              {driver: "sqlite", path: "x.db"},
		"sqlite:///var/lib/x.db":   {driver: "sqlite", path: "/var/lib/x.db"},
		"postgres://u:p@h:1/d":     {driver: "postgres", url: "postgres://u:p@h:1/d"},
		"postgresql:///d?host=/rn": {driver: "postgres", url: "postgresql:///d?host=/rn"},
	}
	for text, want := range cases {
		c := mustLoad(t, "", nil, "DATABASE_URL="+text)
		if c.Database.Driver != want.driver || c.Database.Path != want.path || c.Database.URL.Reveal() != want.url {
			t.Errorf("%s: %+v, %q", text, c.Database, c.Database.URL.Reveal())
		}
	}
}

// TestBadValues has one row for each way to get an option wrong: what is set,
// and the words that the one line must have.
func TestBadValues(t *testing.T) {
	t.Parallel()
	cases := []struct {
		env  []string
		want []string
	}{
		{[]string{"LISTEN_ADDR=3000"}, []string{"LISTEN_ADDR (environment)", `"3000"`, "host:port"}},
		{[]string{"LISTEN_ADDR=127.0.0.1:99999"}, []string{"LISTEN_ADDR", "65535"}},
		{[]string{"PORT=http"}, []string{"PORT (environment)", "number"}},
		{[]string{"PUBLIC_URL=example.com"}, []string{"PUBLIC_URL", "https://"}},
		{[]string{"PUBLIC_URL=https://:443/"}, []string{"PUBLIC_URL", "with a host"}},
		{[]string{"DATABASE_URL=mysql://u:hunter2@h/d"}, []string{"DATABASE_URL", "postgres://"}},
		{[]string{"DATABASE_URL=postgres://u:hunter2%@h/d"}, []string{"DATABASE_URL", "percent-encode"}},
		{[]string{"DATABASE_URL=sqlite:"}, []string{"DATABASE_URL", "sqlite:PATH"}},
		{[]string{"DATABASE_URL=sqlite:data/bot.db?cache=shared"}, []string{"DATABASE_URL", "a ? in its name", "sqlite:PATH"}},
		{[]string{"DEFAULT_AI_ASSISTANT=Hal 9000"}, []string{"DEFAULT_AI_ASSISTANT", `"Hal 9000"`, "anthropic, claude, codex"}},
		{[]string{"DEFAULT_AI_ASSISTANT=openai"}, []string{"DEFAULT_AI_ASSISTANT", "OPENAI_API_KEY", "OPENAI_BASE_URL"}},
		{[]string{"MAX_CONCURRENT_CONVERSATIONS=0"}, []string{"MAX_CONCURRENT_CONVERSATIONS", "from 1"}},
		{[]string{"MAX_CONCURRENT_CONVERSATIONS=ten"}, []string{"MAX_CONCURRENT_CONVERSATIONS", `"ten"`}},
		{[]string{"TURN_TIMEOUT=60"}, []string{"TURN_TIMEOUT", `"60"`, "unit"}},
		{[]string{"TURN_TIMEOUT=0s"}, []string{"TURN_TIMEOUT"}},
		{[]string{"TURN_TIMEOUT=1ns"}, []string{"TURN_TIMEOUT", "from 10ms to 8760h"}},
		{[]string{"SHUTDOWN_GRACE=100000h"}, []string{"SHUTDOWN_GRACE", "from 0s to 24h"}},
		{[]string{"SHUTDOWN_GRACE=-1s"}, []string{"SHUTDOWN_GRACE"}},
		{[]string{"OPENAI_API_KEY=hunter2 hunter2"}, []string{"OPENAI_API_KEY", "copy it again"}},
		{[]string{"OPENAI_BASE_URL=localhost:1"}, []string{"OPENAI_BASE_URL", "http://"}},
		{[]string{"OPENAI_BASE_URL=http://u:hunter2@h/v1"}, []string{"OPENAI_BASE_URL", "password"}},
		{[]string{"CONTEXT_TOKENS=10"}, []string{"CONTEXT_TOKENS", "500"}},
		{[]string{"TELEGRAM_BOT_TOKEN=hunter2"}, []string{"TELEGRAM_BOT_TOKEN", "@BotFather"}},
		{[]string{"TELEGRAM_MODE=push"}, []string{"TELEGRAM_MODE", "poll or webhook"}},
		{[]string{"TELEGRAM_WEBHOOK_SECRET=hunter2"}, []string{"TELEGRAM_WEBHOOK_SECRET", "16"}},
		{[]string{"TELEGRAM_ALLOWED_USER_IDS=42,@alice"}, []string{"TELEGRAM_ALLOWED_USER_IDS", `"@alice"`, "numeric", "/whoami"}},
		{[]string{"TELEGRAM_ALLOWED_USER_IDS=-100123"}, []string{"TELEGRAM_ALLOWED_USER_IDS", "group"}},
		{[]string{"TELEGRAM_ALLOWED_USER_IDS=,"}, []string{"TELEGRAM_ALLOWED_USER_IDS"}},
		{[]string{"TELEGRAM_STREAMING_MODE=fast"}, []string{"TELEGRAM_STREAMING_MODE", "stream or batch"}},
		{[]string{"TELEGRAM_SEND_RATE=-1"}, []string{"TELEGRAM_SEND_RATE"}},
		{[]string{"TELEGRAM_SEND_RATE=NaN"}, []string{"TELEGRAM_SEND_RATE"}},
		{[]string{"TELEGRAM_CHAT_SEND_RATE=lots"}, []string{"TELEGRAM_CHAT_SEND_RATE"}},
		{[]string{"TELEGRAM_SEND_RATE=1e-300"}, []string{"TELEGRAM_SEND_RATE", "0.01"}},
		{[]string{"TELEGRAM_SEND_RATE=1e300"}, []string{"TELEGRAM_SEND_RATE", "1000000"}},
		{[]string{"SIGN_IN_PEOPLE=ann=telegarm/42"}, []string{"SIGN_IN_PEOPLE (environment)", `"ann=telegarm/42"`, "console, github, slack, telegram"}},
		{[]string{"LOG_LEVEL=loud"}, []string{"LOG_LEVEL", "debug, info, warn or error"}},
		{[]string{"LOG_FORMAT=xml"}, []string{"LOG_FORMAT", "auto, text or json"}},
		{[]string{"GIT_ALLOWED_HOSTS=https://github.com/x"}, []string{"GIT_ALLOWED_HOSTS", "host names"}},
		{[]string{"SLACK_BOT_TOKEN=xoxp-1"}, []string{"SLACK_BOT_TOKEN", "xoxb-"}},
		{[]string{"SLACK_BOT_TOKEN=xoxb-1"}, []string{"SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"}},
		{[]string{"SLACK_ALLOWED_USER_IDS=ann"}, []string{"SLACK_ALLOWED_USER_IDS", "user id"}},
		{[]string{"GIT_ALLOWED_HOSTS=*"}, []string{"GIT_ALLOWED_HOSTS", "host names"}},
		{[]string{"OPENAI_API_KEY=a", "OPENAI_API_KEY_FILE=/x"}, []string{"OPENAI_API_KEY", "OPENAI_API_KEY_FILE", "remove one"}},
		{[]string{"OPENAI_API_KEY_FILE=/does/not/exist"}, []string{"OPENAI_API_KEY_FILE", "does not exist"}},
		{
			[]string{"TELEGRAM_MODE=webhook", "PUBLIC_URL=https://x.example"},
			[]string{"TELEGRAM_WEBHOOK_SECRET is not set", "openssl"},
		},
		{
			[]string{"TELEGRAM_MODE=webhook", "TELEGRAM_WEBHOOK_SECRET=0123456789abcdef"},
			[]string{"PUBLIC_URL is not set"},
		},
		{
			[]string{"TELEGRAM_MODE=webhook", "PUBLIC_URL=http://x.example", "TELEGRAM_WEBHOOK_SECRET=0123456789abcdef"},
			[]string{"PUBLIC_URL is not https"},
		},
	}
	for _, tc := range cases {
		t.Run(strings.Join(tc.env, ","), func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "", nil, tc.env...)
			p := problems(t, err)
			if len(p) != 1 {
				t.Fatalf("problems = %q, want one", p)
			}
			for _, want := range tc.want {
				if !strings.Contains(p[0], want) {
					t.Errorf("no %q in %q", want, p[0])
				}
			}
			if strings.Contains(p[0], "hunter2") {
				t.Errorf("a secret is in %q", p[0])
			}
		})
	}
}

func TestGoodValues(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		{"TELEGRAM_BOT_TOKEN=1:x"},
		{"LISTEN_ADDR=[::1]:0"},
		{"LISTEN_ADDR=:3000"},
		{"TELEGRAM_SEND_RATE=0", "TELEGRAM_CHAT_SEND_RATE=0.05"},
		{"SHUTDOWN_GRACE=0s"},
		{"TELEGRAM_MODE=webhook", "PUBLIC_URL=https://x.example/", "TELEGRAM_WEBHOOK_SECRET=0123456789abcdef"},
		{"TELEGRAM_MODE=webhook", "PUBLIC_URL=http://10.0.0.1:3000", "TELEGRAM_API_URL=http://127.0.0.1:8081", "TELEGRAM_WEBHOOK_SECRET=0123456789abcdef"},
	} {
		if _, err := load(t, "", nil, env...); err != nil {
			t.Errorf("%q: %v", env, err)
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, "LOG_LEVEL=loud\n", map[string]string{"listen-addr": "x"}, "TURN_TIMEOUT=1", "TELEGRAM_MODE=webhook")
	p := problems(t, err)
	if len(p) != 5 {
		t.Errorf("%d problems: %q, want 5", len(p), p)
	}
	for _, want := range []string{"--listen-addr", "TURN_TIMEOUT (environment)", "LOG_LEVEL (.env)", "PUBLIC_URL", "TELEGRAM_WEBHOOK_SECRET"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, p)
		}
	}
}

func TestMalformedEnvFileNamesItsLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text string
		line int
	}{
		"no equals sign":     {"A=1\nB=2\nthis is not it\nC=3\n", 3},
		"unterminated quote": {"A=1\n# comment\n\nB=\"hunter2\nC=3\n", 4},
		"after a long value": {"A=\"1\n2\n3\"\n!B=2\n", 4},
		"last line":          {"A=1\nhunter2", 2},
		"name with a space":  {"A=1\nmy key=hunter2\n", 2},
		"first line":         {"=hunter2\n", 1},
		"in a long file":     {strings.Repeat("A=1\n", 20_000) + "B='hunter2\n" + strings.Repeat("C=1\n", 20_000), 20_001},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tc.text, nil)
			p := problems(t, err)
			if len(p) != 1 || !strings.Contains(p[0], fmt.Sprintf(".env:%d ", tc.line)) || strings.Contains(p[0], "hunter2") {
				t.Errorf("problems = %q, want one for line %d without the value", p, tc.line)
			}
		})
	}
}

func TestUnknownKeysOfOursWarn(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, strings.Join([]string{
		"TELEGRAM_TOKEN=hunter2",        // our prefix
		"LISTEN_ADR=127.0.0.1:1",        // a typing mistake
		"telegram_bot_token=1:x",        // wrong case
		"OPENAI_MODEL_FILE=x",           // no secret
		"HOME_DIR=/x",                   // somebody else's
		"HOST=x",                        // too short to be a mistake
		"TELEGRAM_BOT_TOKEN_FILE=",      // known
		"OPENAI_API_BASE=http://[::1]/", // known, older
	}, "\n"), nil)
	want := map[string]string{
		"TELEGRAM_TOKEN":     "TELEGRAM_BOT_TOKEN",
		"LISTEN_ADR":         "LISTEN_ADDR",
		"telegram_bot_token": "TELEGRAM_BOT_TOKEN",
		"OPENAI_MODEL_FILE":  "OPENAI_MODEL",
	}
	got := map[string]string{}
	for _, w := range c.Warnings {
		if key, rest, ok := strings.Cut(w, " (.env) is not a known option"); ok {
			_, near, _ := strings.Cut(rest, "did you mean ")
			got[key] = strings.TrimSuffix(near, "?")
		}
		if strings.Contains(w, "hunter2") {
			t.Errorf("a value is in %q", w)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s\n%q", diff, c.Warnings)
	}
}

func TestUnknownVariablesOfOursWarn(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", nil, "TELEGRAM_TOKEN=hunter2", "SLACK_BOT_TOKN=hunter2",
		"GITHUB_SHA=abc", "ANTHROPIC_AUTH_TOKEN=for an agent", "AGENT=x", "HOME=/", "PORT=4000", "TELEGRAM_BOT_TOKEN_FILE=")
	want := []string{
		"SLACK_BOT_TOKN (environment) is not a known option and is ignored; did you mean SLACK_BOT_TOKEN?",
		"TELEGRAM_TOKEN (environment) is not a known option and is ignored; did you mean TELEGRAM_BOT_TOKEN?",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestRepeatedVariable(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "\ufeff# LOG_LEVEL=debug\nLOG_LEVEL=warn\nMINE=\"a\nLOG_LEVEL=b\"\n\nexport LOG_LEVEL=error\nOPENAI_API_KEY=hunter2\nOPENAI_API_KEY=hunter3", nil)
	if c.Log.Level != slog.LevelError {
		t.Errorf("the level is %v: the last one does not count", c.Log.Level)
	}
	want := []string{
		"LOG_LEVEL is set again in line 6 of .env, which counts: remove the other line",
		"OPENAI_API_KEY is set again in line 8 of .env, which counts: remove the other line",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestSecretFromFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("the-key\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]config.Config{
		"environment": mustLoad(t, "", nil, "OPENAI_API_KEY_FILE="+path),
		"file":        mustLoad(t, "OPENAI_API_KEY_FILE="+path, nil),
		"flag":        mustLoad(t, "", map[string]string{"openai-api-key-file": path}, "OPENAI_API_KEY=other"),
	} {
		if got, _ := c.Text("OPENAI_API_KEY"); got != "the-key" {
			t.Errorf("%s: key = %q", name, got)
		}
		if got := c.Origin("OPENAI_API_KEY"); got != "file "+path {
			t.Errorf("%s: origin = %q", name, got)
		}
		if len(c.Warnings) != 0 {
			t.Errorf("%s: warnings = %q", name, c.Warnings)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if c := mustLoad(t, "", nil, "OPENAI_API_KEY_FILE="+path); len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "chmod 600") {
			t.Errorf("%o: warnings = %q", mode, c.Warnings)
		}
	}
}

func TestSecretFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, large := filepath.Join(dir, "empty"), filepath.Join(dir, "large")
	for path, size := range map[string]int{empty: 0, large: 1 << 20} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{empty: "is empty", large: "larger", dir: "not a file"} {
		_, err := load(t, "", nil, "OPENAI_API_KEY_FILE="+path)
		if p := problems(t, err); len(p) != 1 || !strings.Contains(p[0], want) {
			t.Errorf("%s: problems = %q, want %q", path, p, want)
		}
	}
}

func TestSecretsOfAConfig(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", nil, "OPENAI_API_KEY=key-1", "TELEGRAM_BOT_TOKEN=1:x", "DATABASE_URL=postgres://u:p%40ss@h/d?sslpassword=q")
	got := c.Secrets()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"1:x", "key-1", "p@ss", "q"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestShowMasksSecretsAndTellsOrigins(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "LOG_LEVEL=debug", map[string]string{"openai-model": "m\x1b[2J"},
		"OPENAI_API_KEY=hunter2", "TELEGRAM_BOT_TOKEN=1:hunter2", "DATABASE_URL=postgres://u:hunter2@h/d?password=hunter2")
	var out bytes.Buffer
	if err := c.Show(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Contains(text, "hunter2") || strings.Contains(text, "\x1b") {
		t.Errorf("a secret or a control character is in:\n%s", text)
	}
	for _, o := range config.Options(sections()...) {
		if !strings.Contains(text, o.Name) {
			t.Errorf("no %s", o.Name)
		}
	}
	for _, want := range []string{
		"debug  (.env)", "(flag --openai-model)", "[redacted]  (environment)", "postgres://u:[redacted]@h/d?[redacted]  (environment)",
		"openai  (default)", "127.0.0.1:3000  (default)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s := config.NewSecret("hunter2")
	type holder struct {
		Secret config.Secret
		hidden config.Secret
	}
	h := holder{s, s}
	var outputs []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
		outputs = append(outputs, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, h), fmt.Sprintf(verb, &h), fmt.Sprintf(verb, []config.Secret{s}))
	}
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("x", "s", s, "h", h)
	slog.New(slog.NewTextHandler(&buf, nil)).Info("x", "s", s, "h", h)
	outputs = append(outputs, string(data), buf.String(), s.String(), s.GoString())
	for _, out := range outputs {
		if strings.Contains(out, "hunter2") || strings.Contains(out, "68756e746572") {
			t.Errorf("the secret is in %q", out)
		}
	}
	if s.Reveal() != "hunter2" || !s.IsSet() || (config.Secret{}).IsSet() || config.NewSecret("").IsSet() {
		t.Error("Reveal or IsSet is wrong")
	}
	if got := fmt.Sprint(config.Secret{}); got != "" {
		t.Errorf("an unset secret prints %q", got)
	}
}

func FuzzEnvFile(f *testing.F) {
	for _, seed := range []string{"A=1", "A='x", "export A=1\nB: 2", "=\n", "A", "\"\n\n", "LISTEN_ADDR=${A}\n\x00=1", "\xef\xbb\xbfA=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), ".env")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Source{EnvFile: path})
		if err == nil {
			return
		}
		for _, line := range problems(t, err) {
			if line == "" {
				t.Error("empty problem")
			}
		}
	})
}
