//nolint:thelper // the functions run tests, they are no helpers: Helper would hide the line that failed
package importer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
	"remote-agent/internal/importer"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

const (
	web   = "10000000-0000-4000-8000-000000000001"
	twin  = "10000000-0000-4000-8000-000000000002"
	notes = "10000000-0000-4000-8000-000000000003"

	chat   = "20000000-0000-4000-8000-000000000001"
	group  = "20000000-0000-4000-8000-000000000002"
	issue  = "20000000-0000-4000-8000-000000000003"
	second = "20000000-0000-4000-8000-000000000004"

	planned = "30000000-0000-4000-8000-000000000001"
	older   = "30000000-0000-4000-8000-000000000002"
	ended   = "30000000-0000-4000-8000-000000000003"
	codex   = "30000000-0000-4000-8000-000000000004"
)

// team is what a team's program has: two codebases of one repository, a folder
// without one, and paths as that program stores them.
const team = `
INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd, ai_assistant_type, commands, created_at, updated_at) VALUES
('` + web + `', 'web', 'https://github.com/Acme/Web.git', '/workspace/web', 'claude', '{"prime":{"path":".claude/commands/prime.md","description":"Research codebase"}}', '2025-01-02 03:04:05.123456', '2025-01-02 03:04:06'),
('` + twin + `', 'web with codex', 'git@github.com:acme/web.git', '/workspace/web-codex', 'codex', NULL, '2025-01-03 00:00:00', '2025-01-03 00:00:00'),
('` + notes + `', 'notes', NULL, '/home/ann/notes', 'claude', '{}', '2025-01-04 00:00:00', NULL);
INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, codebase_id, cwd, ai_assistant_type, created_at, updated_at) VALUES
('` + chat + `', 'telegram', '42', '` + web + `', '/workspace/web/src/server', 'claude', '2025-02-01 10:00:00.000001', '2025-02-02 10:00:00.5'),
('` + group + `', 'telegram', '-100', '` + twin + `', '/workspace/web-codex', 'codex', '2025-02-01 11:00:00', '2025-02-01 11:00:00'),
('` + issue + `', 'github', 'acme/web#7', '` + web + `', '/etc', 'claude', '2025-02-01 12:00:00', '2025-02-01 12:00:00'),
('` + second + `', 'telegram', '77', NULL, '/home/ann/notes/2025', 'claude', '2025-02-01 13:00:00', '2025-02-01 13:00:00');
INSERT INTO remote_agent_sessions (id, conversation_id, codebase_id, ai_assistant_type, assistant_session_id, active, metadata, started_at, ended_at) VALUES
('` + planned + `', '` + chat + `', '` + web + `', 'claude', 'resume-me', true, '{"lastCommand":"plan-feature","kept":{"a":[1]}}', '2025-02-02 09:00:00.654321', NULL),
('` + older + `', '` + chat + `', '` + web + `', 'claude', 'old', true, '{}', '2025-02-01 09:00:00', NULL),
('` + ended + `', '` + chat + `', '` + web + `', 'claude', NULL, false, NULL, NULL, '2025-02-01 23:00:00'),
('` + codex + `', '` + group + `', '` + twin + `', 'codex', 'thread-1', NULL, '{}', '2025-02-01 11:00:01', '2025-02-01 11:30:00');
`

// seed makes another program's database with the seed's own tables. SQLite has no
// function that makes ids.
func seed(t testing.TB, create func(testing.TB, string) string, rows string) string {
	t.Helper()
	ddl, err := os.ReadFile(filepath.Join("testdata", "seed002.sql"))
	if err != nil {
		t.Fatal(err)
	}
	source := create(t, strings.ReplaceAll(string(ddl), " DEFAULT gen_random_uuid()", "")+rows)
	return source
}

func readAll(t testing.TB, source string) (importer.Rows, error) {
	t.Helper()
	if !strings.Contains(source, "://") {
		source = "sqlite:" + source
	}
	from, err := store.Open(t.Context(), store.Options{URL: source, Log: storetest.Log(t), Foreign: true})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close() //nolint:errcheck // only read
	return from.ReadSeed(t.Context())
}

