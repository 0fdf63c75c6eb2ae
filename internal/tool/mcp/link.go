package mcp

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"remote-agent/internal/fault"
	"remote-agent/internal/tool"
)

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute

	// steady is how long a connection has to last for the pauses to begin anew.
	steady = time.Minute

	// changesEvery is how often a server is asked for its tools because they have changed.
	changesEvery = time.Second

	// againAfter is how often a server that cannot say so is asked.
	againAfter = 5 * time.Minute
)

// Link keeps the connection to one server. It connects in the background, again
// after the server has ended, with pauses from 1 s to 5 min between attempts that
// fail; nobody who asks for its tools waits for any of that. It is safe for
// concurrent use.
type Link struct {
	server Server
	opts   Options
	cancel context.CancelFunc
	tried  chan struct{} // closed when the first attempt is over
	ended  chan struct{} // closed when nothing runs any more

	mu      sync.Mutex // guards all below, and is held for no longer than it takes to read it
	tools   []tool.Tool
	trouble []string
	err     error // of closing the last connection
}

// Keep begins to connect to a server. The Link lives until Close.
func Keep(s Server, opts Options) *Link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{
		server: s, opts: opts.withDefaults(), cancel: cancel, tried: make(chan struct{}), ended: make(chan struct{}),
		trouble: []string{"The MCP server \"" + s.Name + "\" is being connected to."},
	}
	go l.run(ctx)
	return l
}

// Tools returns the tools of the server in a fixed order, or none while it is not
// connected.
func (l *Link) Tools() []tool.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tools)
}

// Trouble returns what is wrong with the server now, for people.
func (l *Link) Trouble() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.trouble)
}

// Tried is closed when the first attempt to connect is over.
func (l *Link) Tried() <-chan struct{} { return l.tried }

// Close ends the server. No call of its tools may run. It waits at most as long as
// a server may take to end, a few seconds.
func (l *Link) Close() error {
	l.cancel()
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = nil
	return l.err
}

func (l *Link) run(ctx context.Context) {
	defer close(l.ended)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, longestPause
	pause.Reset()
	for first := true; ; first = false {
		conn, fatal := l.connect(ctx)
		if first {
			close(l.tried)
		}
		if conn != nil {
			began := time.Now()
			l.follow(ctx, conn, againAfter)
			l.lost(conn.close())
			if time.Since(began) >= steady {
				pause.Reset()
			}
		}
		if fatal {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// connect tries once. fatal means that another attempt cannot end differently.
func (l *Link) connect(ctx context.Context) (conn *connection, fatal bool) {
	conn, offers, problems := open(ctx, l.server, l.opts)
	if conn != nil && len(offers) == 0 {
		if len(problems) == 0 {
			problems = append(problems, l.server.problem("offers no tools", nil))
		}
		problems = append(problems, conn.close())
		conn = nil
	}
	if ctx.Err() != nil && conn == nil {
		return nil, true
	}
	return conn, l.offer(ctx, conn, offers, problems)
}

// follow returns when the connection is of no use any more. Until then it asks for the tools
// again whenever the server says that they are others, at most once in changesEvery, and
// later if it does not answer; after a while if it cannot say so.
func (l *Link) follow(ctx context.Context, conn *connection, after time.Duration) {
	for {
		var again <-chan time.Time
		if conn.mute() {
			again = time.After(after)
		}
		select {
		case <-conn.gone:
			return
		case <-ctx.Done():
			return
		case <-conn.changed:
		case <-again:
		}
		var offers []offer
		var problems []error
		asking, cancel := context.WithTimeout(ctx, l.opts.ConnectTimeout)
		err := conn.exchange(asking, func(ctx context.Context) (err error) {
			offers, problems, err = conn.offers(ctx)
			return err
		})
		cancel()
		pause := changesEvery
		switch {
		case err != nil: // those that it had are kept, and with them the calls that run
			pause = steady
			conn.change()
			l.opts.Log.LogAttrs(ctx, slog.LevelWarn, "an MCP server does not say what its tools are now", slog.String("server", l.server.Name), slog.Any("err", err))
		case len(offers) == 0 && len(problems) == 0:
			l.offer(ctx, conn, nil, []error{l.server.problem("offers no tools", nil)})
		default:
			l.offer(ctx, conn, offers, problems)
		}
		select {
		case <-conn.gone:
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// offer takes over what a server offers; conn is nil without one. fatal means that another
// attempt to connect cannot end differently.
func (l *Link) offer(ctx context.Context, conn *connection, offers []offer, problems []error) (fatal bool) {
	var tools []tool.Tool
	taken := make(map[string]bool)
	for _, f := range offers {
		if conn != nil {
			tools = append(tools, newTool(conn, f, taken))
		}
	}
	var trouble []string
	for _, p := range problems {
		if p == nil {
			continue
		}
		l.opts.Log.LogAttrs(ctx, slog.LevelWarn, "an MCP server has a problem", slog.String("server", l.server.Name), slog.Any("err", p))
		trouble = append(trouble, fault.Public(p))
		fatal = fatal || conn == nil && fault.Is(p, fault.Invalid)
	}
	l.mu.Lock()
	l.tools, l.trouble = tools, trouble
	l.mu.Unlock()
	return fatal
}

// lost notes that a server has ended; err is of closing the connection.
func (l *Link) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools, l.err = nil, err
	l.trouble = []string{"The MCP server \"" + l.server.Name + "\" has ended; it is being connected to again."}
}
