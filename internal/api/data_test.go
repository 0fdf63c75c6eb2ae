//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package api_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"remote-agent/internal/api"
	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// pages follows the cursors of a list and returns a member of every row.
func (w *world) pages(target string, member ...any) (all []any) {
	w.t.Helper()
	next := ""
	for range 100 {
		w.clock(w.now.Load().Add(time.Second))
		page := api.Prefix + target
		if next != "" {
			page += with(page, "cursor="+url.QueryEscape(next))
		}
		body := w.get(page).at(w.t)
		rows, _ := walk(body, "items").([]any)
		for _, row := range rows {
			all = append(all, walk(row, member...))
		}
		var more bool
		if next, more = walk(body, "next_cursor").(string); !more {
			return all
		}
	}
	w.t.Fatalf("%s has no end", target)
	return nil
}

func list(values ...any) []any { return values }

func TestListsOfSessions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		all := w.pages("/sessions?limit=1", "id")
		if len(all) != 3 || all[0] != w.busy.ID || all[2] != w.done.ID {
			t.Fatalf("sessions %v; want %s first and %s last", all, w.busy.ID, w.done.ID)
		}
		elsewhere := all[1]
		day := url.QueryEscape(time.Now().Add(24 * time.Hour).Format(time.RFC3339))
		for target, want := range map[string][]any{
			"/sessions":         all,
			"/sessions?limit=2": all,
			"/sessions?conversation=telegram/42&limit=1":                 list(w.busy.ID, w.done.ID),
			"/sessions?conversation=" + strings.ToUpper(w.other.ID):      list(elsewhere),
			"/sessions?conversation=telegram/none":                       nil,
			"/sessions?conversation=" + missingID:                        nil,
			"/sessions?agent=reviewer":                                   list(w.done.ID),
			"/sessions?agent=Reviewer":                                   nil,
			"/sessions?status=completed&limit=1":                         list(elsewhere, w.done.ID),
			"/sessions?status=failed":                                    nil,
			"/sessions?status=running&active=false":                      nil,
			"/sessions?active=true":                                      list(w.busy.ID),
			"/sessions?active=false":                                     list(elsewhere, w.done.ID),
			"/sessions?since=" + day:                                     nil,
			"/sessions?until=" + day:                                     all,
			"/sessions?since=2020-01-01T00:00:00Z&status=completed":      list(elsewhere, w.done.ID),
			"/sessions?until=2020-01-01T00:00:00%2B02:00":                nil,
			"/sessions?conversation=telegram/42&agent=x&status=running":  nil,
			"/sessions?conversation=telegram/42&status=running&limit=10": list(w.busy.ID),
		} {
			if diff := cmp.Diff(want, w.pages(target, "id")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		s := w.get(api.Prefix + "/sessions/" + strings.ToUpper(w.done.ID))
		for member, want := range map[string]any{
			"agent": "reviewer", "platform": "telegram", "platform_conversation_id": "42", "status": "completed", "active": false, "model": "m",
			"system_prompt": "be kind", "result": "Two goroutines", "error": nil, "message_count": 4.0, "tool_call_count": 3.0, "input_tokens": 10.0,
			"last_seq": 4.0, "parent_session_id": nil,
		} {
			if got := s.at(t, member); got != want {
				t.Errorf("%s is %v, want %v", member, got, want)
			}
		}
		title, _ := s.at(t, "title").(string)
		if !strings.HasPrefix(title, "why does it panic? long") || !strings.HasSuffix(title, "…") || len([]rune(title)) != 120 {
			t.Errorf("title %q", title)
		}
		if got := s.at(t, "metadata", "endReason"); got != "reset" {
			t.Errorf("metadata: %v", got)
		}
	})
}

func TestListsOfRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		for target, want := range map[string][]any{
			"/runs?limit=1&session=" + w.done.ID:                    list("failed", "completed"),
			"/runs?session=" + w.busy.ID:                            list("running"),
			"/runs?status=failed&session=" + w.done.ID:              list("failed"),
			"/runs?status=stopped&session=" + w.done.ID:             nil,
			"/runs?status=running&session=" + missingID:             nil,
			"/runs?status=running&session=" + w.busy.ID:             list("running"),
			"/runs?limit=1&status=interrupted&session=" + w.done.ID: nil,
		} {
			if diff := cmp.Diff(want, w.pages(target, "status")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		first := walk(w.get(api.Prefix+"/runs?limit=1&session="+w.done.ID).at(t), "items", 0)
		for member, want := range map[string]any{
			"session_id": w.done.ID, "number": 1.0, "entry_id": missingID, "status": "failed", "waiting": false, "model": "m",
			"cost_micros": nil, "error": "no key", "duration_ms": 1000.0,
		} {
			if got := walk(first, member); got != want {
				t.Errorf("%s is %v, want %v", member, got, want)
			}
		}
		if walk(first, "finished_at") == nil || walk(w.get(api.Prefix+"/runs?session="+w.busy.ID).at(t), "items", 0, "finished_at") != nil {
			t.Error("a run that ended has no finish, or one that runs has")
		}
	})
}

func TestListsOfConversationsAndToolCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		for target, want := range map[string][]any{
			"/conversations?limit=1":                   list(w.other.ID, w.conversation.ID),
			"/conversations?platform=telegram":         list(w.other.ID, w.conversation.ID),
			"/conversations?platform=slack":            nil,
			"/tool-calls?limit=1&session=" + missingID: nil,
		} {
			if diff := cmp.Diff(want, w.pages(target, "id")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		for target, want := range map[string][]any{
			"/tool-calls?limit=1&session=" + w.done.ID:               list("completed", "failed", "executing"),
			"/tool-calls?limit=1&status=failed&session=" + w.done.ID: list("failed"),
			"/tool-calls?session=" + w.busy.ID:                       nil,
		} {
			if diff := cmp.Diff(want, w.pages(target, "status")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		c := w.get(api.Prefix + "/conversations/" + w.conversation.ID)
		if c.at(t, "working") != true || c.at(t, "agent_id") != w.worker.ID || c.at(t, "assistant") != "demo" {
			t.Errorf("%s", c.body)
		}
		for i, want := range []map[string]any{
			{"status": "completed", "response": `"pool.go"`, "error_details": nil, "tool_call_id": "c1", "message_seq": 2.0, "session_id": w.done.ID},
			{"status": "failed", "response": nil, "error_details": "no such file", "tool_name": "bash", "request": `{"command":"ls"}`},
			{"status": "executing", "completed_at": nil, "execution_time_ms": nil},
		} {
			call := w.get(fmt.Sprintf("%s/tool-calls/%v", api.Prefix, w.pages("/tool-calls?session="+w.done.ID, "id")[i]))
			for member, value := range want {
				if got := call.at(t, member); got != value {
					t.Errorf("call %d has %s %v, want %v", i, member, got, value)
				}
			}
		}
	})
}

func TestMessages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, w.busy.ID, "", messages.NewText(messages.RoleUser, "more"), messages.NewText(messages.RoleAssistant, "less"))
			return err
		})
		first := []string{"why does it panic?", "", "", "Two goroutines <write> the map in pool.go & race."}
		both := append(slices.Clone(first), "more", "less")
		back := slices.Clone(both)
		slices.Reverse(back)
		for target, want := range map[string][]string{
			"session=" + w.done.ID:                                  first,
			"conversation=telegram/42":                              both,
			"conversation=telegram/42&order=asc":                    both,
			"conversation=telegram/42&order=desc":                   back,
			"conversation=" + w.conversation.ID + "&agent=reviewer": first,
			"conversation=telegram/42&session=" + w.busy.ID:         {"more", "less"},
			"conversation=telegram/77&session=" + w.busy.ID:         {},
			"conversation=telegram/none":                            {},
			"session=" + missingID:                                  {},
			"conversation=telegram/42&offset=4":                     {"more", "less"},
			"conversation=telegram/42&offset=5&order=desc":          {"why does it panic?"},
			"conversation=telegram/42&offset=6":                     {},
		} {
			for _, limit := range []int{1, 2, 5, 200} {
				var texts []string
				if strings.Contains(target, "offset") && limit < 5 {
					continue // only the first page has it
				}
				for _, text := range w.pages(fmt.Sprintf("/messages?limit=%d&%s", limit, target), "text") {
					texts = append(texts, fmt.Sprint(text))
				}
				if !slices.Equal(texts, want) {
					t.Errorf("%s by %d: %q, want %q", target, limit, texts, want)
				}
			}
		}
		body := string(w.get(api.Prefix + "/messages?session=" + w.done.ID).body)
		for _, want := range []string{
			`{"type":"attachment","text":"panic","name":"crash.log","media_type":"text/plain","size":5}`, `{"type":"thinking","text":"hm"}`,
			`{"type":"tool_call","tool_call_id":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}`,
			`"output":"pool.go","success":true`, `"provider_metadata":{"model":"m"}`, `"run_id":"` + missingID + `"`, "<write> the map in pool.go & race",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s in %s", want, body)
			}
		}
		if strings.Contains(body, "opaque-signature") {
			t.Error("what only the provider can use is shown")
		}
	})
}