// TestADatabaseOfAnotherEncodingIsRead: the server says in UTF-8 what it stores in another one.
func TestADatabaseOfAnotherEncodingIsRead(t *testing.T) {
	t.Parallel()
	const name = "Müllers Café"
	source := seed(t, func(t testing.TB, ddl string) string {
		address := storetest.PostgresURLIn(t, "LATIN1")
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), `SET client_encoding TO 'UTF8'`)
		if err == nil {
			_, err = conn.Exec(t.Context(), ddl)
		}
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		return address
	}, strings.Replace(team, "'web'", "'"+name+"'", 1))
	rows, err := readAll(t, source)
	if err != nil {
		t.Fatal(err)
	}
	if got := *rows[store.SeedCodebases][0]["name"]; got != name {
		t.Errorf("the name is %q, want %q", got, name)
	}
}

func options(t testing.TB) importer.Options {
	t.Helper()
	hosts, err := remote.ParseHosts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return importer.Options{
		Hosts: hosts,
		Reach: func(key messages.ConversationKey) error {
			if key.ID != "77" {
				return nil
			}
			return fault.Newf(fault.Invalid, "%s is of no chat.", key)
		},
		Folder:    func(dir string) error { return fault.Newf(fault.NotFound, "There is no folder %s.", dir) },
		Assistant: func(name string) bool { return name == "claude" },
		Platform:  func(name string) bool { return name == "telegram" },
		Now:       time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// eachWay runs a test from each database to each.
func eachWay(t *testing.T, test func(t *testing.T, to *store.Store, create func(testing.TB, string) string)) {
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		storetest.EachForeign(t, func(t *testing.T, create func(testing.TB, string) string) {
			if strings.Contains(t.Name(), "/SQLite/") {
				test(t, storetest.SQLite(t)(t), create)
				return
			}
			test(t, storetest.Postgres(t)(t), create)
		})
	})
}

type stored struct {
	Codebases     []sessions.Codebase
	Conversations map[string]sessions.Conversation
	Sessions      map[string]sessions.Session
	Commands      map[string]map[string]sessions.CommandDef
}

