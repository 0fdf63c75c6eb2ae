package journey_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
)

// otherProgram makes the database of the program that seed 002 describes, as it
// was on another machine, and returns where it is.
func (w *world) otherProgram(rows string) string {
	w.t.Helper()
	ddl, err := os.ReadFile(filepath.Join("..", "importer", "testdata", "seed002.sql"))
	if err != nil {
		w.t.Fatal(err)
	}
	create := storetest.ForeignSQLite
	if w.env["DATABASE_URL"] != "" {
		create = storetest.ForeignPostgres
	}
	return create(w.t, strings.ReplaceAll(string(ddl), " DEFAULT gen_random_uuid()", "")+rows)
}

// imports runs the command while the bot is stopped, and returns what it prints.
func (w *world) imports(q app.SeedImport) (printed string, err error) {
	w.t.Helper()
	var out bytes.Buffer
	err = app.ImportSeed(w.ctx(), w.config(), app.Env{Stdout: &out, Stderr: &out, Log: storetest.Log(w.t), Lookup: os.LookupEnv, Version: "test"}, q)
	return out.String(), err
}

// moved are two people's chats on two codebases of one repository, whose folders
// were on the other machine, and one on a folder that nobody can clone.
func moved(url string) string {
	return fmt.Sprintf(`
INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd, ai_assistant_type) VALUES
('10000000-0000-4000-8000-000000000001', 'shop', '%[1]s.git', '/other/machine/shop', 'openai'),
('10000000-0000-4000-8000-000000000002', 'shop again', '%[1]s', '/other/machine/again', 'openai'),
('10000000-0000-4000-8000-000000000003', 'papers', NULL, '/other/machine/papers', 'openai');
INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, codebase_id, cwd, ai_assistant_type) VALUES
('20000000-0000-4000-8000-000000000001', 'telegram', '42', '10000000-0000-4000-8000-000000000001', '/other/machine/shop/src', 'openai'),
('20000000-0000-4000-8000-000000000002', 'telegram', '77', '10000000-0000-4000-8000-000000000002', '/other/machine/again', 'openai');
INSERT INTO remote_agent_sessions (id, conversation_id, codebase_id, ai_assistant_type, metadata) VALUES
('30000000-0000-4000-8000-000000000001', '20000000-0000-4000-8000-000000000001', '10000000-0000-4000-8000-000000000001', 'openai', '{"lastCommand":"plan-feature"}'),
('30000000-0000-4000-8000-000000000002', '20000000-0000-4000-8000-000000000002', '10000000-0000-4000-8000-000000000002', 'openai', '{}');
`, url)
}

// TestImportIsTriedOnADatabaseWithoutTables: whoever moves to a new database sees what
// would come there before anything is made in it.
func TestImportIsTriedOnADatabaseWithoutTables(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"SQLite": func(testing.TB) string { return "" }, "PostgreSQL": storetest.PostgresURL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, database(t))
			tries := app.SeedImport{Dry: true, From: w.otherProgram(moved("https://example.test/shop") + `
				INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, ai_assistant_type)
				VALUES ('20000000-0000-4000-8000-000000000003', 'slack', 'C034EF5GH:1700000000.000100', 'openai');`)}
			for range 2 { // the first one has made none either
				printed, err := w.imports(tries)
				if err != nil || !strings.Contains(printed, "dry run: nothing was written") || !strings.Contains(printed, "3 codebases") || !strings.Contains(printed, "nobody can reach because of their ID") ||
					!strings.Contains(printed, "(1):\n  slack/C034EF5GH:1700000000.000100 is not a Slack conversation") {
					t.Fatalf("the dry run says %q, %v", printed, err)
				}
			}
		})
	}
}

