// Package web is the HTTP server: health, readiness, metrics, the webhooks of
// platforms, the API, and pages for people.
//
// It knows no platform and no storage; the application hands it checks and
// handlers. It answers only the paths it knows, limits what a client can cost,
// and tells a client nothing about errors inside.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
)

// Limits of a connection (platform contracts S6).
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 32 << 10
)

// DefaultMaxBody is how much of a request's body is read, in bytes, unless a
// handler asks for more by a method MaxBody() int64 (platform contracts S5).
const DefaultMaxBody = 1 << 20

// APIPrefix is where Config.API is mounted.
const APIPrefix = "/api/v1"

// defaultGrace bounds a shutdown.
const defaultGrace = 10 * time.Second

// Limits of waiting for those who watch /readyz, see AwaitWatchers.
const (
	watchedWithin = 15 * time.Second // who asked before that does not watch any more
	watchedTimes  = 2                // refusals that a balancer has to see; one may be taken for an accident
	leaveAfter    = 250 * time.Millisecond
	maxLinger     = 8 * time.Second // a container has 10 s by default

	// lastWords is how long connections that were taken may take at the end to bring
	// their request and get its answer: http.Server.Shutdown drops those whose request
	// it reads after that was called.
	lastWords = 5 * time.Second

	// firstWords is how long one that has not brought anything yet may take to.
	firstWords = 2 * time.Second
)

// Check is the state of one part that the program needs to work.
type Check struct {
	Name string
	Err  error // nil if it works

	// Info says more about it. A check that has it and no Err tells something and
	// judges nothing.
	Info string
}

// Config configures a Server.
type Config struct {
	Addr string // host:port; port 0 takes a free one

	// Listeners, if any, are listened on in the place of Addr: sockets that a
	// service manager keeps open while this process is started again, see Inherited.
	Listeners []net.Listener

	// MaxConns is how many connections are open at once, each for one request;
	// further ones wait. Zero is no limit.
	MaxConns int

	// Ready returns the checks of /readyz. It is called for every request, with
	// a deadline of three seconds. Nil means that nothing needs a check.
	Ready func(ctx context.Context) []Check

	Metrics http.Handler // of /metrics; nil answers 404

	// Hosts are the names besides those of Addr and of this machine by which
	// /metrics may be asked for, such as that of PUBLIC_URL. Who listens on more
	// than this machine is also asked by addresses and by names without a dot.
	// Any other name is refused (421): a page of somebody else could have made
	// its own name point here.
	Hosts []string

	// Webhooks are mounted at /webhooks/{key} and below. They get POST requests
	// only, whose body ends with *http.MaxBytesError at the limit.
	Webhooks map[string]http.Handler

	// API is mounted at APIPrefix and below and answers all methods there; nil
	// answers 404.
	API http.Handler

	// Pages answers all other paths, if they are asked for by a name of Hosts, of this
	// machine, or of Addr: a page of somebody else could have made its own name point
	// here. Nil answers 404.
	Pages http.Handler

	Grace time.Duration // how long requests may finish after a stop; default 10 s
	Log   *slog.Logger  // nil logs nothing
}

// Server serves HTTP. It is safe for concurrent use.
type Server struct {
	config   Config
	server   *http.Server
	draining atomic.Bool
	watchers watchers
	atWork   atWork
	doorway  *doorway

	mu        sync.Mutex // guards listeners
	listeners []net.Listener
}

// New returns a Server that does not listen yet.
func New(config Config) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Grace <= 0 {
		config.Grace = defaultGrace
	}
	config.Log = config.Log.With("component", "web")
	s := &Server{config: config, listeners: config.Listeners, doorway: newDoorway(config.MaxConns, config.Log)}
	s.server = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes - 4096, // net/http adds 4 KiB of its own
		ConnState:         s.atWork.follow,
		ErrorLog:          slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
	}
	s.server.SetKeepAlivesEnabled(config.MaxConns == 0)
	return s
}

