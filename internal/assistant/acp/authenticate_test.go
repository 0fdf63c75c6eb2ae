package acp_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

// TestAuthenticate: an agent that opens no session before it was authenticated, as Cursor does, is
// authenticated in the way that takes nobody, if there is one, once.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	cursor := acpagent.Way{ID: "cursor_login", Name: "Cursor Login", Description: "Run 'agent login' first if not logged in."}
	browser := acpagent.Way{ID: "oauth", Name: "Log in with a browser"}
	described := acpagent.Way{ID: "key", Name: "Use an API key", Description: "Requires setting the `AGENT_API_KEY` environment variable"}
	variable := acpagent.Way{ID: "env", Name: "Key", Type: "env_var", Vars: []acpagent.Var{{Name: "AGENT_API_KEY"}, {Name: "AGENT_REGION", Optional: true}}}
	missing := acpagent.Way{ID: "env", Name: "Key", Type: "env_var", Vars: []acpagent.Var{{Name: "AGENT_API_KEY"}, {Name: "OTHER_KEY"}}}
	for name, tt := range map[string]struct {
		ways   []acpagent.Way
		auth   []acpagent.Step
		want   string // the way that was taken, empty for none
		public string // the error, empty for none
	}{
		"the only way":          {ways: []acpagent.Way{cursor}, want: "cursor_login"},
		"a key that is there":   {ways: []acpagent.Way{browser, described}, want: "key"},
		"variables":             {ways: []acpagent.Way{browser, missing, variable}, want: "env"},
		"a variable is missing": {ways: []acpagent.Way{missing}, public: "It names these ways: Key: AGENT_API_KEY, OTHER_KEY. Log it in."},
		"a person has to":       {ways: []acpagent.Way{browser, cursor}, public: "It names these ways: Log in with a browser; Cursor Login: Run 'agent login' first if not logged in. Log it in."},
		"a terminal":            {ways: []acpagent.Way{{ID: "t", Name: "Terminal", Type: "terminal"}}, public: "Log it in."},
		"none":                  {public: "not logged in"},
		"refused":               {ways: []acpagent.Way{cursor}, want: "cursor_login", auth: []acpagent.Step{{Error: &acpagent.Error{Code: -32603, Message: "no"}}}, public: "It names these ways: Cursor Login"},
		"it waits for somebody": {ways: []acpagent.Way{cursor}, want: "cursor_login", auth: []acpagent.Step{{Hang: true}}, public: "It names these ways: Cursor Login"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, acpagent.Script{Locked: true, Load: true, Ways: tt.ways, Auth: tt.auth}, func(c *acp.Config) {
				c.InitTimeout = waittest.Scaled(2 * time.Second)
			})
			got := ask(t.Context(), w, question("Hi"))
			if tt.public == "" && (got.err != nil || got.answer != "You said: Hi") {
				t.Errorf("turn: %+v", got)
			}
			if tt.public != "" && (!fault.Is(got.err, fault.Unauthorized) || !strings.Contains(fault.Public(got.err), tt.public)) {
				t.Errorf("turn: %v, want %q", got.err, tt.public)
			}
			record, err := os.ReadFile(w.record)
			if err != nil {
				t.Fatal(err)
			}
			var taken []string
			for _, m := range regexp.MustCompile(`"methodId":"(\w+)"`).FindAllStringSubmatch(string(record), -1) {
				taken = append(taken, m[1])
			}
			if strings.Join(taken, " ") != tt.want {
				t.Errorf("it was authenticated by %q, want %q", taken, tt.want)
			}
		})
	}
}

// TestAuthenticateBeforeASessionGoesOn: also the process after this one has to.
func TestAuthenticateBeforeASessionGoesOn(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]acpagent.Script{"load": {Load: true}, "resume": {Resume: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script.Locked, script.Ways = true, []acpagent.Way{{ID: "only", Name: "Login"}}
			w := start(t, script)
			turn := question("Hi")
			first := ask(t.Context(), w, turn)
			w.Release(turn.Conversation)
			second := ask(t.Context(), w, next(turn, first, first.session(t), "again"))
			if second.err != nil || second.answer != "You said: again" || len(second.notices) > 0 {
				t.Errorf("turn: %+v", second)
			}
		})
	}
}
