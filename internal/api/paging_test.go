//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/api"
	"remote-agent/internal/assistant"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// A page that has room for exactly what is left is the last one.
func TestAFullPageIsTheLastIfNothingFollows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.Spending().AddUsage(ctx, spend.Record{ConversationID: w.conversation.ID, Actor: ann, Assistant: "demo", Model: "m", Usage: assistant.Usage{InputTokens: 1}, At: time.Now()})
		})
		for _, target := range []string{
			"/conversations?", "/sessions?", "/messages?session=" + w.done.ID, "/messages?q=goroutines", "/runs?session=" + w.done.ID,
			"/tool-calls?session=" + w.done.ID, "/memories?person=" + ann, "/agents?", "/usage?by=person",
		} {
			w.clock(w.now.Load().Add(time.Second))
			all, _ := w.get(api.Prefix+target+"&limit=200").at(t, "items").([]any)
			r := w.get(fmt.Sprintf("%s%s&limit=%d", api.Prefix, target, len(all)))
			if got, _ := r.at(t, "items").([]any); len(got) != len(all) || r.at(t, "next_cursor") != nil || r.at(t, "more") == true {
				t.Errorf("%s with a limit of %d has %d rows and says that there are more: %s", target, len(all), len(got), r.body)
			}
		}
	})
}

// A page of a search ends early, too, and misses no message.
func TestPagesOfLongHitsEndEarly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		const many = 20
		var want []any
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i := range many {
				want = append(want, float64(many-i))
				m := messages.NewText(messages.RoleUser, "needle")
				m.Blocks = append(m.Blocks, messages.Thinking{Text: strings.Repeat("x", 400<<10)})
				if _, err := tx.Messages().AppendMessages(ctx, w.busy.ID, "", m); err != nil {
					return err
				}
			}
			return nil
		})
		if n := len(w.get(api.Prefix + "/messages?limit=200&q=needle").body); n > 6<<20 {
			t.Errorf("a page has %d bytes", n)
		}
		if diff := cmp.Diff(want, w.pages("/messages?limit=200&q=needle", "seq")); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// What has expired is not shown any more, and is deleted with the rest.
func TestDeletingMemoriesThatHaveExpired(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().InsertEpisode(ctx, memory.Episode{Scope: memory.Scope{Person: "telegram/77"}, RunID: missingID, Text: "We had tea", Now: time.Now().Add(-2 * memory.EpisodeLife)})
			return err
		})
		for _, want := range []float64{1, 0} {
			if r := w.send(http.MethodDelete, api.Prefix+"/memories?person=telegram/77", w.token); r.at(t, "deleted", "memories") != want {
				t.Errorf("want %v deleted: %s", want, r.body)
			}
		}
	})
}
