package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/option"
	"remote-agent/internal/sandbox"
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

// TestKeysOfAgentsAreSecrets: also that of one agent only, which nobody may read in a chat.
func TestKeysOfAgentsAreSecrets(t *testing.T) {
	t.Parallel()
	cfg := config.Config{}
	cfg.Agents.Env = []string{"PLAIN", "SHARED_KEY", "mine=OWN_KEY"}
	lookup := func(name string) (string, bool) { return "value of " + name, true }
	got := Secrets(cfg, lookup)
	for name, want := range map[string]bool{"PLAIN": false, "SHARED_KEY": true, "OWN_KEY": true} {
		if slices.Contains(got, "value of "+name) != want {
			t.Errorf("%s is among %q: %t, want %t", name, got, !want, want)
		}
	}
}

// TestHowAnAgentEnded is read by people.
func TestHowAnAgentEnded(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]sandbox.Result{
		"exit status 3":                     {Code: 3},
		"signal: killed":                    {Code: -1, Signal: "killed"},
		"it used more than 4 GiB of memory": {Code: -1, Signal: "killed", Ended: sandbox.EndedMemory, Over: "it used more than 4 GiB of memory"},
	} {
		if got := (exitError{r}).Error(); got != want {
			t.Errorf("%+v is read as %q, want %q", r, got, want)
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

// TestAgentsAreMadeToAsk whatever they are called: Goose and opencode ask for nothing by
// default. What the operator sets for an agent counts instead.
func TestAgentsAreMadeToAsk(t *testing.T) {
	t.Parallel()
	env := map[string]string{"GOOSE_MODE": "smart_approve", "API_TIMEOUT_MS": "5"}
	cfg := config.Config{Sections: Sections(), Agents: config.Agents{
		Others: "own=/opt/goose acp; wrapped=npx opencode-ai acp", Env: option.List("own=GOOSE_MODE,API_TIMEOUT_MS"),
	}}
	agents, err := newPrograms(cfg, Env{Lookup: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}).knownAgents()
	if err != nil {
		t.Fatal(err)
	}
	got, modes := map[string]map[string]string{}, map[string][]string{}
	for _, a := range agents {
		modes[string(a.config.Name)] = modesThatAsk(a.config.Env)
		seen := map[string]string{}
		for _, entry := range a.config.Env { // the last one counts
			name, value, _ := strings.Cut(entry, "=")
			seen[name] = value
		}
		got[string(a.config.Name)] = seen
	}
	if own, wrapped := got["own"]["GOOSE_MODE"], got["wrapped"]["GOOSE_MODE"]; own != "smart_approve" || wrapped != "approve" {
		t.Errorf("GOOSE_MODE is %q for the agent that it was set for, and %q for another", own, wrapped)
	}
	if own, wrapped := modes["own"], modes["wrapped"]; !slices.Equal(own, []string{"default", "smart_approve"}) || !slices.Equal(wrapped, []string{"default", "approve"}) {
		t.Errorf("sessions are put into %q and %q", own, wrapped)
	}
	var asked map[string]string
	if err := json.Unmarshal([]byte(got["own"]["OPENCODE_PERMISSION"]), &asked); err != nil || asked["bash"] != "ask" || asked["webfetch"] != "ask" {
		t.Errorf("OPENCODE_PERMISSION is %q: %v", got["own"]["OPENCODE_PERMISSION"], err)
	}
	var set struct {
		Agent map[string]struct{ Permission map[string]string }
	}
	if err := json.Unmarshal([]byte(got["own"]["OPENCODE_CONFIG_CONTENT"]), &set); err != nil ||
		set.Agent["general"].Permission["bash"] != "deny" || set.Agent["explore"].Permission["bash"] != "deny" {
		t.Errorf("OPENCODE_CONFIG_CONTENT is %q: %v", got["own"]["OPENCODE_CONFIG_CONTENT"], err)
	}
	if _, given := got["claude"]["GOOSE_MODE"]; given || got["claude"]["API_TIMEOUT_MS"] != "5" {
		t.Errorf("claude has %v", got["claude"])
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
	r, err := newRoster(newPrograms(cfg, Env{Log: slog.New(slog.NewTextHandler(&said, nil))}), 1, nil)
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
