package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/fault"
)

// A server is connected to, asked for its tools, and ended; what is wrong with it says how
// far that came. That nothing of it is left, goleak looks after.
func TestProbe(t *testing.T) {
	t.Parallel()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	serveNothing := func(ctx context.Context, _ Server, in io.Reader, out io.Writer) {
		bare := sdk.NewServer(&sdk.Implementation{Name: "bare\n\x1b[2J", Version: strings.Repeat("9", 500)}, &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
		_ = bare.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
	}
	serveGarbage := func(_ context.Context, _ Server, in io.Reader, out io.Writer) {
		_, _ = io.WriteString(out, "usage: server FILE\n")
	}
	for name, c := range map[string]struct {
		server    Server
		serve     func(ctx context.Context, s Server, in io.Reader, out io.Writer)
		connected bool
		tools     int
		says      string
	}{
		"tools":             {server: Server{Command: []string{"x"}}, serve: serveExample, connected: true, tools: 4},
		"a tool it has not": {server: Server{Command: []string{"x"}, Allow: []string{"echo", "sing"}}, serve: serveExample, connected: true, tools: 1, says: `has no tool "sing"`},
		"no tools":          {server: Server{Command: []string{"x"}}, serve: serveNothing, connected: true, says: "offers no tools"},
		"garbage":           {server: Server{Command: []string{"x"}}, serve: serveGarbage, says: "does not speak the protocol, or ended;"},
		"refused":           {server: Server{URL: refuses.URL}, says: "(its address answered 401 Unauthorized)"},
		"unreachable":       {server: Server{URL: gone.URL}, says: "(its address does not answer)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := inMemory(c.serve)
			opts.AllowLoopback = true
			c.server.Name = "one"
			p, troubles := Probe(t.Context(), c.server, opts)
			if p.Connected != c.connected || p.Tools != c.tools || strings.ContainsAny(p.Name, "\n\x1b") || len(p.Name) > 100 || c.connected != (p.Name != "") {
				t.Errorf("%+v", p)
			}
			var said []string
			for _, trouble := range troubles {
				said = append(said, fault.Public(trouble))
			}
			if got := strings.Join(said, " "); (got != "") != (c.says != "") || !strings.Contains(got, c.says) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// A server that says nothing costs no more than its time.
func TestProbeOfASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := inMemory(func(ctx context.Context, _ Server, in io.Reader, _ io.Writer) { _, _ = io.Copy(io.Discard, in) })
		began := time.Now()
		p, troubles := Probe(t.Context(), Server{Name: "one", Command: []string{"x"}}, silent)
		if took := time.Since(began); took > defaultConnect+patience || p.Connected || len(troubles) != 1 {
			t.Errorf("%s: %+v, %v", took, p, troubles)
		}
		if diff := cmp.Diff(`The MCP server "one" did not answer within 8s; its tools are unavailable.`, fault.Public(troubles[0])); diff != "" {
			t.Error(diff)
		}
	})
}
