// Package emulator holds what the wire-level stand-ins in its subpackages
// share: a loopback server, a change signal and a gate.
//
// The stand-ins are ordinary code, used by tests, by `bot demo` and by
// `bot bench`. They know nothing of the rest of the program: what they check is
// the platform's contract and not our idea of it. Nothing here sleeps to wait
// for something to happen.
package emulator

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Signal tells waiting goroutines that something changed. The zero value is
// ready. It is safe for concurrent use.
type Signal struct {
	mu sync.Mutex
	c  chan struct{} // closed by the next Notify; nil while nobody waits
}

// Notify wakes everyone who waits.
func (s *Signal) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// Next returns a channel that is closed by the next Notify.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

// Wait returns nil as soon as check reports true. It calls check once at the
// start and once after changes, never concurrently, and returns the cause of
// ctx if that ends first.
func (s *Signal) Wait(ctx context.Context, check func() bool) error {
	for {
		next := s.Next()
		if check() {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Gate is a point in a script where an emulator stops until a test lets it go
// on, so that a test controls what happens in between without sleeping. A gate
// opens once, for everyone who is or will be there.
type Gate struct {
	reached, open         chan struct{}
	reachedOnce, openOnce sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), open: make(chan struct{})}
}

// Reached returns a channel that is closed when the first request arrives at
// the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open lets everyone pass. Opening twice is allowed.
func (g *Gate) Open() { g.openOnce.Do(func() { close(g.open) }) }

// Pass blocks until the gate is open or ctx is done, and then returns the cause
// of ctx. Emulators call it.
func (g *Gate) Pass(ctx context.Context) error {
	g.reachedOnce.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Systems give out ports by themselves from 32768 on (Linux) or 49152 (macOS, Windows).
const firstPort, lastPort = 20_000, 32_000

// FreeAddr returns an address of 127.0.0.1 for a program that is started again and again.
// Nobody listens there, and while the program is away no connection and no listener without
// a port of its own gets it by chance.
func FreeAddr() (string, error) {
	for tries := 1; ; tries++ {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort)) //nolint:gosec // no secret
		ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
		switch {
		case err == nil:
			return addr, ln.Close()
		case tries == 100:
			return "", fmt.Errorf("find a free port of the loopback interface: %w", err)
		}
	}
}

// Loopback serves a handler over HTTP.
type Loopback struct {
	url    string
	server *http.Server
	conns  sync.WaitGroup // one for each connection that is not closed
	served chan struct{}  // closed when Serve has returned
	once   sync.Once
}

// Listen starts to serve h on a free port of 127.0.0.1.
func Listen(h http.Handler) (*Loopback, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Loopback{url: "http://" + ln.Addr().String(), served: make(chan struct{})}
	l.server = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnState:         l.track,
	}
	// Close ends this goroutine.
	go func() {
		defer close(l.served)
		_ = l.server.Serve(ln)
	}()
	return l, nil
}

func (l *Loopback) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		l.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		l.conns.Done()
	case http.StateActive, http.StateIdle:
	}
}

// URL returns the base URL, without a slash at the end.
func (l *Loopback) URL() string { return l.url }

// Close closes the listener and all connections and waits until every handler
// has returned. It may be called more than once.
func (l *Loopback) Close() {
	l.once.Do(func() {
		_ = l.server.Close()
		<-l.served
		// A connection that was accepted while the first call ran is only
		// known to the server now.
		_ = l.server.Close()
		l.conns.Wait()
	})
}

// Reset breaks the connection of a request with a TCP reset, so that the peer
// sees an error and not the end of the answer. It does not return.
func Reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// Sleep waits for d or until ctx is done, and then returns its cause.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
