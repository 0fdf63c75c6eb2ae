package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"remote-agent/internal/fault"
)

// Grant is the permission of one program. It is safe for concurrent use.
type Grant struct {
	proxy    *Proxy
	policy   Policy
	name     string
	password string
	life     context.Context // until End
	stop     context.CancelFunc
	work     sync.WaitGroup // of connections; Go is called with mu held

	mu       sync.Mutex // guards what follows
	refused  string
	received int64
	tooMuch  bool
	conns    map[net.Conn]struct{}
	told     map[string]bool // what the log has already
	ended    bool
}

// URL returns the proxy's address with a name and a password, for a program in the
// network of this process.
func (g *Grant) URL() (string, error) {
	address, err := g.proxy.address()
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "http", User: url.UserPassword(g.name, g.password), Host: address}).String(), nil
}

// Secrets are the parts of URL that are for nobody else.
func (g *Grant) Secrets() []string { return []string{g.name, g.password} }

// Serve is the proxy for whoever reaches l, without a password, until l is closed.
func (g *Grant) Serve(l net.Listener) {
	server := newServer(http.HandlerFunc(g.serve))
	_ = server.Serve(l)
	_ = server.Close()
}

// Forward connects whoever reaches l to an address of the policy, such as that of a
// model on this machine, until l is closed.
func (g *Grant) Forward(l net.Listener, address string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		if !g.track(client) {
			_ = client.Close()
			continue
		}
		g.run(func() {
			defer g.drop(client)
			if upstream, err := g.connect(address); err == nil {
				g.join(client, client, upstream)
			}
		})
	}
}

// run does something that End waits for.
func (g *Grant) run(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.work.Go(f)
	}
}

// serve serves CONNECT for https, and for plain http whole requests.
func (g *Grant) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		g.tunnel(w, r)
		return
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" {
		http.Error(w, "this is a proxy: ask for http://host/ or CONNECT host:port", http.StatusBadRequest)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), grantKey{}, g))
	(&httputil.ReverseProxy{
		Transport:     g.proxy.relay,
		FlushInterval: -1,
		Rewrite:       func(*httputil.ProxyRequest) {}, // the address is already whole; Proxy-* headers are dropped
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { deny(w, err) },
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}).ServeHTTP(w, r)
}

// deny answers a wish that came to nothing.
func deny(w http.ResponseWriter, err error) {
	if refusal, ok := errors.AsType[*fault.Error](err); ok && refusal.Kind == fault.Forbidden {
		w.Header().Set("X-Refused-By", "remote-agent")
		http.Error(w, refusal.Public, http.StatusForbidden)
		return
	}
	http.Error(w, "no connection", http.StatusBadGateway)
}

// tunnel copies bytes both ways until either side ends or the grant does.
func (g *Grant) tunnel(w http.ResponseWriter, r *http.Request) {
	upstream, err := g.connect(r.Host) //nolint:contextcheck // it lives as long as the grant
	if err != nil {
		deny(w, err)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = upstream.Close()
		return
	}
	defer g.drop(client)
	if !g.track(client) {
		_ = upstream.Close()
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = upstream.Close()
		return
	}
	g.join(client, buffered, upstream)
}

