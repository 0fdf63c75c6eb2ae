package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/tool"
	"remote-agent/internal/tool/mcp"
)

// How long a turn waits for servers that are being connected to for the first time,
// counted from when that began: without their tools the first answer would be a wrong
// one. Later nobody waits for a server.
const (
	// Those of the configuration begin with the bot, before there are turns.
	mcpPatience = 2 * time.Second

	// Those of a profile begin with its first turn, which was asked for with them.
	// Programs that are fetched first need more than two seconds.
	profilePatience = 8 * time.Second
)

// mcpServers are MCP servers, shared by all conversations: they get a home of
// their own and the network, and no worktree. Each is connected to in the
// background, and again when it has ended; what one of them does delays neither
// another one nor a turn.
type mcpServers struct {
	links []*mcp.Link
	until time.Time // until then, turns wait for those that were not tried yet
}

// serverStart returns what starts the programs of MCP servers with a folder as home.
type serverStart func(home string) func(context.Context, mcp.Server) (*mcp.Process, error)

// newMCPServers begins to connect to servers, each with a folder of its own in
// home. Turns wait for the first attempts for as long as patience.
func newMCPServers(startIn serverStart, home string, servers map[string]mcpserver.Server, patience time.Duration, log *slog.Logger) *mcpServers {
	m := &mcpServers{until: time.Now().Add(patience)}
	for _, s := range startable(servers) {
		folder := filepath.Join(home, filepath.Base(s.Name))
		start := startIn(folder)
		m.links = append(m.links, mcp.Keep(s, mcp.Options{AllowLoopback: true, Log: log, Start: func(ctx context.Context, s mcp.Server) (*mcp.Process, error) {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, fault.Wrap(err, fault.Internal, "make the home of an MCP server")
			}
			return start(ctx, s)
		}}))
	}
	return m
}

// readMCPConfig reads the file of MCP servers; without one there are none. What is
// wrong with it is a fault.Invalid that names MCP_CONFIG.
func readMCPConfig(cfg config.Config) (map[string]mcpserver.Server, error) {
	if cfg.Tools.MCPConfig == "" {
		return nil, nil //nolint:nilnil // a map of none
	}
	text, err := os.ReadFile(cfg.Tools.MCPConfig)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf("MCP_CONFIG: %s cannot be read; correct the path, or let the bot's user read the file.", cfg.Tools.MCPConfig)}
	}
	var file mcpserver.File
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf("MCP_CONFIG: the file is not valid JSON like {\"mcpServers\": {\"name\": {\"command\": ...}}}: %v.", err)}
	}
	for name, s := range file.Servers {
		if (s.Command == "") == (s.URL == "") {
			return nil, fault.Newf(fault.Invalid, "MCP_CONFIG: the server %q needs either a command or a url.", name)
		}
	}
	return file.Servers, nil
}

// openMCP begins to connect to the MCP servers of the configuration. home is the
// folder for what they keep.
func openMCP(cfg config.Config, startIn serverStart, log *slog.Logger) (m *mcpServers, home string, err error) {
	servers, err := readMCPConfig(cfg)
	if err != nil {
		return nil, "", err
	}
	if home, err = filepath.Abs(filepath.Join(cfg.DataDir, "mcp")); err != nil {
		return nil, "", fault.Wrap(err, fault.Invalid, "DATA_DIR")
	}
	return newMCPServers(startIn, home, servers, mcpPatience, log), home, nil
}

// startable returns servers in the form that starts them, by name.
func startable(servers map[string]mcpserver.Server) []mcp.Server {
	var list []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		server := mcp.Server{Name: name, URL: s.URL, Allow: s.Allow, Env: s.Environ(), Hosts: s.Hosts, Headers: make(http.Header)}
		if s.Command != "" {
			server.Command = append([]string{s.Command}, s.Args...)
		}
		for key, value := range s.Headers {
			server.Headers.Set(key, value)
		}
		list = append(list, server)
	}
	return list
}

// offer returns the tools of the servers that are connected, in a fixed order.
func (m *mcpServers) offer(ctx context.Context) (tools []tool.Tool) {
	ctx, cancel := context.WithDeadline(ctx, m.until)
	defer cancel()
	for _, l := range m.links {
		select {
		case <-l.Tried():
		case <-ctx.Done():
		}
		tools = append(tools, l.Tools()...)
	}
	return tools
}

// names are the names of the tools of the servers that are connected.
func (m *mcpServers) names() (names []string) {
	for _, l := range m.links {
		for _, t := range l.Tools() {
			names = append(names, t.Spec().Name)
		}
	}
	return names
}

// status is what /status says of the servers.
func (m *mcpServers) status() (lines []string) {
	if n := len(m.names()); n > 0 {
		lines = append(lines, fmt.Sprintf("MCP tools: %d", n))
	}
	for _, l := range m.links {
		for _, t := range l.Trouble() {
			lines = append(lines, "MCP server: "+t)
		}
	}
	return lines
}

// close ends all servers, at the same time. The turns that used them are over.
func (m *mcpServers) close() error {
	errs := make([]error, len(m.links))
	var ending sync.WaitGroup
	for i, l := range m.links {
		ending.Go(func() { errs[i] = l.Close() })
	}
	ending.Wait()
	return errors.Join(errs...)
}
