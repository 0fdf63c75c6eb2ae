package journey_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/app"
	"remote-agent/internal/doctor"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/store/storetest"
)

// examined is a world with everything on, and nothing running.
func examined(t *testing.T) (w *world, h *hub) {
	t.Helper()
	w = newSlackWorldWith(t, "", "Socket", slack.Options{}).migrated()
	w.with(map[string]string{"TELEGRAM_BOT_TOKEN": token, "TELEGRAM_OWNER_IDS": "42"})
	return w, w.withGitHub(sumRepo, "webhook")
}

// examine runs bot doctor and returns "area check" of what is not in order. No text
// holds a secret.
func (w *world) examine(offline bool) (unwell []string, report doctor.Report) {
	w.t.Helper()
	report = app.Doctor(w.t.Context(), w.config(), app.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Version: "test", Log: slog.New(slog.DiscardHandler), Lookup: os.LookupEnv,
	}, offline)
	var text, object bytes.Buffer
	if err := report.Write(&text); err != nil {
		w.t.Fatal(err)
	}
	if err := report.WriteJSON(&object); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(text.String()+object.String(), mcpSecret) {
		w.t.Errorf("the report tells what is in the entry of an MCP server:\n%s", &text)
	}
	for name, value := range w.env {
		if secret := strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_SECRET"); !secret || value == "" {
			continue
		}
		if strings.Contains(text.String()+object.String(), value) {
			w.t.Errorf("the report tells %s", name)
		}
	}
	for _, f := range report.Findings {
		if f.Status != doctor.Warn && f.Status != doctor.Fail {
			continue
		}
		unwell = append(unwell, f.Area+" "+f.Check)
		if f.Fix == "" {
			w.t.Errorf("%s %s: nothing to do about %q", f.Area, f.Check, f.Detail)
		}
	}
	return unwell, report
}

// setsWebhook has another program take Telegram's updates.
func (w *world) setsWebhook(address string) {
	w.t.Helper()
	resp, err := http.PostForm(w.tg.URL()+"/bot"+token+"/setWebhook", url.Values{"url": {address}}) //nolint:noctx // a test's own server
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("setWebhook: %s", resp.Status)
	}
}

// mcpSecret is in the entries of MCP servers.
const mcpSecret = "tool-secret-0123456789abcdef"

// refusesSession is what an agent does that looks for its login first.
var refusesSession = []acpagent.Step{{Error: &acpagent.Error{Code: -32000, Message: "Authentication required"}}}

// weatherServer starts an MCP server, as the inside of its entry.
func weatherServer() string {
	self, _ := os.Executable()
	return fmt.Sprintf(`"command": %q, "args": [%q]`, self, asMCPServer)
}

