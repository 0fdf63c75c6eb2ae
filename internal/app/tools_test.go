package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/tool"
)

// TestADamagedProjectDatabaseStopsNoTurn: only who uses its tables reads that it is damaged.
func TestADamagedProjectDatabaseStopsNoTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c.db"), []byte("this is not a database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	sets := &toolSets{config: config.Config{}, homes: dir, projects: dir, log: slog.New(slog.DiscardHandler), open: make(map[string]*project)}
	turn := orchestrator.ToolTurn{Conversation: sessions.Conversation{ID: "x", CodebaseID: "c"}, Dir: dir, Tree: dir}
	box, err := tool.NewBox()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	all, err := sets.workTools(box, turn)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if err := box.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name, args string) messages.ToolResult {
		result, _, _ := box.Run(t.Context(), messages.ToolCall{Name: name, Arguments: args})
		return result
	}
	if r := run("read_file", `{"path":"c.db"}`); r.IsError {
		t.Errorf("read_file: %s", r.Content)
	}
	_, broken := sets.project("c")
	if r := run("project_table", `{"action":"list"}`); !r.IsError || r.Content != fault.Public(broken) {
		t.Errorf("project_table: %s, want %v", r.Content, broken)
	}
}
