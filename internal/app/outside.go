package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/egress"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/pattern"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/tool/mcp"
)

// proxyPort is where a program finds the proxy, in a network namespace of its own.
const proxyPort = 3128

// outside is the way to the network for programs of assistants: each has a list of
// hosts. It is safe for concurrent use.
type outside struct {
	runner *sandbox.Runner
	proxy  *egress.Proxy
	off    bool // SANDBOX=off
	shut   bool // nothing may be reached, whatever the lists say
	tools  []egress.Rule
	agents map[assistant.Name][]egress.Rule // what the operator added; "" for all

	mu   sync.Mutex
	open map[string]*egress.Grant // of programs without a namespace, by who they are
}

// openOutside reads the lists of hosts. What is wrong with them is a fault.Invalid
// that names the option.
func (ps *programs) openOutside() (*outside, error) {
	o := &outside{
		runner: ps.runner, off: ps.config.Tools.Sandbox == string(sandbox.Off),
		agents: make(map[assistant.Name][]egress.Rule), open: make(map[string]*egress.Grant),
		proxy: egress.New(egress.Config{Resolve: ps.env.Resolve, Dial: ps.env.Dial, Log: ps.log, Observe: ps.observe}),
	}
	var err error
	if o.tools, err = hostRules("TOOL_HOSTS", ps.config.Tools.Hosts); err != nil {
		return nil, err
	}
	for _, entry := range ps.config.Agents.Hosts {
		name, host, own := strings.Cut(entry, "=")
		if !own {
			name, host = "", entry
		}
		rules, err := hostRules("AGENT_HOSTS", []string{host})
		if err != nil {
			return nil, err
		}
		o.agents[assistant.Name(name)] = append(o.agents[assistant.Name(name)], rules...)
	}
	return o, nil
}

