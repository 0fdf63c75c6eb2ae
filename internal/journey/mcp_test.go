package journey_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/emulator/openai"
)

// asMCPServer makes this test a server of tools, as some vendor's program would
// be.
const asMCPServer = "be-an-mcp-server"

func serveMCP(args []string) {
	if len(args) != 2 || args[1] != asMCPServer {
		return
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	type place struct {
		City string `json:"city"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "forecast", Description: "Tells the weather."},
		func(_ context.Context, _ *sdk.CallToolRequest, p place) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "rain in " + p.City}}}, nil, nil
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}

func TestToolsOfAnMCPServerAskAndRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"weather": map[string]any{"command": self, "args": []string{asMCPServer}},
		"broken":  map[string]any{"command": "/bin/false"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	w.with(map[string]string{"MCP_CONFIG": path, "TOOL_READ_PATHS": filepath.Dir(self)}).start()
	w.untilStatus(ann, "MCP tools: 1") // it is connected to in the background
	w.ai.Enqueue(openai.Calls(call("mcp__weather__forecast", `{"city":"Bonn"}`)), openai.Text("It rains."))
	w.says(ann, "what is the weather?")
	w.seesText(ann, "✋", "a-1", "Bonn")
	w.press(ann, "Allow")
	w.seesText(ann, "It rains.")
	requests := w.ai.Requests()
	messages := requests[len(requests)-1].Messages
	if got := messages[len(messages)-1].Text(); !containsAll(got, []string{"rain in Bonn"}) {
		t.Errorf("the model read %q", got)
	}
	w.says(ann, "/status")
	w.seesText(ann, "MCP tools: 1", "broken", "sandbox")
}

// untilStatus asks /status until it says all parts.
func (w *world) untilStatus(user int64, parts ...string) {
	w.t.Helper()
	for ctx := w.ctx(); ctx.Err() == nil; {
		seen := len(w.tg.Ledger().Chat(user).BotTexts())
		w.says(user, "/status")
		texts := w.sees(user, "/status", func(texts []string) bool {
			return len(texts) > seen && strings.Contains(texts[len(texts)-1], "service: version") // no longer the placeholder
		})
		if containsAll(texts[len(texts)-1], parts) {
			return
		}
	}
	w.t.Fatalf("/status does not say %q", parts)
}

// Finding 9: an MCP server that does not answer held every turn and /status, and a
// missing program of an agent stopped the whole daemon at its start.
func TestFinding9ServersAndAgentsFailAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	path := filepath.Join(t.TempDir(), "mcp.json")
	config := `{"mcpServers": {"silent": {"command": "/bin/sleep", "args": ["1000"]}, "absent": {"command": "/opt/none/server"}}}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.with(map[string]string{
		"MCP_CONFIG": path, "ACP_AGENTS": "helper=/opt/none/agent --acp", "CLAUDE_COMMAND": "/opt/none/claude",
	}).start()
	w.says(ann, "/status")
	w.seesText(ann, "silent", "is being connected to", "helper", "is not installed here", "/opt/none/agent", "/opt/none/claude")
	w.ai.Enqueue(openai.Text("Hello to you."))
	w.says(ann, "hello")
	w.seesText(ann, "Hello to you.")
	w.untilStatus(ann, `"absent" is not installed here (there is no program "/opt/none/server")`)
	w.says(ann, "/handoff helper")
	w.seesText(ann, `The agent "helper" is not installed here: there is no program "/opt/none/agent".`)
	w.shutdown()

	// As the default assistant it refuses each message, and the rest goes on.
	w.with(map[string]string{"DEFAULT_AI_ASSISTANT": "helper"}).start()
	w.says(bob, "hello")
	w.seesText(bob, `The agent "helper" is not installed here`)
	w.says(bob, "/whoami")
	w.seesText(bob, "You are", "77")
}
