package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/egress"
	"remote-agent/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"140.82.121.4": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "2a00:1450::1": true,
		"100.63.255.255": true, "100.128.0.1": true, "172.15.0.1": true, "172.32.0.1": true,
		"100.127.255.255": false, "172.31.255.255": false, "192.88.99.1": false, "239.1.1.1": false, "64:ff9b:1::1": false, "3fff::1": false,
		"2606:4700::1%eth0": false, "fe80::1%eth0": false,
		"127.0.0.1": false, "127.8.8.8": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.0.1": false, "169.254.169.254": false,
		"0.0.0.0": false, "0.1.2.3": false, "100.64.0.1": false, "192.0.0.1": false, "192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false,
		"203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "ff02::1": false, "fec0::1": false, "100::1": false,
	} {
		if got := egress.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) = %v", text, got)
		}
	}
	if egress.Public(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]egress.Rule{
		"api.Example.com":    {Host: "api.example.com", Port: 443},
		" example.com. ":     {Host: "example.com", Port: 443}, //nolint:gocritic // as people paste it
		"example.com:8443":   {Host: "example.com", Port: 8443, Inside: true},
		"*.example.com":      {Host: "*.example.com", Port: 443},
		"*.example.com:444":  {Host: "*.example.com", Port: 444},
		"*":                  {Host: "*"},
		"*:8080":             {Host: "*", Port: 8080},
		"127.0.0.1:8080":     {Host: "127.0.0.1", Port: 8080, Inside: true},
		"[::1]:8080":         {Host: "::1", Port: 8080, Inside: true},
		"localhost:1":        {Host: "localhost", Port: 1, Inside: true},
		"example.com:443":    {Host: "example.com", Port: 443, Inside: true},
		"[::ffff:1.1.1.1]:2": {Host: "1.1.1.1", Port: 2, Inside: true},
		"1.1.1.1":            {Host: "1.1.1.1", Port: 443},
	} {
		got, err := egress.ParseRule(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := egress.ParseRule(got.String()); err != nil || again != want {
			t.Errorf("%q is written %q, which is %+v, %v", text, got, again, err)
		}
	}
	for text, part := range map[string]string{
		"https://example.com": "leave out https://", "example.com/x": "leave out", "": "is not a host", "a b": "is not a host", "127.0.0.1": "allow it with its port",
		"10.0.0.1": "allow it with its port", "::1": "allow it with its port", "example.com:0": "1 to 65535", "example.com:99999": "1 to 65535", "exa*mple.com": "is not a host",
		"-x.example": "is not a host", "example.com:http": "1 to 65535", strings.Repeat("a.", 200) + "com": "is not a host", "user@example.com": "is not a host",
	} {
		if _, err := egress.ParseRule(text); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), part) {
			t.Errorf("%q: %v, want %q", text, err, part)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, text := range []string{"example.com", "*.a:1", "[::1]:2", "*", "127.0.0.1:3", "localhost:4", "::ffff:1.2.3.4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := egress.ParseRule(text)
		if err != nil {
			return
		}
		again, err := egress.ParseRule(rule.String())
		if err != nil || again != rule {
			t.Errorf("%q is %+v, which is written %q and read as %+v, %v", text, rule, rule, again, err)
		}
	})
}

// world is a network that no packet leaves: names resolve as it says, and whatever
// is dialed arrives at one server on the loopback interface.
type world struct {
	mu      sync.Mutex
	names   map[string][][]netip.Addr // answers, the last one again and again
	dialed  []string
	counted []string
	server  *httptest.Server
	proxy   *egress.Proxy
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{names: map[string][][]netip.Addr{}}
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(out, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(out, "hello from "+r.Host)
	}))
	t.Cleanup(w.server.Close)
	w.proxy = egress.New(egress.Config{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			answers := w.names[host]
			if len(answers) == 0 {
				return nil, errors.New("no such host")
			}
			if len(answers) > 1 {
				w.names[host] = answers[1:]
			}
			return answers[0], nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.mu.Lock()
			w.dialed = append(w.dialed, address)
			w.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
		},
		Observe: func(kind, outcome string) {
			w.mu.Lock()
			w.counted = append(w.counted, kind+" "+outcome)
			w.mu.Unlock()
		},
	})
	t.Cleanup(func() { _ = w.proxy.Close() })
	return w
}

