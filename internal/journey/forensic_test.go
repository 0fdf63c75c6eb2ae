package journey_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
)

// newCanary returns a word of letters that is nowhere else. Indexes store of a word
// only what differs from the one before it: its end is what is looked for.
func newCanary() string {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte('a' + rand.IntN(26))
	}
	return string(b)
}

// traces returns the files in which the end of a word is, in any case: those of the
// data directory and of PostgreSQL's, but for its write-ahead log, which is kept
// until the server recycles it, whatever is deleted.
func (w *world) traces(word string) (found []string) {
	w.t.Helper()
	end := []byte(word[len(word)-9:])
	for _, dir := range w.databaseDirs() {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || d.IsDir() && (d.Name() == "pg_wal" || d.Name() == "pg_stat_tmp"):
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			content, err := os.ReadFile(path) //nolint:gosec // of the walk
			if err == nil && bytes.Contains(bytes.ToLower(content), end) {
				found = append(found, path)
			}
			return nil //nolint:nilerr // a file of another test that went meanwhile
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return found
}

// databaseDirs are the data directory and, after a checkpoint, that of this
// database in PostgreSQL.
func (w *world) databaseDirs() []string {
	w.t.Helper()
	dirs := []string{w.env["DATA_DIR"]}
	url := w.env["DATABASE_URL"]
	if url == "" {
		return dirs
	}
	conn, err := pgx.Connect(w.ctx(), url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // only read
	var data, base string
	if _, err := conn.Exec(w.ctx(), "CHECKPOINT"); err != nil {
		w.t.Fatal(err)
	}
	err = conn.QueryRow(w.ctx(), `
		SELECT current_setting('data_directory'), 'base/' || oid FROM pg_database WHERE datname = current_database()`).Scan(&data, &base)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, base)); err != nil {
		w.t.Skipf("the files of the server cannot be read here: %v", err)
	}
	return append(dirs, filepath.Join(data, base))
}

// has and hasNot say where a word is, or that it is nowhere.
func (w *world) has(word, what string) {
	w.t.Helper()
	if len(w.traces(word)) == 0 {
		w.t.Errorf("%s is not in the files before it is deleted: the search cannot find it", what)
	}
}

func (w *world) hasNot(word, what string) {
	w.t.Helper()
	if found := w.traces(word); len(found) > 0 {
		w.t.Errorf("%s is still in %q", what, found)
	}
}

// care runs a command on the data of the stopped bot.
func (w *world) care(run func(ctx context.Context, env app.Env) error) string {
	w.t.Helper()
	var printed lockedBuffer
	if err := run(w.ctx(), app.Env{Stdout: &printed, Stderr: &printed, Log: slog.New(slog.DiscardHandler), Version: "test", Lookup: os.LookupEnv}); err != nil {
		w.t.Fatal(err)
	}
	return printed.String()
}

// scrubbed rewrites PostgreSQL's tables, where a deletion alone leaves bytes in
// pages that are still used. SQLite needs nothing more.
func (w *world) scrubbed() {
	w.t.Helper()
	if w.env["DATABASE_URL"] != "" {
		w.care(func(ctx context.Context, env app.Env) error { return app.Scrub(ctx, w.config(), env) })
	}
}

// TestFinding5DeletingDeletes leaves no byte of what was deleted: of memories
// while the bot runs, then of a session, of a conversation and of a person.
func TestFinding5DeletingDeletes(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		var logged lockedBuffer
		w.logs, w.level = &logged, slog.LevelDebug
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "*"}).start()
		w.ai.Script(func(r openai.Request) openai.Response { // an answer that repeats a memory would keep it
			text := r.LastUserText()
			return openai.Text("heard: " + text[strings.LastIndex(text, "\n")+1:])
		})
		for i := range int64(8) { // so that pages and index segments are shared
			w.says(firstStranger+i, "somebody else says something "+newCanary())
			w.says(ann, "an ordinary message "+newCanary())
		}
		w.says(ann, "the last one")
		w.seesText(ann, "heard: the last one")
		w.settles()

		fact, turn, edited, listed := newCanary(), newCanary(), newCanary(), newCanary()
		w.says(ann, "/remember my word is "+fact)
		w.seesText(ann, "Saved as memory 1")
		w.says(ann, "/remember another one is "+listed)
		w.seesText(ann, "Saved as memory 2")
		w.says(ann, "/memory")
		w.seesText(ann, listed)
		w.settles()
		w.has(fact, "a memory")
		w.says(ann, "/forget all yes")
		w.seesText(ann, "Deleted all 2")
		w.settles()
		w.scrubbed()
		w.hasNot(fact, "a memory that was forgotten while the bot ran")
		w.hasNot(listed, "a memory that was listed and forgotten")

		sent := w.says(ann, "think of "+turn)
		w.seesText(ann, "heard: think of "+turn)
		w.tg.Person(ann).Edits(sent.MessageID, "think of "+edited)
		w.says(ann, "/remember "+fact)
		w.seesText(ann, "Saved as memory 3")
		w.settles()
		w.has(turn, "a message")
		w.shutdown()

		session := w.rows(`SELECT CAST(id AS TEXT) FROM remote_agent_sessions WHERE conversation_id =
			(SELECT id FROM remote_agent_conversations WHERE platform_conversation_id = '42')`)
		if len(session) != 1 {
			t.Fatalf("sessions of Ann: %q", session)
		}
		said := w.care(func(ctx context.Context, env app.Env) error {
			return app.RemoveSession(ctx, w.config(), env, session[0], true)
		})
		if !strings.Contains(said, "may remain: earlier backups") {
			t.Errorf("what may remain is not said: %s", said)
		}
		w.scrubbed()
		w.hasNot(turn, "a message of a removed session")
		w.hasNot(edited, "what a message was changed to")

		w.care(func(ctx context.Context, env app.Env) error {
			return app.ForgetPerson(ctx, w.config(), env, "telegram/42")
		})
		w.scrubbed()
		w.hasNot(fact, "a memory of a forgotten person")

		w.start()
		last := newCanary()
		w.says(ann, "and "+last)
		w.seesText(ann, last)
		w.settles()
		w.shutdown()
		w.has(last, "a message")
		w.care(func(ctx context.Context, env app.Env) error {
			return app.RemoveConversation(ctx, w.config(), env, "telegram/42", true)
		})
		w.scrubbed()
		w.hasNot(last, "a message of a removed conversation")
		for what, word := range map[string]string{"a memory": fact, "a message": turn, "an edit": edited, "the last message": last} {
			if strings.Contains(logged.String(), word) {
				t.Errorf("%s is in the log", what)
			}
		}
		if n := w.rows(`SELECT count(*) FROM remote_agent_conversations`); n[0] != "8" {
			t.Errorf("%s conversations are left, want those of the others", n)
		}
	})
}