// join copies both ways and closes both. in has what the client sends.
func (g *Grant) join(client net.Conn, in io.Reader, upstream net.Conn) {
	sent := make(chan struct{})
	go func() { // ends when either connection is closed, at the latest below
		defer close(sent)
		_, _ = io.Copy(upstream, in)
		if half, ok := upstream.(*counted).Conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(client, upstream)
	_ = client.Close()
	_ = upstream.Close()
	<-sent
}

// connect opens a connection to "host:port", after checking the list and every
// address that the name resolves to.
func (g *Grant) connect(target string) (net.Conn, error) {
	conn, err := g.dial(target)
	outcome := Connected
	switch {
	case fault.Is(err, fault.Forbidden):
		outcome = Refused
	case err != nil:
		outcome = Failed
	}
	g.proxy.cfg.Observe(g.policy.Kind, outcome)
	g.tell(target, outcome, err)
	return conn, err
}

// tell logs a connection, the first of each kind only.
func (g *Grant) tell(target, outcome string, err error) {
	if len(target) > 300 {
		target = target[:300]
	}
	key := outcome + " " + target
	g.mu.Lock()
	first := !g.told[key] && len(g.told) < 1000
	if first {
		g.told[key] = true
	}
	if outcome == Refused {
		g.refused = fault.Public(err)
	}
	g.mu.Unlock()
	if !first {
		return
	}
	log := g.proxy.cfg.Log.With("who", g.policy.Who, "to", target)
	switch outcome {
	case Connected:
		log.Info("a program uses the network")
	case Refused:
		log.Warn("a program was refused the network", "reason", fault.Public(err))
	default:
		log.Info("a program could not be connected", "err", err)
	}
}

func (g *Grant) dial(target string) (net.Conn, error) {
	name, portText, err := net.SplitHostPort(target)
	if err != nil {
		name, portText = target, strconv.Itoa(portHTTP) // as in http://host/
	}
	number, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "%q has no port", target)
	}
	host := strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	rule, ok := match(g.policy.Rules, host, uint16(number))
	if !ok {
		return nil, g.refusal(host, portText, "it is not in the list of allowed hosts")
	}
	ctx, cancel := context.WithTimeout(g.life, connectTime)
	defer cancel()
	addrs, err := g.addresses(ctx, rule, host, portText)
	if err != nil {
		return nil, err
	}
	var last error
	for _, a := range addrs {
		conn, err := g.proxy.cfg.Dial(ctx, "tcp", net.JoinHostPort(a.String(), portText))
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

// refusal says what was refused, why, and how it is allowed.
func (g *Grant) refusal(host, port, why string) error {
	target := host
	if port != strconv.Itoa(portHTTPS) {
		target = net.JoinHostPort(host, port)
	}
	text := fmt.Sprintf("The connection of %s to %s was refused: %s.", g.policy.Who, target, why)
	if g.policy.Remedy != "" {
		text += " " + fmt.Sprintf(g.policy.Remedy, target)
	}
	return fault.New(fault.Forbidden, text)
}

// addresses resolves a host and checks every address.
func (g *Grant) addresses(ctx context.Context, rule Rule, host, port string) ([]netip.Addr, error) {
	if host == "localhost" && rule.Inside {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if !Public(a) && !rule.Inside {
			return nil, g.refusal(host, port, "the address is not public")
		}
		return []netip.Addr{a}, nil
	}
	addrs, err := g.proxy.cfg.Resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolving: %w", err)
	}
	if len(addrs) == 0 {
		return nil, errors.New("the name has no address")
	}
	out := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		a = a.Unmap().WithZone("")
		if !Public(a) && (!rule.Inside || !a.IsPrivate()) {
			return nil, g.refusal(host, port, "the name resolves to an address that is not public")
		}
		out = append(out, a)
	}
	return out, nil
}

// Refusal returns why something was refused last, and whether more was received
// than may be. A nil Grant refused nothing.
func (g *Grant) Refusal() (why string, tooMuch bool) {
	if g == nil {
		return "", false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused, g.tooMuch
}

func (g *Grant) track(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.conns[c] = struct{}{}
	return true
}

// drop closes a connection.
func (g *Grant) drop(c net.Conn) {
	g.mu.Lock()
	delete(g.conns, c)
	g.mu.Unlock()
	_ = c.Close()
}

// errTooMuch ends a connection that has received more than the grant allows.
var errTooMuch = errors.New("more was received than may be")

func (g *Grant) count(n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.received += int64(n)
	if g.policy.MaxBytes > 0 && g.received > g.policy.MaxBytes {
		g.tooMuch = true
		return errTooMuch
	}
	return nil
}

// End takes the permission back and closes its connections. A nil Grant has
// ended.
func (g *Grant) End() {
	if g == nil {
		return
	}
	g.proxy.mu.Lock()
	delete(g.proxy.grants, g.name)
	g.proxy.mu.Unlock()
	g.mu.Lock()
	g.ended = true
	for c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
	g.mu.Unlock()
	g.stop()
	g.work.Wait()
}

// counted counts what is received and forgets the connection when it is closed.
type counted struct {
	net.Conn
	grant *Grant
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
