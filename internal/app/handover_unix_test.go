//go:build unix

package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

// TestWhatWasSavedIsSaidThoughRootCannotGiveItAway: the file is there and can be used, so
// people read what was lost, and that it is root's.
func TestWhatWasSavedIsSaidThoughRootCannotGiveItAway(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := t.TempDir()
	cfg := config.Config{DataDir: dir, Database: config.Database{Driver: config.DriverSQLite, Path: filepath.Join(dir, "bot.db")}}
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), store.Options{DataDir: dir, Log: log, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	to := filepath.Join(dir, "salvaged\xff.db") // whose name no fs.FS takes
	err = Salvage(t.Context(), cfg, Env{Stdout: &out, Stderr: io.Discard, Log: log}, to)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err), "belongs to root") {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "copied") || !strings.Contains(out.String(), "to use it: move") {
		t.Errorf("nothing says what was saved: %q", out.String())
	}
}
