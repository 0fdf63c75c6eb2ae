package backup_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/export"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/transcript"
)

// BenchmarkPeakMemory reports by how much the process grows at most while a
// database of 10,000 and of 100,000 messages of 1 KiB, all in one session, is
// backed up, exported, shown, listed and imported. The figures of the two have to
// be about the same: nothing is collected in memory. The work of pg_dump is not in
// them. Run it once: -benchtime 1x.
func BenchmarkPeakMemory(b *testing.B) {
	for _, dialect := range []string{"SQLite", "Postgres"} {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", dialect, n), func(b *testing.B) {
				w := world{dir: b.TempDir()}
				o := store.Options{DataDir: w.dir, Log: storetest.Log(b), Exclusive: true}
				if dialect == "Postgres" {
					w.url = storetest.PostgresURL(b)
					o.URL = w.url
				}
				w.store = opened(b, o)
				w.fillMessages(b, n)
				w.measure(b, dialect)
			})
		}
	}
}

func opened(b *testing.B, o store.Options) *store.Store {
	b.Helper()
	s := storetest.Open(b, o)
	if _, err := s.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

func (w *world) fillMessages(b *testing.B, n int) {
	b.Helper()
	text := strings.Repeat("sixteen letters ", 64)
	for i := 0; i < n; i += 500 {
		err := w.store.InTx(b.Context(), func(tx *store.Tx) error {
			if w.session == "" {
				c, _, err := tx.Conversations().GetOrCreateConversation(b.Context(), messages.ConversationKey{Platform: "test", ID: "1"}, "demo")
				if err != nil {
					return err
				}
				s, err := tx.Sessions().CreateSession(b.Context(), sessions.NewSession{ConversationID: c.ID, Assistant: "demo"})
				if err != nil {
					return err
				}
				w.session = s.ID
			}
			batch := make([]messages.Message, 500)
			for k := range batch {
				batch[k] = messages.NewText(messages.RoleUser, text)
			}
			_, err := tx.Messages().AppendMessages(b.Context(), w.session, "", batch...)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func (w *world) measure(b *testing.B, dialect string) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "export.jsonl")
	steps := []struct {
		name string
		run  func(ctx context.Context) error
	}{
		{"backup", func(ctx context.Context) error {
			_, _, err := backup.Create(ctx, w.source(), filepath.Join(b.TempDir(), "backups"), time.Now())
			return err
		}},
		{"jsonl", func(ctx context.Context) error {
			out, err := os.Create(file)
			if err != nil {
				return err
			}
			defer out.Close() //nolint:errcheck // the import reads it
			_, err = export.JSONL(ctx, w.store, out, export.Options{At: time.Now()})
			return err
		}},
		{"transcript", func(ctx context.Context) error {
			return transcript.Write(ctx, w.store, io.Discard, w.session, transcript.Options{Whole: true})
		}},
		{"page", func(ctx context.Context) error {
			return w.store.InRead(ctx, func(tx *store.Tx) error {
				_, err := tx.Search().ListMessages(ctx, store.MessageFilter{Desc: true, Limit: 50})
				return err
			})
		}},
	}
	if dialect == "SQLite" {
		steps = append(steps, struct {
			name string
			run  func(ctx context.Context) error
		}{"sql", func(ctx context.Context) error { return w.store.Dump(ctx, io.Discard) }})
	}
	for _, step := range steps {
		b.ReportMetric(peak(b, step.run), step.name+"-MB")
	}
	to := storetest.SQLite(b)(b)
	b.ReportMetric(peak(b, func(ctx context.Context) error {
		in, err := os.Open(file) //nolint:gosec // made above
		if err != nil {
			return err
		}
		defer in.Close() //nolint:errcheck // only read
		_, err = export.Import(ctx, to, in)
		return err
	}), "import-MB")
	b.ReportMetric(0, "ns/op")
}

// peak returns by how many MB the resident memory of the process grew at most.
func peak(b *testing.B, run func(ctx context.Context) error) float64 {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		b.Skipf("the peak cannot be reset here: %v", err)
	}
	before := resident(b, "VmRSS:")
	if err := run(b.Context()); err != nil {
		b.Fatal(err)
	}
	return max(0, resident(b, "VmHWM:")-before)
}

func resident(b *testing.B, name string) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc here")
	}
	_, rest, _ := strings.Cut(string(status), name)
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) / 1024
}
