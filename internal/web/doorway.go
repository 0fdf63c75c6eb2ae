package web

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// quietDoor is how long the log is silent about a reason for which no connection
// could be taken.
const quietDoor = 10 * time.Second

// doorway lets connections in: no more at once than the limit, so that descriptors
// are left for the work they bring. The others wait in the queue of the kernel, which
// costs nothing here. Where there is a limit, connections are for one request each:
// whoever kept one that is idle would keep others out. It is safe for concurrent use.
type doorway struct {
	slots chan struct{} // nil: no limit
	log   *slog.Logger

	mu     sync.Mutex // guards warned
	warned time.Time
}

func newDoorway(limit int, log *slog.Logger) *doorway {
	d := &doorway{log: log}
	if limit > 0 {
		d.slots = make(chan struct{}, limit)
	}
	return d
}

// before returns a listener that hands out what the doorway lets in from l.
func (d *doorway) before(l net.Listener) net.Listener {
	g := &guarded{Listener: l, door: d, closed: make(chan struct{})}
	g.close = sync.OnceFunc(func() { close(g.closed) })
	return g
}

// failed logs what of this machine has run out. The server tries again by itself.
func (d *doorway) failed(err error) {
	kind, own := fault.Resource(err)
	if !own {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.warned) > quietDoor {
		d.warned = now
		d.log.WarnContext(context.Background(), "connections wait until there is room", "out_of", string(kind), "err", err)
	}
}

// guarded is a listener behind a doorway.
type guarded struct {
	net.Listener

	door   *doorway
	closed chan struct{}
	close  func() // closes closed, once
}

// Close implements net.Listener. It ends an Accept that waits for room.
func (g *guarded) Close() error {
	g.close()
	return g.Listener.Close()
}

// Accept implements net.Listener.
func (g *guarded) Accept() (net.Conn, error) {
	d := g.door
	if d.slots != nil {
		select {
		case d.slots <- struct{}{}: // every connection has a time limit
		case <-g.closed:
			return nil, net.ErrClosed
		}
	}
	c, err := g.Listener.Accept()
	if err != nil {
		d.failed(err)
		if d.slots != nil {
			<-d.slots
		}
		return nil, err
	}
	if d.slots == nil {
		return c, nil
	}
	return &admitted{Conn: c, leave: sync.OnceFunc(func() { <-d.slots })}, nil
}

// admitted is a connection that has a place.
type admitted struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (a *admitted) Close() error {
	defer a.leave()
	return a.Conn.Close()
}
