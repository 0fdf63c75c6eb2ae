package web_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"remote-agent/internal/web"
)

// TestServersThatShareASocketRefuseNobody has servers come and go on one socket, as
// processes with socket activation do, while requests come in.
func TestServersThatShareASocketRefuseNobody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the servers have copies
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close() //nolint:errcheck // as above

	var (
		clients  sync.WaitGroup
		answered atomic.Int64
		over     = make(chan struct{})
		client   = &http.Client{Transport: &http.Transport{}}
	)
	defer client.CloseIdleConnections()
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				resp, err := client.Post("http://"+l.Addr().String()+"/webhooks/x", "text/plain", strings.NewReader("body")) //nolint:noctx // short
				if err != nil {
					t.Errorf("a request was refused: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				answered.Add(1)
			}
		})
	}
	for range 200 {
		inherited, err := net.FileListener(socket)
		if err != nil {
			t.Fatal(err)
		}
		s := web.New(web.Config{Listeners: []net.Listener{inherited}, Webhooks: map[string]http.Handler{"x": http.HandlerFunc(echo)}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		for before := answered.Load(); answered.Load() < before+5 && !t.Failed(); { //nolint:revive // until it has answered
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// The last requests wait in the socket's queue for a server.
	last := web.New(web.Config{Listeners: []net.Listener{l}, Webhooks: map[string]http.Handler{"x": http.HandlerFunc(echo)}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- last.Run(ctx) }()
	close(over)
	clients.Wait()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