func TestImportThenGoOnInTheImportedConversation(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		repo := map[string]string{"src/AGENTS.md": "Prices are in cents.\n"}
		maps.Copy(repo, planningRepo)
		server, url := w.withRepository(repo)
		q := app.SeedImport{From: w.otherProgram(moved(url))}
		w.start().shutdown() // the schema is there, and who may talk

		q.Dry = true
		dry, err := w.imports(q)
		if err != nil || !strings.Contains(dry, "would import 3 codebases and 2 conversations with 2 sessions") || !strings.Contains(dry, "/other/machine/shop/src: src in shop") {
			t.Fatalf("dry run = %v\n%s", err, dry)
		}
		if got := w.rows("SELECT name FROM remote_agent_codebases"); len(got) != 0 {
			t.Fatalf("a dry run stored %q", got)
		}
		q.Dry = false
		for _, want := range []string{"imported 3 codebases and 2 conversations with 2 sessions; 0 already existed", "imported 0 codebases and 0 conversations with 0 sessions; 2 already existed"} {
			if done, err := w.imports(q); err != nil || !strings.Contains(done, want) {
				t.Fatalf("import = %v, want %q\n%s", err, want, done)
			}
		}

		w.start()
		t.Log("the folder is missing: the first message asks, waits, and goes on once it is cloned")
		w.says(ann, "what does it cost?")
		w.seesText(ann, "a-1", "Clone "+url+"?", "shop is not on this machine", "/other/machine/shop")
		w.says(bob, "/status")
		w.seesText(bob, "repository:", "shop again")
		if n := len(server.Requests()); n != 0 {
			t.Fatalf("the git server was asked %d times before somebody said yes", n)
		}
		w.restart()
		w.says(ann, "/approve a-1")
		w.seesText(ann, "echo: what does it cost?")
		system := w.ai.Requests()[len(w.ai.Requests())-1]
		if text := string(system.Body); !strings.Contains(text, "Prices are in cents.") {
			t.Errorf("the turn does not work in the folder src: %.300s", text)
		}
		w.says(ann, "and now?")
		w.seesText(ann, "echo: and now? [3 messages]")

		t.Log("nobody is asked twice: the other codebase of the repository is here, too")
		w.says(bob, "hello")
		w.seesText(bob, "echo: hello [1 messages]")
		if got := w.rows("SELECT count(*) FROM approvals"); fmt.Sprint(got) != "[1]" {
			t.Errorf("there are %v questions", got)
		}
		got := w.rows("SELECT name, default_cwd FROM remote_agent_codebases ORDER BY name")
		clone := filepath.Join(w.env["WORKSPACE_PATH"], strings.ReplaceAll(strings.TrimPrefix(url, "http://"), ":", "+"))
		if want := "[papers | /other/machine/papers shop | " + clone + " shop again | " + clone + "]"; fmt.Sprint(got) != want {
			t.Errorf("codebases are %v, want %s", got, want)
		}

		t.Log("the plan that the other program has made ends its session when it is carried out")
		w.ai.Enqueue(openai.Text("It is done."))
		w.says(ann, "/command-invoke execute")
		w.seesText(ann, "It is done.")
		w.settles()
		if roles, _ := w.last(); roles != "user" {
			t.Errorf("executing sees earlier messages: %s", roles)
		}

		t.Log("where nothing can be cloned it says what to do")
		w.says(bob, "/repo papers")
		w.seesText(bob, "This conversation works on papers")
		w.says(bob, "what is in there?")
		w.seesText(bob, "papers is not on this machine", "/other/machine/papers", "its repository is not known", "bot repo add FOLDER", "/clone <url>")
		w.says(bob, "/clone "+url)
		w.seesText(bob, "Already cloned; linked to")
		w.says(bob, "again")
		w.seesText(bob, "echo: again [1 messages]")
	})
}

func TestImportClonesAtOnceAndMerges(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		q := app.SeedImport{From: w.otherProgram(moved(url)), Clone: true, Merge: true}
		w.start().shutdown()
		for range 2 {
			done, err := w.imports(q)
			if err == nil || !strings.Contains(err.Error(), "not cloned: papers") {
				t.Fatalf("a codebase that cannot be cloned: %v", err)
			}
			if !strings.Contains(done, "merged: 1 codebase") {
				t.Errorf("the import says\n%s", done)
			}
		}
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		w.says(bob, "/getcwd")
		w.seesText(bob, "shop, folder .")
		w.says(bob, "/commands")
		w.seesText(bob, "/prime")
	})
}