func TestSearch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			m := messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Text{Text: "panic one"}, messages.Text{Text: "panic two"}}}
			_, err := tx.Messages().AppendMessages(ctx, w.busy.ID, "", m)
			return err
		})
		for target, want := range map[string][]any{
			"q=goroutines+map":                        list(4.0, 4.0),
			"q=GOROUT*&limit=1":                       list(4.0, 4.0),
			"q=goroutines&conversation=telegram/42":   list(4.0),
			"q=goroutines&conversation=telegram/none": nil,
			"q=nowhere":                               nil,
			"q=bash":                                  nil, // calls of tools are not searched
			"q=panic&limit=200&conversation=" + w.conversation.ID: list(1.0, 1.0), // each message once, the newest first
		} {
			if diff := cmp.Diff(want, w.pages("/messages?"+target, "seq")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		hit := w.get(api.Prefix + "/messages?q=panic&conversation=telegram/42")
		if hit.at(t, "items", 0, "text") != "panic onepanic two" || hit.at(t, "items", 0, "session_id") != w.busy.ID ||
			hit.at(t, "items", 1, "conversation_id") != w.conversation.ID || hit.at(t, "items", 1, "blocks", 1, "name") != "crash.log" {
			t.Errorf("%s", hit.body)
		}
	})
}

// A page holds no more than a few megabytes, whatever its limit says.
func TestPagesOfLongMessagesEndEarly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		const many = 45
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i := range many {
				m := messages.NewToolResult(fmt.Sprint(i), strings.Repeat("x", 300<<10), false)
				if _, err := tx.Messages().AppendMessages(ctx, w.busy.ID, "", m); err != nil {
					return err
				}
			}
			return nil
		})
		if n := len(w.get(api.Prefix + "/messages?limit=200&session=" + w.busy.ID).body); n > 10<<20 {
			t.Errorf("a page has %d bytes", n)
		}
		seqs := w.pages("/messages?limit=200&session="+w.busy.ID, "seq")
		for i, seq := range seqs {
			if seq != float64(i+1) {
				t.Fatalf("messages %v", seqs)
			}
		}
		if len(seqs) != many {
			t.Errorf("%d messages, want %d", len(seqs), many)
		}
	})
}

// query returns the first column of plain SQL.
func (w *world) query(query string) (lines []string) {
	w.t.Helper()
	w.do(func(ctx context.Context, tx *store.Tx) error {
		line := ""
		switch handle := tx.Handle().(type) {
		case *sql.Tx:
			rows, err := handle.QueryContext(ctx, query)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				if err := rows.Scan(&line); err != nil {
					return err
				}
				lines = append(lines, line)
			}
			return rows.Err()
		case pgx.Tx:
			rows, err := handle.Query(ctx, query)
			if err != nil {
				return err
			}
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		}
		return nil
	})
	return lines
}

