package config_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/config"
)

// rsaKey is made once, because it takes a while.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// appKey returns a private key as GitHub gives it.
func appKey() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey())}))
}

// inOneLine is how people put a key into an environment variable.
func inOneLine(key string) string { return strings.ReplaceAll(key, "\n", `\n`) }

// TestBadValuesOfWork has one row for each way to get an option of models, tools,
// agents or GitHub wrong: what is set, and the words that the one line must have.
func TestBadValuesOfWork(t *testing.T) {
	t.Parallel()
	const hook = "GITHUB_WEBHOOK_SECRET=0123456789abcdef"
	app := []string{"GITHUB_APP_ID=123", "GITHUB_APP_PRIVATE_KEY=" + inOneLine(appKey())}
	also := func(more ...string) []string { return append(more, app...) }
	agreement, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(agreement.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	cases := []struct {
		env  []string
		want []string
	}{
		// Models.
		{[]string{"ANTHROPIC_API_KEY=hunter2 hunter2"}, []string{"ANTHROPIC_API_KEY (environment)", "copy it again"}},
		{[]string{"ANTHROPIC_BASE_URL=localhost:1"}, []string{"ANTHROPIC_BASE_URL", "http://"}},
		{[]string{"ANTHROPIC_BASE_URL=https://u:hunter2@h"}, []string{"ANTHROPIC_BASE_URL", "password"}},
		{[]string{"ANTHROPIC_BASE_URL=https://h/?key=hunter2"}, []string{"ANTHROPIC_BASE_URL", "use the address without them"}},
		{[]string{"ANTHROPIC_MODEL=\xff"}, []string{"ANTHROPIC_MODEL", "UTF-8"}},
		{[]string{"ANTHROPIC_MAX_TOKENS=255"}, []string{"ANTHROPIC_MAX_TOKENS", `"255"`, "from 256"}},
		{[]string{"ANTHROPIC_MAX_TOKENS=lots"}, []string{"ANTHROPIC_MAX_TOKENS", `"lots"`}},
		{[]string{"ANTHROPIC_THINKING_TOKENS=-2"}, []string{"ANTHROPIC_THINKING_TOKENS", "from -1"}},
		{[]string{"ANTHROPIC_THINKING_TOKENS=1023"}, []string{"ANTHROPIC_THINKING_TOKENS is 1023", "use 0", "1024"}},
		{[]string{"ANTHROPIC_THINKING_TOKENS=16000"}, []string{"ANTHROPIC_THINKING_TOKENS", "below ANTHROPIC_MAX_TOKENS (16000)"}},
		{[]string{"ANTHROPIC_THINKING_TOKENS=4096", "ANTHROPIC_MAX_TOKENS=4096"}, []string{"ANTHROPIC_THINKING_TOKENS", "(4096)"}},
		{[]string{"ANTHROPIC_THINKING_TOKENS=9999", "ANTHROPIC_MAX_TOKENS=x"}, []string{"ANTHROPIC_MAX_TOKENS"}}, // not two problems
		{[]string{"ANTHROPIC_EFFORT=lots"}, []string{"ANTHROPIC_EFFORT", `"lots"`, "low", "max"}},
		{[]string{"DEFAULT_AI_ASSISTANT=anthropic"}, []string{"DEFAULT_AI_ASSISTANT", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}},
		{[]string{"DEFAULT_AI_ASSISTANT=" + strings.Repeat("a", 21)}, []string{"DEFAULT_AI_ASSISTANT", "ACP_AGENTS"}},
		{[]string{"MODEL_FAST=gpt-5-mini"}, []string{"MODEL_FAST", `"gpt-5-mini"`, "openai:gpt-5-mini"}},
		{[]string{"MODEL_SMART=openai:"}, []string{"MODEL_SMART", "openai:gpt-5-mini"}},
		{[]string{"MODEL_CHEAP=:gpt-5-nano"}, []string{"MODEL_CHEAP", "openai:gpt-5-mini"}},
		{[]string{"MODEL_CHEAP=openai: gpt-5-nano"}, []string{"MODEL_CHEAP", "openai:gpt-5-mini"}},

		// Tools.
		{[]string{"PERMISSION_MODE=auto"}, []string{"PERMISSION_MODE", `"auto"`, "ask or edit"}},
		{[]string{"APPROVERS=two"}, []string{"APPROVERS", `"two"`, "self or other"}},
		{[]string{"SANDBOX=on"}, []string{"SANDBOX", `"on"`, "best, strict or off"}},
		{[]string{"TOOL_NETWORK=true"}, []string{"TOOL_NETWORK", "on or off"}},
		{[]string{"TOOL_TIMEOUT=10"}, []string{"TOOL_TIMEOUT", `"10"`, "unit"}},
		{[]string{"TOOL_TIMEOUT=0s"}, []string{"TOOL_TIMEOUT"}},
		{[]string{"TOOL_TIMEOUT=1ms"}, []string{"TOOL_TIMEOUT", "from 10ms to 8760h"}},
		{[]string{"TOOL_TIMEOUT=-1m"}, []string{"TOOL_TIMEOUT"}},
		{[]string{"TOOL_READ_PATHS=/opt,cache"}, []string{"TOOL_READ_PATHS", `"cache"`, "absolute"}},
		{[]string{"TOOL_READ_PATHS=~/go"}, []string{"TOOL_READ_PATHS", `"~/go"`, "absolute"}},
		{[]string{"TOOL_READ_PATHS=/opt,/srv/.."}, []string{"TOOL_READ_PATHS", `"/srv/.."`, "whole file system"}},
		{[]string{"TOOL_READ_PATHS=//"}, []string{"TOOL_READ_PATHS", `"//"`, "whole file system"}},
		{[]string{"TOOL_ENV=DATABASE_URL_FILE"}, []string{"TOOL_ENV", "DATABASE_URL_FILE", "secret of the bot"}},
		{[]string{"TOOL_ENV=GOFLAGS,JAVA HOME-2"}, []string{"TOOL_ENV", `"HOME-2"`, "environment variable"}},
		{[]string{"TOOL_ENV=A=b"}, []string{"TOOL_ENV", `"A=b"`}},
		{[]string{"FETCH_URL=yes"}, []string{"FETCH_URL", "on or off"}},
		{[]string{"MAX_ROUNDS=0"}, []string{"MAX_ROUNDS", "from 1 to 1000"}},
		{[]string{"MAX_ROUNDS=1001"}, []string{"MAX_ROUNDS", "from 1 to 1000"}},
		{[]string{"BUDGET_TURN_USD=0"}, []string{"BUDGET_TURN_USD", `"0"`, "2.50"}},
		{[]string{"BUDGET_TURN_USD=2,50"}, []string{"BUDGET_TURN_USD", `"2,50"`, "2.50"}},
		{[]string{"BUDGET_PERSON_USD=-1"}, []string{"BUDGET_PERSON_USD", "above 0"}},
		{[]string{"BUDGET_PERSON_USD=NaN"}, []string{"BUDGET_PERSON_USD", "above 0"}},
		{[]string{"BUDGET_DAY_USD=Inf"}, []string{"BUDGET_DAY_USD"}},
		{[]string{"BUDGET_DAY_USD=1e7"}, []string{"BUDGET_DAY_USD"}},
		{[]string{"BUDGET_DAY_USD=ten"}, []string{"BUDGET_DAY_USD", `"ten"`}},
		{[]string{"BUDGET_TURN_TOKENS=0"}, []string{"BUDGET_TURN_TOKENS", "above 0"}},
		{[]string{"BUDGET_PERSON_TOKENS=1e6"}, []string{"BUDGET_PERSON_TOKENS", `"1e6"`, "500000"}},
		{[]string{"BUDGET_DAY_TOKENS=-5"}, []string{"BUDGET_DAY_TOKENS", "above 0"}},
		{[]string{"BUDGET_DAY_TOKENS=9223372036854775808"}, []string{"BUDGET_DAY_TOKENS"}},

		// Agents.
		{[]string{"CLAUDE_COMMAND=\xff"}, []string{"CLAUDE_COMMAND", "UTF-8"}},
		{[]string{"CODEX_COMMAND=a\x00b"}, []string{"CODEX_COMMAND", "UTF-8"}},
		{[]string{"AGENT_ENV=OPENAI_API_KEY;PATH"}, []string{"AGENT_ENV", `"OPENAI_API_KEY;PATH"`}},
		{[]string{"AGENT_ENV=1PASSWORD"}, []string{"AGENT_ENV", `"1PASSWORD"`}},
		{[]string{"AGENT_ENV=PATH,TELEGRAM_BOT_TOKEN"}, []string{"AGENT_ENV", "TELEGRAM_BOT_TOKEN", "secret of the bot"}},
		{[]string{"AGENT_ENV=claude=GH_TOKEN"}, []string{"AGENT_ENV", "GH_TOKEN", "secret of the bot"}},
		{[]string{"AGENT_ENV=codex=OIDC_CLIENT_SECRET"}, []string{"AGENT_ENV", "OIDC_CLIENT_SECRET", "secret of the bot"}},
		{[]string{"AGENT_IDLE=soon"}, []string{"AGENT_IDLE", "unit"}},
		{[]string{"AGENT_IDLE=0s"}, []string{"AGENT_IDLE"}},
		{[]string{"AGENT_IDLE=9000h"}, []string{"AGENT_IDLE", "from 10ms to 8760h"}},

		// GitHub, one option.
		{[]string{"GITHUB_MODE=push"}, []string{"GITHUB_MODE", `"push"`, "poll or webhook"}},
		{[]string{"GITHUB_WEBHOOK_SECRET=hunter2"}, []string{"GITHUB_WEBHOOK_SECRET", "16", "openssl"}},
		{[]string{"WEBHOOK_SECRET=hunter2"}, []string{"WEBHOOK_SECRET (environment)", "16", "openssl"}},
		{[]string{"GITHUB_WEBHOOK_SECRET=hunter2 hunter2 hunter2"}, []string{"GITHUB_WEBHOOK_SECRET", "copy it again"}},
		{[]string{"GITHUB_TOKEN=ghp_hunter2 "}, nil}, // the spaces around are not part of it
		{[]string{"GITHUB_TOKEN=ghp_hunter2 x"}, []string{"GITHUB_TOKEN", "copy it again"}},
		{[]string{"GH_TOKEN=ghp_hunter2 x"}, []string{"GH_TOKEN (environment)", "copy it again"}},
		{[]string{"GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY=hunter2"}, []string{"GITHUB_APP_PRIVATE_KEY", "PEM", "-----BEGIN"}},
		{[]string{"GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY=" + strings.ReplaceAll(appKey(), "\n", " ")}, []string{"GITHUB_APP_PRIVATE_KEY", "line breaks"}},
		{[]string{"GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY=" + inOneLine(public)}, []string{"GITHUB_APP_PRIVATE_KEY", "app's page"}},
		{[]string{"GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY_FILE=/does/not/exist"}, []string{"GITHUB_APP_PRIVATE_KEY_FILE", "does not exist"}},
		{[]string{"GITHUB_API_URL=github.example.com"}, []string{"GITHUB_API_URL", "https://"}},
		{[]string{"GITHUB_API_URL=https://u:hunter2@github.example.com"}, []string{"GITHUB_API_URL", "password"}},
		{[]string{"GITHUB_WEB_URL=ssh://github.example.com"}, []string{"GITHUB_WEB_URL", "https://"}},
		{[]string{"GITHUB_POLL_EVERY=45"}, []string{"GITHUB_POLL_EVERY", "unit"}},
		{[]string{"GITHUB_SWEEP_EVERY=0s"}, []string{"GITHUB_SWEEP_EVERY"}},
		{[]string{"GITHUB_POLL_EVERY=1ms"}, []string{"GITHUB_POLL_EVERY", "from 10ms to 168h"}},
		{[]string{"GITHUB_MENTION=@"}, []string{"GITHUB_MENTION", `"@"`, "@remote-agent"}},
		{[]string{"GITHUB_MENTION=@remote agent"}, []string{"GITHUB_MENTION", "@remote-agent"}},
		{[]string{"GITHUB_MENTION=@@bot"}, []string{"GITHUB_MENTION"}},
		{[]string{"GITHUB_ALLOWED_LOGINS=octocat,o.o"}, []string{"GITHUB_ALLOWED_LOGINS", `"o.o"`, "numeric ID", "login"}},
		{[]string{"GITHUB_ALLOWED_LOGINS=*"}, []string{"GITHUB_ALLOWED_LOGINS", `"*"`}},
		{[]string{"GITHUB_REPOSITORIES=acme"}, []string{"GITHUB_REPOSITORIES", `"acme"`, "owner/name"}},
		{[]string{"GITHUB_REPOSITORIES=https://github.com/acme/web"}, []string{"GITHUB_REPOSITORIES", "owner/name"}},
		{[]string{"GITHUB_STREAMING_MODE=live"}, []string{"GITHUB_STREAMING_MODE", "batch or stream"}},

		// GitHub, the rules of who acts and how events come in.
		{also("GITHUB_TOKEN=ghp_hunter2"), []string{"GITHUB_TOKEN", "GITHUB_APP_ID", "keep one"}},
		{also("GH_TOKEN=ghp_hunter2"), []string{"GITHUB_APP_ID", "keep one"}},
		{[]string{"GITHUB_APP_ID=123"}, []string{"GITHUB_APP_ID is set", "GITHUB_APP_PRIVATE_KEY_FILE"}},
		{app[1:], []string{"GITHUB_APP_PRIVATE_KEY is set", "GITHUB_APP_ID is not"}},
		{[]string{"GITHUB_MODE=webhook", hook}, []string{"no identity", "GITHUB_APP_ID", "GITHUB_TOKEN"}},
		{[]string{hook}, []string{"GITHUB_MODE is webhook", "no identity", "GITHUB_TOKEN"}}, // the secret alone turns it on
		{[]string{"WEBHOOK_SECRET=0123456789abcdef"}, []string{"no identity"}},
		{also("GITHUB_MODE=webhook"), []string{"GITHUB_WEBHOOK_SECRET is not set", "openssl", "GITHUB_MODE=poll"}},
		{[]string{"GITHUB_MODE=webhook", "GITHUB_TOKEN=ghp_hunter2"}, []string{"GITHUB_WEBHOOK_SECRET is not set"}},
		{[]string{"GITHUB_MODE=poll", "GITHUB_REPOSITORIES=a/b"}, []string{"GITHUB_MODE is poll", "no identity"}},
		{[]string{"GITHUB_MODE=poll", "GITHUB_TOKEN=ghp_hunter2"}, []string{"GITHUB_REPOSITORIES is not set", "owner/name"}},
	}
	for _, tc := range cases {
		t.Run(name(tc.env), func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "", nil, tc.env...)
			if tc.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			p := problems(t, err)
			if len(p) != 1 {
				t.Fatalf("problems = %q, want one", p)
			}
			for _, want := range tc.want {
				if !strings.Contains(p[0], want) {
					t.Errorf("no %q in %q", want, p[0])
				}
			}
			if strings.Contains(p[0], "hunter2") || strings.Contains(p[0], "MII") {
				t.Errorf("a secret is in %q", p[0])
			}
		})
	}
}

