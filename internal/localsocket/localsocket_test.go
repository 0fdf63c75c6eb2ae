//go:build unix

package localsocket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serving serves h at a socket, whose path it returns.
func serving(t *testing.T, folder string, h http.Handler) string {
	t.Helper()
	path := filepath.Join(folder, "bot.sock")
	l, err := localsocket.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- localsocket.Serve(ctx, l, h) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return path
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

func get(t *testing.T, path string) (string, error) {
	t.Helper()
	client := localsocket.Client(path)
	defer client.CloseIdleConnections()
	r, err := client.Get("http://bot/") //nolint:noctx // it is answered at once
	if err != nil {
		return "", err
	}
	defer r.Body.Close() //nolint:errcheck // only read
	if err := localsocket.ReadError(r); err != nil {
		return "", err
	}
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

func TestTheSameUserIsServed(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{t.TempDir(), long} {
		path := serving(t, folder, hello)
		if body, err := get(t, path); body != "hello" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if _, err := localsocket.Listen(t.Context(), path); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second one: %v", err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bot.sock")
	if _, err := get(t, path); !errors.Is(err, localsocket.ErrNobody) {
		t.Errorf("no file: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as a process that is killed
	_ = l.Close()
	if _, err := get(t, path); !errors.Is(err, localsocket.ErrNobody) {
		t.Errorf("a dead process's: %v", err)
	}
	if body, err := get(t, serving(t, filepath.Dir(path), hello)); body != "hello" || err != nil {
		t.Errorf("in its place: %q, %v", body, err)
	}
	if err := os.WriteFile(path+"2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, path+"2"); !errors.Is(err, localsocket.ErrNobody) {
		t.Errorf("a file: %v", err)
	}
	if _, err := get(t, filepath.Join(path+"2", "bot.sock")); !errors.Is(err, localsocket.ErrNobody) {
		t.Errorf("a folder that is a file: %v", err)
	}
}

// A request that takes a while to end is waited for: what it works on is closed next.
func TestServeWaitsForItsRequests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bot.sock")
	l, err := localsocket.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked, served := make(chan struct{}), make(chan struct{})
	early := make(chan bool, 1)
	go func() {
		defer close(served)
		if err := localsocket.Serve(ctx, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
			select {
			case <-served:
				early <- true
			case <-time.After(200 * time.Millisecond): // ample for who does not wait
				early <- false
			}
		})); err != nil {
			t.Error(err)
		}
	}()
	answered := make(chan error, 1)
	go func() {
		_, err := get(t, path)
		answered <- err
	}()
	<-asked
	stop()
	if <-early {
		t.Error("Serve has returned while a request was open")
	}
	<-served
	if err := <-answered; err == nil {
		t.Error("a request that was cut off counts as answered")
	}
}

// A socket that cannot be asked who listens behind it is not taken away from whoever does.
func TestASocketOfAnotherStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bot.sock")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // stands for a listener whose queue is full: nobody can tell who is there
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	if taken, err := localsocket.Listen(ctx, path); err == nil {
		_ = taken.Close()
		t.Error("it was taken")
	}
	if body, err := os.Lstat(path); err != nil {
		t.Errorf("it is gone: %v, %v", body, err)
	}
}

func TestGarbageIsAnswered(t *testing.T) {
	t.Parallel()
	path := serving(t, t.TempDir(), hello)
	for _, garbage := range []string{"\x00\xff\x16\x03\x01\r\n\r\n", "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"} {
		conn, err := net.Dial("unix", path) //nolint:noctx // local
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, garbage) // it may be closed before all is written
		answer, _ := io.ReadAll(conn)        // as above
		if !strings.HasPrefix(string(answer), "HTTP/1.1 4") && len(answer) > 0 {
			t.Errorf("answered %q", answer)
		}
		_ = conn.Close()
	}
	if body, err := get(t, path); body != "hello" || err != nil {
		t.Errorf("afterwards: %q, %v", body, err)
	}
}

func TestAnotherVersionIsSaid(t *testing.T) {
	t.Parallel()
	_, err := get(t, serving(t, t.TempDir(), http.NotFoundHandler()))
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), "another version") {
		t.Errorf("%v", err)
	}
}

func TestAnErrorKeepsItsKind(t *testing.T) {
	t.Parallel()
	_, err := get(t, serving(t, t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		localsocket.WriteError(w, fault.New(fault.Exhausted, "Full."))
	})))
	if !fault.Is(err, fault.Exhausted) || fault.Public(err) != "Full." {
		t.Errorf("%v", err)
	}
}
