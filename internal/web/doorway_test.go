package web_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"remote-agent/internal/waittest"
	"remote-agent/internal/web"
)

// TestConnectionsAreBounded has forty clients, which keep their connections if they
// may, call a server that takes four at a time: all are answered at the first try.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	hook := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		w.WriteHeader(http.StatusNoContent)
	})
	s := web.New(web.Config{Addr: "127.0.0.1:0", MaxConns: 4, Webhooks: map[string]http.Handler{"x": hook}})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var clients sync.WaitGroup
	for range 40 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}} // connections of its own
			for range 3 {
				response, err := client.Post("http://"+s.Addr()+"/webhooks/x", "text/plain", strings.NewReader("x")) //nolint:noctx // a test's own server
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
			}
		})
	}
	clients.Wait()
	if n := most.Load(); n > 4 {
		t.Errorf("%d requests at once", n)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-waittest.Late(t):
		t.Error("the server did not stop")
	}
}

// empty is a listener of a process that has no descriptors left.
type empty struct{ net.Listener }

func (empty) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

func TestTheLogNamesDescriptors(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	accept := web.Doorway(2, slog.New(slog.NewTextHandler(&out, nil)), empty{})
	for range 5 {
		if _, err := accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "out_of=descriptors"); n != 1 {
		t.Errorf("it is in the log %d times: %s", n, out.String())
	}
}