// name is a short name of a test.
func name(env []string) string {
	text := []rune(strings.Join(env, ","))
	return strings.ToValidUTF8(string(text[:min(len(text), 70)]), "?")
}

func TestBothGitHubIdentitiesAndNoWayInAreTwoProblems(t *testing.T) {
	t.Parallel()
	_, err := load(t, "", nil, "GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY="+inOneLine(appKey()), "GITHUB_TOKEN=x", "GITHUB_MODE=webhook")
	if p := problems(t, err); len(p) != 2 || !strings.Contains(p[0], "keep one") || !strings.Contains(p[1], "GITHUB_WEBHOOK_SECRET") {
		t.Errorf("problems = %q", p)
	}
}

func TestUnencryptedGitHubWarns(t *testing.T) {
	t.Parallel()
	env := []string{"GITHUB_MODE=poll", "GITHUB_TOKEN=x", "GITHUB_REPOSITORIES=a/b"}
	for address, warns := range map[string]bool{
		"http://10.0.0.7/api": true, "https://10.0.0.7/api": false, "http://127.0.0.1:1": false, "http://localhost:1/": false,
	} {
		c := mustLoad(t, "", nil, append(env, "GITHUB_API_URL="+address)...)
		if (len(c.Warnings) == 1) != warns || warns && !strings.Contains(c.Warnings[0], "GITHUB_API_URL") {
			t.Errorf("%s: warnings = %q", address, c.Warnings)
		}
	}
}