// withMCP configures an MCP server that is in order, and another one.
func (w *world) withMCP(other string) {
	w.t.Helper()
	if other != "" {
		other = ", " + other
	}
	path := filepath.Join(w.t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"weather": {`+weatherServer()+`}`+other+`}}`), 0o600); err != nil {
		w.t.Fatal(err)
	}
	self, _ := os.Executable()
	read := strings.TrimPrefix(w.env["TOOL_READ_PATHS"]+","+filepath.Dir(self), ",")
	w.with(map[string]string{"MCP_CONFIG": path, "TOOL_READ_PATHS": read})
}

// What is not as it should be in a world that was just made.
var newWorldUnwell = []string{"database backup", "telegram privacy"}

// TestDoctorFindsEachFaultAndNoOther injects one fault at a time.
func TestDoctorFindsEachFaultAndNoOther(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		inject func(w *world, h *hub)
		want   string
	}{
		"none":                   {func(*world, *hub) {}, ""},
		"Telegram's token":       {func(w *world, _ *hub) { w.tg.SetToken("1000:another-token-of-the-emulator") }, "telegram account"},
		"a webhook while polled": {func(w *world, _ *hub) { w.setsWebhook("https://elsewhere.example/hook") }, "telegram webhook"},
		"everyone gets in":       {func(w *world, _ *hub) { w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "*"}) }, "access strangers"},
		"no owner":               {func(w *world, _ *hub) { w.with(map[string]string{"TELEGRAM_OWNER_IDS": ""}) }, "access owners"},
		"Slack's app token":      {func(w *world, _ *hub) { w.sl.RefuseAppToken("invalid_auth") }, "slack socket"},
		"Slack's bot token":      {func(w *world, _ *hub) { w.with(map[string]string{"SLACK_BOT_TOKEN": "xoxb-1-wrong"}) }, "slack account"},
		"GitHub's App is gone":   {func(_ *world, h *hub) { h.Uninstall("acme") }, "github installations"},
		"GitHub's permissions":   {func(_ *world, h *hub) { h.SetInstallationPermissions("acme", map[string]string{"issues": "read"}) }, "github installations"},
		"a failed webhook": {func(_ *world, h *hub) {
			h.SetHook(github.Hook{URL: "http://127.0.0.1:1/webhooks/github", Secret: ghSecret})
			if err := h.WaitIdle(h.w.t.Context()); err != nil {
				h.w.t.Fatal(err)
			}
			h.Ping()
			if err := h.WaitIdle(h.w.t.Context()); err != nil {
				h.w.t.Fatal(err)
			}
		}, "github webhook"},
		"a model key that is refused": {func(w *world, _ *hub) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) }))
			w.t.Cleanup(server.Close)
			w.with(map[string]string{"OPENAI_BASE_URL": server.URL})
		}, "models openai"},
		"a clock that is off": {func(w *world, _ *hub) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
				if r.Method == http.MethodPost {
					rw.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"OK\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
				}
			}))
			w.t.Cleanup(server.Close)
			w.with(map[string]string{"OPENAI_BASE_URL": server.URL})
		}, "system clock"},
		"nobody at PUBLIC_URL": {func(w *world, _ *hub) {
			w.with(map[string]string{"PUBLIC_URL": "http://127.0.0.1:1"})
		}, "web PUBLIC_URL"},
		"a proxy that holds back": {func(w *world, _ *hub) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, ": all at once") }))
			w.t.Cleanup(server.Close)
			w.with(map[string]string{"PUBLIC_URL": server.URL})
		}, "web stream"},
		"MCP servers that are in order": {func(w *world, _ *hub) { w.withMCP("") }, ""},
		"an MCP server that is not installed": {func(w *world, _ *hub) {
			w.withMCP(`"ghost": {"command": "/nonexistent/ghost"}`)
		}, "tools ghost"},
		"an MCP server that does not speak": {func(w *world, _ *hub) {
			w.withMCP(`"mute": {"command": "/bin/false", "env": {"MUTE_TOKEN": "` + mcpSecret + `"}}`)
		}, "tools mute"},
		"an MCP server that hangs":           {func(w *world, _ *hub) { w.withMCP(`"slow": {"command": "/bin/sleep", "args": ["1000"]}`) }, "tools slow"},
		"an MCP server that does not answer": {func(w *world, _ *hub) { w.withMCP(`"far": {"url": "http://127.0.0.1:1/` + mcpSecret + `"}`) }, "tools far"},
		"an MCP server that lacks a tool":    {func(w *world, _ *hub) { w.withMCP(`"poor": {` + weatherServer() + `, "allow": ["forecast", "rain"]}`) }, "tools poor"},
		"an MCP server that knows us no more": {func(w *world, _ *hub) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no", http.StatusUnauthorized) }))
			w.t.Cleanup(server.Close)
			w.withMCP(`"stranger": {"url": "` + server.URL + `", "headers": {"Authorization": "Bearer ` + mcpSecret + `"}}`)
		}, "tools stranger"},
		"an agent that is in order": {func(w *world, _ *hub) { w.withAgent(acpagent.Script{}) }, ""},
		"an agent that nobody has logged in": {func(w *world, _ *hub) {
			w.withAgent(acpagent.Script{Login: json.RawMessage(`{"kind":"none"}`), Open: refusesSession})
		}, "agents robot login"},
		"an agent that opens no session":       {func(w *world, _ *hub) { w.withAgent(acpagent.Script{Open: refusesSession}) }, "agents robot login"},
		"an agent that ends at once":           {func(w *world, _ *hub) { w.withAgent(acpagent.Script{Start: []acpagent.Step{{Exit: new(3)}}}) }, "agents robot"},
		"an agent that is of another protocol": {func(w *world, _ *hub) { w.withAgent(acpagent.Script{Protocol: 9}) }, "agents robot"},
		"an agent that is not installed":       {func(w *world, _ *hub) { w.with(map[string]string{"ACP_AGENTS": "ghost=/nonexistent/ghost"}) }, "agents ghost"},
		"a broken file of MCP servers": {func(w *world, _ *hub) {
			path := filepath.Join(w.t.TempDir(), "mcp.json")
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.with(map[string]string{"MCP_CONFIG": path})
		}, "tools MCP servers"},
		"a budget that limits nothing": {func(w *world, _ *hub) { w.with(map[string]string{"BUDGET_DAY_USD": "1"}) }, "models openai budget"},
		"a budget that limits one model": {func(w *world, _ *hub) {
			w.with(map[string]string{"BUDGET_DAY_USD": "1", "OPENAI_MODEL": "gpt-5-mini", "MODEL_CHEAP": "openai:mystery", "MODEL_FAST": "other:mystery"})
		}, "models openai budget"},
		"a budget that does not limit a profile": {func(w *world, _ *hub) {
			w.with(map[string]string{"BUDGET_DAY_USD": "1", "OPENAI_MODEL": "gpt-5-mini"}).migrated()
			env := app.Env{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler)}
			if err := app.AgentCreate(w.t.Context(), w.config(), env, app.ProfileFile{Text: []byte("name: reviewer\nmodel: mystery\n")}); err != nil {
				w.t.Fatal(err)
			}
		}, "models openai budget"},
		"a budget that limits everything": {func(w *world, _ *hub) {
			w.with(map[string]string{"BUDGET_DAY_USD": "1", "BUDGET_DAY_TOKENS": "1000"})
		}, ""},
		"an assistant that is not there": {func(w *world, _ *hub) { w.with(map[string]string{"DEFAULT_AI_ASSISTANT": "gemini"}) }, "models assistant"},
		"hosts that are none":            {func(w *world, _ *hub) { w.with(map[string]string{"TOOL_HOSTS": "https://example.com/x"}) }, "tools hosts"},
		"a workspace that is no folder":  {func(w *world, _ *hub) { w.with(map[string]string{"WORKSPACE_PATH": aFile(w.t)}) }, "system workspace"},
		"a workspace below what is no folder": {func(w *world, _ *hub) {
			w.with(map[string]string{"WORKSPACE_PATH": filepath.Join(aFile(w.t), "workspace")})
		}, "system workspace"},
		"a damaged database": {func(w *world, _ *hub) {
			path := filepath.Join(w.env["DATA_DIR"], "bot.db")
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database. "), 512), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, "database database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := examined(t)
			fault.inject(w, h)
			got, report := w.examine(false)
			want := slices.Clone(newWorldUnwell)
			if fault.want != "" {
				want = append(want, fault.want)
			}
			if fault.want == "telegram account" { // whose privacy mode is not known then
				want = slices.DeleteFunc(want, func(s string) bool { return s == "telegram privacy" })
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				var text bytes.Buffer
				_ = report.Write(&text)
				t.Errorf("%s\n%s", diff, &text)
			}
		})
	}
}

// aFile is where no folder can be.
func aFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A fix is about what is wrong: a database that cannot be reached is not damaged, an older
// program is no cure for a newer schema, and backups that cannot be read are not missing.
func TestDoctorNamesTheFixOfEachFault(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		inject             func(w *world)
		check, detail, fix string
	}{
		"no server": {
			func(w *world) { w.with(map[string]string{"DATABASE_URL": "postgres://bot@127.0.0.1:1/none"}) },
			"database database", "does not accept the connection", "bot config show",
		},
		"a database without all characters": {
			func(w *world) { w.with(map[string]string{"DATABASE_URL": storetest.PostgresURLIn(w.t, "LATIN1")}) },
			"database database", "stores text as LATIN1", "bot config show",
		},
		"a server that only reads": {
			func(w *world) {
				w.with(map[string]string{"DATABASE_URL": storetest.PostgresMigratedURL(w.t) + "&default_transaction_read_only=on"})
			},
			"database writes", "the database server only reads", "bot config show",
		},
		"a damaged database": {func(w *world) {
			path := filepath.Join(w.env["DATA_DIR"], "bot.db")
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database. "), 512), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, "database database", "is damaged", "A damaged database"},
		"a newer schema": {func(w *world) {
			db, err := sql.Open("sqlite", filepath.Join(w.env["DATA_DIR"], "bot.db"))
			if err == nil {
				_, err = db.ExecContext(w.t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				w.t.Fatal(err)
			}
		}, "database schema", "a newer version has used it", "bot config show"},
		"backups that cannot be read": {
			func(w *world) { w.with(map[string]string{"BACKUP_DIR": aFile(w.t)}) },
			"database backup", "BACKUP_DIR", "bot config show",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := examined(t)
			fault.inject(w)
			_, report := w.examine(true)
			for _, f := range report.Findings {
				if f.Area+" "+f.Check != fault.check {
					continue
				}
				if f.Status != doctor.Fail || !strings.Contains(f.Detail, fault.detail) || !strings.Contains(f.Fix, fault.fix) {
					t.Errorf("found %+v, want a failure with %q and the fix %q", f, fault.detail, fault.fix)
				}
				return
			}
			t.Errorf("no finding of %s in %+v", fault.check, report.Findings)
		})
	}
}

// What is in order says what was proven, and leaves nothing behind: not in DATA_DIR either.
func TestDoctorSaysWhatProgramsProved(t *testing.T) {
	t.Parallel()
	for name, offline := range map[string]bool{"online": false, "offline": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := examined(t)
			w.withAgent(acpagent.Script{Login: json.RawMessage(`{"kind":"api_key","label":"Example API key"}`)})
			w.withMCP(`"far": {"url": "http://127.0.0.1:1"}, "near": {"command": "/bin/false", "hosts": ["example.com"]}`)
			before := filesOf(t, w.env["DATA_DIR"])
			_, report := w.examine(offline)
			said := make(map[string]string)
			for _, f := range report.Findings {
				said[f.Area+" "+f.Check] = string(f.Status) + " " + f.Detail
			}
			want := map[string]string{
				"tools weather": "ok weather 1 offers 1 tool", "agents robot": "ok starts: scripted 1", "agents robot login": "ok Example API key",
				"agents claude": "skip not installed, and not used", "agents codex": "skip not installed, and not used",
			}
			if offline {
				want["tools far"], want["tools near"] = "skip skipped because of --offline", "skip skipped because of --offline"
			}
			for check, detail := range want {
				if said[check] != detail {
					t.Errorf("%s: %q, want %q", check, said[check], detail)
				}
			}
			if diff := cmp.Diff(before, filesOf(t, w.env["DATA_DIR"])); diff != "" {
				t.Errorf("in DATA_DIR: %s", diff)
			}
		})
	}
}

// filesOf lists what is below a folder.
func filesOf(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if !strings.Contains(path, "bot.db-") { // the log of SQLite comes and goes
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestDoctorOfflineAsksNobody closes every server before.
func TestDoctorOfflineAsksNobody(t *testing.T) {
	t.Parallel()
	w, h := examined(t)
	calls := len(w.tg.Calls())
	got, report := w.examine(true)
	if diff := cmp.Diff([]string{"database backup"}, got); diff != "" {
		t.Error(diff)
	}
	if n := len(w.tg.Calls()); n != calls || len(h.Deliveries()) != 0 || report.Skipped < 6 {
		t.Errorf("%d calls, %+v", n-calls, report)
	}
}

// TestDoctorBesideTheDaemonChangesNothing runs it while the bot works.
func TestDoctorBesideTheDaemonChangesNothing(t *testing.T) {
	t.Parallel()
	w, h := examined(t)
	h.start()
	w.says(ann, "hello")
	w.seesText(ann, "echo: hello")
	w.settles()
	before := w.rows("SELECT count(*), max(id) FROM inbound_events")
	running := filepath.Join(w.env["DATA_DIR"], "run", "run-of-a-program") // as one that the bot runs has it
	if err := os.MkdirAll(running, 0o700); err != nil {
		t.Fatal(err)
	}
	w.with(map[string]string{"PUBLIC_URL": "http://" + w.addr})
	if got, report := w.examine(false); len(got) != len(newWorldUnwell) {
		t.Errorf("%v, %+v", got, report)
	}
	if after := w.rows("SELECT count(*), max(id) FROM inbound_events"); !slices.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	if _, err := os.Stat(running); err != nil {
		t.Errorf("the files of a program that runs: %v", err)
	}
	w.says(ann, "still there?")
	w.seesText(ann, "echo: still there?")
}
