package main

import (
	"bytes"
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
}
