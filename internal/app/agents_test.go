package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/option"
)

// TestAgentsTakeNoNameOfAModel: an agent that is called as a model API is would answer in
// its place.
func TestAgentsTakeNoNameOfAModel(t *testing.T) {
	t.Parallel()
	cfg := config.Config{Sections: Sections()}
	for _, k := range modelsOf(cfg) {
		cfg.Agents.Others = k.Assistant() + "=agent"
		if _, err := newPrograms(cfg, Env{}).knownAgents(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", cfg.Agents.Others, err)
		}
	}
}

// What is given to one agent by name is given to one that there is.
func TestNothingIsGivenToAnAgentThatThereIsNot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		env, hosts string
		want       string // of what is wrong; nothing is
	}{
		{env: "claude=A", hosts: "mine=example.com"},
		{env: "A", hosts: "example.com"},
		{hosts: "nosuch=example.com", want: `AGENT_HOSTS: "nosuch=example.com" names an agent that does not exist; use one of claude, codex, mine`},
		{env: "Claude=A", want: `AGENT_ENV: "Claude=A" names an agent that does not exist`},
	} {
		cfg := config.Config{Sections: Sections(), Agents: config.Agents{
			Claude: "claude-agent-acp", Codex: "codex-acp", Others: "mine=/opt/agent", Env: option.List(tc.env), Hosts: option.List(tc.hosts),
		}}
		_, err := newPrograms(cfg, Env{}).knownAgents()
		if (err == nil) != (tc.want == "") || err != nil && (!fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.Public(err), tc.want)) {
			t.Errorf("AGENT_ENV=%s AGENT_HOSTS=%s: %v, want %q", tc.env, tc.hosts, err, tc.want)
		}
	}
}

// A tier of an assistant that cannot answer is said at the start, not only to who chooses it.
func TestATierOfNobodyIsSaid(t *testing.T) {
	t.Parallel()
	dir, said := t.TempDir(), bytes.Buffer{}
	cfg := config.Config{
		DataDir: dir, Assistant: config.AssistantDemo, Sections: Sections(), Tiers: map[string]config.Tier{"fast": {Assistant: "nosuch", Model: "m"}, "cheap": {Assistant: "demo", Model: "m"}},
		Agents: config.Agents{Claude: "/nonexistent/claude", Codex: "/nonexistent/codex", Home: dir},
	}
	r, err := newRoster(newPrograms(cfg, Env{Log: slog.New(slog.NewTextHandler(&said, nil))}), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close() //nolint:errcheck // the test is over
	if got := said.String(); !strings.Contains(got, "option=MODEL_FAST assistant=nosuch") || strings.Contains(got, "MODEL_CHEAP") {
		t.Errorf("the start says %q", got)
	}
}

// TestAnAgentReadsItsProgram through whatever link it is called by, and what belongs to it,
// but not the home that it lies in.
func TestAnAgentReadsItsProgram(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		file(name + ".beside")
		if err := os.Symlink(filepath.Join(root, to), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"opt/agent/run", "home/ann/run", "home/run", "home/ann/lib/node_modules/a/dist/a.js", "nvm/v24/lib/node_modules/a/dist/a.js", "agents/mine/run"} {
		file(name)
	}
	link("home/ann/bin/linked", "opt/agent/run")
	link("home/ann/bin/a", "home/ann/lib/node_modules/a/dist/a.js")
	link("nvm/v24/bin/a", "nvm/v24/lib/node_modules/a/dist/a.js")
	for program, want := range map[string]string{
		"opt/agent/run":       "/opt/agent/run /opt/agent",
		"home/ann/bin/linked": "/home/ann/bin/linked /opt/agent",
		"home/ann/run":        "/home/ann/run",
		"home/run":            "/home/run",
		"home/ann/bin/a":      "/home/ann/bin/a /home/ann/lib/node_modules/a/dist /home/ann/lib/node_modules",
		"nvm/v24/bin/a":       "/nvm/v24/bin/a /nvm/v24/lib/node_modules/a/dist /nvm/v24 /nvm/v24/lib/node_modules",
		"agents/mine/run":     "",
		"not/there":           "",
	} {
		got := programFolders(filepath.Join(root, program), filepath.Join(root, "agents/mine"), filepath.Join(root, "home/ann"), "")
		if text := strings.ReplaceAll(strings.Join(got, " "), root, ""); text != want {
			t.Errorf("%s: %s, want %s", program, text, want)
		}
	}
}