// all returns what is stored of the team.
func all(t *testing.T, s *store.Store) stored {
	t.Helper()
	var found stored
	err := s.InRead(t.Context(), func(tx *store.Tx) error {
		found = stored{Conversations: map[string]sessions.Conversation{}, Sessions: map[string]sessions.Session{}, Commands: map[string]map[string]sessions.CommandDef{}}
		var err error
		if found.Codebases, err = tx.Registry().List(t.Context()); err != nil {
			return err
		}
		for _, c := range found.Codebases {
			if found.Commands[c.Name], err = tx.Registry().CodebaseCommands(t.Context(), c.ID); err != nil {
				return err
			}
		}
		for _, id := range []string{chat, group, issue, second} {
			if c, err := tx.Conversations().Conversation(t.Context(), id); err == nil {
				found.Conversations[id] = c
			} else if !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		for _, id := range []string{planned, older, ended, codex} {
			if s, err := tx.Sessions().Session(t.Context(), id); err == nil {
				found.Sessions[id] = s
			} else if !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return moment
}

func TestImport(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, to *store.Store, create func(testing.TB, string) string) {
		rows, err := readAll(t, seed(t, create, team))
		if err != nil {
			t.Fatal(err)
		}
		dry, err := importer.DryRun(t.Context(), to, rows, options(t))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(all(t, to).Codebases); n != 0 {
			t.Fatalf("a dry run stored %d codebases", n)
		}
		report, err := importer.Import(t.Context(), to, rows, options(t))
		if err != nil {
			t.Fatal(err)
		}
		counts := [3]importer.Count{{New: 3}, {New: 4}, {New: 4}}
		if got := [3]importer.Count{report.Codebases, report.Conversations, report.Sessions}; got != counts {
			t.Errorf("counts = %+v, want %+v", got, counts)
		}
		var would, was bytes.Buffer
		if err := errors.Join(dry.Write(&would, true, false), report.Write(&was, true, false)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(would.String(), was.String()); diff != "" {
			t.Errorf("the dry run says something else than the import (-dry +done):\n%s", diff)
		}
		first := all(t, to)
		checkRows(t, first)

		again, err := importer.Import(t.Context(), to, rows, options(t))
		if err != nil {
			t.Fatal(err)
		}
		counts = [3]importer.Count{{Here: 3}, {Here: 4}, {Here: 4}}
		if got := [3]importer.Count{again.Codebases, again.Conversations, again.Sessions}; got != counts {
			t.Errorf("the second time counts = %+v, want %+v", got, counts)
		}
		if diff := cmp.Diff(first, all(t, to)); diff != "" {
			t.Errorf("a second run changes (-before +after):\n%s", diff)
		}
	})
}

func checkRows(t *testing.T, got stored) {
	t.Helper()
	wantCodebases := []sessions.Codebase{
		{ID: notes, Name: "notes", DefaultCwd: "/home/ann/notes", Assistant: "claude", CreatedAt: at("2025-01-04T00:00:00Z"), UpdatedAt: at("2025-01-04T00:00:00Z")},
		{ID: web, Name: "web", RepositoryURL: "https://github.com/acme/web", DefaultCwd: "/workspace/web", Assistant: "claude", CreatedAt: at("2025-01-02T03:04:05.123456Z"), UpdatedAt: at("2025-01-02T03:04:06Z")},
		{ID: twin, Name: "web with codex", RepositoryURL: "https://github.com/acme/web", DefaultCwd: "/workspace/web-codex", Assistant: "codex", CreatedAt: at("2025-01-03T00:00:00Z"), UpdatedAt: at("2025-01-03T00:00:00Z")},
	}
	if diff := cmp.Diff(wantCodebases, got.Codebases); diff != "" {
		t.Errorf("codebases (-want +got):\n%s", diff)
	}
	if def := got.Commands["web"]["prime"]; def.Path != ".claude/commands/prime.md" || def.Description != "Research codebase" {
		t.Errorf("the command of the registry = %+v", def)
	}
	for id, want := range map[string]sessions.Conversation{
		chat:   {CodebaseID: web, Cwd: "src/server", Assistant: "claude", CreatedAt: at("2025-02-01T10:00:00.000001Z"), UpdatedAt: at("2025-02-02T10:00:00.5Z")},
		group:  {CodebaseID: twin, Assistant: "codex", CreatedAt: at("2025-02-01T11:00:00Z"), UpdatedAt: at("2025-02-01T11:00:00Z")},
		issue:  {CodebaseID: web, Assistant: "claude", CreatedAt: at("2025-02-01T12:00:00Z"), UpdatedAt: at("2025-02-01T12:00:00Z")},
		second: {CodebaseID: notes, Cwd: "2025", Assistant: "claude", CreatedAt: at("2025-02-01T13:00:00Z"), UpdatedAt: at("2025-02-01T13:00:00Z")},
	} {
		c := got.Conversations[id]
		have := sessions.Conversation{CodebaseID: c.CodebaseID, Cwd: c.Cwd, Assistant: c.Assistant, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("conversation %s (-want +got):\n%s", id, diff)
		}
	}
	if key := got.Conversations[issue].Key; key != (messages.ConversationKey{Platform: "github", ID: "acme/web#7"}) {
		t.Errorf("the place of a conversation = %v", key)
	}
	for id, want := range map[string]sessions.Session{
		planned: {ConversationID: chat, CodebaseID: web, Assistant: "claude", AssistantSessionID: "resume-me", Active: true, StartedAt: at("2025-02-02T09:00:00.654321Z")},
		older:   {ConversationID: chat, CodebaseID: web, Assistant: "claude", AssistantSessionID: "old", StartedAt: at("2025-02-01T09:00:00Z")},
		ended:   {ConversationID: chat, CodebaseID: web, Assistant: "claude", StartedAt: at("2025-02-01T10:00:00.000001Z"), EndedAt: at("2025-02-01T23:00:00Z")},
		codex:   {ConversationID: group, CodebaseID: twin, Assistant: "codex", AssistantSessionID: "thread-1", StartedAt: at("2025-02-01T11:00:01Z"), EndedAt: at("2025-02-01T11:30:00Z")},
	} {
		s := got.Sessions[id]
		have := sessions.Session{
			ConversationID: s.ConversationID, CodebaseID: s.CodebaseID, Assistant: s.Assistant, AssistantSessionID: s.AssistantSessionID,
			Active: s.Active, StartedAt: s.StartedAt, EndedAt: s.EndedAt,
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("session %s (-want +got):\n%s", id, diff)
		}
	}
	meta := got.Sessions[planned].Metadata
	if diff := cmp.Diff(sessions.Metadata{"lastCommand": "plan-feature", "kept": map[string]any{"a": []any{1.0}}}, meta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	execute := sessions.MetaOf("execute", "", "")
	if sessions.Next(meta, execute) != sessions.Restart {
		t.Error("execute after an imported plan-feature goes on in its session")
	}
}

func TestMergeOnlyWhenToldTo(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, to *store.Store, create func(testing.TB, string) string) {
		rows, err := readAll(t, seed(t, create, team))
		if err != nil {
			t.Fatal(err)
		}
		o := options(t)
		o.Merge = true
		for run := range 2 {
			report, err := importer.Import(t.Context(), to, rows, o)
			if err != nil {
				t.Fatal(err)
			}
			want := importer.Count{New: 2, Merged: 1}
			if run == 1 {
				want = importer.Count{Here: 2, Merged: 1}
			}
			if report.Codebases != want {
				t.Errorf("run %d: codebases = %+v, want %+v", run, report.Codebases, want)
			}
			got := all(t, to)
			if len(got.Codebases) != 2 || got.Conversations[group].CodebaseID != web || got.Sessions[codex].CodebaseID != web {
				t.Errorf("run %d: %d codebases, the conversation is of %s and its session of %s", run, len(got.Codebases), got.Conversations[group].CodebaseID, got.Sessions[codex].CodebaseID)
			}
			if c := got.Conversations[group]; c.Cwd != "" || c.Assistant != "codex" {
				t.Errorf("run %d: folder %q and assistant %q", run, c.Cwd, c.Assistant)
			}
		}
	})
}

func TestMapsMoveFolders(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, to *store.Store, create func(testing.TB, string) string) {
		rows, err := readAll(t, seed(t, create, team))
		if err != nil {
			t.Fatal(err)
		}
		o := options(t)
		o.Maps = []importer.Map{{Old: "/workspace", New: "/srv/repos"}, {Old: "/workspace/web-codex", New: "/srv/codex"}, {Old: "/home/ann", New: "/home/bob"}}
		o.Folder = func(dir string) error {
			if dir == "/srv/repos/web" {
				return nil
			}
			return fault.Newf(fault.NotFound, "There is no folder %s.", dir)
		}
		report, err := importer.Import(t.Context(), to, rows, o)
		if err != nil {
			t.Fatal(err)
		}
		var folders []string
		got := all(t, to)
		for _, c := range got.Codebases {
			folders = append(folders, c.DefaultCwd)
		}
		if diff := cmp.Diff([]string{"/home/bob/notes", "/srv/repos/web", "/srv/codex"}, folders); diff != "" {
			t.Errorf("folders (-want +got):\n%s", diff)
		}
		if c := got.Conversations[chat]; c.Cwd != "src/server" {
			t.Errorf("the folder of a conversation is %q", c.Cwd)
		}
		if len(report.Missing) != 2 {
			t.Errorf("missing = %+v, want those two that are not mapped to what is there", report.Missing)
		}
		o.Maps = append(o.Maps, importer.Map{Old: "/workspaces", New: "/srv"})
		if _, err := importer.Import(t.Context(), to, rows, o); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "/workspaces") {
			t.Errorf("a map that nothing is in: %v", err)
		}
	})
	for text, want := range map[string]importer.Map{
		"/a=/b": {Old: "/a", New: "/b"}, "/a/=/b/": {Old: "/a", New: "/b"}, "/a": {}, "a=/b": {}, "/a=b": {}, "": {}, "=": {},
	} {
		m, err := importer.ParseMap(text)
		if (err == nil) != (want != importer.Map{}) || m != want {
			t.Errorf("ParseMap(%q) = %+v, %v, want %+v", text, m, err, want)
		}
	}
	if err := importer.CheckMaps([]importer.Map{{"/a", "/b"}, {"/a", "/c"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("two maps of one folder: %v", err)
	}
}

func TestTheReportNamesWhatIsDifferentHere(t *testing.T) {
	t.Parallel()
	storetest.EachForeign(t, func(t *testing.T, create func(testing.TB, string) string) {
		rows, err := readAll(t, seed(t, create, team))
		if err != nil {
			t.Fatal(err)
		}
		report, err := importer.DryRun(t.Context(), nil, rows, options(t))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.Write(&out, false, false); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"dry run: nothing was written\nwould import 3 codebases and 4 conversations with 4 sessions\n",
			"codebases of one repository (1):\n  web with codex and web (https://github.com/acme/web) stay two; --merge makes one of them\n",
			"missing folders (3):\n",
			"  web  /workspace/web: the first message there asks whether to clone https://github.com/acme/web; --clone clones it now; or import with --map /workspace/web=FOLDER\n",
			"  notes  /home/ann/notes: cannot be cloned: its repository URL is not known. Put the folder there, or import with --map /home/ann/notes=FOLDER\n",
			"(4):\n  telegram/42  /workspace/web/src/server: src/server in web\n",
			"  telegram/-100  /workspace/web-codex: . in web with codex\n",
			"  github/acme/web#7  /etc: outside of web, so it begins at the top of that\n",
			"  telegram/77  /home/ann/notes/2025: 2025 in notes, which the conversation gets as its codebase\n",
			"assistants that are not configured here (1):\n  codex: 1 codebase, 1 conversation, 1 session\n",
			"platforms that are not configured here (1):\n  github: 1 conversation\n",
			"conversations that nobody can reach because of their ID; the next message there begins another one (1):\n  telegram/77 is of no chat.\n",
			"  telegram/42 has 2 active sessions; the newest, " + planned + ", stays active\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the report has no %q:\n%s", want, out.String())
			}
		}
	})
}