// Listen takes the address, so that a wrong one is known before anything else
// runs. Listening twice changes nothing. The error is a fault.Invalid whose
// public text names LISTEN_ADDR and what to do.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) > 0 {
		return nil
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.config.Addr)
	if err != nil {
		return listenFault(s.config.Addr, err)
	}
	s.listeners = []net.Listener{listener}
	return nil
}

func listenFault(addr string, err error) error {
	var public string
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		public = fmt.Sprintf("LISTEN_ADDR %s is in use by another program: stop it, or set LISTEN_ADDR to another port", addr)
	case errors.Is(err, syscall.EACCES):
		public = fmt.Sprintf("LISTEN_ADDR %s needs more rights than this user has: set LISTEN_ADDR to a port above 1023", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		public = fmt.Sprintf("LISTEN_ADDR %s is not an address of this machine: set LISTEN_ADDR to one, such as 127.0.0.1:3000", addr)
	default:
		public = fmt.Sprintf("Cannot listen on LISTEN_ADDR %s: set it to host:port, such as 127.0.0.1:3000", addr)
	}
	return &fault.Error{Kind: fault.Invalid, Public: public, Err: err}
}

// Addr returns the address that is listened on, the first if there are several, or
// the configured one before Listen.
func (s *Server) Addr() string { return s.addrs()[0] }

func (s *Server) addrs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		return []string{s.config.Addr}
	}
	return lists.Map(s.listeners, func(l net.Listener) string { return l.Addr().String() })
}

// Public reports whether other machines can reach the server: one of its addresses
// is not a loopback one. The caller decides what to say about that.
func (s *Server) Public() bool {
	return slices.ContainsFunc(s.addrs(), func(addr string) bool {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return !strings.HasPrefix(addr, "/") && !strings.HasPrefix(addr, "@") // a Unix socket is of this machine
		}
		ip := net.ParseIP(host)
		return host != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}

// Drain makes /readyz answer 503 from now on, so that a load balancer looks
// elsewhere, while requests are still served: until the context of Run ends, new
// connections are taken and webhooks answered as before. Each answer closes its
// connection, as those to webhooks always do, so that a balancer that keeps
// connections opens its next one to somebody else. Draining twice changes nothing.
func (s *Server) Drain() {
	if s.draining.CompareAndSwap(false, true) {
		s.watchers.drain()
	}
}

// AwaitWatchers waits, after Drain, until those who have been asking /readyz know
// that the service stops: until it was refused twice, 8 seconds at the most. It
// returns at once if nobody has asked in the last 15 seconds, if the sockets are
// inherited, so that nobody is refused anyway, and when ctx ends.
func (s *Server) AwaitWatchers(ctx context.Context) {
	if len(s.config.Listeners) > 0 {
		return
	}
	s.watchers.await(ctx)
}

// Run serves until ctx is done. Then it takes no new connections, lets running
// requests finish for Config.Grace, ends the rest and returns nil. It listens
// if Listen was not called. What an inherited socket holds then is left to the
// process that takes it next.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	listeners := lists.Map(s.listeners, func(l net.Listener) net.Listener { return s.doorway.before(l) })
	s.mu.Unlock()

	served := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { served <- s.server.Serve(l) }()
	}
	var failed error
	waiting := len(listeners)
	select {
	case failed = <-served:
		waiting--
	case <-ctx.Done():
	}
	s.Drain()
	for _, l := range listeners {
		_ = l.Close() // what it has taken is served
	}
	for range waiting {
		if err := <-served; failed == nil && !errors.Is(err, net.ErrClosed) {
			failed = err
		}
	}
	shut, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
	defer cancel()
	s.atWork.await(shut)
	if err := s.server.Shutdown(shut); err != nil {
		s.config.Log.WarnContext(ctx, "HTTP requests were cut off at the end of the grace period", "err", err)
		_ = s.server.Close() // the rest is given up on purpose
	}
	if failed != nil && !errors.Is(failed, http.ErrServerClosed) {
		return fault.Wrap(failed, fault.Unavailable, "serve HTTP")
	}
	return nil
}
