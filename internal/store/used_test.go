//nolint:thelper // each runs tests, not helpers
package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// What few have is found behind the newest sessions, page by page, and what many have
// among them.
func TestRareSessionsAreFound(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"SQLite", "Postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const all = 2000 // more than are looked at one by one
			b := bundle{storetest.Used(t, kind, all)}
			list := func(f store.SessionFilter) (numbers []string) {
				t.Helper()
				for {
					var page []store.SessionRow
					b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
						page, err = tx.Lists().Sessions(ctx, f)
						return err
					})
					for _, row := range page {
						numbers, f.Before = append(numbers, strings.TrimLeft(row.ID[24:], "0")), row.ID
					}
					if len(page) < f.Limit {
						return numbers
					}
				}
			}
			every := func(step, rest int) (numbers []string) {
				for i := all; i > 0; i-- {
					if i%step == rest {
						numbers = append(numbers, fmt.Sprint(i))
					}
				}
				return numbers
			}
			person := store.Viewer{Platform: "github", ID: "99"}
			for name, c := range map[string]struct {
				f    store.SessionFilter
				want []string
			}{
				"platform": {store.SessionFilter{Platform: "web"}, every(100, 7)},
				"nothing":  {store.SessionFilter{Platform: "none"}, nil},
				"viewer":   {store.SessionFilter{Viewer: person}, every(100, 99)},
				"both":     {store.SessionFilter{Viewer: person, Platform: "github", Assistant: "anthropic"}, every(300, 99)},
				"common":   {store.SessionFilter{Platform: "github"}, every(10, 9)},
				"another":  {store.SessionFilter{Viewer: person, Person: store.Viewer{Platform: "slack", ID: "98"}}, nil},
			} {
				c.f.Limit = 7
				if got := list(c.f); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: %v, want %v", name, got, c.want)
				}
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				few, err := tx.Pages().FewWrittenIn(ctx, 5, store.Viewer{}, person)
				if err == nil && fmt.Sprint(few) != fmt.Sprint([]string{storetest.UsedID(1, 99)}) {
					t.Errorf("written in %v", few)
				}
				many, anybody := []string{}, []string{}
				if err == nil {
					many, err = tx.Pages().FewWrittenIn(ctx, 5, store.Viewer{Platform: "telegram", ID: "43"})
				}
				if err == nil {
					anybody, err = tx.Pages().FewWrittenIn(ctx, 5, store.Viewer{})
				}
				if many != nil || anybody != nil {
					t.Errorf("%v and %v are few", many, anybody)
				}
				return err
			})
		})
	}
}

// Of a tool's long result the beginning is read, wherever it is cut.
func TestLongResultsAreCut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for i, piece := range []string{"é\\\"\n", "\\", "\x01", "<a>", "plain", "🙂"} {
			for shift := range 7 {
				s := b.session(t, b.conversation(t, fmt.Sprint(i, "-", shift)).ID)
				long := strings.Repeat("x", shift) + strings.Repeat(piece, 300_000/len(piece))
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Messages().AppendMessages(ctx, s.ID, "", messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{
						messages.ToolResult{CallID: "a", Name: "bash", Content: long, IsError: true}, messages.ToolResult{CallID: "b", Name: "bash", Content: long}, messages.ToolResult{CallID: "c", Content: "short"}}})
					if err != nil {
						return err
					}
					if err := store.Exec(ctx, tx, `INSERT INTO agent_tool_calls (session_id, tool_call_id, tool_name, request, status, created_at) VALUES ($1, 'a', 'bash', '{}', 'failed', 1)`, s.ID); err != nil {
						return err
					}
					list, err := tx.Pages().TranscriptPage(ctx, s.ID, 0, 10)
					if err != nil {
						return err
					}
					got := list[0].Blocks
					first, second := got[0].(messages.ToolResult), got[1].(messages.ToolResult)
					if begin, marked := strings.CutSuffix(first.Content, " …"); !marked || len(begin) < 10_000 || !strings.HasPrefix(long, begin) {
						t.Errorf("%q: %d bytes, ends in %q", piece, len(begin), begin[max(0, len(begin)-10):])
					}
					if !first.IsError || second.IsError || second.Content != first.Content || first.CallID != "a" || got[2].(messages.ToolResult).Content != "short" {
						t.Errorf("%q: %v %v %q", piece, first.IsError, second.IsError, first.CallID)
					}
					return nil
				})
			}
		}
	})
}
