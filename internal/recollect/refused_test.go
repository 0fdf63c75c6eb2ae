package recollect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/embed"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/recollect"
	"remote-agent/internal/waittest"
)

// embeds serves an embeddings API that answers each request with a status; 200 is with the
// vectors of memorytest.
func embeds(t *testing.T, status func(texts []string) int) *embed.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		if code := status(req.Input); code != http.StatusOK {
			w.WriteHeader(code)
			return
		}
		data := make([]map[string]any, len(req.Input))
		for i, text := range req.Input {
			data[i] = map[string]any{"index": i, "embedding": memorytest.Vector(text)}
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
			t.Error(err)
		}
	}))
	client, err := embed.New(embed.Config{BaseURL: server.URL, Model: memorytest.Model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

// logged gets the lines of a log.
type logged chan string

func (l logged) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// bare lists what the model has neither embedded nor refused.
func bare(t *testing.T, db recollect.Storage, model string) (texts []string) {
	t.Helper()
	err := db.InRead(t.Context(), func(tx recollect.Tx) error {
		list, err := tx.BareMemories(t.Context(), model, 1000, time.Now())
		texts = nil
		for _, m := range list {
			texts = append(texts, m.Text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// working has the background work until done, which is asked again and again.
func (d *desk) working(what string, done func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { d.Run(ctx) })
	defer ended.Wait()
	defer cancel()
	waittest.Until(d.t, what, done)
}

// A text that the embeddings API refuses holds no others up, is not sent again until the
// model changes, and is found by its words.
func TestARefusedTextHoldsNoOthersUp(t *testing.T) {
	t.Parallel()
	var db recollect.Storage
	d := setup(t, func(c *recollect.Config) { db = c.Storage }) // which has no embeddings
	d.knows("ann", "a poem that is too long")
	for i := range 70 { // more than one request asks for
		d.knows("ann", fmt.Sprintf("topic%d matters", i))
	}
	tooLong := func(text string) bool { return strings.Contains(text, "poem") }
	d = setup(t, func(c *recollect.Config) {
		c.Storage, c.Patience = db, time.Minute
		c.Embedder = embeds(t, func(texts []string) int {
			if slices.ContainsFunc(texts, tooLong) {
				return http.StatusBadRequest
			}
			return http.StatusOK
		})
	})
	d.working("everything else is embedded", func() bool { return len(bare(t, db, memorytest.Model)) == 0 })
	if got := d.recalls("ann", "a poem?"); !strings.Contains(got, "too long") { // the question is refused, too
		t.Errorf("recalled %q", got)
	}
	err := db.InRead(t.Context(), func(tx recollect.Tx) error {
		for text, want := range map[string]string{"poem": "a poem that is too long", "topic69": "topic69 matters"} {
			found, err := tx.Recall(t.Context(), memory.Query{
				Scope: memory.Scope{Person: "test/ann"}, Text: text, Embedding: memorytest.Embedding(text), Limit: 5, Now: time.Now(),
			})
			if err != nil || !slices.ContainsFunc(found, func(m memory.Match) bool { return m.Text == want }) {
				t.Errorf("%q finds %+v, %v", text, found, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := bare(t, db, "another model"); len(got) != 71 {
		t.Errorf("another model is asked for %d texts, want all 71", len(got))
	}
}

// What is no word about a text marks nothing: all is asked for again.
func TestAnAPIThatFailsRefusesNoText(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests, http.StatusBadGateway} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var db recollect.Storage
			d := setup(t, func(c *recollect.Config) { db = c.Storage })
			for i := range 3 {
				d.knows("ann", fmt.Sprintf("topic%d matters", i))
			}
			gaveUp := make(logged, 100)
			d = setup(t, func(c *recollect.Config) {
				c.Storage, c.Log = db, slog.New(slog.NewTextHandler(gaveUp, &slog.HandlerOptions{Level: slog.LevelWarn}))
				c.Embedder = embeds(t, func([]string) int { return code })
			})
			d.working("the API failed", func() bool { return len(gaveUp) > 0 })
			if got := <-gaveUp; !strings.Contains(got, "could not embed memories") {
				t.Errorf("logged %q", got)
			}
			if got := bare(t, db, memorytest.Model); len(got) != 3 {
				t.Errorf("to be embedded are %q, want all 3", got)
			}
		})
	}
}
