package egress_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/egress"
)

// status asks for a page through a proxy, and returns what came.
func status(t *testing.T, proxy, address string) int {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	code, _ := get(t, &http.Client{Transport: transport}, address)
	return code
}

// granted returns a grant and the address of its proxy.
func granted(t *testing.T, proxy *egress.Proxy, policy egress.Policy) (*egress.Grant, *url.URL) {
	t.Helper()
	g, err := proxy.Grant(policy)
	if err != nil {
		t.Fatal(err)
	}
	address, err := g.URL()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return g, u
}

// TestAProxyIsOfWhoHasItsPassword: every program of this machine reaches the port, and
// each is given the hosts of its own grant.
func TestAProxyIsOfWhoHasItsPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := func(port uint16) egress.Policy {
		return egress.Policy{Rules: []egress.Rule{{Host: "127.0.0.1", Port: port, Inside: true}}}
	}
	one, own := granted(t, w.proxy, to(81))
	_, others := granted(t, w.proxy, to(82))
	if host, _, _ := net.SplitHostPort(own.Host); host != "127.0.0.1" {
		t.Errorf("it listens on %s", own.Host)
	}
	password, _ := own.User.Password()
	other, _ := others.User.Password()
	if !slices.Equal(one.Secrets(), []string{own.User.Username(), password}) {
		t.Error("the name and the password are not told as secrets")
	}
	as := func(user *url.Userinfo) string {
		u := *own
		u.User = user
		return u.String()
	}
	for name, c := range map[string]struct {
		user *url.Userinfo
		want int
	}{
		"its own":               {own.User, http.StatusOK},
		"nobody":                {nil, http.StatusProxyAuthRequired},
		"no password":           {url.UserPassword(own.User.Username(), ""), http.StatusProxyAuthRequired},
		"a part of it":          {url.UserPassword(own.User.Username(), password[:len(password)-1]), http.StatusProxyAuthRequired},
		"that of somebody else": {url.UserPassword(own.User.Username(), other), http.StatusProxyAuthRequired},
		"no such name":          {url.UserPassword("x", password), http.StatusProxyAuthRequired},
		"another grant":         {others.User, http.StatusForbidden},
	} {
		if got := status(t, as(c.user), "http://127.0.0.1:81/"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	one.End()
	if got := status(t, own.String(), "http://127.0.0.1:81/"); got != http.StatusProxyAuthRequired {
		t.Errorf("after the end: %d", got)
	}
	if got := status(t, others.String(), "http://127.0.0.1:82/"); got != http.StatusOK {
		t.Errorf("the other grant after the end of one: %d", got)
	}
}

// TestCredentialsOfTheProxyStayHere: the server that is asked learns nothing of them.
func TestCredentialsOfTheProxyStayHere(t *testing.T) {
	t.Parallel()
	heads := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heads <- r.Header.Clone() }))
	t.Cleanup(server.Close)
	proxy := egress.New(egress.Config{})
	t.Cleanup(func() { _ = proxy.Close() })
	rule, err := egress.ParseRule(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	g, err := proxy.Grant(egress.Policy{Rules: []egress.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	address, err := g.URL()
	if err != nil {
		t.Fatal(err)
	}
	if got := status(t, address, server.URL); got != http.StatusOK {
		t.Fatalf("the answer is %d", got)
	}
	for name, values := range <-heads {
		if strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded") {
			t.Errorf("the server was sent %s: %q", name, values)
		}
	}
}

// TestMoreThanMayBeReceivedIsCutOff counts over all connections of a grant.
func TestMoreThanMayBeReceivedIsCutOff(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}))
	t.Cleanup(server.Close)
	proxy := egress.New(egress.Config{})
	t.Cleanup(func() { _ = proxy.Close() })
	rule, err := egress.ParseRule(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The second answer fits in with its head, the third one not.
	g, u := granted(t, proxy, egress.Policy{Rules: []egress.Rule{rule}, MaxBytes: 2*size + size/2})
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}}
	defer c.CloseIdleConnections()
	for i := range 4 {
		received := 0
		if resp, err := c.Get(server.URL); err == nil {
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			received = len(text)
		}
		_, tooMuch := g.Refusal()
		if whole := received == size; whole != (i < 2) || tooMuch != (i >= 2) {
			t.Errorf("answer %d: %d bytes, too much: %v", i+1, received, tooMuch)
		}
	}
}

// TestWhatWasRefusedIsTold: to who asked, and afterwards to who granted it.
func TestWhatWasRefusedIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["api.example"] = [][]netip.Addr{addrs("140.82.121.4")}
	g, u := granted(t, w.proxy, egress.Policy{Who: "git", Rules: []egress.Rule{{Host: "api.example", Port: 80}}})
	transport := &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	if code, _ := get(t, c, "http://api.example/"); code != http.StatusOK {
		t.Fatalf("allowed: %d", code)
	}
	if why, _ := g.Refusal(); why != "" {
		t.Errorf("nothing was refused, but: %q", why)
	}
	resp, err := c.Get("http://evil.example/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	const want = "The connection of git to evil.example:80 was refused: it is not in the list of allowed hosts."
	text, _ := io.ReadAll(resp.Body)
	if by := resp.Header.Get("X-Refused-By"); by != "remote-agent" || strings.TrimSpace(string(text)) != want {
		t.Errorf("refused by %q: %q", by, text)
	}
	if why, _ := g.Refusal(); why != want {
		t.Errorf("the refusal is %q", why)
	}
	var none *egress.Grant
	if why, tooMuch := none.Refusal(); why != "" || tooMuch {
		t.Errorf("no grant refused %q", why)
	}
	none.End()
}

// TestWhoTakesTheProxyForAServerIsTold: a program that ignores its settings.
func TestWhoTakesTheProxyForAServerIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy, err := w.client(t, "*").Transport.(*http.Transport).Proxy(&http.Request{URL: &url.URL{Scheme: "http"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"GET / HTTP/1.1", "GET https://api.example/ HTTP/1.1"} {
		conn, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s\r\nHost: api.example\r\nConnection: close\r\n\r\n", line)
		text, _ := io.ReadAll(conn)
		if !strings.Contains(string(text), " 400 ") || !strings.Contains(string(text), "this is a proxy") {
			t.Errorf("%s: %q", line, text)
		}
		_ = conn.Close()
	}
	if len(w.dialed) != 0 {
		t.Errorf("dialed %q", w.dialed)
	}
}

// TestClosingTheProxyEndsItsGrants: no program goes on without the one that watches it.
func TestClosingTheProxyEndsItsGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(t, "127.0.0.1:81")
	if code, text := get(t, c, "http://127.0.0.1:81/"); code != http.StatusOK {
		t.Fatalf("before: %d %s", code, text)
	}
	if err := w.proxy.Close(); err != nil {
		t.Fatal(err)
	}
	if code, text := get(t, c, "http://127.0.0.1:81/"); code != http.StatusBadGateway {
		t.Errorf("after: %d %s", code, text)
	}
}

func TestLocalListsPortsOfThisMachineOnly(t *testing.T) {
	t.Parallel()
	var rules []egress.Rule
	for _, text := range []string{
		"127.0.0.1:8080", "localhost:81", "[::1]:82", "127.0.0.2:8080", "[::ffff:127.0.0.1]:83",
		"10.0.0.1:84", "169.254.169.254:85", "model.lan:86", "*:87", "localhost", "example.com", "*",
	} {
		r, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	if diff := cmp.Diff("[8080 81 82 83]", fmt.Sprint(egress.Local(rules))); diff != "" {
		t.Error(diff)
	}
}