func TestOptionsOfWork(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", nil,
		"ANTHROPIC_API_KEY=sk-ant", "ANTHROPIC_BASE_URL=http://127.0.0.1:1/", "ANTHROPIC_MODEL=m", "ANTHROPIC_MAX_TOKENS=4097", "ANTHROPIC_THINKING_TOKENS=4096", "ANTHROPIC_EFFORT=xhigh",
		"MODEL_FAST=openai:gpt-5-mini", "MODEL_CHEAP=local:llama3:8b",
		"PERMISSION_MODE=ASK", "APPROVERS=other", "SANDBOX=strict", "TOOL_NETWORK=on", "TOOL_TIMEOUT=90s",
		"TOOL_READ_PATHS=/opt/my tools/, /srv/../etc/ssl,", "TOOL_ENV=GOFLAGS, JAVA_HOME", "FETCH_URL=on", "MAX_ROUNDS=1000",
		"BUDGET_TURN_USD=2.50", "BUDGET_PERSON_USD=$10", "BUDGET_DAY_USD=0.01", "BUDGET_TURN_TOKENS=500_000", "BUDGET_PERSON_TOKENS=1", "BUDGET_DAY_TOKENS=20000000",
		"CLAUDE_COMMAND=/opt/claude --acp", "CODEX_COMMAND=codex", "ACP_AGENTS=a=b; c=d", "AGENT_ENV=PATH", "AGENT_HOME=/srv/agents", "AGENT_IDLE=1s",
	)
	want := config.Config{
		Assistant: "anthropic",
		Tiers:     map[string]config.Tier{"fast": {Assistant: "openai", Model: "gpt-5-mini"}, "cheap": {Assistant: "local", Model: "llama3:8b"}},
		Tools: config.Tools{
			Mode: "ask", SecondApprover: true, Sandbox: "strict", Network: true, Timeout: 90 * time.Second, Fetch: true, MaxRounds: 1000,
			ReadPaths: []string{"/opt/my tools", "/etc/ssl"}, Env: []string{"GOFLAGS", "JAVA_HOME"},
		},
		Budget: config.Budget{
			TurnMicros: 2_500_000, PersonMicros: 10_000_000, DayMicros: 10_000, TurnTokens: 500_000, PersonTokens: 1, DayTokens: 20_000_000,
		},
		Agents: config.Agents{
			Claude: "/opt/claude --acp", Codex: "codex", Others: "a=b; c=d", Env: []string{"PATH"}, Home: "/srv/agents", Idle: time.Second,
		},
	}
	for what, pair := range map[string][2]any{
		"assistant": {want.Assistant, c.Assistant}, "tiers": {want.Tiers, c.Tiers}, "tools": {want.Tools, c.Tools}, "budget": {want.Budget, c.Budget},
		"agents": {want.Agents, c.Agents},
	} {
		if diff := cmp.Diff(pair[0], pair[1], cmp.Comparer(func(a, b config.Secret) bool { return a.Reveal() == b.Reveal() })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestAssistantFollowsFromAnthropic(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		"openai":    {"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"},
		"anthropic": {"ANTHROPIC_BASE_URL=http://127.0.0.1:1"},
		"demo":      {"ANTHROPIC_MODEL=m", "MODEL_FAST=openai:m"},
		"claude":    {"DEFAULT_AI_ASSISTANT=Claude"},
		"gemini-2":  {"DEFAULT_AI_ASSISTANT=gemini-2", "ANTHROPIC_API_KEY=k"},
	} {
		if c := mustLoad(t, "", nil, env...); c.Assistant != want {
			t.Errorf("%q: assistant = %q, want %q", env, c.Assistant, want)
		}
	}
}

// What is set and does nothing is said, with what is missing.
func TestOptionsThatDoNothingAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, with, missing string }{
		{"TOOL_HOSTS=example.com", "TOOL_NETWORK=on", "TOOL_NETWORK=on"},
		{"TOOL_HOSTS=example.com", "TOOL_NETWORK=off", "TOOL_NETWORK=on"},
		{"OIDC_CLIENT_ID=bot", "", "OIDC_ISSUER"},
		{"OIDC_CLIENT_SECRET=hush", "", "OIDC_ISSUER"},
		{"SIGN_IN_PEOPLE=ann=console/local", "", "OIDC_ISSUER or SIGN_IN_HEADER"},
	} {
		name, _, _ := strings.Cut(c.env, "=")
		if got := mustLoad(t, "", nil, c.env).Warnings; len(got) != 1 || !strings.HasPrefix(got[0], name+" has no effect without "+c.missing) {
			t.Errorf("%s: warnings = %q", c.env, got)
		}
		if c.with == "" {
			continue
		}
		if got := mustLoad(t, "", nil, c.env, c.with).Warnings; len(got) != 0 {
			t.Errorf("%s %s: warnings = %q", c.env, c.with, got)
		}
	}
	if got := mustLoad(t, "", nil, "SIGN_IN_PEOPLE=ann=console/local", "SIGN_IN_HEADER=X-User", "TRUSTED_PROXIES=10.0.0.5").Warnings; len(got) != 0 {
		t.Errorf("warnings = %q", got)
	}
}
