package app

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/mcpserver"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/profile"
	"remote-agent/internal/tool/mcp"
	"remote-agent/internal/tool/projectdb"
)

// A turn waits for a server that is being connected to for the first time: two seconds
// for one of the configuration, eight for one of its profile, and not longer than the
// attempt. It waits for no later attempt.
func TestATurnWaitsForServersThatBegin(t *testing.T) {
	t.Parallel()
	servers := map[string]mcpserver.Server{"weather": {Command: "weather"}}
	for name, tt := range map[string]struct {
		profile      bool
		takes, waits time.Duration
	}{
		"OfTheConfiguration":            {false, time.Second, time.Second},
		"OfTheConfigurationAndItIsSlow": {false, 5 * time.Second, 2 * time.Second},
		"OfAProfile":                    {true, 5 * time.Second, 5 * time.Second},
		"OfAProfileAndItIsTooSlow":      {true, time.Minute, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				startIn := func(string) func(context.Context, mcp.Server) (*mcp.Process, error) {
					return func(ctx context.Context, _ mcp.Server) (*mcp.Process, error) {
						select {
						case <-ctx.Done():
						case <-time.After(tt.takes):
						}
						return nil, errors.New("it does not start")
					}
				}
				log := slog.New(slog.DiscardHandler)
				var offer func()
				if tt.profile {
					s := &profileServers{startIn: startIn, home: t.TempDir(), log: log, learn: func(...string) {}, open: make(map[string]*servedProfile)}
					defer s.close()
					offer = func() {
						_, leave := s.offer(t.Context(), profile.Profile{ID: "p", MCPServers: servers})
						_ = leave()
					}
				} else {
					m := newMCPServers(startIn, t.TempDir(), servers, mcpPatience, log)
					defer m.close() //nolint:errcheck // nothing was started
					offer = func() { m.offer(t.Context()) }
				}
				for i, want := range []time.Duration{tt.waits, 0} {
					begin := time.Now()
					offer()
					if took := time.Since(begin); took != want {
						t.Errorf("turn %d waited for %s, want %s", i+1, took, want)
					}
				}
			})
		})
	}
}

// TestTooManyTools: two servers with a hundred tools each must not make every request one that
// OpenAI's API refuses.
func TestTooManyTools(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range 100 {
		fmt.Fprintf(&list, `,{"name":"t%d","inputSchema":{"type":"object"}}`, i)
	}
	startIn := func(string) func(context.Context, mcp.Server) (*mcp.Process, error) {
		return func(context.Context, mcp.Server) (*mcp.Process, error) {
			in, stdin := io.Pipe()
			stdout, out := io.Pipe()
			go func() {
				for lines := bufio.NewScanner(in); lines.Scan(); {
					var m struct {
						ID     json.RawMessage `json:"id"`
						Method string          `json:"method"`
					}
					if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
						continue
					}
					said := map[string]string{
						"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}`,
						"tools/list": `"result":{"tools":[` + list.String()[1:] + `]}`,
					}[m.Method]
					_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, cmp.Or(said, `"error":{"code":-32601,"message":"no"}`))
				}
			}()
			return &mcp.Process{Stdin: stdin, Stdout: stdout, Stop: func() error { return errors.Join(in.Close(), out.Close()) }}, nil
		}
	}
	log := slog.New(slog.DiscardHandler)
	servers := map[string]mcpserver.Server{"a": {Command: "a"}, "b": {Command: "b"}}
	sets := &toolSets{mcp: newMCPServers(startIn, t.TempDir(), servers, time.Minute, log), log: log}
	t.Cleanup(func() {
		if err := sets.mcp.close(); err != nil {
			t.Error(err)
		}
	})
	box, err := sets.Open(t.Context(), orchestrator.ToolTurn{})
	if err != nil {
		t.Fatal(err)
	}
	if specs := box.Specs(); len(specs) != maxTools || specs[0].Name != projectdb.NameReader {
		t.Errorf("%d tools, first %q", len(specs), specs[0].Name)
	}
}
