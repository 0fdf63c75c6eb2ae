package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCareOfTheDataFromTheCommandLine(t *testing.T) {
	dir, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"DATA_DIR=" + filepath.Join(dir, "data"), "BACKUP_DIR=" + filepath.Join(dir, "backups"), "PATH=" + os.Getenv("PATH")}
	file := filepath.Join(dir, "out.jsonl")
	const nobody = "0198c2d1-7a3b-7c4d-8e5f-0123456789ab"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"sessions list", exitUsage, "There is no database"},
		{"migrate up", exitOK, "applied"},
		{"sessions list", exitOK, ""},
		{"sessions list --conversation telegram/1", exitFailed, "no such conversation"},
		{"sessions show " + nobody, exitFailed, "no such session"},
		{"sessions rm nonsense", exitUsage, "is not the id of a session"},
		{"sessions search ...", exitUsage, "at least one word"},
		{"sessions search word", exitOK, "nothing found"},
		{"sessions search word --before x", exitUsage, "is not a number"},
		{"export -o " + file, exitOK, ""},
		{"export -o " + file, exitUsage, "exists already"},
		{"export --format markdown", exitUsage, "--session"},
		{"export --format sql --redact", exitUsage, "whole database"},
		{"export --format sql", exitOK, "CREATE TABLE remote_agent_sessions"},
		{"export --format csv", exitOK, "id,agent_name,provider"},
		{"import " + file, exitOK, "imported 0 conversations"},
		{"import", exitUsage, "--from"},
		{"import " + file + ".none", exitUsage, "cannot be read"},
		{"import --from " + filepath.Join(dir, "data", "bot.db"), exitOK, "imported 0 codebases"},
		{"memory status", exitOK, "full text, because no embeddings API is set"},
		{"memory status", exitOK, "0 facts, 0 episodes, of 0 people"},
		{"memory status --embedding-base-url=http://127.0.0.1:1/v1 --embedding-model=m", exitOK, "m does not answer"},
		{"retention", exitOK, "Everything is kept"},
		{"backup list", exitOK, "no backups"},
		{"backup create", exitOK, "1 files"},
		{"backup list", exitOK, "sqlite"},
		{"backup verify nothing", exitUsage, "is no backup"},
		{"backup restore " + firstOf(dir), exitUsage, "is no backup"},
	} {
		r := bot(t, environ, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("bot %s: code %d, want %d with %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
	}
	made := firstOf(filepath.Join(dir, "backups"))
	if r := bot(t, environ, "backup", "verify", made); r.code != exitOK || !strings.Contains(r.stdout, "sound: sqlite") {
		t.Errorf("verify: %+v", r)
	}
	if r := bot(t, environ, "backup", "restore", made); r.code == exitOK || !strings.Contains(r.stderr, "a database at") {
		t.Errorf("restore over data: %+v", r)
	}
	elsewhere := append([]string{"DATA_DIR=" + filepath.Join(dir, "elsewhere")}, environ[1:]...)
	if r := bot(t, elsewhere, "backup", "restore", made); r.code != exitOK || !strings.Contains(r.stdout, "nothing is sent again") {
		t.Errorf("restore: %+v", r)
	}
}

// firstOf returns the first entry of a folder.
func firstOf(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return filepath.Join(dir, "none")
	}
	return filepath.Join(dir, entries[0].Name())
}
