package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// withMessages returns a store on PostgreSQL with fillListing's messages, those of
// every other session by an agent, and what get_messages_optimized should return:
// ids of rows, by agent ("NULL" or quoted) of the conversation here.
func withMessages(t *testing.T) (b bundle, here sessions.Conversation, want map[string][]string) {
	t.Helper()
	b = bundle{storetest.Postgres(t)(t)}
	number, here, _ := b.fillListing(t)
	agent := b.agent(t, "writer").ID
	want = make(map[string][]string)
	for i := range 7 {
		for id, n := range number {
			if n != i {
				continue
			}
			by := "NULL"
			if n%2 == 1 {
				by = "'" + agent + "'"
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := store.Exec(ctx, tx, `UPDATE remote_agent_sessions SET agent_id = `+by+` WHERE id = $1`, id); err != nil || n == 3 {
					return err
				}
				rows, err := store.Rows(ctx, tx, `SELECT CAST(id AS text) FROM agent_messages WHERE session_id = '`+id+`' ORDER BY seq, part`, 1)
				for _, row := range rows {
					want[by] = append(want[by], "("+row[0]+")")
				}
				return err
			})
		}
	}
	return b, here, want
}

func TestSQLGetMessagesIsInOrder(t *testing.T) {
	t.Parallel()
	b, here, all := withMessages(t)
	for agent, want := range all {
		get := func(more string) []string {
			t.Helper()
			got, err := b.sql(t, `SELECT id FROM get_messages_optimized(`+agent+`, '`+here.ID+`'`+more+`)`)
			if err != nil {
				t.Fatal(err)
			}
			return strings.FieldsFunc(got, func(r rune) bool { return r == '\n' })
		}
		backward := slices.Clone(want)
		slices.Reverse(backward)
		for more, want := range map[string][]string{
			"": want, ", p_order_desc => true": backward, ", p_order_desc => NULL, p_offset => NULL": want,
			", FALSE, 4": want[:4], ", TRUE, 4, 3": backward[3:7], ", FALSE, 0": nil, ", FALSE, NULL, 5": want[5:], ", FALSE, 5, 2000000000": nil,
		} {
			if got := get(more); !slices.Equal(want, got) {
				t.Errorf("%s%s: %v, want %v", agent, more, got, want)
			}
		}
		// Pages have each row once, whatever their size.
		for _, size := range []int{1, 2, 3, 5} {
			for desc, want := range map[bool][]string{false: want, true: backward} {
				var got []string
				for at := 0; at < len(want)+size; at += size {
					got = append(got, get(fmt.Sprintf(", %t, %d, %d", desc, size, at))...)
				}
				if !slices.Equal(want, got) {
					t.Errorf("%s in pages of %d: %v, want %v", agent, size, got, want)
				}
			}
		}
	}
	if len(all) != 2 || len(all["NULL"]) < 15 {
		t.Errorf("messages: %v", all)
	}
}

func TestSQLGetMessagesHasTheRowsOfTheView(t *testing.T) {
	t.Parallel()
	b, here, _ := withMessages(t)
	got, err := b.sql(t, `SELECT count(*) FROM (
		(SELECT * FROM get_messages_optimized(NULL, '`+here.ID+`') EXCEPT SELECT * FROM message WHERE agent_id IS NULL AND thread_id = '`+here.ID+`')
		UNION ALL
		(SELECT * FROM message WHERE agent_id IS NULL AND thread_id = '`+here.ID+`' EXCEPT SELECT * FROM get_messages_optimized(NULL, '`+here.ID+`'))) d`)
	wantText(t, "rows that only one has", "(0)", got, err)
	for _, thread := range []string{"NULL", "''", "'telegram/42'", "'" + someRun + "'", "'" + strings.ToUpper(here.ID) + "'"} {
		got, err := b.sql(t, `SELECT id FROM get_messages_optimized(NULL, `+thread+`)`)
		wantText(t, thread, "", got, err)
	}
	for _, more := range []string{", FALSE, -1", ", FALSE, 100001", ", FALSE, 1, -1", ", TRUE, NULL, -2000000000"} {
		got, err := b.sql(t, `SELECT id FROM get_messages_optimized(NULL, '`+here.ID+`'`+more+`)`)
		if err == nil || !strings.Contains(err.Error(), "22023") || !strings.Contains(err.Error(), "is ") {
			t.Errorf("%s: %q, %v", more, got, err)
		}
	}
	got, err = b.sql(t, `SELECT provolatile, prosecdef FROM pg_proc WHERE proname = 'get_messages_optimized'`)
	wantText(t, "declared", "(s,f)", got, err)
}

// A page is read by index, and not more than its rows, in a session with very many.
func TestSQLGetMessagesGoesByIndex(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	c := b.conversation(t, "c")
	s := b.session(t, c.ID)
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		if err := store.Exec(ctx, tx, `INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind)
			SELECT CAST($1 AS uuid), 'user', repeat('x', 100), 1000, n, 'text' FROM generate_series(1, 20000) AS n`, s.ID); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `ANALYZE`)
	})
	used := func(tx *store.Tx, column string) int {
		n, err := store.Count(t.Context(), tx, `SELECT `+column+` FROM pg_stat_xact_user_tables WHERE relname = 'agent_messages'`)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for more, rows := range map[string]int{"FALSE, 10": 10, "TRUE, 10": 10, "TRUE, 10, 100": 110} {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			scans, fetched := used(tx, "seq_scan"), used(tx, "idx_tup_fetch")
			const times = 8 // more than it takes until a plan is kept
			for range times {
				n, err := store.Count(ctx, tx, `SELECT count(*) FROM get_messages_optimized(NULL, '`+c.ID+`', `+more+`)`)
				if err != nil || n != 10 {
					t.Errorf("%s: %d rows, %v", more, n, err)
				}
			}
			if n := used(tx, "seq_scan") - scans; n != 0 {
				t.Errorf("%s: %d scans of the table", more, n)
			}
			if n := used(tx, "idx_tup_fetch") - fetched; n == 0 || n > times*(rows+40) { // those of the page are found three times, and planning looks at a few
				t.Errorf("%s: %d rows read", more, n)
			}
			return nil
		})
	}
}
