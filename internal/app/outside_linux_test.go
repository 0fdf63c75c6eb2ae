package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/fault"
	"remote-agent/internal/tool/mcp"
)

// service is an HTTP server on this machine's loopback interface.
func service(t *testing.T, says string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, says+" "+r.Host) })}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// direct is a script that asks an address without a proxy, proxied one that asks
// through the proxy that it was told of.
func direct(host, port string) string {
	return fmt.Sprintf(`bash -c 'exec 3<>/dev/tcp/%s/%s && printf "GET / HTTP/1.0\r\nHost: direct\r\n\r\n" >&3 && cat <&3' 2>&1; true`, host, port)
}

func proxied(address string) string {
	return fmt.Sprintf(`bash -c 'p=${HTTP_PROXY#http://}; a=${p%%@*}; [ "$a" = "$p" ] || auth="Proxy-Authorization: Basic $(printf %%s "$a" | base64 -w0)"; p=${p##*@}
	exec 3<>/dev/tcp/${p%%:*}/${p##*:} && printf "GET http://%s/ HTTP/1.0\r\nHost: %s\r\n${auth:-X: y}\r\n\r\n" >&3 && cat <&3' 2>&1; true`, address, address)
}

// TestFinding3ProgramsHaveAListOfHosts runs each kind of program with a network,
// at each level, against servers on this machine.
func TestFinding3ProgramsHaveAListOfHosts(t *testing.T) {
	t.Parallel()
	for name, without := range levels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			private, model, web := service(t, "private"), service(t, "model"), service(t, "web")
			c := newConfinement(t, without, func(d *programs) {
				d.config.Tools.Network, d.config.Tools.Hosts = true, []string{"127.0.0.1:" + model, "api.example:80"}
				d.config.Agents.Hosts = []string{"robot=127.0.0.1:" + model, "api.example:80", "other=127.0.0.1:" + private}
				d.env.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
					return map[string][]netip.Addr{"api.example": {netip.MustParseAddr("140.82.121.4")}}[host], nil
				}
				d.env.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "140.82.121.4:80" { // stands for the Internet, to which nothing is sent
						address = "127.0.0.1:" + web
					}
					return (&net.Dialer{}).DialContext(ctx, network, address)
				}
			})
			c.hosts = []string{"127.0.0.1:" + model, "api.example:80"}
			if got := c.d.outside.confined(); got == slices.Contains(without, "net") || got == slices.Contains(without, "namespaces") {
				t.Skip("this system does not offer the level")
			}
			for _, kind := range kinds {
				for script, want := range map[string]string{
					direct("127.0.0.1", model):           "model direct",
					proxied("api.example:80"):            "web api.example",
					proxied("127.0.0.1:" + private):      "was refused",
					proxied("evil.example:80"):           "was refused",
					proxied("169.254.169.254:80"):        "was refused",
					proxied("127.0.0.1:" + model):        "model 127.0.0.1",
					"echo $NODE_USE_ENV_PROXY $NO_PROXY": "1 localhost,127.0.0.1,::1",
				} {
					if got := c.as(kind, script); !strings.Contains(got, want) {
						t.Errorf("%s: %s\n%s\nwant %q", kind, script, got, want)
					}
				}
				// Without a network namespace it is Landlock that knows the ports.
				if got := c.as(kind, direct("127.0.0.1", private)); strings.Contains(got, "private") && c.d.runner.Level().Landlock >= 4 {
					t.Errorf("%s reached a server of this machine: %s", kind, got)
				}
			}
			if line := c.d.outside.line(); strings.Contains(line, "NOT limited") == c.d.outside.confined() {
				t.Errorf("said: %s", line)
			}
		})
	}
}

// TestFinding3StrictStartsNothingWithoutNamespaces: agents, MCP servers and
// commands with a network are refused, and everything else runs.
func TestFinding3StrictStartsNothingWithoutNamespaces(t *testing.T) {
	c := newConfinement(t, []string{"net"}, func(d *programs) { d.config.Tools.Sandbox, d.config.Tools.Network = "strict", true })
	if c.d.outside.confined() {
		t.Fatal("there are network namespaces")
	}
	for _, kind := range kinds {
		if got := c.as(kind, "echo it runs"); !strings.Contains(got, "SANDBOX=strict refuses to start") || strings.Contains(got, "it runs") {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if line := c.d.outside.line(); !strings.Contains(line, "starts nothing that needs the network") {
		t.Errorf("said: %s", line)
	}
	c.tools.config.Tools.Network = false
	if got := c.as("bash", "echo it runs"); got != "it runs\n" {
		t.Errorf("a command without a network: %s", got)
	}
}

func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	for option, change := range map[string]func(*programs){
		"TOOL_HOSTS":  func(d *programs) { d.config.Tools.Hosts = []string{"https://example.com"} },
		"AGENT_HOSTS": func(d *programs) { d.config.Agents.Hosts = []string{"claude=10.0.0.1"} },
	} {
		d := &programs{}
		change(d)
		if _, err := d.openOutside(); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.Public(err), option+": ") {
			t.Errorf("%s: %v", option, err)
		}
	}
	if _, err := (&outside{}).startServer("/")(t.Context(), mcp.Server{Name: "jira", Hosts: []string{"a b"}}); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), `"jira"`) {
		t.Errorf("an MCP server: %v", err)
	}
}

// TestFinding3KeysOfOneProvider: an agent has the key of its provider and no other.
func TestFinding3KeysOfOneProvider(t *testing.T) {
	t.Parallel()
	names := []string{"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "OPENAI_API_KEY", "CODEX_HOME", "GOFLAGS", "GEMINI_API_KEY", "gemini=GOOGLE_TOKEN", "claude=EXTRA_KEY"}
	for agent, want := range map[assistant.Name][]string{
		acp.ClaudeName: {"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "GOFLAGS", "EXTRA_KEY"},
		acp.CodexName:  {"OPENAI_API_KEY", "CODEX_HOME", "GOFLAGS"},
		"gemini":       {"GOFLAGS", "GEMINI_API_KEY", "GOOGLE_TOKEN"},
		"mine":         {"GOFLAGS", "GEMINI_API_KEY"},
	} {
		if diff := cmp.Diff(want, agentVariables(agent, names)); diff != "" {
			t.Errorf("%s:\n%s", agent, diff)
		}
	}
	d := &programs{env: Env{Lookup: func(string) (string, bool) { return "value", true }}}
	d.config.Agents.Env = names
	if env := strings.Join(d.agentEnv(acp.CodexName, "/home"), " "); strings.Contains(env, "ANTHROPIC") || strings.Contains(env, "CLAUDE") || !strings.Contains(env, "OPENAI_API_KEY=value") {
		t.Errorf("codex has %s", env)
	}
}

// TestAgentsReachTheirProvider: by default that one alone.
func TestAgentsReachTheirProvider(t *testing.T) {
	t.Parallel()
	o := &outside{}
	for agent, want := range map[assistant.Name]string{
		acp.ClaudeName: "[api.anthropic.com console.anthropic.com platform.claude.com claude.ai 127.0.0.1:8080]",
		acp.CodexName:  "[api.openai.com chatgpt.com auth.openai.com example.com:443]",
		"mine":         "[]",
	} {
		env := []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8080/v1", "OPENAI_BASE_URL=https://example.com/v1"}
		if got := fmt.Sprint(o.forAgent(agent, env).Rules); got != want {
			t.Errorf("%s reaches %s, want %s", agent, got, want)
		}
	}
}
