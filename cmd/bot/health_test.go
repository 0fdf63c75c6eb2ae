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
			!strings.Contains(out.String(), "salvage with `bot salvage`") || strings.Contains(out.String(), "disk is not full") {
			t.Errorf("%v: exit code %d: %s", args, code, out.String())
		}
	}
}
