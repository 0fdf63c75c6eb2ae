package main

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A damaged file is blamed on neither DATA_DIR nor the disk, by every command.
func TestDamagedDatabaseIsExitCodeTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "bot.db")
	for _, args := range [][]string{{"serve", "--no-console"}, {"migrate", "up"}, {"sessions", "list"}} {
		if err := os.WriteFile(path, []byte(strings.Repeat("no header of a database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := run(t.Context(), args, process{
			environ: []string{"DATA_DIR=" + dir, "LISTEN_ADDR=127.0.0.1:0"}, stdin: strings.NewReader(""), stdout: &out, stderr: &out,
		})
		if code != exitUsage || !strings.Contains(out.String(), "damaged; restore the newest backup with `bot backup restore") ||
			!strings.Contains(out.String(), "or salvage with `bot salvage`, which copies what can be read") || strings.Contains(out.String(), "disk is not full") {
			t.Errorf("%v: exit code %d: %s", args, code, out.String())
		}
	}
}

func TestSalvageFromTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "bot.db")
	bot := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		code := run(t.Context(), args, process{environ: []string{"DATA_DIR=" + dir}, stdin: strings.NewReader(""), stdout: &out, stderr: &out})
		if code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, out.String())
		}
		return out.String()
	}
	bot(exitOK, "migrate", "up")
	bot(exitOK, "owner", "add", "telegram/42")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(file, strings.Repeat("?", 100))
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	bot(exitUsage, "owner", "list")
	out := bot(exitOK, "salvage")
	if !strings.Contains(out, "the header of "+path+" was destroyed and rebuilt") || !strings.Contains(out, "lost 0;") || !strings.Contains(out, "bot.salvaged.db") {
		t.Errorf("it says %s", out)
	}
	if out := bot(exitFailed, "salvage"); !strings.Contains(out, "already exists") {
		t.Errorf("again it says %s", out)
	}
	if err := os.Rename(filepath.Join(dir, "bot.salvaged.db"), path); err != nil {
		t.Fatal(err)
	}
	if out := bot(exitOK, "owner", "list"); !strings.Contains(out, "telegram/42") {
		t.Errorf("the owners are %s", out)
	}
	if out := bot(exitOK, "audit", "verify"); !strings.Contains(out, "sound: 2 rows") || !strings.Contains(out, "row 2: the database was damaged and salvaged at ") {
		t.Errorf("of the audit log it says %s", out)
	}
}

// TestAnExportNamesWhatIsDamaged has a value that SQLite takes for sound text: all else can be
// moved away, and whoever does it knows what was left out.
func TestAnExportNamesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	file := filepath.Join(from, "export.jsonl")
	bot := func(dir string, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		code := run(t.Context(), args, process{environ: []string{"DATA_DIR=" + dir}, stdin: strings.NewReader(""), stdout: &out, stderr: &out})
		if code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, out.String())
		}
		return out.String()
	}
	bot(from, "migrate", "up")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(from, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	const chat, event = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"
	for _, statement := range []string{
		`PRAGMA ignore_check_constraints = ON`,
		`INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, settings) VALUES ('` + chat + `', 'telegram', '42', '{"mo')`,
		`INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, state, data, accepted_ms) VALUES ('` + event + `', 'telegram', '1', '` + chat + `', 1, 'done', '{"text":"hel', 1)`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out := bot(from, "export", "-o", file)
	for _, want := range []string{"settings of conversation " + chat, "data of entry " + event + ", conversation " + chat} {
		if !strings.Contains(out, want) {
			t.Errorf("it says %q, want %q", out, want)
		}
	}
	bot(to, "migrate", "up")
	if out := bot(to, "import", file); !strings.Contains(out, "imported 1 conversation with 2 rows") {
		t.Errorf("the import says %s", out)
	}
}
