package journey_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
)

// operator runs commands on a world's data as an operator does, beside the bot
// or without it, and reads what they print.
func (w *world) operator(what string, run func(env app.Env) error) string {
	w.t.Helper()
	var out bytes.Buffer
	env := app.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Version: "test", Lookup: os.LookupEnv,
		Log: slog.New(slog.NewTextHandler(&logWriter{t: w.t}, nil)),
	}
	if err := run(env); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	return out.String()
}

// shown returns the transcripts of all sessions, by id.
func (w *world) shown() map[string]string {
	w.t.Helper()
	cfg := w.config()
	listed := w.operator("list sessions", func(env app.Env) error {
		return app.ListSessions(w.t.Context(), cfg, env, app.SessionQuery{Limit: 50})
	})
	all := make(map[string]string)
	for line := range strings.Lines(listed) {
		id, _, _ := strings.Cut(line, " ")
		all[id] = w.operator("show "+id, func(env app.Env) error {
			return app.ShowSession(w.t.Context(), cfg, env, env.Stdout, id, app.ShowOptions{Whole: true})
		})
	}
	return all
}

// TestBackupWhileTurnsRun makes a backup while one person's answer is being
// written, restores it elsewhere, and reads the same sessions there; nobody is
// answered twice, and who waited is told once.
func TestBackupWhileTurnsRun(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"BACKUP_DIR": filepath.Join(t.TempDir(), "backups")}).start()
		for i := range 3 {
			w.ai.Enqueue(openai.Text(fmt.Sprint("answer number ", i)))
			w.says(ann, fmt.Sprint("question number ", i))
			w.seesText(ann, fmt.Sprint("answer number ", i))
		}
		partial := w.hang()
		w.says(bob, "a question that is never answered")
		w.seesText(bob, partial)

		cfg := w.config()
		printed := w.operator("backup create", func(env app.Env) error { return app.BackupCreate(t.Context(), cfg, env) })
		dir, _, _ := strings.Cut(printed, " ")
		before := w.shown()
		if len(before) != 2 {
			t.Fatalf("%d sessions, want 2: %v", len(before), before)
		}
		found := w.operator("search", func(env app.Env) error {
			return app.SearchSessions(t.Context(), cfg, env, app.SessionQuery{Words: "question NUMBER 1", Limit: 20})
		})
		if strings.Count(found, "\n") != 1 || !strings.Contains(found, "question number 1") {
			t.Errorf("search beside the running bot found:\n%s", found)
		}
		w.operator("backup verify", func(env app.Env) error { return app.BackupVerify(t.Context(), cfg, env, dir) })
		w.person(app.AllowPerson, "telegram/99") // after the backup: only the replaced database knows
		w.shutdown()

		elsewhere := w.replica()
		if w.env["DATABASE_URL"] != "" {
			elsewhere.env["DATABASE_URL"] = storetest.PostgresURL(t)
		}
		restored := elsewhere.config()
		replaced := w.env["DATABASE_URL"]
		if replaced == "" {
			replaced = filepath.Join(w.env["DATA_DIR"], "bot.db")
		}
		said := elsewhere.operator("restore", func(env app.Env) error { return app.BackupRestore(t.Context(), restored, env, dir, replaced) })
		if !strings.Contains(said, "kept 1 audit entry of") {
			t.Errorf("restore said %q", said)
		}
		audit := elsewhere.operator("audit list", func(env app.Env) error {
			return app.ListAudit(t.Context(), restored, env, app.AuditQuery{Since: "all", Limit: 10})
		})
		if !strings.Contains(audit, "cli  person.allow  telegram/99") || !strings.Contains(audit, "cli  backup.restore") {
			t.Errorf("the audit log of what was restored:\n%s", audit)
		}
		checked := elsewhere.operator("audit verify", func(env app.Env) error { return app.VerifyAudit(t.Context(), restored, env, "") })
		if !strings.HasPrefix(checked, "sound: ") || !strings.Contains(checked, "a backup was restored at") {
			t.Errorf("audit verify: %s", checked)
		}
		if !strings.Contains(said, "closed 1 queued message and ") || !strings.Contains(said, "1 conversation gets one notice") {
			t.Errorf("restore said %q", said)
		}
		for id, text := range before { // the turn that was open has ended with the copy
			before[id] = strings.Replace(text, "- Status: running, active", "- Status: completed, active", 1)
		}
		if diff := cmp.Diff(before, elsewhere.shown()); diff != "" {
			t.Errorf("sessions before and after (-before +restored):\n%s", diff)
		}

		requests := len(w.ai.Requests())
		elsewhere.start()
		elsewhere.seesText(bob, "The bot was restored from a backup", "please send them again")
		w.ai.Enqueue(openai.Text("after the restore"))
		elsewhere.says(ann, "are you there?")
		elsewhere.seesText(ann, "after the restore")
		if got := len(w.ai.Requests()); got != requests+1 {
			t.Errorf("the model was asked %d times after the restore, want once: something old was answered again", got-requests)
		}
		for user, want := range map[int64]map[string]int{
			ann: {"answer number 0": 1, "answer number 1": 1, "answer number 2": 1, "The bot was restored": 0, "after the restore": 1},
			bob: {"The bot was restored": 1},
		} {
			texts := strings.Join(w.tg.Ledger().Chat(user).BotTexts(), "\n")
			for part, times := range want {
				if got := strings.Count(texts, part); got != times {
					t.Errorf("%d has seen %q %d times, want %d:\n%s", user, part, got, times, texts)
				}
			}
		}
	})
}
