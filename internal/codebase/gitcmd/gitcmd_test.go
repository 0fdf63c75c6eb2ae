package gitcmd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a resolver and dialer that notes what was asked of it.
type recorder struct {
	mu      sync.Mutex
	answers [][]netip.Addr // one per question, the last one again and again
	asked   int
	dialed  []string
	connect func(ctx context.Context) (net.Conn, error)
}

func (r *recorder) resolve(context.Context, string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := min(r.asked, len(r.answers)-1)
	r.asked++
	return r.answers[i], nil
}

func (r *recorder) dial(ctx context.Context, _, address string) (net.Conn, error) {
	r.mu.Lock()
	r.dialed = append(r.dialed, address)
	r.mu.Unlock()
	if r.connect != nil {
		return r.connect(ctx)
	}
	return nil, errors.New("no network in this test")
}

func open(tb testing.TB, cfg gitcmd.Config) *gitcmd.Git {
	tb.Helper()
	gittest.Git(tb)
	g, err := gitcmd.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestOnlyPublicAddressesAreDialed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answers [][]netip.Addr
		dialed  []string
		want    fault.Kind
	}{
		"public":        {[][]netip.Addr{addrs("140.82.121.4")}, []string{"140.82.121.4:443"}, fault.Unavailable},
		"private":       {[][]netip.Addr{addrs("10.0.0.1")}, nil, fault.Forbidden},
		"one of two":    {[][]netip.Addr{addrs("140.82.121.4", "127.0.0.1")}, nil, fault.Forbidden},
		"metadata":      {[][]netip.Addr{addrs("::ffff:169.254.169.254")}, nil, fault.Forbidden},
		"rebinding":     {[][]netip.Addr{addrs("127.0.0.1"), addrs("140.82.121.4")}, nil, fault.Forbidden},
		"nothing there": {[][]netip.Addr{nil}, nil, fault.Unavailable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{answers: c.answers}
			g := open(t, gitcmd.Config{Resolve: r.resolve, Dial: r.dial})
			_, err := g.Run(t.Context(), &gitcmd.Call{
				Args:   []string{"ls-remote", "--", "https://github.com/o/r"},
				Remote: &gitcmd.Endpoint{Scheme: "https", Address: "github.com:443", Origin: "https://github.com/", Token: "tok-123456"},
			})
			if !fault.Is(err, c.want) {
				t.Errorf("kind %s: %v", fault.KindOf(err), err)
			}
			if diff := cmp.Diff(c.dialed, r.dialed); diff != "" {
				t.Errorf("dialed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOtherAddressesAreRefused has git go somewhere else than the call says.
func TestOtherAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://evil.example/o/r", "https://github.com:8443/o/r", "http://github.com/o/r", "http://169.254.169.254/o/r",
		"file:///etc", "ext::sh -c true", "git://github.com/o/r", "ssh://git@github.com/o/r", "/etc",
	} {
		r := &recorder{answers: [][]netip.Addr{addrs("140.82.121.4")}}
		g := open(t, gitcmd.Config{Resolve: r.resolve, Dial: r.dial})
		_, err := g.Run(t.Context(), &gitcmd.Call{
			Args:   []string{"ls-remote", "--", address},
			Remote: &gitcmd.Endpoint{Scheme: "https", Address: "github.com:443", Origin: "https://github.com/"},
		})
		if err == nil || len(r.dialed) > 0 || r.asked > 0 {
			t.Errorf("%s: %v, dialed %v, asked %d times", address, err, r.dialed, r.asked)
		}
		if _, err := g.Run(t.Context(), &gitcmd.Call{Args: []string{"ls-remote", "--", address}}); err == nil {
			t.Errorf("%s without a network worked", address)
		}
	}
	g := open(t, gitcmd.Config{})
	if _, err := g.Run(t.Context(), &gitcmd.Call{Args: []string{"version"}, Remote: &gitcmd.Endpoint{Scheme: "http", Address: "github.com:80"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("http: %v", err)
	}
}

// fake makes a shell script that is run in place of git.
func fake(tb testing.TB, script string) *gitcmd.Git {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "git")
	writeProgram(tb, path, "#!/bin/sh\n"+script)
	return open(tb, gitcmd.Config{Path: path})
}

// writeProgram writes a file that is to be run. No process may be forked
// meanwhile: it would hold the file open for writing, and then it cannot be run.
func writeProgram(tb testing.TB, path, text string) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		tb.Fatal(err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_CANARY", "canary-value")
	t.Setenv("GIT_SSH_COMMAND", "canary-ssh")
	t.Setenv("HTTPS_PROXY", "http://canary-proxy")
	const token = "tok-123456"
	g := fake(t, "env")
	out, err := g.Run(t.Context(), &gitcmd.Call{
		Args:   []string{"x"},
		Remote: &gitcmd.Endpoint{Scheme: "https", Address: "github.com:443", Origin: "https://github.com/", Token: token},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := string(out.Data)
	if strings.Contains(text, "canary") || strings.Contains(text, token) {
		t.Errorf("environment:\n%s", text)
	}
	for _, want := range []string{"GIT_CONFIG_NOSYSTEM=1\n", "GIT_CONFIG_GLOBAL=/dev/null\n", "GIT_TERMINAL_PROMPT=0\n", "GIT_ALLOW_PROTOCOL=https\n", "=http.https://github.com/.extraHeader\n", "=core.hooksPath\n", "=http.followRedirects\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the environment", want)
		}
	}
}

func TestProxyNeedsItsPassword(t *testing.T) {
	t.Parallel()
	r := &recorder{answers: [][]netip.Addr{addrs("140.82.121.4")}}
	dir := t.TempDir()
	path, fifo := filepath.Join(dir, "git"), filepath.Join(dir, "fifo")
	script := fmt.Sprintf("#!/bin/sh\nenv > %s/env.new; mv %s/env.new %s/env; cat %s > /dev/null\n", dir, dir, dir, fifo)
	writeProgram(t, path, script)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, gitcmd.Config{Path: path, Resolve: r.resolve, Dial: r.dial})
	done := make(chan error, 1)
	go func() {
		_, err := g.Run(t.Context(), &gitcmd.Call{Args: []string{"x"}, Remote: &gitcmd.Endpoint{Scheme: "https", Address: "github.com:443", Origin: "https://github.com/"}})
		done <- err
	}()
	var env string
	waitFor(t, func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "env"))
		env = string(data)
		return err == nil
	})
	_, rest, _ := strings.Cut(env, "=http://")
	line, _, _ := strings.Cut(rest, "\n")
	proxy, err := url.Parse("http://" + line)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(name, password, target string) int {
		conn, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
		request.SetBasicAuth(name, password)
		request.Header["Proxy-Authorization"] = request.Header["Authorization"]
		if err := request.Write(conn); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), request)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	name := proxy.User.Username()
	password, _ := proxy.User.Password()
	for _, c := range []struct {
		name, password, target string
		want                   int
	}{
		{"", "", "github.com:443", 407},
		{name, "wrong", "github.com:443", 407},
		{"other", password, "github.com:443", 407},
		{name, password, "evil.example:443", 403},
		{name, password, "github.com:22", 403},
		{name, password, "127.0.0.1:443", 403},
		{name, password, "github.com:443", 502}, // the dialer of this test has no network
	} {
		if got := connect(c.name, c.password, c.target); got != c.want {
			t.Errorf("CONNECT %s as %q: %d, want %d", c.target, c.name, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"140.82.121.4:443"}, r.dialed); diff != "" {
		t.Errorf("dialed:\n%s", diff)
	}
	if err := os.WriteFile(fifo, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := connect(name, password, "github.com:443"); got != 407 {
		t.Errorf("after the call: %d", got)
	}
}

func waitFor(tb testing.TB, condition func() bool) {
	tb.Helper()
	deadline := waittest.Late(tb)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatal("the condition did not come true")
		}
	}
}