// client is a program with a list of hosts, behind an outlet.
func (w *world) client(t *testing.T, hosts ...string) *http.Client {
	t.Helper()
	policy := egress.Policy{Who: `the agent "x"`, Kind: "agent", Remedy: "An operator allows it with HOSTS=%s"}
	for _, h := range hosts {
		rule, err := egress.ParseRule(h)
		if err != nil {
			t.Fatal(err)
		}
		policy.Rules = append(policy.Rules, rule)
	}
	g, err := w.proxy.Grant(policy)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); g.Serve(l) }()
	t.Cleanup(func() { _ = l.Close(); g.End(); <-done })
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()}), DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// TestFinding3OnlyListedPublicHosts asks for hosts in every way that leads inside.
func TestFinding3OnlyListedPublicHosts(t *testing.T) {
	t.Parallel()
	public := addrs("140.82.121.4")
	for name, c := range map[string]struct {
		hosts   []string
		address string
		answers [][]netip.Addr
		code    int
		says    string
		dialed  []string
	}{
		"listed":              {[]string{"api.example:80"}, "http://api.example/", [][]netip.Addr{public}, 200, "hello from api.example", []string{"140.82.121.4:80"}},
		"below a name":        {[]string{"*.example:80"}, "http://a.b.example/", [][]netip.Addr{public}, 200, "hello", []string{"140.82.121.4:80"}},
		"everything":          {[]string{"*"}, "http://api.example/", [][]netip.Addr{public}, 200, "hello", []string{"140.82.121.4:80"}},
		"not listed":          {[]string{"api.example"}, "http://evil.example/", [][]netip.Addr{public}, 403, "HOSTS=evil.example:80", nil},
		"not the name itself": {[]string{"*.example:80"}, "http://example/", [][]netip.Addr{public}, 403, "not in the list", nil},
		"a name that ends so": {[]string{"*.example:80"}, "http://evilexample/", [][]netip.Addr{public}, 403, "not in the list", nil},
		"another port":        {[]string{"api.example"}, "http://api.example/", [][]netip.Addr{public}, 403, "HOSTS=api.example:80", nil},
		"loopback":            {[]string{"*"}, "http://127.0.0.1/", nil, 403, "not public", nil},
		"metadata":            {[]string{"*"}, "http://169.254.169.254/latest", nil, 403, "not public", nil},
		"private":             {[]string{"*"}, "http://10.0.0.1/", nil, 403, "not public", nil},
		"mapped":              {[]string{"*"}, "http://[::ffff:127.0.0.1]/", nil, 403, "not public", nil},
		"localhost":           {[]string{"*"}, "http://localhost/", [][]netip.Addr{addrs("127.0.0.1")}, 403, "not public", nil},
		"leads inside":        {[]string{"api.example", "*"}, "http://api.example/", [][]netip.Addr{addrs("127.0.0.1")}, 403, "not public", nil},
		"one of two":          {[]string{"*"}, "http://api.example/", [][]netip.Addr{addrs("140.82.121.4", "10.0.0.1")}, 403, "not public", nil},
		"named inside":        {[]string{"model.lan:80"}, "http://model.lan/", [][]netip.Addr{addrs("10.0.0.7")}, 200, "hello", []string{"10.0.0.7:80"}},
		"rebinds to itself":   {[]string{"model.lan:80"}, "http://model.lan/", [][]netip.Addr{addrs("127.0.0.1")}, 403, "not public", nil},
		"rebinds to a link":   {[]string{"model.lan:80"}, "http://model.lan/", [][]netip.Addr{addrs("169.254.169.254")}, 403, "not public", nil},
		"named loopback":      {[]string{"127.0.0.1:8080"}, "http://127.0.0.1:8080/", nil, 200, "hello", []string{"127.0.0.1:8080"}},
		"loopback elsewhere":  {[]string{"127.0.0.1:8080"}, "http://127.0.0.1:8081/", nil, 403, "not in the list", nil},
		"no such name":        {[]string{"*"}, "http://nowhere.example/", nil, 502, "no connection", nil},
		"as people write it":  {[]string{"api.example:80"}, "http://API.Example./", [][]netip.Addr{public}, 200, "hello", []string{"140.82.121.4:80"}},
		"everything, not ssh": {[]string{"*"}, "http://api.example:22/", [][]netip.Addr{public}, 403, "not in the list", nil},
		"named besides":       {[]string{"*:81", "model.lan:81"}, "http://model.lan:81/", [][]netip.Addr{addrs("10.0.0.7")}, 200, "hello", []string{"10.0.0.7:81"}},
		"public address":      {[]string{"*"}, "http://140.82.121.4/", nil, 200, "hello", []string{"140.82.121.4:80"}},
		"named localhost":     {[]string{"localhost:81"}, "http://localhost:81/", nil, 200, "hello", []string{"127.0.0.1:81"}},
		"no address":          {[]string{"*"}, "http://empty.example/", [][]netip.Addr{{}}, 502, "no connection", nil},
		"https of everything": {[]string{"*"}, "http://api.example:443/", [][]netip.Addr{public}, 200, "hello", []string{"140.82.121.4:443"}},
		"named before":        {[]string{"model.lan:80", "*"}, "http://model.lan/", [][]netip.Addr{addrs("10.0.0.7")}, 200, "hello", []string{"10.0.0.7:80"}},
		"nobody listed":       {nil, "http://api.example/", [][]netip.Addr{public}, 403, "not in the list", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if u, _ := url.Parse(c.address); c.answers != nil {
				w.names[strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")] = c.answers
			}
			code, text := get(t, w.client(t, c.hosts...), c.address)
			if code != c.code || !strings.Contains(text, c.says) {
				t.Errorf("%d %q, want %d %q", code, text, c.code, c.says)
			}
			if diff := cmp.Diff(c.dialed, w.dialed); diff != "" {
				t.Errorf("dialed:\n%s", diff)
			}
			want := map[int]string{200: "agent connected", 403: "agent refused", 502: "agent failed"}[c.code]
			if !slices.Equal(w.counted, []string{want}) {
				t.Errorf("counted %q, want %q", w.counted, want)
			}
		})
	}
}

