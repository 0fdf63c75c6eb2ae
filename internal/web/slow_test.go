package web_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/web"
)

// pipes is a listener for connections whose time stands still with that of a test.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3000} }

// TestASlowClientIsCutOff: whoever sends a request bit by bit, or nothing more, holds a
// connection for a while only (platform contracts S6).
func TestASlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sends string
		after time.Duration
	}{
		"no request":      {"", 5 * time.Second},
		"half a head":     {"GET /healthz HTTP/1.1\r\nHost: loc", 5 * time.Second},
		"half a body":     {"POST /webhooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf", 15 * time.Second},
		"nothing further": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				s := web.New(web.Config{Listeners: []net.Listener{l}, Webhooks: map[string]http.Handler{"x": http.HandlerFunc(echo)}})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				client, server := net.Pipe()
				l.conns <- server
				began := time.Now()
				if _, err := io.WriteString(client, c.sends); err != nil {
					t.Error(err)
				}
				_, _ = io.Copy(io.Discard, client) // until it is closed over there
				if took := time.Since(began); took < c.after-time.Second || took > c.after+time.Second {
					t.Errorf("it was cut off after %v, want %v", took, c.after)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestASilentConnectionHoldsUpNoStop: a connection that a browser or a balancer keeps ready
// is closed when the server stops, at once or when it had two seconds for a request; one that
// has a request gets its answer.
func TestASilentConnectionHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	const slow = 3 * time.Second
	for name, c := range map[string]struct {
		sends      string
		age, after time.Duration
	}{
		"none of its own":       {"", 0, 2 * time.Second},
		"an old one":            {"", 3 * time.Second, 0},
		"one with half a head":  {"GET /healthz HTTP/1.1\r\nHost: loc", time.Second, time.Second},
		"one with a request":    {"POST /webhooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 0, slow},
		"one that brought it":   {"POST /webhooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", time.Second, slow - time.Second},
		"one that was answered": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				work := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(slow)
					w.WriteHeader(http.StatusTeapot)
				})
				s := web.New(web.Config{Listeners: []net.Listener{l}, Webhooks: map[string]http.Handler{"x": work}})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				client, server := net.Pipe()
				l.conns <- server
				answer := make(chan string, 1)
				go func() {
					all, _ := io.ReadAll(client)
					answer <- string(all)
				}()
				if _, err := io.WriteString(client, c.sends); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				time.Sleep(c.age)
				stop()
				began := time.Now()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it stopped after %v, want %v", took, c.after)
				}
				if got := <-answer; strings.Contains(c.sends, "POST") != strings.Contains(got, "418") {
					t.Errorf("the answer is %q", got)
				}
			})
		})
	}
}
