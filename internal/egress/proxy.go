// Package egress is the way out for programs that the service runs: a proxy in
// this process that connects each of them to the hosts of its list and to nothing
// else.
//
// A name is resolved here, every address is checked, and the connection is made
// to the very addresses that were checked, so a name that resolves differently a
// moment later (DNS rebinding) gains nothing, and neither does a redirect: it is
// another connection, which is checked again. Addresses of this machine, of
// private networks and of links are reached only where an operator named exactly
// that host and port.
package egress

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// Resolver returns the addresses of a host name.
type Resolver func(ctx context.Context, host string) ([]netip.Addr, error)

// Dialer opens a connection to a literal address.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Outcomes of a wish to connect, for Config.Observe.
const (
	Connected = "connected"
	Refused   = "refused" // by the list, or because of an address
	Failed    = "failed"  // nobody answered, or there is no such name
)

// connectTime bounds resolving and connecting.
const connectTime = 30 * time.Second

// Config is what New needs. Every field may be zero.
type Config struct {
	// Resolve and Dial are for tests. They replace the system's resolver and the
	// dialer, which is given checked literal addresses only.
	Resolve Resolver
	Dial    Dialer

	Log *slog.Logger

	// Observe is told of every wish to connect: the kind of the policy and one of
	// the outcomes. It does not wait.
	Observe func(kind, outcome string)
}

// Proxy connects programs. It is safe for concurrent use. Close it when done.
type Proxy struct {
	cfg   Config
	relay *http.Transport // for plain http

	mu     sync.Mutex // guards what follows
	server *http.Server
	listen net.Listener
	done   chan struct{} // closed when the server's goroutine has ended
	grants map[string]*Grant
	closed bool
}

// New returns a proxy. It listens on nothing until somebody asks for a URL.
func New(cfg Config) *Proxy {
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string, string) {}
	}
	p := &Proxy{cfg: cfg, grants: map[string]*Grant{}}
	p.relay = &http.Transport{
		DisableKeepAlives:     true, // a connection belongs to one grant
		DisableCompression:    true,
		ResponseHeaderTimeout: 2 * time.Minute,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			g, ok := ctx.Value(grantKey{}).(*Grant)
			if !ok {
				return nil, errors.New("no grant")
			}
			return g.connect(address) //nolint:contextcheck // it lives as long as the grant
		},
	}
	return p
}

type grantKey struct{}

// Policy says what a program may reach.
type Policy struct {
	Who   string // for people and the log, such as: the agent "claude"
	Kind  string // for figures: git, agent, mcp or tool
	Rules []Rule

	// Remedy tells an operator how a host is allowed; %s stands for the host.
	Remedy string

	MaxBytes int64 // received; zero: no limit
}

// Grant makes a permission, which lasts until its End.
func (p *Proxy) Grant(policy Policy) (*Grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fault.New(fault.Unavailable, "The program is stopping.")
	}
	g := &Grant{
		proxy: p, policy: policy, name: rand.Text(), password: rand.Text(),
		conns: map[net.Conn]struct{}{}, told: map[string]bool{},
	}
	g.life, g.stop = context.WithCancel(context.Background())
	p.grants[g.name] = g
	return g, nil
}

// Close ends all grants and what listens.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	server, done := p.server, p.done
	grants := slices.Collect(maps.Values(p.grants))
	p.mu.Unlock()
	for _, g := range grants {
		g.End()
	}
	p.relay.CloseIdleConnections()
	if server == nil {
		return nil
	}
	err := server.Close()
	<-done
	return err
}

// address returns where the proxy listens for those who have a password.
func (p *Proxy) address() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return "", fault.New(fault.Unavailable, "The program is stopping.")
	case p.server != nil:
		return p.listen.Addr().String(), nil
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a local port; it does not wait
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "listening for programs")
	}
	p.listen, p.done = listen, make(chan struct{})
	p.server = newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g := p.authenticate(r); g != nil {
			g.serve(w, r)
			return
		}
		w.Header().Set("Proxy-Authenticate", `Basic realm="egress"`)
		http.Error(w, "proxy authentication required", http.StatusProxyAuthRequired)
	}))
	go func(server *http.Server, done chan struct{}) { // ended by Close
		defer close(done)
		_ = server.Serve(listen)
	}(p.server, p.done)
	return listen.Addr().String(), nil
}

func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // what programs send is not for the log
	}
}

func (p *Proxy) authenticate(r *http.Request) *Grant {
	header := http.Request{Header: http.Header{"Authorization": r.Header.Values("Proxy-Authorization")}}
	name, password, ok := header.BasicAuth()
	if !ok {
		return nil
	}
	p.mu.Lock()
	g := p.grants[name]
	p.mu.Unlock()
	if g == nil || subtle.ConstantTimeCompare([]byte(password), []byte(g.password)) != 1 {
		return nil
	}
	return g
}
