package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/fault"
	"remote-agent/internal/store/storetest"
)

func TestAnArchiveHoldsABackupAndNothingElse(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	dir, m, err := backup.Create(t.Context(), backup.Source{Store: s, Bot: "v1"}, t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stray"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := backup.Archive(t.Context(), &out, dir); err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	want := []string{filepath.Base(dir) + "/bot.db", filepath.Base(dir) + "/manifest.json"}
	if len(m.Files) != 1 || len(names) != 2 || names[0] != want[0] || names[1] != want[1] {
		t.Errorf("the archive has %q, want %q", names, want)
	}

	database, outside := filepath.Join(dir, "bot.db"), filepath.Join(t.TempDir(), "secret")
	err = errors.Join(os.Remove(database), os.WriteFile(outside, []byte("secret"), 0o600), os.Symlink(outside, database))
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := backup.Archive(t.Context(), &out, dir); err == nil || bytes.Contains(out.Bytes(), []byte("secret")) {
		t.Errorf("what a link leads to: %v", err)
	}
	out.Reset()
	if err := backup.Archive(t.Context(), &out, t.TempDir()); !fault.Is(err, fault.Invalid) || out.Len() > 0 {
		t.Errorf("a folder that is no backup: %v, %d bytes", err, out.Len())
	}
	if err := pipe(database); err != nil {
		t.Fatal(err)
	}
	if err := backup.Archive(t.Context(), io.Discard, dir); err == nil {
		t.Error("a pipe was archived")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	if err := s.Snapshot(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	if err := backup.Archive(gone, io.Discard, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("an archive for a browser that left: %v", err)
	}
}
