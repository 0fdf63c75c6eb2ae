// Package localsocket lets programs of the same user on the same machine talk to a
// running process: HTTP over a Unix socket. Only that user gets in: the socket's file
// is for the user alone, and the system is asked who connects where it tells (Linux,
// macOS, FreeBSD). On Windows there is no such socket.
package localsocket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"remote-agent/internal/fault"
)

const (
	dialWithin = 2 * time.Second
	maxHeader  = 16 << 10

	// maxConns is how many connections may be open at once.
	maxConns = 64
)

// Listen makes the socket at path. One that a dead process left is replaced. The error
// is fault.Conflict if a process answers there, fault.Forbidden if the socket is somebody
// else's, fault.Unavailable if it cannot be told who listens there, and fault.Unsupported
// if the system has no such sockets or the path is too long for one.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	at, done, err := address(path)
	if err != nil {
		return nil, err
	}
	if err := makeRoom(ctx, path); err != nil {
		done()
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", at)
	if err != nil {
		done()
		return nil, fault.Wrap(err, fault.Invalid, "make the socket")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		done()
		return nil, fault.Wrap(err, fault.Invalid, "keep others from the socket")
	}
	return &listener{Listener: l, done: done, slots: make(chan struct{}, maxConns)}, nil
}

// makeRoom removes a socket that nobody listens behind any more. One that cannot be
// asked stays: a process may be behind it that is busy, or somebody else's.
func makeRoom(ctx context.Context, path string) error {
	conn, err := dial(ctx, path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fault.Newf(fault.Conflict, "Another process answers at %s.", path)
	case !errors.Is(err, ErrNobody):
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(err, fault.Invalid, "remove an old socket")
	}
	return nil
}

// listener bounds how many connections are open.
type listener struct {
	net.Listener

	done  func()
	slots chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slot{Conn: conn, listener: l}, nil
}

// Close implements net.Listener. It removes the socket.
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.done()
	return err
}

// slot is a connection that gives its place back.
type slot struct {
	net.Conn

	listener *listener
	closed   atomic.Bool
}

// Close implements net.Conn.
func (s *slot) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		<-s.listener.slots
	}
	return s.Conn.Close()
}

// SyscallConn implements syscall.Conn.
func (s *slot) SyscallConn() (syscall.RawConn, error) {
	raw, ok := s.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return raw.SyscallConn()
}

type peerKey struct{}

// Serve answers requests until ctx ends. It then ends the contexts of those that are
// open and returns when h has returned from each: nothing of h runs afterwards. The
// listener is closed. Requests of other users get a 403 and never reach h.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	gate := &gate{handler: h}
	defer gate.shut()
	server := &http.Server{
		Handler:           onlyOwn(gate),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, checkPeer(conn))
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fault.Wrap(err, fault.Internal, "serve the local socket")
	}
	return nil
}

// gate lets requests in until it is shut. The server by itself waits for none that it
// has begun, and may begin another one while it is closed.
type gate struct {
	handler http.Handler

	running sync.RWMutex // read: by each request; guards closed
	closed  bool
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.running.RLock()
	defer g.running.RUnlock()
	if g.closed {
		WriteError(w, fault.New(fault.Unavailable, "The bot is stopping."))
		return
	}
	g.handler.ServeHTTP(w, r)
}

// shut waits for the requests that are open and lets no more in.
func (g *gate) shut() {
	g.running.Lock()
	defer g.running.Unlock()
	g.closed = true
}

// onlyOwn lets the user of this process through.
func onlyOwn(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err, _ := r.Context().Value(peerKey{}).(error); err != nil {
			WriteError(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// checkPeer returns an error if somebody else is at the other end.
func checkPeer(conn net.Conn) error {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	uid, known, err := peer(raw)
	switch {
	case err != nil:
		return fault.Wrap(err, fault.Forbidden, "ask who connects")
	case known && uid != os.Geteuid():
		return fault.Newf(fault.Forbidden, "Only the user that the bot runs as (user id %d) may use its socket; yours is %d.", os.Geteuid(), uid)
	}
	return nil
}

// ErrNobody is in the chain of the errors of a Client when no process listens.
var ErrNobody = errors.New("nobody listens at the socket")

// Client returns a client for the process at path, whatever the host of a URL is. Its
// errors are classified: ErrNobody, or fault.Forbidden if the socket is somebody
// else's.
func Client(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
	}}
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	at, done, err := address(path)
	if err != nil {
		return nil, errors.Join(ErrNobody, err)
	}
	defer done()
	conn, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "unix", at)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTSOCK), errors.Is(err, syscall.ENOTDIR):
		return nil, errors.Join(ErrNobody, err)
	case errors.Is(err, os.ErrPermission):
		return nil, &fault.Error{Kind: fault.Forbidden, Err: err,
			Public: fmt.Sprintf("The socket %s belongs to another user: run this command as the user that the bot runs as.", path)}
	}
	return nil, fault.Wrap(err, fault.Unavailable, "connect to the bot")
}

// failure is an error as it is sent.
type failure struct {
	Kind  fault.Kind `json:"kind"`
	Error string     `json:"error"` // for people
}

// WriteError answers a request with an error.
func WriteError(w http.ResponseWriter, err error) {
	status := map[fault.Kind]int{
		fault.Invalid: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.Forbidden: http.StatusForbidden,
		fault.Conflict: http.StatusConflict, fault.Unavailable: http.StatusServiceUnavailable,
	}[fault.KindOf(err)]
	status = cmp.Or(status, http.StatusInternalServerError)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failure{fault.KindOf(err), fault.Public(err)}) // the other side may be gone
}

// ReadError returns the error that a response is, or nil.
func ReadError(r *http.Response) error {
	if r.StatusCode < 300 {
		return nil
	}
	var f failure
	if json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxHeader)).Decode(&f) != nil || f.Kind == "" {
		return fault.Newf(fault.Unsupported, "The running bot is another version and does not support this request (%s). Restart it.", r.Status)
	}
	return fault.New(f.Kind, f.Error)
}
