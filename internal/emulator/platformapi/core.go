// Package platformapi is the one plumbing of the emulated platforms: a server with
// its life, a record of the bot's calls, scripts of what goes wrong with them, the
// ways in which an answer gets lost, what is sent to the bot, and the decoding of
// forms and JSON. What a method does and how it words what it says is in the
// package of the platform.
package platformapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"remote-agent/internal/emulator"
)

// MaxAnswer is how much of the bot's answer to a delivery is read.
const MaxAnswer = 64 << 20

// sentAtOnce is how many deliveries are sent at once. The others wait in the platform, as
// what a crowd says does; the bot's time for an answer begins when its turn comes.
const sentAtOnce = 256

// Config is what a Core has to know of its platform.
type Config[Call any] struct {
	Name    string // for errors
	Handler func() http.Handler
	Now     func() time.Time // for the Date of answers; nil is time.Now

	// KeepCalls is how many calls are kept. Zero keeps all, a negative number none.
	KeepCalls int

	// NameOf returns the name under which a call is recorded, and Faults the names
	// of the queues of faults that are for it.
	NameOf func(Call) string
	Faults func(Call) []string

	// Canonical is the form in which names are compared; nil takes them as they are.
	Canonical func(string) string

	// OnClose is called when the server closes, before anything else ends.
	OnClose func()
}

// Core is the part that all emulated platforms share. A server embeds it. It has no
// lock of the server's and may be called with it. It is safe for concurrent use.
type Core[Call, E any] struct {
	Server

	config Config[Call]
	faults faults[Call, E]
	log    log[Call]
}

// Server is the part of a Core that knows nothing of the platform's calls: how it is
// reached, what it sends, and its end.
type Server struct {
	name    string // for errors
	handler func() http.Handler
	now     func() time.Time // nil is time.Now
	onClose func()

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	changed emulator.Signal
	client  *http.Client
	sending chan struct{} // is full while as much is sent to the bot at once as may be
	tasks   sync.WaitGroup
	once    sync.Once

	// mu guards all that follows.
	mu     sync.Mutex
	loop   *emulator.Loopback
	closed bool
}

// New returns a Core that is not listening yet.
func New[E, Call any](config Config[Call]) *Core[Call, E] {
	if config.Canonical == nil {
		config.Canonical = func(name string) string { return name }
	}
	c := &Core[Call, E]{config: config}
	c.init(config.Name, config.Handler, config.Now, config.OnClose)
	return c
}

func (c *Server) init(name string, handler func() http.Handler, now func() time.Time, onClose func()) {
	c.name, c.handler, c.now, c.onClose = name, handler, now, onClose
	c.sending = make(chan struct{}, sentAtOnce)
	c.client = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: sentAtOnce, ReadBufferSize: 1 << 10, WriteBufferSize: 2 << 10}, // as large as what is said
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// Not the context of a caller: deliveries live until Close.
	c.ctx, c.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
}

// Start serves on a free port of 127.0.0.1.
func (c *Server) Start() error {
	loop, err := emulator.Listen(c.dated(c.handler()))
	if err != nil {
		return fmt.Errorf("starting the %s emulator: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loop = loop
	return nil
}

// URL returns the base URL, without a slash at the end, or the empty string before
// Start.
func (c *Server) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loop == nil {
		return ""
	}
	return c.loop.URL()
}

// Close ends all calls, deliveries and connections and waits for them. What was
// recorded stays readable. It may be called more than once.
func (c *Server) Close() {
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		loop := c.loop
		c.mu.Unlock()
		if c.onClose != nil {
			c.onClose()
		}
		c.cancel()
		if loop != nil {
			loop.Close()
		}
		c.tasks.Wait()
		c.client.CloseIdleConnections()
	})
}

// Context ends with Close.
func (c *Server) Context() context.Context { return c.ctx }

// Closed reports whether Close was called.
func (c *Server) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Go runs a task until it returns, unless the server is closed; Close waits for
// it. The task must end with Context.
func (c *Server) Go(task func()) {
	if done := c.Enter(); done != nil {
		go func() {
			defer done()
			task()
		}()
	}
}

// Enter makes Close wait until what it returns is called. It returns nil if the
// server is closed.
func (c *Server) Enter() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.tasks.Add(1)
	return c.tasks.Done
}

// Notify tells everyone who waits that something changed.
func (c *Server) Notify() { c.changed.Notify() }

// WaitFor returns nil as soon as check reports true. It looks after changes, not
// all the time, and returns the cause of ctx if that ends first. check may call the
// server.
func (c *Server) WaitFor(ctx context.Context, check func() bool) error {
	return c.changed.Wait(ctx, check)
}

// Unlock gives a lock back, tells what is noted in changes, and empties that.
func Unlock[Change any](c *Server, mu *sync.Mutex, changes *[]Change, tell func(Change)) {
	list := *changes
	*changes = nil
	mu.Unlock()
	if tell != nil {
		for _, change := range list {
			tell(change)
		}
	}
	c.changed.Notify()
}

// Turn waits until a delivery may be sent. The caller calls done when it is answered,
// also when ctx ended first.
func (c *Server) Turn(ctx context.Context) (done func()) {
	select {
	case c.sending <- struct{}{}:
		return func() { <-c.sending }
	case <-ctx.Done():
		return func() {}
	}
}

// Submit posts a body with headers to a URL of the bot and reads its answer. Without
// a Content-Type it is JSON. The answer is not nil if its beginning arrived.
func (c *Server) Submit(ctx context.Context, to string, header http.Header, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if req.Header = header.Clone(); req.Header == nil {
		req.Header = http.Header{}
	}
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer))
	return resp, answer, err
}

// Post is Submit for tests of what a receiver must refuse.
func (c *Server) Post(ctx context.Context, to string, header http.Header, body []byte) (status int, answer []byte, err error) {
	resp, answer, err := c.Submit(ctx, to, header, body) //nolint:bodyclose // Submit closes it
	if resp != nil {
		status = resp.StatusCode
	}
	return status, answer, err
}

// dated gives answers the date of the platform's clock.
func (c *Server) dated(next http.Handler) http.Handler {
	if c.now == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", c.now().UTC().Format(http.TimeFormat))
		next.ServeHTTP(w, r)
	})
}