// TestStubbornChildrenAreEnded runs a git that ignores SIGTERM, with a child that
// does too and holds the output open.
func TestStubbornChildrenAreEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := fake(t, fmt.Sprintf("trap '' TERM\n(trap '' TERM; while :; do sleep 1; done) &\necho $! > %s/pid.new; mv %s/pid.new %s/pid\nwhile :; do sleep 1; done\n", dir, dir, dir))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := g.Run(ctx, &gitcmd.Call{Args: []string{"x"}})
		done <- err
	}()
	pid := 0
	waitFor(t, func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	cancel()
	if err := <-done; !fault.Is(err, fault.Canceled) {
		t.Errorf("Run: %v", err)
	}
	waitFor(t, func() bool { return gone(pid) })
}

// gone reports whether a process has ended; a zombie has.
func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := map[string]struct {
		script string
		call   *gitcmd.Call
		want   fault.Kind
	}{
		"time":     {"exec sleep 60", &gitcmd.Call{Timeout: 100 * time.Millisecond}, fault.Unavailable},
		"size":     {"head -c 100000 /dev/zero > " + dir + "/x; exec sleep 60", &gitcmd.Call{Size: &gitcmd.SizeLimit{Dir: dir, Max: 50000}}, fault.Exhausted},
		"output":   {"exec cat /dev/zero", &gitcmd.Call{MaxOutput: 1000}, fault.Exhausted},
		"truncate": {"exec cat /dev/zero", &gitcmd.Call{MaxOutput: 1000, Truncate: true}, ""},
		"failure":  {"echo oops >&2; exit 3", &gitcmd.Call{}, fault.Internal},
		"disk":     {"echo 'fatal: write error: No space left on device' >&2; exit 128", &gitcmd.Call{}, fault.Disk},
		"worktree": {"echo \"error: unable to write file 'a.go'\" >&2; exit 128", &gitcmd.Call{}, fault.Disk}, // so it says of a full disk
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.call.Args = []string{"x"}
			out, err := fake(t, c.script).Run(t.Context(), c.call)
			if fault.KindOf(err) != c.want {
				t.Errorf("kind %s: %v", fault.KindOf(err), err)
			}
			if name == "truncate" && (!out.Truncated || len(out.Data) != 1000) {
				t.Errorf("%d bytes, truncated %v", len(out.Data), out.Truncated)
			}
			if name == "failure" && (gitcmd.ExitCode(err) != 3 || !strings.Contains(err.Error(), "oops")) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestErrorsHoldNoCredential(t *testing.T) {
	t.Parallel()
	const token = "tok-abcdefgh-123456"
	g := fake(t, "env >&2; exit 128")
	_, err := g.Run(t.Context(), &gitcmd.Call{
		Args:   []string{"x"},
		Remote: &gitcmd.Endpoint{Scheme: "https", Address: "github.com:443", Origin: "https://github.com/", Token: token},
	})
	basic := "eC1hY2Nlc3MtdG9rZW46" // of "x-access-token:"
	for _, text := range []string{err.Error(), fault.Public(err), fmt.Sprintf("%+v", err)} {
		if strings.Contains(text, token) || strings.Contains(text, basic) || strings.Contains(text, "@127.0.0.1") {
			t.Errorf("the error holds a credential: %s", text)
		}
	}
}

// What a host says in its own words, or is called, is not what git says about it.
func TestHostsThatAnswerWithAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		token  string
		want   fault.Kind
		public string
	}{
		"none":           {404, "Repository not found.", "", fault.NotFound, "There is no such repository at 127.0.0.1."},
		"private":        {403, "You may not.", "", fault.NotFound, "There is no such repository at 127.0.0.1, or it is private"},
		"wrong token":    {403, "You may not.", "tok-123456", fault.Unauthorized, "127.0.0.1 rejected the configured token"},
		"limited":        {429, "Too many requests, so it was not found.", "", fault.RateLimited, "127.0.0.1 limits how often it may be asked. Try again later."},
		"limited by 403": {403, "You have exceeded a secondary Rate Limit.", "", fault.RateLimited, "127.0.0.1 limits how often"},
		"limited, token": {403, "API rate limit exceeded.", "tok-123456", fault.RateLimited, "127.0.0.1 limits how often"},
		"broken":         {500, "Authentication failed: returned error: 404", "tok-123456", fault.Unavailable, "127.0.0.1 is not available now (error 500). Try again later."},
		"bad gateway":    {502, "The backend was not found.", "", fault.Unavailable, "(error 502)"},
		"maintenance":    {503, "returned error: 401", "", fault.Unavailable, "(error 503)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, c.body, c.status) }))
			defer server.Close()
			_, err := open(t, gitcmd.Config{}).Run(t.Context(), &gitcmd.Call{
				Args:   []string{"ls-remote", "--", server.URL + "/acme/TLS"},
				Remote: &gitcmd.Endpoint{Scheme: "http", Address: strings.TrimPrefix(server.URL, "http://"), Origin: server.URL + "/", Token: c.token, Loopback: true},
			})
			if !fault.Is(err, c.want) || !strings.Contains(fault.Public(err), c.public) {
				t.Errorf("%s: %q, want %s: %q", fault.KindOf(err), fault.Public(err), c.want, c.public)
			}
		})
	}
}

func TestMissingGit(t *testing.T) {
	t.Parallel()
	if _, err := gitcmd.New(gitcmd.Config{Path: "/none/git"}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("New: %v", err)
	}
}
