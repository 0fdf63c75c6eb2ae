package acp_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

// An agent is started, opens a session, and ends: no prompt is sent, and nothing is left.
func TestExamine(t *testing.T) {
	t.Parallel()
	refuses := []acpagent.Step{{Error: &acpagent.Error{Code: -32000, Message: "Authentication required: key " + secret}}}
	const none = `{"kind":"none","label":"Not logged in"}`
	impatient := func(c *acp.Config) { c.InitTimeout = waittest.Scaled(2 * time.Second) }
	login := func(status string) acpagent.Script {
		return acpagent.Script{Open: refuses, Login: json.RawMessage(status)}
	}
	for name, c := range map[string]struct {
		script  acpagent.Script
		change  func(*acp.Config)
		open    bool
		asked   bool // for a session
		want    acp.Seen
		refused fault.Kind
		err     fault.Kind
	}{
		"a session":      {open: true, asked: true, want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true}}},
		"without asking": {script: acpagent.Script{Open: refuses}, want: acp.Seen{Version: "scripted 1"}},
		"no session":     {script: acpagent.Script{Open: refuses}, open: true, asked: true, want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true, None: true}}, refused: fault.Unauthorized},
		"out of order":   {script: acpagent.Script{Open: []acpagent.Step{{Error: &acpagent.Error{Code: -32603, Message: "Internal error"}}}}, open: true, asked: true, want: acp.Seen{Version: "scripted 1"}, refused: fault.Unavailable},
		"it says how":    {script: login(`{"kind":"api_key","label":"Example\n\u001b[2J API key","detail":"EXAMPLE_KEY"}`), open: true, want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true, By: "Example [2J API key (EXAMPLE_KEY)"}}},
		"it says no":     {script: login(none), want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true, None: true, By: "Not logged in"}}},
		"and refuses":    {script: login(none), open: true, asked: true, want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true, None: true}}, refused: fault.Unauthorized},
		"and lets it be": {script: acpagent.Script{Login: json.RawMessage(none)}, open: true, asked: true, want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true, None: true, By: "Not logged in"}}},
		"and logs in": {script: acpagent.Script{Login: json.RawMessage(none), Open: []acpagent.Step{{Line: `{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":{"kind":"api_key","label":"Example API key"}}}`}}},
			open: true, asked: true, want: acp.Seen{Version: "scripted 1", Login: acp.Login{Known: true, By: "Example API key"}}},
		"it says garbage": {script: login(`{"kind":7}`), change: impatient, want: acp.Seen{Version: "scripted 1"}},
		"it is silent":    {script: login(`"silent"`), change: impatient, want: acp.Seen{Version: "scripted 1"}},
		"it ends":         {script: acpagent.Script{Start: []acpagent.Step{{Exit: new(3)}}}, open: true, err: fault.Unavailable},
		"not installed":   {change: func(c *acp.Config) { c.Command = []string{"/nonexistent/agent"} }, open: true, err: fault.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, c.script, func(a *acp.Config) {
				if c.change != nil {
					c.change(a)
				}
			})
			seen, err := w.Examine(t.Context(), c.open)
			if fault.KindOf(err) != c.err && (err != nil || c.err != "") {
				t.Errorf("it ended with %v, want %q", err, c.err)
			}
			if fault.KindOf(seen.Refused) != c.refused && (seen.Refused != nil || c.refused != "") {
				t.Errorf("no session: %v", seen.Refused)
			}
			refusal := fault.Public(seen.Refused)
			if seen.Refused = nil; seen != c.want {
				t.Errorf("%+v, want %+v", seen, c.want)
			}
			record, _ := os.ReadFile(w.record) // none if it was not started
			if strings.Contains(string(record), "session/prompt") || strings.Contains(string(record), "session/new") != c.asked {
				t.Errorf("it was sent %s", record)
			}
			if strings.Contains(w.log.String()+fault.Public(err)+refusal, secret) {
				t.Errorf("a key shows: %s", w.log)
			}
		})
	}
}
