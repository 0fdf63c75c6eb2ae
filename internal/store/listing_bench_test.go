package store_test

import (
	"context"
	"fmt"
	"testing"

	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// BenchmarkListing lists a page of 100,000 messages: the first, one from the middle
// and the last, by cursor and by offset, of one session that has them all and of a
// thousand sessions. On PostgreSQL it also calls get_messages_optimized.
func BenchmarkListing(b *testing.B) {
	const messages = 100_000
	for name, open := range map[string]func(testing.TB) func(testing.TB) *store.Store{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		for _, sessions := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/sessions=%d", name, sessions), func(b *testing.B) {
				s := bundle{open(b)(b)}
				thread := s.fillPages(b, sessions, messages/sessions)
				page := func(f store.MessageFilter) (last string, n int) {
					err := s.InRead(b.Context(), func(tx *store.Tx) error {
						list, err := tx.Search().ListMessages(b.Context(), f)
						if n = len(list); n > 0 {
							last = list[n-1].Cursor()
						}
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
					return last, n
				}
				middle, _ := page(store.MessageFilter{ConversationID: thread, Limit: 1, Offset: messages / 2})
				for what, f := range map[string]store.MessageFilter{
					"first":               {ConversationID: thread, Limit: 100},
					"newest":              {ConversationID: thread, Limit: 100, Desc: true},
					"behind_cursor":       {ConversationID: thread, Limit: 100, After: middle},
					"offset_50000":        {ConversationID: thread, Limit: 100, Offset: messages / 2},
					"offset_99900":        {ConversationID: thread, Limit: 100, Offset: messages - 100},
					"newest_offset_99900": {ConversationID: thread, Limit: 100, Offset: messages - 100, Desc: true},
				} {
					b.Run(what, func(b *testing.B) {
						for b.Loop() {
							if _, n := page(f); n != 100 {
								b.Fatalf("%d messages", n)
							}
						}
					})
				}
				if s.Dialect() != "postgres" {
					return
				}
				for what, more := range map[string]string{
					"sql_default": "", "sql_newest": ", true", "sql_offset_50000": ", false, 100, 50000", "sql_offset_99900": ", false, 100, 99900",
				} {
					b.Run(what, func(b *testing.B) {
						for b.Loop() {
							err := s.InRead(b.Context(), func(tx *store.Tx) error {
								rows, err := store.Rows(b.Context(), tx, `SELECT CAST(id AS text), content FROM get_messages_optimized(NULL, '`+thread+`'`+more+`)`, 2)
								if err == nil && len(rows) != 100 {
									b.Fatalf("%d rows", len(rows))
								}
								return err
							})
							if err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			})
		}
	}
}

// fillPages stores sessions of one conversation with as many messages each, and
// returns the conversation.
func (b bundle) fillPages(tb testing.TB, sessions, each int) (conversation string) {
	tb.Helper()
	c := b.conversation(tb, "pages")
	for range sessions {
		s := b.session(tb, c.ID)
		b.do(tb, func(ctx context.Context, tx *store.Tx) error {
			if err := store.Exec(ctx, tx, `UPDATE remote_agent_sessions SET active = false WHERE id = $1`, s.ID); err != nil {
				return err
			}
			series := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2)`
			return store.Exec(ctx, tx, `INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, data_json) `+series+`
				SELECT s.id, CASE i % 3 WHEN 0 THEN 'user' ELSE 'assistant' END, 'some words of a message that is as long as most are, and a few more ' || i,
					1000, i, CASE i % 3 WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' ELSE 'tool_call' END,
					CASE i % 3 WHEN 2 THEN '{"tool_call_id":"c1","name":"bash","arguments":"{}"}' END FROM n, remote_agent_sessions s WHERE s.id = $1`, s.ID, each)
		})
	}
	if err := store.Settle(tb.Context(), b.Store); err != nil {
		tb.Fatal(err)
	}
	return c.ID
}
