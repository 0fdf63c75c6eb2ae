package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// relay is what stands before replicas: it takes connections at one address and passes
// them on, to each that lives in turn. If none does, it refuses them.
type relay struct {
	listener net.Listener
	working  sync.WaitGroup

	mu    sync.Mutex // guards all below
	to    []string
	next  int
	conns map[net.Conn]bool
}

func newRelay() (*relay, error) {
	l, err := listen()
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, conns: map[net.Conn]bool{}}
	r.working.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			r.working.Go(func() { r.pass(in) })
		}
	})
	return r, nil
}

func (r *relay) url() string { return "http://" + r.listener.Addr().String() }

// use has connections go to an address, too.
func (r *relay) use(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.to, addr) {
		r.to = append(r.to, addr)
	}
}

// dial connects to one that takes connections.
func (r *relay) dial() net.Conn {
	r.mu.Lock()
	to := slices.Clone(r.to)
	r.next++
	first := r.next
	r.mu.Unlock()
	for i := range to {
		if c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to[(first+i)%len(to)]); err == nil {
			return c
		}
	}
	return nil
}

func (r *relay) pass(in net.Conn) {
	defer r.hold(in)()
	out := r.dial()
	if out == nil {
		return
	}
	defer r.hold(out)()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(in, out) // a connection that breaks ends both
		_ = in.Close()
	}()
	_, _ = io.Copy(out, in)
	if c, ok := out.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
	<-back
}

// hold keeps a connection until the returned function closes it, or close does.
func (r *relay) hold(c net.Conn) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, c)
		_ = c.Close()
	}
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.working.Wait()
}

func listen() (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on the loopback interface: %w", err)
	}
	return l, nil
}