// broken are rows that a database without constraints can have.
const broken = `
INSERT INTO remote_agent_codebases VALUES
('not-an-id', 'a', NULL, '/a', 'claude', '{}', NULL, NULL),
('10000000-0000-4000-8000-00000000000a', NULL, NULL, '/a', 'claude', '{}', NULL, NULL),
('10000000-0000-4000-8000-00000000000b', 'b', NULL, '/b', 'claude', '[1]', NULL, NULL),
('10000000-0000-4000-8000-00000000000c', 'c', NULL, '/c', 'claude', '{"x":1}', NULL, NULL),
('10000000-0000-4000-8000-00000000000e', 'one
two', NULL, '/e', 'claude', '{}', NULL, NULL),
('10000000-0000-4000-8000-00000000000d', 'd', NULL, '/d', 'an assistant of a long name', '{}', 'yesterday', NULL);
INSERT INTO remote_agent_conversations VALUES
('20000000-0000-4000-8000-00000000000a', 'telegram', '1', '10000000-0000-4000-8000-00000000000b', NULL, 'claude', NULL, NULL),
('20000000-0000-4000-8000-00000000000b', 'telegram', '2', '10000000-0000-4000-8000-0000000000ff', NULL, 'claude', NULL, NULL),
('20000000-0000-4000-8000-00000000000c', 'telegram', '42', NULL, NULL, 'claude', NULL, NULL),
('20000000-0000-4000-8000-00000000000d', '', '4', NULL, NULL, 'claude', NULL, NULL);
INSERT INTO remote_agent_sessions VALUES
('30000000-0000-4000-8000-00000000000a', '20000000-0000-4000-8000-00000000000a', NULL, 'claude', NULL, 'true', '{}', NULL, NULL),
('30000000-0000-4000-8000-00000000000b', NULL, NULL, 'claude', NULL, 'true', '{}', NULL, NULL),
('30000000-0000-4000-8000-00000000000c', '` + chat + `', NULL, 'claude', NULL, 'perhaps', 'x', NULL, NULL);
`

func TestRowsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		ddl := strings.NewReplacer(
			"remote_agent_codebases (", "remote_agent_codebases (id TEXT, name TEXT, repository_url TEXT, default_cwd TEXT, ai_assistant_type TEXT, commands TEXT, created_at TEXT, updated_at TEXT);",
			"remote_agent_conversations (", "remote_agent_conversations (id TEXT, platform_type TEXT, platform_conversation_id TEXT, codebase_id TEXT, cwd TEXT, ai_assistant_type TEXT, created_at TEXT, updated_at TEXT);",
			"remote_agent_sessions (", "remote_agent_sessions (id TEXT, conversation_id TEXT, codebase_id TEXT, ai_assistant_type TEXT, assistant_session_id TEXT, active TEXT, metadata TEXT, started_at TEXT, ended_at TEXT);",
		).Replace("CREATE TABLE remote_agent_codebases (CREATE TABLE remote_agent_conversations (CREATE TABLE remote_agent_sessions (")
		storetest.EachForeign(t, func(t *testing.T, create func(testing.TB, string) string) {
			rows, err := readAll(t, create(t, ddl+team+broken))
			if err != nil {
				t.Fatal(err)
			}
			to := storetest.SQLite(t)(t)
			if strings.Contains(t.Name(), "/Postgres/") {
				to = storetest.Postgres(t)(t)
			}
			_, err = importer.Import(t.Context(), to, rows, options(t))
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error = %v, want invalid", err)
			}
			for _, want := range []string{
				"Nothing was imported: 13 rows cannot be imported",
				"remote_agent_codebases not-an-id: its ID is not a UUID",
				"00000000000a: name is NULL",
				"00000000000b: commands is not a JSON object: [1]",
				`00000000000c: commands: "x" is not an object`,
				`00000000000d: ai_assistant_type has 27 characters and 20 are possible; created_at is "yesterday", which is not a time`,
				"00000000000a: codebase_id is 10000000-0000-4000-8000-00000000000b, which cannot be imported itself",
				"00000000000b: codebase_id is 10000000-0000-4000-8000-0000000000ff, which is not in remote_agent_codebases",
				"00000000000c: telegram/42 appears twice, also as " + chat,
				"00000000000d: platform_type is empty",
				`00000000000e: name is "one\ntwo", and a name cannot have a line break`,
				"00000000000a: conversation_id is 20000000-0000-4000-8000-00000000000a, which cannot be imported itself",
				"00000000000b: conversation_id is NULL",
				`00000000000c: active is "perhaps", which is neither true nor false; metadata is not a JSON object: x`,
			} {
				if !strings.Contains(fault.Public(err), want) {
					t.Errorf("the error has no %q:\n%s", want, fault.Public(err))
				}
			}
			if got := all(t, to); len(got.Codebases)+len(got.Conversations)+len(got.Sessions) != 0 {
				t.Errorf("stored all the same: %+v", got)
			}
			o := options(t)
			o.Skip = true
			if _, err := importer.Import(t.Context(), to, rows, o); err != nil {
				t.Fatal(err)
			}
			checkRows(t, all(t, to))
		})
	})
}