func TestImportedRepositoryIsNotClonedWithoutAYes(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		server, url := w.withRepository(webRepo)
		w.start().shutdown()
		if _, err := w.imports(app.SeedImport{From: w.otherProgram(moved(url))}); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "a-1", "Clone")
		w.says(ann, "/deny a-1")
		w.seesText(ann, "was not cloned", "/clone "+url+" clones it later")
		w.says(ann, "/diff")
		w.seesText(ann, "✖ shop is not on this machine", "Use /clone "+url+" to get it")
		w.says(bob, "hello")
		w.seesText(bob, "a-2", "Clone")
		w.says(bob, "/stop")
		w.seesText(bob, "1 queued message was dropped")
		w.seesText(bob, "The turn ended; not run")
		w.settles()
		if got := w.rows("SELECT state FROM approvals ORDER BY number"); fmt.Sprint(got) != "[denied canceled]" {
			t.Errorf("the questions are %v", got)
		}
		if n := len(server.Requests()); n != 0 {
			t.Errorf("the git server was asked %d times", n)
		}
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned shop.")
		w.says(ann, "and now?")
		w.seesText(ann, "echo: and now? [1 messages]")
	})
}

func TestImportedConversationOfAnAssistantThatIsNotHere(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		w.start().shutdown()
		q := app.SeedImport{From: w.otherProgram(strings.ReplaceAll(moved(url), "'openai'", "'claude'")), Clone: true, Skip: true}
		done, err := w.imports(q)
		if err == nil || !strings.Contains(done, "claude: 3 codebases, 2 conversations, 2 sessions") {
			t.Fatalf("import = %v\n%s", err, done)
		}
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "belongs to the assistant", "claude", "/handoff")
		w.settles()
		w.says(ann, "/handoff openai")
		w.seesText(ann, "openai now answers here")
		w.says(ann, "hello again")
		w.seesText(ann, "hello again [1 messages]")
		w.settles()
		if got := w.rows("SELECT cwd FROM remote_agent_conversations WHERE platform_conversation_id = '42'"); fmt.Sprint(got) != "[src]" {
			t.Errorf("the conversation works in %v", got)
		}
	})
}

// An earlier version stored addresses and folders as the other program had them.
func TestConversationsOfAnEarlierImportGoOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		w.start().shutdown()
		if _, err := w.imports(app.SeedImport{From: w.otherProgram(moved(url)), Merge: true}); err != nil {
			t.Fatal(err)
		}
		w.change("UPDATE remote_agent_codebases SET repository_url = repository_url || '.git' WHERE repository_url <> ''")
		w.change("UPDATE remote_agent_conversations SET cwd = '/other/machine/shop/src' WHERE platform_conversation_id = '42'")
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "a-1", "Clone "+url+"?")
		w.says(ann, "/approve a-1")
		w.seesText(ann, "echo: hello [1 messages]")
		w.says(ann, "/getcwd")
		w.seesText(ann, "shop, folder src")
		if got := w.rows("SELECT count(*) FROM remote_agent_codebases"); fmt.Sprint(got) != "[2]" {
			t.Errorf("there are %v codebases, want those 2 that were imported", got)
		}
		w.settles()
		w.shutdown()
		w.change("UPDATE remote_agent_conversations SET cwd = '/elsewhere' WHERE platform_conversation_id = '42'")
		w.start()
		w.says(ann, "and now?")
		w.seesText(ann, "✖ This conversation's folder /elsewhere is not in shop. Use /setcwd . for the top folder")
		w.says(ann, "/setcwd .")
		w.seesText(ann, "Working in .")
		w.says(ann, "once more")
		w.seesText(ann, "echo: once more")
	})
}
