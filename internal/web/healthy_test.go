package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remote-agent/internal/fault"
)

func TestReachable(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:3000": "127.0.0.1:3000", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1", ":1": "localhost:1", "example.com:1": "example.com:1",
	} {
		if got := reachable(addr); got != want {
			t.Errorf("reachable(%s) = %s, want %s", addr, got, want)
		}
	}
}

func TestListens(t *testing.T) {
	t.Parallel()
	up := make(chan bool, 1)
	up <- true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		well := <-up
		if up <- false; !well {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	addr := server.Listener.Addr().String()
	if already, err := Listens(t.Context(), addr); !already || err != nil {
		t.Errorf("a daemon: %v, %v", already, err)
	}
	if already, err := Listens(t.Context(), addr); already || !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), addr+" is in use by another program") {
		t.Errorf("another program: %v, %v", already, err)
	}
	server.Close()
	if already, err := Listens(t.Context(), addr); already || err != nil {
		t.Errorf("nobody: %v, %v", already, err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr) // it was given back
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