func TestWhatIsHereAlreadyIsNeverChanged(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		to := open(t)
		err := to.InTx(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Registry().Create(t.Context(), sessions.Codebase{Name: "notes", DefaultCwd: "/elsewhere"}); err != nil {
				return err
			}
			_, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "telegram", ID: "42"}, "demo")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := readAll(t, seed(t, storetest.ForeignSQLite, team))
		if err != nil {
			t.Fatal(err)
		}
		_, err = importer.Import(t.Context(), to, rows, options(t))
		for _, want := range []string{"telegram/42 is another conversation here already", "bot sessions rm --conversation telegram/42 --yes", planned} {
			if !strings.Contains(fault.Public(err), want) {
				t.Errorf("the error has no %q: %v", want, err)
			}
		}
		o := options(t)
		o.Skip = true
		if _, err := importer.Import(t.Context(), to, rows, o); err != nil {
			t.Fatal(err)
		}
		names := ""
		got := all(t, to)
		for _, c := range got.Codebases {
			names += c.Name + " in " + c.DefaultCwd + "; "
		}
		if want := "notes in /elsewhere; notes-2 in /home/ann/notes; web in /workspace/web; web with codex in /workspace/web-codex; "; names != want {
			t.Errorf("codebases = %s, want %s", names, want)
		}
		if len(got.Conversations) != 3 || len(got.Sessions) != 1 {
			t.Errorf("%d conversations and %d sessions were stored, want those that do not meet another one: 3 and 1", len(got.Conversations), len(got.Sessions))
		}
	})
}

func TestDatabasesThatAreNotOfTheSeed(t *testing.T) {
	t.Parallel()
	storetest.EachForeign(t, func(t *testing.T, create func(testing.TB, string) string) {
		for name, c := range map[string]struct {
			ddl  string
			want []string
		}{
			"nothing": {"CREATE TABLE other (id TEXT);", []string{"the table remote_agent_codebases, the table remote_agent_conversations, the table remote_agent_sessions"}},
			"half": {"CREATE TABLE remote_agent_codebases (id TEXT, name TEXT); CREATE TABLE remote_agent_sessions (id TEXT, conversation_id TEXT, codebase_id TEXT, ai_assistant_type TEXT, assistant_session_id TEXT, active BOOLEAN, metadata TEXT, started_at TIMESTAMP);",
				[]string{"the column remote_agent_codebases.repository_url", "the table remote_agent_conversations", "the column remote_agent_sessions.ended_at"}},
		} {
			_, err := readAll(t, create(t, c.ddl))
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: error = %v, want invalid", name, err)
			}
			for _, want := range c.want {
				if !strings.Contains(fault.Public(err), want) {
					t.Errorf("%s: %q does not name %q", name, fault.Public(err), want)
				}
			}
		}
	})
}

