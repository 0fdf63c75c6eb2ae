package journey_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/app"
	"remote-agent/internal/backup"
	"remote-agent/internal/emulator/openai"
)

// told returns how many messages of the bot in a chat contain a text.
func (w *world) told(chat int64, text string) (n int) {
	for _, said := range w.tg.Ledger().Chat(chat).BotTexts() {
		if strings.Contains(said, text) {
			n++
		}
	}
	return n
}

// TestOwnerIsToldOfABudgetOnce spends 90 % of the day's tokens: the owner is told in
// their private chat, once, also after another start, and nobody else is. They are told that
// it is over as soon as the budget is raised, while the bot runs.
func TestOwnerIsToldOfABudgetOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		log := &lockedBuffer{}
		w.logs, w.slow = log, time.Minute // it looks every 10 s
		w.with(map[string]string{"TELEGRAM_OWNER_IDS": itoa(ann), "BUDGET_DAY_TOKENS": "10000"})
		w.ai.Enqueue(openai.Text("That was dear.").WithUsage(8000, 1000))
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "That was dear.")
		w.says(bob, "hello")
		w.seesText(bob, "echo: hello")
		w.settles()
		w.restart() // it looks at its start, too
		w.seesText(ann, "⚠", "of today's budget of", "is used")
		w.restart()
		w.says(ann, "are you there?")
		w.seesText(ann, "are you there?")
		w.settles()
		if n := w.told(ann, "of today's budget"); n != 1 {
			t.Errorf("the owner was told %d times", n)
		}
		if n := w.told(bob, "of today's budget"); n != 0 {
			t.Errorf("somebody else was told %d times", n)
		}
		w.reload(map[string]string{"BUDGET_DAY_TOKENS": "1000000"}, log, "changed=BUDGET_DAY_TOKENS")
		w.seesText(ann, "✔ Resolved: the daily budget")
	})
}

// TestOwnerIsToldOfAnOldBackup: the newest backup is 27 hours old, then there is a new one.
// The owner is told of each once, also after another start.
func TestOwnerIsToldOfAnOldBackup(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "backups")
	w := newWorld(t, "").with(map[string]string{"TELEGRAM_OWNER_IDS": itoa(ann), "BACKUP_DIR": folder})
	w.slow = time.Minute // it looks every 10 s
	w.start()
	w.says(ann, "hello")
	w.seesText(ann, "echo: hello")
	cfg := w.config()
	create := func() {
		t.Helper()
		w.operator("backup create", func(env app.Env) error { return app.BackupCreate(t.Context(), cfg, env) })
	}
	create()
	w.shutdown()
	made := olderBackup(t, folder, 27*time.Hour)
	w.start() // it looks at its start, and every 10 s
	w.seesText(ann, "⚠ The newest backup is 27 hours old.")
	w.restart()
	w.says(ann, "are you there?")
	w.seesText(ann, "are you there?")
	w.settles()
	create()
	w.seesText(ann, "✔ Resolved: there is a new backup.")
	if n := w.told(ann, "The newest backup is"); n != 1 {
		t.Errorf("the owner was told %d times of the backup of %v", n, made)
	}
}

// olderBackup makes the only backup of a folder older, and returns when it says it was made.
func olderBackup(t *testing.T, folder string, by time.Duration) time.Time {
	t.Helper()
	list, err := backup.List(folder)
	if err != nil || len(list) != 1 {
		t.Fatalf("the backups are %v (%v)", list, err)
	}
	m := list[0].Manifest
	m.CreatedAt = m.CreatedAt.Add(-by)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(list[0].Dir, "manifest.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(list[0].Dir, filepath.Join(folder, m.CreatedAt.Format("20060102T150405Z"))); err != nil {
		t.Fatal(err)
	}
	return m.CreatedAt
}

// TestOwnerIsToldThatNothingCanBeStored takes the room for any file away and gives it
// back: the owner hears of it although nothing can be recorded, once, and of its end.
func TestOwnerIsToldThatNothingCanBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").with(map[string]string{"TELEGRAM_OWNER_IDS": itoa(ann)})
	w.slow = time.Minute // it looks every 10 s
	w.start()
	w.says(ann, "hello")
	w.seesText(ann, "echo: hello")
	w.shutdown()
	p := runProcess(t, "", w.env)
	w.says(ann, "still there?")
	w.seesText(ann, "still there?")
	p.limitFiles(t, 1)
	w.says(ann, "and now?")
	w.seesText(ann, "⚠ Messages cannot be stored", "The last write failed")
	p.limitFiles(t, unix.RLIM_INFINITY)
	w.seesText(ann, "✔ Resolved: messages can be stored again.")
	w.seesText(ann, "and now?")
	if n := w.told(ann, "Messages cannot be stored"); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
}
