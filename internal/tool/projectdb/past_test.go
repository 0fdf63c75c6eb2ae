package projectdb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/tool"
)

// somePast gives two sessions, three messages and a call, as the store would.
func somePast(asked *[]string) Past {
	return func(_ context.Context, table string, add func(row ...any) error) error {
		*asked = append(*asked, table)
		switch table {
		case "agent_sessions":
			first := []any{"s1", "default", "openai", "m", "be good", "hi", nil, "running", int64(10), nil, nil, nil}
			return errors.Join(add(first...), add(first...), // given twice
				add("s2", "default", "openai", "m", nil, "old", nil, "completed", int64(1), int64(2), "done", nil))
		case "agent_messages":
			return errors.Join(add(int64(1), "s1", "user", "hi", int64(10), int64(1), "user"),
				add(int64(2), "s1", "assistant", "hello", int64(11), int64(2), "assistant"), add(int64(3), "s2", "user", "old", int64(1), int64(1), "user"))
		}
		return add(int64(7), "s1", int64(2), "call_1", "bash", `{"command":"ls"}`, nil, "failed", int64(11), int64(12), int64(900), "no")
	}
}

func TestReaderReadsThePast(t *testing.T) {
	t.Parallel()
	d, err := Open(filepath.Join(t.TempDir(), "p.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	var asked []string
	beside, alone := d.Tools(somePast(&asked))[0], Reader(somePast(&asked))
	for query, want := range map[string]string{
		"SELECT * FROM agent_sessions WHERE status = 'running'": `["s1","default","openai","m","be good","hi",null,"running",10,null,null,null]]`,
		"SELECT count(*) FROM agent_sessions":                   `[[2]]`,
		"SELECT s.user_prompt, count(m.id) FROM AGENT_SESSIONS s JOIN agent_messages m ON m.session_id = s.id GROUP BY 1 ORDER BY 1": `[["hi",2],["old",1]]`,
		"SELECT tool_name, status, execution_time_ms, error_details FROM agent_tool_calls;":                                          `[["bash","failed",900,"no"]]`,
		"SELECT name FROM sqlite_master WHERE name LIKE 'agent_%' AND type = 'table' ORDER BY 1 -- agent_messages":                   `[["agent_messages"],["agent_sessions"],["agent_tool_calls"]]`,
	} {
		for name, reader := range map[string]tool.Tool{"beside a project": beside, "alone": alone} {
			r, err := reader.Run(t.Context(), arguments(t, object{"query": query, "limit": 100}))
			if err != nil || !strings.Contains(r.Content, want) {
				t.Errorf("%s: %s: %s, %v", name, query, r.Content, err)
			}
		}
	}
	for query, says := range map[string]string{
		"DELETE FROM agent_messages":                        "not allowed",
		"ATTACH '/etc/passwd' AS agent_messages":            "not allowed",
		"SELECT load_extension('x') FROM agent_sessions":    "not authorized",
		"PRAGMA table_info(agent_sessions)":                 "not allowed",
		"SELECT 1 FROM agent_sessions; SELECT 2":            "syntax error",
		"SELECT * FROM agent_sessions JOIN finance_nothing": "no such table: finance_nothing",
	} {
		if r, err := beside.Run(t.Context(), arguments(t, object{"query": query})); err == nil || !strings.Contains(fault.Public(err), says) {
			t.Errorf("%s: %s, %v, want %q", query, r.Content, err, says)
		}
	}
	asked = nil
	if _, err := beside.Run(t.Context(), arguments(t, object{"query": "SELECT 1 FROM agent_tool_calls"})); err != nil || strings.Join(asked, " ") != "agent_tool_calls" {
		t.Errorf("one table was named, %q were read: %v", asked, err)
	}
	if _, err := alone.Run(t.Context(), arguments(t, object{"query": "SELECT 1"})); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a project: %v", err)
	}
	if spec := alone.Spec().Description; strings.Contains(spec, "sqlite_master") || !strings.Contains(spec, "agent_tool_calls(id, session_id") {
		t.Errorf("it is described as %q", spec)
	}
}