// The other program's file stays as it is, byte for byte.
func TestTheOtherDatabaseIsOnlyRead(t *testing.T) {
	t.Parallel()
	name := seed(t, storetest.ForeignSQLite, team)
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, name); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(name)); err != nil || len(entries) != 1 {
		t.Errorf("files beside it: %v, %v", entries, err)
	}
	for _, none := range []string{filepath.Dir(name), filepath.Join(filepath.Dir(name), "none.db"), os.Args[0]} {
		if _, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + none, Log: storetest.Log(t), Foreign: true}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want invalid", none, err)
		}
	}
}

func row(columns ...string) store.SeedRow {
	r := store.SeedRow{}
	for i := 0; i < len(columns); i += 2 {
		r[columns[i]] = &columns[i+1]
	}
	return r
}

// seedOf has one codebase, conversation and session, as they are in the other database.
func seedOf(change func(rows importer.Rows)) importer.Rows {
	rows := importer.Rows{
		store.SeedCodebases: {row("id", web, "name", "shop", "default_cwd", "/workspace/shop", "ai_assistant_type", "claude")},
		store.SeedConversations: {row("id", chat, "platform_type", "telegram", "platform_conversation_id", "1", "codebase_id", web, "ai_assistant_type", "claude",
			"created_at", "2026-03-02 00:00:00")},
		store.SeedSessions: {row("id", ended, "conversation_id", chat, "ai_assistant_type", "claude", "ended_at", "2026-03-01 00:00:00")},
	}
	change(rows)
	return rows
}

func TestTimesOfSessions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ started, want string }{
		"none, and it ended before its conversation began": {"", "2026-03-01T00:00:00Z"},
		"seconds":                          {"1767225600", "2026-01-01T00:00:00Z"},
		"milliseconds":                     {"1767225600000", "2026-01-01T00:00:00Z"},
		"milliseconds of the last century": {"915148800000", "1999-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := storetest.SQLite(t)(t)
			rows := seedOf(func(rows importer.Rows) {
				if tt.started != "" {
					rows[store.SeedSessions][0]["started_at"] = &tt.started
				}
			})
			if _, err := importer.Import(t.Context(), to, rows, options(t)); err != nil {
				t.Fatal(err)
			}
			if got := all(t, to).Sessions[ended].StartedAt; !got.Equal(at(tt.want)) {
				t.Errorf("it began %s, want %s", got, tt.want)
			}
		})
	}
}

// What JSON of SQLite may say and PostgreSQL cannot store does not block an import.
func TestJSONThatOneDatabaseRefuses(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		to := open(t)
		metadata, commands := `{"lastCommand":"a\u0000b\\u0000","half":"\ud800","n":12345678901234567890}`, `{"up":{"path":"up.md","description":"\u0000"}}`
		rows := seedOf(func(rows importer.Rows) {
			rows[store.SeedSessions][0]["metadata"], rows[store.SeedCodebases][0]["commands"] = &metadata, &commands
		})
		if _, err := importer.Import(t.Context(), to, rows, options(t)); err != nil {
			t.Fatal(err)
		}
		if got := all(t, to).Sessions[ended].Metadata; got["lastCommand"] != "a\uFFFDb\\u0000" || got["half"] != "\uFFFD" {
			t.Errorf("metadata: %v", got)
		}
	})
}

// A number that SQLite takes in JSON and PostgreSQL does not is refused as its row's fault.
func TestNumberThatNoProgramReads(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		to := open(t)
		metadata := `{"cost":1e999999}`
		rows := seedOf(func(rows importer.Rows) { rows[store.SeedSessions][0]["metadata"] = &metadata })
		_, err := importer.Import(t.Context(), to, rows, options(t))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "metadata has a number 1e999999, which is too large") {
			t.Errorf("error %v", err)
		}
		skipping := options(t)
		skipping.Skip = true
		if r, err := importer.Import(t.Context(), to, rows, skipping); err != nil || len(r.Refused) == 0 {
			t.Errorf("with --skip: %+v, %v", r, err)
		}
	})
}

// A conversation began with its first session, if nobody wrote down when, and a folder
// outside of its repository is the top of it.
func TestWhatAConversationDoesNotSay(t *testing.T) {
	t.Parallel()
	to := storetest.SQLite(t)(t)
	outside := "../etc"
	rows := seedOf(func(rows importer.Rows) {
		delete(rows[store.SeedConversations][0], "created_at")
		rows[store.SeedConversations][0]["cwd"] = &outside
		rows[store.SeedSessions] = append(rows[store.SeedSessions],
			row("id", planned, "conversation_id", chat, "ai_assistant_type", "claude", "started_at", "2026-02-02 00:00:00"),
			row("id", older, "conversation_id", chat, "ai_assistant_type", "claude", "started_at", "2026-02-01 00:00:00"))
	})
	if _, err := importer.Import(t.Context(), to, rows, options(t)); err != nil {
		t.Fatal(err)
	}
	if c := all(t, to).Conversations[chat]; !c.CreatedAt.Equal(at("2026-02-01T00:00:00Z")) || c.Cwd != "" {
		t.Errorf("it began %s in %q", c.CreatedAt, c.Cwd)
	}
}