func hostRules(option string, hosts []string) ([]egress.Rule, error) {
	rules := make([]egress.Rule, 0, len(hosts))
	for _, host := range hosts {
		rule, err := egress.ParseRule(host)
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "%s: %s.", option, fault.Public(err))
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// providers are the hosts that the known agents talk to: their API, and where a
// login is renewed.
var providers = map[assistant.Name][]string{
	acp.ClaudeName: {"api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"},
	acp.CodexName:  {"api.openai.com", "chatgpt.com", "auth.openai.com"},
}

// addresses are the variables with the address of a provider.
var addresses = map[assistant.Name]string{acp.ClaudeName: "ANTHROPIC_BASE_URL", acp.CodexName: "OPENAI_BASE_URL"}

// forAgent is what an agent with an environment may reach.
func (o *outside) forAgent(name assistant.Name, env []string) egress.Policy {
	rules, _ := hostRules("", providers[name]) // they are right
	for _, entry := range env {
		if variable, value, _ := strings.Cut(entry, "="); variable == addresses[name] && variable != "" {
			rules = append(rules, ruleOf(value)...)
		}
	}
	return egress.Policy{
		Who: fmt.Sprintf("the agent %q", name), Kind: "agent", Rules: slices.Concat(rules, o.agents[""], o.agents[name]),
		Remedy: "To allow it, set AGENT_HOSTS=" + string(name) + "=%s",
	}
}

// ruleOf allows the host of an address that the operator configured.
func ruleOf(address string) []egress.Rule {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	rule, err := egress.ParseRule(net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil
	}
	return []egress.Rule{rule}
}

// forTools is what commands of the bash tool may reach.
func (o *outside) forTools() egress.Policy {
	return egress.Policy{Who: "a command", Kind: "tool", Rules: o.tools, Remedy: "To allow it, set TOOL_HOSTS=%s"}
}

// note tells a model what its commands reach.
func (o *outside) note() string {
	switch {
	case o.off:
		return ""
	case len(o.tools) == 0:
		return "There is no network: TOOL_HOSTS is empty."
	}
	return "Only these hosts can be reached, through the proxy in HTTPS_PROXY: " + strings.Join(lists.Map(o.tools, egress.Rule.String), ", ") + "."
}

// confined reports whether a program with a network reaches its hosts only.
func (o *outside) confined() bool { return o.runner.Level().Network }

// line says how programs with a network are kept to their hosts.
func (o *outside) line() string {
	switch level := o.runner.Level(); {
	case level.Network:
		return "each program can reach only its listed hosts"
	case o.off:
		return "NOT limited: with SANDBOX=off, agents, MCP servers and commands can reach every address this machine can"
	case level.Mode == sandbox.Strict:
		return "none for agents, MCP servers and commands: this system has no network namespaces, and SANDBOX=strict starts nothing that needs the network"
	default:
		return "NOT limited to listed hosts: this system has no network namespaces, so agents, MCP servers and commands with network access can bypass the proxy"
	}
}

// connect gives a program its way to the network: a namespace of its own whose only
// way out is the proxy and, for servers on this machine that the operator named,
// their ports. Without namespaces it has the network of this machine, with the
// proxy in its environment and, from Landlock 4 on, no other ports.
func (o *outside) connect(spec *sandbox.Spec, policy egress.Policy) error {
	if o.off {
		spec.Network = true
		return nil
	}
	if o.shut {
		policy.Rules = nil
	}
	local := egress.Local(policy.Rules)
	if o.confined() {
		port := uint16(proxyPort)
		for slices.Contains(local, port) {
			port++
		}
		spec.Outlets = []sandbox.Outlet{{Port: port, Serve: o.serve(policy, (*egress.Grant).Serve)}}
		for _, p := range local {
			address := net.JoinHostPort(loopbackHost(policy.Rules, p), strconv.Itoa(int(p)))
			spec.Outlets = append(spec.Outlets, sandbox.Outlet{Port: p, Serve: o.serve(policy, func(g *egress.Grant, l net.Listener) { g.Forward(l, address) })})
		}
		spec.Env = append(slices.Clone(spec.Env), proxyEnv("http://127.0.0.1:"+strconv.Itoa(int(port)))...)
		return nil
	}
	address, port, err := o.shared(policy)
	if err != nil {
		return err
	}
	spec.Network, spec.Ports = true, slices.Concat(local, []uint16{port})
	spec.Env = append(slices.Clone(spec.Env), proxyEnv(address)...)
	return nil
}

// offer gives a program what serve serves, at the address that is returned, until the program
// has ended; then release is called. It comes after connect. Without namespaces, other
// programs of this machine reach the address as well.
func (o *outside) offer(spec *sandbox.Spec, serve func(net.Listener)) (address string, release func(), err error) {
	if o.confined() {
		port := uint16(proxyPort)
		for slices.ContainsFunc(spec.Outlets, func(other sandbox.Outlet) bool { return other.Port == port }) {
			port++
		}
		spec.Outlets = append(spec.Outlets, sandbox.Outlet{Port: port, Serve: serve})
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), func() {}, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it takes no time
	if err != nil {
		return "", nil, fault.Wrap(err, fault.Unavailable, "offer something to a program")
	}
	if len(spec.Ports) > 0 {
		spec.Ports = append(spec.Ports, l.Addr().(*net.TCPAddr).AddrPort().Port()) //nolint:forcetypeassert // it listens for TCP
	}
	var serving sync.WaitGroup
	serving.Go(func() { serve(l) })
	return l.Addr().String(), func() {
		_ = l.Close()
		serving.Wait()
	}, nil
}

// serve serves an outlet as long as its program runs.
func (o *outside) serve(policy egress.Policy, how func(*egress.Grant, net.Listener)) func(net.Listener) {
	return func(l net.Listener) {
		g, err := o.proxy.Grant(policy)
		if err != nil {
			_ = l.Close() // the service is stopping
			return
		}
		defer g.End()
		how(g, l)
	}
}

// shared returns the address of the proxy, with a password, for programs without a
// namespace.
func (o *outside) shared(policy egress.Policy) (address string, port uint16, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := policy.Who + fmt.Sprint(policy.Rules)
	g := o.open[key]
	if g == nil {
		if g, err = o.proxy.Grant(policy); err != nil {
			return "", 0, err
		}
		o.open[key] = g
	}
	if address, err = g.URL(); err != nil {
		return "", 0, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", 0, fault.Wrap(err, fault.Internal, "the address of the proxy")
	}
	number, err := strconv.ParseUint(u.Port(), 10, 16)
	return address, uint16(number), fault.Wrap(err, fault.Internal, "the port of the proxy")
}

// loopbackHost is how the operator called this machine for a port.
func loopbackHost(rules []egress.Rule, port uint16) string {
	for _, r := range rules {
		if r.Port == port && r.Inside && len(egress.Local([]egress.Rule{r})) > 0 {
			return r.Host
		}
	}
	return "127.0.0.1"
}

// proxyEnv are the variables by which programs find a proxy. Node looks at them
// only if it is told to. What a program serves to itself needs none.
func proxyEnv(address string) []string {
	env := []string{"NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+address, strings.ToLower(name)+"="+address)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+own, "no_proxy="+own)
}

// startServer starts the program of an MCP server with the hosts that its entry
// names.
func (o *outside) startServer(home string) func(context.Context, mcp.Server) (*mcp.Process, error) {
	return func(ctx context.Context, s mcp.Server) (*mcp.Process, error) {
		rules, err := hostRules(fmt.Sprintf("hosts of the MCP server %q", s.Name), s.Hosts)
		if err != nil {
			return nil, err
		}
		spec := sandbox.Spec{Home: home}
		err = o.connect(&spec, egress.Policy{ //nolint:contextcheck // connections live as long as the program
			Who: fmt.Sprintf("the MCP server %q", s.Name), Kind: "mcp", Rules: rules, Remedy: `To allow it, add "hosts": ["%s"] to the entry of that server`,
		})
		if err != nil {
			return nil, err
		}
		return mcp.Sandboxed(o.runner, spec)(ctx, s)
	}
}

// owners say whose a variable is by its name.
var owners = map[assistant.Name]pattern.Pattern{
	acp.ClaudeName: pattern.Lazy(`^(ANTHROPIC|CLAUDE)_`), acp.CodexName: pattern.Lazy(`^(OPENAI|CODEX)_`),
}

// agentVariables are the variables of AGENT_ENV that an agent gets: what is given
// to it by name, what has the name of its provider, and what is neither of another
// provider nor a secret. Agents of the operator's own get secrets of no provider,
// too.
func agentVariables(agent assistant.Name, names []string) []string {
	var out []string
	for _, entry := range names {
		to, name, own := strings.Cut(entry, "=")
		if own {
			if to == string(agent) {
				out = append(out, name)
			}
			continue
		}
		name = entry
		of := assistant.Name("")
		for owner, form := range owners {
			if form.MatchString(name) {
				of = owner
			}
		}
		_, preset := owners[agent]
		if of == agent || of == "" && (!preset || !secretName.MatchString(name)) {
			out = append(out, name)
		}
	}
	return out
}
