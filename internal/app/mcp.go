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
	"remote-agent/internal/sandbox"
	"remote-agent/internal/tool"
	"remote-agent/internal/tool/mcp"
)

// mcpRetry is how long a server that did not answer is left alone.
const mcpRetry = 5 * time.Minute

// mcpServers are the MCP servers of the configuration. They are started on first
// need and shared by all conversations: they get a home of their own and the
// network, and no worktree.
type mcpServers struct {
	runner *sandbox.Runner
	home   string
	log    *slog.Logger

	mu      sync.Mutex // guards all below
	waiting []mcp.Server
	next    time.Time // not to be tried before
	tools   []tool.Tool
	closers []func() error
	trouble []string
}

// readMCPConfig reads the file of MCP servers; without one there are none. What is
// wrong with it is a fault.Invalid that names MCP_CONFIG.
func readMCPConfig(cfg config.Config) (map[string]mcpserver.Server, error) {
	if cfg.Tools.MCPConfig == "" {
		return nil, nil //nolint:nilnil // a map of none
	}
	text, err := os.ReadFile(cfg.Tools.MCPConfig)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: "MCP_CONFIG: the file cannot be read."}
	}
	var file mcpserver.File
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf("MCP_CONFIG: the file is not JSON of the form {\"mcpServers\": {\"name\": {\"command\": ...}}}: %v.", err)}
	}
	for name, s := range file.Servers {
		if (s.Command == "") == (s.URL == "") {
			return nil, fault.Newf(fault.Invalid, "MCP_CONFIG: the server %q needs either a command or a url.", name)
		}
	}
	return file.Servers, nil
}

// openMCP gets the MCP servers of the configuration ready, without starting them.
func (d *daemon) openMCP() (*mcpServers, error) {
	servers, err := readMCPConfig(d.config)
	if err != nil {
		return nil, err
	}
	m := &mcpServers{runner: d.runner, log: d.log, waiting: startable(servers)}
	if m.home, err = filepath.Abs(filepath.Join(d.config.DataDir, "mcp")); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "DATA_DIR")
	}
	return m, nil
}

// startable returns servers in the form that starts them, by name.
func startable(servers map[string]mcpserver.Server) []mcp.Server {
	var list []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		server := mcp.Server{Name: name, URL: s.URL, Allow: s.Allow, Env: s.Environ(), Headers: make(http.Header)}
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

// offer returns the tools of the servers that answer, in a fixed order.
func (m *mcpServers) offer(ctx context.Context) []tool.Tool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 || time.Now().Before(m.next) {
		return m.tools
	}
	m.next, m.trouble = time.Now().Add(mcpRetry), nil
	var still []mcp.Server
	for _, s := range m.waiting {
		home := filepath.Join(m.home, filepath.Base(s.Name))
		if err := os.MkdirAll(home, 0o700); err != nil {
			m.trouble = append(m.trouble, s.Name+": "+err.Error())
			continue
		}
		tools, closeAll, problems := mcp.Connect(ctx, []mcp.Server{s}, mcp.Options{
			Start: mcp.Sandboxed(m.runner, grantedServer(home)), AllowLoopback: true,
		})
		for _, p := range problems {
			m.log.WarnContext(ctx, "An MCP server has a problem", "server", s.Name, "err", p)
			m.trouble = append(m.trouble, fault.Public(p))
		}
		if len(tools) == 0 {
			_ = closeAll() // it offers nothing; it is tried again
			still = append(still, s)
			continue
		}
		m.tools, m.closers = append(m.tools, tools...), append(m.closers, closeAll)
	}
	m.waiting = still
	return m.tools
}

// names are the names of the tools of the servers that answered.
func (m *mcpServers) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, len(m.tools))
	for i, t := range m.tools {
		names[i] = t.Spec().Name
	}
	return names
}

// status is what /status says of the servers.
func (m *mcpServers) status() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	if len(m.tools) > 0 {
		lines = append(lines, fmt.Sprintf("MCP tools: %d", len(m.tools)))
	}
	for _, t := range m.trouble {
		lines = append(lines, "MCP server: "+t)
	}
	return lines
}

func (m *mcpServers) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all error
	for _, c := range m.closers {
		all = errors.Join(all, c())
	}
	m.closers, m.tools = nil, nil
	return all
}