func TestDeleting(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		_, ci := w.key("ci", 0, "sessions:write", "memories:write", "agents:write")
		for _, c := range []struct {
			path   string
			status int
			body   string
		}{
			{"/sessions/" + w.busy.ID, 409, "running"},
			{"/sessions/" + w.done.ID, 200, `{"deleted":{"sessions":1,"messages":4,"tool_calls":3,"deliveries":0,"inbox_texts":0,"plans":0,"approvals":0}}`},
			{"/sessions/" + w.done.ID, 404, "There is no such session."},
			{"/conversations/" + w.conversation.ID, 409, "running"},
			{"/conversations/" + w.other.ID, 200, `{"deleted":{"sessions":1,"messages":4,"tool_calls":3,`},
			{"/conversations/" + w.other.ID, 404, "no such conversation"},
			{"/memories/1?person=telegram/77", 404, "has no such memory"},
			{"/memories/1?person=telegram/42", 200, `{"deleted":{"memories":1}}`},
			{"/memories/1?person=telegram/42", 404, "no such memory"},
			{"/memories?person=telegram/42", 200, `{"deleted":{"memories":2}}`},
			{"/memories?person=telegram/42", 200, `{"deleted":{"memories":0}}`},
			{"/memories?person=telegram/nobody", 200, `{"deleted":{"memories":0}}`},
			{"/agents/" + w.worker.ID, 409, "is using this profile"},
			{"/agents/" + w.agent.ID, 200, `{"deleted":{"agents":1,"conversations":0,"schedules":0,"memories":0}}`},
			{"/agents/" + w.agent.ID, 404, "no such profile"},
		} {
			r := w.send("DELETE", api.Prefix+c.path, ci)
			if r.status != c.status || !strings.Contains(string(r.body), c.body) {
				t.Errorf("DELETE %s: %d %s, want %d %s", c.path, r.status, r.body, c.status, c.body)
			}
		}
		want := []string{
			"api/ci session.remove " + w.conversation.ID + " " + w.done.ID, "api/ci conversation.remove  " + w.other.ID,
			"api/ci memory.forget  telegram/42 1", "api/ci memory.forget_all  telegram/42", "api/ci agent.remove  reviewer",
		}
		if diff := cmp.Diff(want, w.query(`SELECT actor || ' ' || action || ' ' || conversation_id || ' ' || target FROM audit_log ORDER BY id`)); diff != "" {
			t.Errorf("audit log (-want +got):\n%s", diff)
		}
		if got := w.pages("/sessions?conversation=telegram/42", "id"); !slices.Equal(got, list(w.busy.ID)) {
			t.Errorf("sessions %v", got)
		}
		if got := w.pages("/messages?q=goroutines", "conversation_id"); len(got) != 0 {
			t.Errorf("messages of %v", got)
		}
		if got := w.query(`SELECT user_id FROM memory_people`); !slices.Equal(got, []string{ann}) {
			t.Errorf("people %v; asking to forget somebody makes nobody known", got)
		}
	})
}

