package journey_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/memory/memorytest"
)

// BenchmarkTurnWithMemory measures a turn from the message to the visible answer
// of a model that answers at once: without memory, with 50 memories and an
// embeddings API that answers at once, with one that never answers, and with
// learning. Compare the medians.
func BenchmarkTurnWithMemory(b *testing.B) {
	vectors := func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &asked)
		data := make([]map[string]any, len(asked.Input))
		for i, text := range asked.Input {
			data[i] = map[string]any{"index": i, "embedding": memorytest.Vector(text)}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}
	silence := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	for _, bb := range []struct {
		name string
		api  http.HandlerFunc
		env  map[string]string
	}{
		{"off", nil, map[string]string{"MEMORY": "off"}},
		{"words", nil, nil},
		{"embeddings at once", vectors, nil},
		{"embeddings that hang", silence, nil},
		{"learning", vectors, map[string]string{"MEMORY_LEARNING": "on"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWorld(b, "").with(bb.env)
			w.level = slog.LevelError
			if bb.api != nil {
				api := httptest.NewServer(bb.api)
				b.Cleanup(api.Close)
				b.Cleanup(w.shutdown) // before the API, whose handlers wait for the bot
				w.with(map[string]string{"EMBEDDING_BASE_URL": api.URL, "EMBEDDING_MODEL": "tiny"})
			}
			w.ai.Script(func(r openai.Request) openai.Response {
				if teaches(r) {
					return openai.Text(`{"facts":[],"episodes":[]}`)
				}
				text := r.LastUserText()
				return openai.Text("answered" + text[strings.LastIndexByte(text, ' '):])
			})
			w.start()
			if bb.env["MEMORY"] != "off" {
				for i := range 50 {
					w.says(ann, fmt.Sprintf("/remember I know the thing%d by heart", i))
					w.seesText(ann, fmt.Sprintf("Saved as memory %d.", i+1))
				}
			}
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				i := len(took)
				begin := time.Now()
				w.says(ann, fmt.Sprintf("what is it that I know of thing%d, my number %d", i%50, i))
				w.seesText(ann, fmt.Sprintf("answered %d", i))
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
