package journey_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