func TestForking(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		_, ci := w.key("ci", 0, "sessions:write")
		target := api.Prefix + "/sessions/" + w.idle.ID + "/fork"
		fork := func(query string, want int) reply {
			t.Helper()
			r := w.send("POST", target+query, ci)
			if r.status != want {
				t.Fatalf("POST %s: %d %s, want %d", query, r.status, r.body, want)
			}
			return r
		}
		for query, parameter := range map[string]string{"?n=5": "n", "?n=0": "n", "?n=-1": "n", "?n=x": "n", "?n=10001": "n", "?into=x": "into"} {
			if r := fork(query, http.StatusBadRequest); r.at(t, "parameter") != parameter {
				t.Errorf("%s: %s", query, r.body)
			}
		}
		if got := w.pages("/sessions?conversation=telegram/77", "id"); !slices.Equal(got, list(w.idle.ID)) {
			t.Fatalf("what was refused left sessions %v", got)
		}
		first := fork("?n=2", http.StatusCreated)
		for member, want := range map[string]any{
			"parent_session_id": w.idle.ID, "conversation_id": w.other.ID, "active": true, "last_seq": 2.0, "assistant": "demo", "ended_at": nil,
		} {
			if got := first.at(t, "session", member); got != want {
				t.Errorf("%s is %v, want %v", member, got, want)
			}
		}
		if first.at(t, "messages") != 2.0 || first.at(t, "of") != 4.0 {
			t.Errorf("%s", first.body)
		}
		id := first.at(t, "session", "id")
		if again := fork("?n=2", http.StatusOK); again.at(t, "session", "id") != id {
			t.Errorf("asked again it is %s, not %v", again.body, id)
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, fmt.Sprint(id), "", messages.NewText(messages.RoleUser, "more"))
			return err
		})
		second := fork("?n=2", http.StatusCreated) // something was said in the first
		whole := fork("", http.StatusCreated)
		if second.at(t, "session", "id") == id || whole.at(t, "messages") != 4.0 {
			t.Errorf("%s, %s", second.body, whole.body)
		}
		if got := w.pages("/sessions?active=true&conversation=telegram/77", "id"); !slices.Equal(got, list(whole.at(t, "session", "id"))) {
			t.Errorf("active: %v", got)
		}
		want := []string{"2", "2", "4"}
		like := `SELECT replace(replace(substr(detail, strpos(detail, '"messages"') + 11), ',"of":4}', ''), ' ', '') FROM audit_log WHERE action = 'session.fork' ORDER BY id`
		if w.Dialect() == "sqlite" {
			like = strings.ReplaceAll(like, "strpos", "instr")
		}
		if got := w.query(like); !slices.Equal(got, want) {
			t.Errorf("the audit log has forks of %v messages, want %v", got, want)
		}
	})
}

func TestMemories(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		if got := w.pages("/memories?limit=1&person=telegram/42", "id"); !slices.Equal(got, list("2", "1")) {
			t.Errorf("memories %v; what has expired is no longer shown", got)
		}
		if got := w.pages("/memories?person=telegram/77", "id"); got != nil {
			t.Errorf("of another person: %v", got)
		}
		m := w.get(api.Prefix + "/memories/1?person=telegram/42")
		if m.at(t, "text") != "I prefer spaces" || m.at(t, "category") != "preference" || m.at(t, "history", 0, "text") != "I prefer tabs" || m.at(t, "expires_at") != nil {
			t.Errorf("%s", m.body)
		}
		e := w.get(api.Prefix + "/memories/2?person=telegram/42")
		if e.at(t, "kind") != "episodic" || e.at(t, "expires_at") == nil || e.at(t, "sources", 0) != "a message" {
			t.Errorf("%s", e.body)
		}
		ends, err := time.Parse(time.RFC3339Nano, e.at(t, "expires_at").(string))
		if err != nil {
			t.Fatal(err)
		}
		for at, want := range map[time.Time]int{ends.Add(-time.Millisecond): http.StatusOK, ends: http.StatusNotFound} {
			w.clock(at)
			if r := w.send("GET", api.Prefix+"/memories/2?person=telegram/42", w.token); r.status != want {
				t.Errorf("at %v of its end at %v: %d, want %d", at, ends, r.status, want)
			}
		}
		for _, path := range []string{"/memories/3?person=telegram/42", "/memories/1?person=telegram/77", "/memories/9?person=telegram/42"} {
			if r := w.send("GET", api.Prefix+path, w.token); r.status != http.StatusNotFound || r.at(t, "detail") != "This person has no such memory." {
				t.Errorf("GET %s: %d %s", path, r.status, r.body)
			}
		}
	})
}

