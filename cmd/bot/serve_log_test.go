package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/waittest"
)

// shared is a stream that a program writes and a test reads.
type shared struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// TestServeWritesNothingBesidesItsLog: where the log is JSON, every line is, on both
// streams, and it says what a person would read at the start: the owner's link above all.
func TestServeWritesNothingBesidesItsLog(t *testing.T) {
	t.Parallel()
	for format, structured := range map[string]bool{"json": true, "auto": true, "text": false} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			tg := telegram.New(telegram.Options{})
			if err := tg.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tg.Close)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var stdout, stderr shared
			done := make(chan int, 1)
			go func() {
				done <- run(ctx, []string{"serve", "--no-console", "--pprof-addr", "127.0.0.1:0"}, process{
					environ: []string{
						"DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "LOG_FORMAT=" + format,
						"TELEGRAM_BOT_TOKEN=1000:test", "TELEGRAM_API_URL=" + tg.URL(),
					},
					stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
				})
			}()
			waittest.Until(t, "the owner's link", func() bool { return strings.Contains(stderr.String(), "start=") })
			stop()
			if code := <-done; code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if !structured {
				if !strings.Contains(stderr.String(), "  owner     nobody may talk to the bot on telegram yet.") {
					t.Errorf("a person reads %s", stderr.String())
				}
				return
			}
			for line := range strings.Lines(stdout.String() + stderr.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("no JSON: %s", line)
				}
			}
			for _, want := range []string{`"msg":"nobody may talk to the bot here yet: become its owner within 15 minutes"`, `"msg":"profiles are served"`, "/healthz /readyz /metrics"} {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("the log does not say %s: %s", want, stderr.String())
				}
			}
			if n := strings.Count(stderr.String(), "start="); n != 1 {
				t.Errorf("the owner's link is there %d times", n)
			}
		})
	}
}

// TestLostDatabaseIsNoticed: an empty one is begun with anew, but not without a word where
// there are backups of another.
func TestLostDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	environ := []string{"DATA_DIR=" + data, "LISTEN_ADDR=127.0.0.1:0"}
	command := func(args ...string) {
		t.Helper()
		var out shared
		if code := run(t.Context(), args, process{environ: environ, stdin: strings.NewReader(""), stdout: &out, stderr: &out}); code != exitOK {
			t.Fatalf("%v: %s", args, out.String())
		}
	}
	// serve returns what a service says until it is ready.
	serve := func() string {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var out shared
		done := make(chan int, 1)
		go func() {
			done <- run(ctx, []string{"serve", "--no-console"}, process{environ: environ, stdin: strings.NewReader(""), stdout: &out, stderr: &out})
		}()
		waittest.Until(t, "the start", func() bool { return strings.Contains(out.String(), "github") })
		stop()
		if code := <-done; code != exitOK {
			t.Errorf("exit code %d", code)
		}
		return out.String()
	}
	const lost = "the database is new, but BACKUP_DIR has backups"
	command("migrate", "up")
	command("backup", "create")
	if said := serve(); strings.Contains(said, lost) {
		t.Errorf("a start with data says %s", said)
	}
	if err := os.Truncate(filepath.Join(data, "bot.db"), 0); err != nil {
		t.Fatal(err)
	}
	if said := serve(); !strings.Contains(said, lost) || !strings.Contains(said, "bot backup restore "+firstOf(filepath.Join(data, "backups"))) {
		t.Errorf("a start without what there was says %s", said)
	}
}
