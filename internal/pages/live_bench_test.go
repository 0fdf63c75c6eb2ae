//go:build unix

package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// reader is a page that asks for its content after each event, as the script does.
type reader struct {
	b      *browser
	target string
	head   http.Header
	asked  int
}

func (r *reader) Header() http.Header { return r.head }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Flush()              {}

func (r *reader) Write(data []byte) (int, error) {
	if strings.Contains(string(data), "event:") && r.target != "" {
		r.asked++
		r.b.send("GET", r.target, nil)
	}
	return len(data), nil
}

// BenchmarkOpenPages measures what 200 open pages cost while 20 turns a second, of four
// transactions each, are stored: part of a core besides the turns, and how long a
// transaction takes.
func BenchmarkOpenPages(b *testing.B) {
	for _, kind := range []string{"none", "events", "sessions", "overview"} {
		b.Run(kind, func(b *testing.B) {
			s := storetest.SQLite(b)(b)
			w := newWorld(b, s, func(c *pages.Config) {
				c.Changes = live.NewHub(live.Limits{Total: 200, PerOwner: 200})
				c.PublicURL = ""
			})
			var convs []sessions.Conversation
			var rows []string
			for i := range 200 {
				conv := w.said(fmt.Sprint("chat", i), fmt.Sprint("first", i), "42")
				w.do(func(ctx context.Context, tx *store.Tx) error {
					session, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conv.ID, Assistant: "demo", UserPrompt: "hello"})
					if err != nil {
						return err
					}
					for range 10 {
						if _, err := tx.Messages().AppendMessages(ctx, session.ID, "", messages.NewText(messages.RoleUser, "What does it do?"), messages.NewText(messages.RoleAssistant, "It **adds** two numbers.")); err != nil {
							return err
						}
					}
					convs, rows = append(convs, conv), append(rows, session.ID)
					return nil
				})
			}
			ctx, cancel := context.WithCancel(context.Background())
			var open sync.WaitGroup
			readers := make([]*reader, 0, 200)
			for i := range 200 {
				if kind == "none" {
					break
				}
				r := &reader{b: w.as(ann), head: http.Header{}}
				topic := "session/" + rows[i]
				switch kind {
				case "sessions":
					r.target = "/sessions/" + rows[i]
				case "overview":
					topic, r.target = "all", "/"
				}
				r.b.header.Set("Bot-Part", "main")
				readers = append(readers, r)
				q := httptest.NewRequestWithContext(ctx, "GET", "/events?topic="+topic, nil)
				q.Host = r.b.host
				for _, c := range r.b.cookies {
					q.AddCookie(c)
				}
				open.Go(func() { w.pages.ServeHTTP(r, q) })
			}
			var took []time.Duration
			before, began := used(b), time.Now()
			tick := time.NewTicker(50 * time.Millisecond)
			n := 0
			for b.Loop() {
				<-tick.C
				took = append(took, w.turns(convs[n%len(convs)], rows[n%len(rows)], fmt.Sprint("turn", n))...)
				n++
			}
			cpu, wall := used(b)-before, time.Since(began)
			cancel()
			open.Wait()
			asked := 0
			for _, r := range readers {
				asked += r.asked
			}
			slices.Sort(took)
			b.ReportMetric(100*cpu.Seconds()/wall.Seconds(), "%core")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/commit-p50")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "µs/commit-p95")
			b.ReportMetric(float64(asked)/wall.Seconds(), "pages/s")
		})
	}
}

// turns stores a turn, from what is asked to its end, and returns how long each of its
// transactions took.
func (w *world) turns(conv sessions.Conversation, session, event string) (took []time.Duration) {
	e := &sessions.Entry{ConversationID: conv.ID, In: messages.Inbound{
		Event: messages.EventID(event), Kind: messages.KindMessage, Conversation: conv.Key, Sender: messages.Sender{ID: "42"}, Text: "hello"}}
	for _, step := range []func(ctx context.Context, tx *store.Tx) error{
		func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Inbox().InsertEntry(ctx, e)
			return err
		},
		func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, session, e.ID, messages.NewText(messages.RoleUser, "What does it do?"))
			return err
		},
		func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, session, e.ID, messages.NewText(messages.RoleAssistant, "It **adds** two numbers."))
			return err
		},
		func(ctx context.Context, tx *store.Tx) error {
			return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone)})
		},
	} {
		at := time.Now()
		w.do(step)
		took = append(took, time.Since(at))
	}
	return took
}

// used is how long the process has kept a core busy.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