// TestFinding3RebindingAndRedirects: what was checked is what is dialed, and where
// an answer leads is checked like everything else.
func TestFinding3RebindingAndRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["api.example"] = [][]netip.Addr{addrs("140.82.121.4"), addrs("127.0.0.1")}
	c := w.client(t, "api.example", "api.example:80", "*")
	if code, text := get(t, c, "http://api.example/"); code != 200 {
		t.Errorf("first: %d %s", code, text)
	}
	if code, _ := get(t, c, "http://api.example/"); code != 403 {
		t.Errorf("rebound: %d", code)
	}
	w.names["web.example"] = [][]netip.Addr{addrs("140.82.121.5")}
	for _, to := range []string{"http://169.254.169.254/latest", "http://127.0.0.1/", "http://10.1.2.3/"} {
		if code, text := get(t, c, "http://web.example/?to="+url.QueryEscape(to)); code != 403 || !strings.Contains(text, "not public") {
			t.Errorf("redirect to %s: %d %s", to, code, text)
		}
	}
	for _, address := range w.dialed {
		if !strings.HasPrefix(address, "140.82.") {
			t.Errorf("dialed %s", address)
		}
	}
}

func TestTunnel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["api.example"] = [][]netip.Addr{addrs("140.82.121.4")}
	proxy, err := w.client(t, "api.example").Transport.(*http.Transport).Proxy(&http.Request{URL: &url.URL{Scheme: "http"}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"api.example:443": "200", "api.example:22": "403", "evil.example:443": "403", "127.0.0.1:443": "403", "api.example:99999": "502", "api.example": "403",
	} {
		conn, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		reader := bufio.NewReader(conn)
		line, _ := reader.ReadString('\n')
		if !strings.Contains(line, want) {
			t.Errorf("CONNECT %s: %s", target, line)
		}
		if want == "200" {
			_, _ = reader.ReadString('\n')
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: inside\r\nConnection: close\r\n\r\n")
			if text, _ := io.ReadAll(reader); !strings.Contains(string(text), "hello from inside") {
				t.Errorf("through the tunnel: %q", text)
			}
		}
		_ = conn.Close()
	}
	if diff := cmp.Diff([]string{"140.82.121.4:443"}, w.dialed); diff != "" {
		t.Errorf("dialed:\n%s", diff)
	}
}

// TestGrantEnds: what goes on is cut off, and nothing begins any more.
func TestGrantEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, err := w.proxy.Grant(egress.Policy{Rules: []egress.Rule{{Host: "127.0.0.1", Port: 7, Inside: true}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); g.Forward(l, "127.0.0.1:7") }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: forwarded\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("forwarded: %v", err)
	}
	g.End()
	if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if text, _ := io.ReadAll(late); len(text) > 0 {
		t.Errorf("after the end: %q", text)
	}
	_ = l.Close()
	<-done
	if _, err := w.proxy.Grant(egress.Policy{}); err != nil {
		t.Error(err)
	}
	if err := w.proxy.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.proxy.Grant(egress.Policy{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a grant of a closed proxy: %v", err)
	}
}