// A name that is taken gets a number, and still fits; an address loses its password, and
// somebody is told; an id that a session of another conversation has here is refused.
func TestWhatMeetsSomethingHere(t *testing.T) {
	t.Parallel()
	to := storetest.SQLite(t)(t)
	long, address := strings.Repeat("n", 255), "https://ann:hunter2@github.com/acme/shop"
	err := to.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Registry().Create(t.Context(), sessions.Codebase{Name: long, DefaultCwd: "/srv/other"}); err != nil {
			return err
		}
		c, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "telegram", ID: "9"}, "claude")
		if err != nil {
			return err
		}
		return tx.Portable().ImportSession(t.Context(), sessions.Session{ID: older, ConversationID: c.ID, Assistant: "claude", Status: sessions.Completed, StartedAt: at("2026-01-01T00:00:00Z")}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := seedOf(func(rows importer.Rows) {
		rows[store.SeedCodebases][0]["name"], rows[store.SeedCodebases][0]["repository_url"] = &long, &address
		taken := older
		rows[store.SeedSessions] = append(rows[store.SeedSessions], row("id", taken, "conversation_id", chat, "ai_assistant_type", "claude"))
	})
	o := options(t)
	o.Skip = true
	report, err := importer.Import(t.Context(), to, rows, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Refused) != 1 || report.Refused[0].ID != older || !strings.Contains(report.Refused[0].Why, "already has this ID") {
		t.Errorf("refused: %+v", report.Refused)
	}
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "revoke it") || strings.Contains(notes, "hunter2") {
		t.Errorf("notes: %s", notes)
	}
	list := all(t, to).Codebases
	if len(list) != 2 || list[1].Name != long && list[0].Name != long[:253]+"-2" || strings.Contains(list[0].RepositoryURL+list[1].RepositoryURL, "hunter2") {
		t.Errorf("codebases: %+v", list)
	}
}

// GitHub does not tell upper case in a repository's name from lower case, and the other
// program kept what GitHub wrote. Here keys are in lower case: the issue goes on.
func TestAnIssueGoesOnWhateverTheCaseOfItsRepository(t *testing.T) {
	t.Parallel()
	to := storetest.SQLite(t)(t)
	platform, place := "github", "Acme/Web-App#42"
	rows := seedOf(func(rows importer.Rows) {
		rows[store.SeedConversations][0]["platform_type"], rows[store.SeedConversations][0]["platform_conversation_id"] = &platform, &place
	})
	if _, err := importer.Import(t.Context(), to, rows, options(t)); err != nil {
		t.Fatal(err)
	}
	want := messages.ConversationKey{Platform: "github", ID: "acme/web-app#42"}
	if c := all(t, to).Conversations[chat]; c.Key != want {
		t.Errorf("the conversation is %s, want %s", c.Key, want)
	}
}

// The report calls a codebase what it is called here, and proposes no --map that is refused.
func TestTheReportUsesNamesAndMapsThatHoldHere(t *testing.T) {
	t.Parallel()
	folder, inside := "/workspace/two", "/workspace/two/src"
	rows := seedOf(func(rows importer.Rows) {
		rows[store.SeedConversations][0]["codebase_id"], rows[store.SeedConversations][0]["cwd"] = nil, &inside
		rows[store.SeedCodebases] = append(rows[store.SeedCodebases],
			row("id", twin, "name", "shop", "default_cwd", folder, "ai_assistant_type", "claude"),
			row("id", notes, "name", "notes", "default_cwd", "my notes", "ai_assistant_type", "claude"))
	})
	report, err := importer.DryRun(t.Context(), nil, rows, options(t))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.Write(&out, false, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  telegram/1  /workspace/two/src: src in shop-2, which the conversation gets as its codebase\n",
		"  notes  my notes: cannot be cloned: its repository URL is not known. Put the folder there, or `bot repo add FOLDER` and choose that with /repo in the chat\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, out.String())
		}
	}
}
