package gitcmd

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// Resolver returns the addresses of a host name.
type Resolver func(ctx context.Context, host string) ([]netip.Addr, error)

// Dialer opens a connection to a literal address.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// proxy is an HTTP proxy on the loopback interface that git has to use. Each call
// gets a grant: a random name and password that open the way to one host and
// port, for as long as the call runs. The name is resolved here and the
// connection is made to the very addresses that were checked, so a name that
// resolves differently a moment later (DNS rebinding) gains nothing.
type proxy struct {
	resolve Resolver
	dial    Dialer
	relay   *http.Transport // for plain http

	mu     sync.Mutex // guards what follows
	server *http.Server
	listen net.Listener
	done   chan struct{} // closed when the server's goroutine has ended
	grants map[string]*grant
	closed bool
}

// grant is the permission of one call.
type grant struct {
	proxy    *proxy
	endpoint Endpoint
	name     string
	password string
	url      string // of the proxy, with name and password

	mu       sync.Mutex // guards what follows
	refused  string
	received int64
	tooMuch  bool
	conns    map[net.Conn]struct{}
	ended    bool
}

func newProxy(resolve Resolver, dial Dialer) *proxy {
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	}
	p := &proxy{resolve: resolve, dial: dial, grants: map[string]*grant{}}
	p.relay = &http.Transport{
		DisableKeepAlives:     true, // a connection belongs to one grant
		DisableCompression:    true,
		ResponseHeaderTimeout: 2 * time.Minute,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			g, ok := ctx.Value(grantKey{}).(*grant)
			if !ok {
				return nil, errors.New("no grant")
			}
			return g.connect(ctx)
		},
	}
	return p
}

type grantKey struct{}

func (p *proxy) grant(e Endpoint) (*grant, error) {
	if e.Scheme != "https" && (e.Scheme != "http" || !e.Loopback) {
		return nil, fault.Newf(fault.Invalid, "I do not use %s.", e.Scheme)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.startLocked(); err != nil {
		return nil, err
	}
	g := &grant{proxy: p, endpoint: e, name: rand.Text(), password: rand.Text(), conns: map[net.Conn]struct{}{}}
	g.url = (&url.URL{Scheme: "http", User: url.UserPassword(g.name, g.password), Host: p.listen.Addr().String()}).String()
	p.grants[g.name] = g
	return g, nil
}

func (p *proxy) startLocked() error {
	switch {
	case p.closed:
		return fault.New(fault.Unavailable, "The program is stopping.")
	case p.server != nil:
		return nil
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a local port; it does not wait
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "listening for git")
	}
	p.listen, p.done = listen, make(chan struct{})
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	go func(server *http.Server, done chan struct{}) { // ended by close
		defer close(done)
		_ = server.Serve(listen)
	}(p.server, p.done)
	return nil
}

func (p *proxy) close() error {
	p.mu.Lock()
	p.closed = true
	server, done := p.server, p.done
	grants := make([]*grant, 0, len(p.grants))
	for _, g := range p.grants {
		grants = append(grants, g)
	}
	p.mu.Unlock()
	for _, g := range grants {
		g.end()
	}
	p.relay.CloseIdleConnections()
	if server == nil {
		return nil
	}
	err := server.Close()
	<-done
	return err
}

// ServeHTTP serves CONNECT for https, and for plain http whole requests.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := p.authenticate(r)
	if g == nil {
		w.Header().Set("Proxy-Authenticate", `Basic realm="git"`)
		http.Error(w, "proxy authentication required", http.StatusProxyAuthRequired)
		return
	}
	target, scheme := r.Host, "https"
	if r.Method != http.MethodConnect {
		target, scheme = r.URL.Host, r.URL.Scheme
		if r.URL.Port() == "" {
			target += ":80"
		}
	}
	if !strings.EqualFold(target, g.endpoint.Address) || scheme != g.endpoint.Scheme {
		g.refuse("git wanted to go to another address than that of the repository; I did not let it.")
		http.Error(w, "not this address", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, g)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), grantKey{}, g))
	(&httputil.ReverseProxy{
		Transport:     p.relay,
		FlushInterval: -1,
		Rewrite:       func(*httputil.ProxyRequest) {}, // the address is already whole; Proxy-* headers are dropped
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}).ServeHTTP(w, r)
}

func (p *proxy) authenticate(r *http.Request) *grant {
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

// tunnel copies bytes both ways until either side ends or the grant does.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, g *grant) {
	upstream, err := g.connect(r.Context())
	if err != nil {
		http.Error(w, "no connection", http.StatusBadGateway)
		return
	}
	defer func() { _ = upstream.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	if !g.track(client) {
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	sent := make(chan struct{})
	go func() { // ends when either connection is closed, at the latest below
		defer close(sent)
		_, _ = io.Copy(upstream, buffered)
		if half, ok := upstream.(*counted).Conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(client, upstream)
	_ = client.Close()
	_ = upstream.Close()
	<-sent
}

// connect opens a connection to the endpoint, after checking every address that
// its name resolves to.
func (g *grant) connect(ctx context.Context) (net.Conn, error) {
	host, port, err := net.SplitHostPort(g.endpoint.Address)
	if err != nil {
		return nil, err
	}
	addrs, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, a := range addrs {
		conn, err := g.proxy.dial(ctx, "tcp", net.JoinHostPort(a.String(), port))
		if err != nil {
			last = err
			continue
		}
		if !g.track(conn) {
			_ = conn.Close()
			return nil, errors.New("the call is over")
		}
		return &counted{Conn: conn, grant: g}, nil
	}
	return nil, fmt.Errorf("connecting: %w", last)
}

func (g *grant) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if g.endpoint.Loopback {
		if host == "localhost" {
			return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
		}
		a, err := netip.ParseAddr(host)
		if err != nil || !a.IsLoopback() {
			return nil, errors.New("not a loopback address")
		}
		return []netip.Addr{a}, nil
	}
	addrs, err := g.proxy.resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolving: %w", err)
	}
	if len(addrs) == 0 {
		return nil, errors.New("the name has no address")
	}
	out := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		a = a.Unmap().WithZone("")
		if !Public(a) {
			g.refuse("The name " + host + " leads to an address that is not public; I do not connect to it.")
			return nil, errors.New("not a public address")
		}
		out = append(out, a)
	}
	return out, nil
}

func (g *grant) refuse(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = why
}

// refusal returns why the proxy refused the call something, and whether more was
// received than may be.
func (g *grant) refusal() (why string, tooMuch bool) {
	if g == nil {
		return "", false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused, g.tooMuch
}

func (g *grant) track(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.conns[c] = struct{}{}
	return true
}

func (g *grant) count(n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.received += int64(n)
	if g.endpoint.MaxBytes > 0 && g.received > g.endpoint.MaxBytes {
		g.tooMuch = true
		return errTooBig
	}
	return nil
}

// end takes the permission back and closes the connections of the call.
func (g *grant) end() {
	if g == nil {
		return
	}
	g.proxy.mu.Lock()
	delete(g.proxy.grants, g.name)
	g.proxy.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
}

// counted counts what is received and forgets the connection when it is closed.
type counted struct {
	net.Conn
	grant *grant
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if over := c.grant.count(n); over != nil {
		return 0, over
	}
	return n, err
}

func (c *counted) Close() error {
	c.grant.mu.Lock()
	delete(c.grant.conns, c.Conn)
	c.grant.mu.Unlock()
	return c.Conn.Close()
}
