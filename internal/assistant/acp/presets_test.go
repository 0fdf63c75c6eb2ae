package acp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/fault"
)

func TestParseAgents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want [][]string // name and argv
		err  string
	}{
		"none":             {text: " ; ;"},
		"two":              {text: "gemini=gemini --experimental-acp; open_code=/usr/bin/opencode acp", want: [][]string{{"gemini", "gemini", "--experimental-acp"}, {"open_code", "/usr/bin/opencode", "acp"}}},
		"quotes":           {text: `a="my agent" 'x; $y' "q\"\n\\" b\ c ''`, want: [][]string{{"a", "my agent", "x; $y", `q"\n\`, "b c", ""}}},
		"line breaks":      {text: "a=b\n  c\r\n;d=e", want: [][]string{{"a", "b", "c"}, {"d", "e"}}},
		"claude of ours":   {text: "claude=my-claude", want: [][]string{{"claude", "my-claude"}}},
		"twice":            {text: "a=b; a=c", err: `the name "a" appears twice`},
		"reserved":         {text: "openai=x", err: `"openai" is that of a built-in assistant`},
		"demo":             {text: "demo=x", err: "built-in"},
		"no name":          {text: "gemini --acp", err: `"gemini" is not name=command`},
		"empty name":       {text: "=x", err: "cannot be a name"},
		"upper case":       {text: "Gemini=x", err: "cannot be a name"},
		"too long":         {text: strings.Repeat("a", 21) + "=x", err: "cannot be a name"},
		"20 bytes":         {text: strings.Repeat("a", 20) + "=x", want: [][]string{{strings.Repeat("a", 20), "x"}}},
		"no command":       {text: "a= b", err: "no command"},
		"open quote":       {text: `a="b`, err: "quotation mark \" is not closed"},
		"open backslash":   {text: `a=b\`, err: "backslash"},
		"a NUL":            {text: "a=b\x00", err: "NUL"},
		"break in a quote": {text: "a='b\nc'", err: "line break"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configs, err := acp.ParseAgents(test.text, "openai", "demo")
			if test.err != "" {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), test.err) || !strings.Contains(fault.Public(err), "ACP_AGENTS") {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			var got [][]string
			for _, c := range configs {
				got = append(got, append([]string{string(c.Name)}, c.Command...))
				if c.InstallHint == "" || c.LoginHint == "" {
					t.Errorf("no hints: %+v", c)
				}
				if len(c.Env) == 0 {
					t.Errorf("%s: nothing makes it ask", c.Name)
				}
			}
			if d := cmp.Diff(test.want, got); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	claude, err := acp.Claude("")
	if err != nil || claude.Name != "claude" || claude.Command[0] != "claude-agent-acp" ||
		!strings.Contains(claude.InstallHint, "npm install -g @agentclientprotocol/claude-agent-acp@") || len(claude.Env) == 0 {
		t.Errorf("Claude: %+v, %v", claude, err)
	}
	codex, err := acp.Codex(`node "/opt/my codex/index.js" --x`)
	if d := cmp.Diff([]string{"node", "/opt/my codex/index.js", "--x"}, codex.Command); err != nil || d != "" {
		t.Errorf("Codex: %v\n%s", err, d)
	}
	npx, err := acp.Claude("npx -y @agentclientprotocol/claude-agent-acp")
	if want := "HOME='/agents of mine/claude' npx -y @agentclientprotocol/claude-agent-acp --cli auth login"; err != nil || npx.LoginCommand("/agents of mine/claude") != want {
		t.Errorf("with npx it is logged in by %q, %v", npx.LoginCommand("/agents of mine/claude"), err)
	}
	for program, c := range map[string]acp.Config{acp.ClaudeCommand: claude, "<CODEX_COMMAND>": codex, "<CLAUDE_COMMAND>": npx} {
		if way := fmt.Sprintf("`HOME=<AGENT_HOME>/%s %s %s`", c.Name, program, strings.Join(c.Login, " ")); !strings.Contains(c.LoginHint, way) {
			t.Errorf("who is told %q would not log in with %s", c.LoginHint, way)
		}
	}
	for _, bad := range []string{`a "b`, "a; b"} {
		if _, err := acp.Codex(bad); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "CODEX_COMMAND") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	t.Parallel()
	good := acp.Config{Name: "x", Command: []string{"x"}, Scratch: t.TempDir(), Env: []string{"PATH=/bin"}}
	for name, change := range map[string]func(*acp.Config){
		"name":    func(c *acp.Config) { c.Name = "No good" },
		"command": func(c *acp.Config) { c.Command = nil },
		"scratch": func(c *acp.Config) { c.Scratch = "relative" },
		"env":     func(c *acp.Config) { c.Env = []string{"NOVALUE"} },
		"max":     func(c *acp.Config) { c.MaxProcesses = -1 },
	} {
		c := good
		change(&c)
		if _, err := acp.New(c); !fault.Is(err, fault.Invalid) || fault.Public(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := acp.New(good); err != nil {
		t.Error(err)
	}
}

func FuzzParseAgents(f *testing.F) {
	f.Add(`a=b "c d"; e='f;g' \h`)
	f.Fuzz(func(t *testing.T, text string) {
		configs, err := acp.ParseAgents(text)
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
		for _, c := range configs {
			if err != nil || len(c.Name) > 20 || len(c.Command) == 0 || c.Command[0] == "" {
				t.Errorf("%q: %+v, %v", text, c, err)
			}
		}
	})
}