func TestAgents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		for target, want := range map[string][]any{
			"/agents?limit=1":            list("reviewer", "worker"),
			"/agents?group=team":         list("worker"),
			"/agents?group=nobody":       nil,
			"/agents?limit=1&group=team": list("worker"),
		} {
			if diff := cmp.Diff(want, w.pages(target, "name")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		p := w.get(api.Prefix + "/agents/" + w.worker.ID)
		if p.at(t, "lore", 0) != "old" || p.at(t, "model_tier") != "smart" || p.at(t, "group") != "team" || p.at(t, "max_iterations") != 15.0 {
			t.Errorf("%s", p.body)
		}
		if p.at(t, "mcp_servers", 0) != "tracker" || strings.Contains(string(p.body), "hidden") {
			t.Errorf("servers are shown by name only: %s", p.body)
		}
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		at := time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i, actor := range []string{ann, "telegram/77", ann} {
				r := spend.Record{
					ConversationID: w.conversation.ID, Actor: actor, Assistant: "demo", Model: "m", Micros: int64(100 * (i + 1)), Known: i < 2,
					Usage: assistant.Usage{InputTokens: 10, OutputTokens: 1}, At: at.Add(time.Duration(i) * time.Hour),
				}
				if err := tx.Spending().AddUsage(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
		for target, want := range map[string][]any{
			"by=person":                          list("telegram/77", ann),
			"by=person&limit=1":                  list("telegram/77"),
			"by=day":                             list("2026-11-21", "2026-11-20"),
			"by=model":                           list("m"),
			"by=conversation":                    list(w.conversation.ID),
			"by=codebase":                        list(nil),
			"by=day&since=2026-11-21T00:00:00Z":  list("2026-11-21"),
			"by=day&until=2026-11-21T00:00:00Z":  list("2026-11-20"),
			"by=person&person=telegram/42":       list(ann),
			"by=person&conversation=telegram/77": nil,
			"by=person&conversation=telegram/9":  nil,
		} {
			if diff := cmp.Diff(want, w.pages("/usage?"+target, "key")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
		r := w.get(api.Prefix + "/usage?by=person&limit=1")
		if r.at(t, "more") != true || r.at(t, "total", "cost_micros") != 300.0 || r.at(t, "total", "unpriced_tokens") != 11.0 || r.at(t, "items", 0, "cost_micros") != 200.0 {
			t.Errorf("%s", r.body)
		}
		if name := w.get(api.Prefix+"/usage?by=conversation").at(t, "items", 0, "name"); name != "telegram/42" {
			t.Errorf("the name is %v", name)
		}
	})
}

// An error inside is not told to a client.
func TestErrorsInsideStayInside(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		fmt.Errorf("SELECT secret FROM t: %w", fault.Wrap(fmt.Errorf("syntax error near secret"), fault.Internal, "read")),
		fault.Wrap(fmt.Errorf("password of secret refused"), fault.Unauthorized, "connect"),
		fault.Wrap(fmt.Errorf("dial secret:5432"), fault.Unavailable, "connect"),
		fault.Wrap(fmt.Errorf("secret"), fault.Invalid, "read"),
		fmt.Errorf("secret"), context.DeadlineExceeded, context.Canceled,
	} {
		status, body := api.ProblemOf(err)
		if strings.Contains(body, "secret") || status < 400 {
			t.Errorf("%v becomes %d %s", err, status, body)
		}
	}
	// Who is refused is this program, by the database or by the system, and not the client.
	for _, kind := range []fault.Kind{fault.Unauthorized, fault.Forbidden, fault.Damaged, fault.Internal} {
		if status, body := api.ProblemOf(fault.New(kind, "secret")); status != http.StatusInternalServerError || strings.Contains(body, "secret") {
			t.Errorf("%s becomes %d %s", kind, status, body)
		}
	}
}
