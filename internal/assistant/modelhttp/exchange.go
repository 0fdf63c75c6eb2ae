package modelhttp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// Receiver takes in what an API answers. Client calls it in the goroutine that
// sends the request.
type Receiver interface {
	// Refused gets an answer that is no stream, its body cut at 64 KiB: a status
	// of 400 and more, or 200 with a document. It reports whether the document is
	// an error that the API words; otherwise the request fails with ErrNotStream.
	Refused(status int, header http.Header, body []byte) bool

	// Stream returns what is read in place of the body of an answer.
	Stream(body io.ReadCloser) io.ReadCloser
}

// FirstByte is how long to wait for an answer of a server that may be loading a large
// model, reading a long conversation or thinking, without a sign of it.
const FirstByte = 10 * time.Minute

// Exchange watches one request: it ends it when nothing is received for too long. It is safe
// for concurrent use, but for RetryAfter.
type Exchange struct {
	// RetryAfter is how long the API asked to wait, with any status: zero if it
	// did not, and at most MaxWait. It is set before the Receiver is called.
	RetryAfter time.Duration

	receiver Receiver

	mu      sync.Mutex    // guards wait, idle, timer and settled
	wait    time.Duration // what silence may last now: idle, but before the first byte
	idle    time.Duration
	timer   *time.Timer
	settled bool // the answer is complete
	cancel  context.CancelCauseFunc
}

type exchangeKey struct{}

// NewExchange returns an exchange that is not watched yet. It waits for the first byte of an
// answer as long as first, and then for each one as long as idle.
func NewExchange(first, idle time.Duration, r Receiver) *Exchange {
	return &Exchange{wait: first, idle: idle, receiver: r}
}

// Start returns the context to send the request with. It ends with ErrIdle when
// nothing is received for too long. Stop must be called.
func (x *Exchange) Start(ctx context.Context) context.Context {
	ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(x.wait, func() { x.cancel(ErrIdle) })
	return context.WithValue(ctx, exchangeKey{}, x)
}

// Stop ends the request, if it goes on, and the watch.
func (x *Exchange) Stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
	x.cancel(context.Canceled)
}

// Alive is called whenever something was received.
func (x *Exchange) Alive() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wait = x.idle
	if !x.settled {
		x.timer.Reset(x.wait)
	}
}

// Wait returns how long the silence may last that there is now.
func (x *Exchange) Wait() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.wait
}

// Pause stops the watch until Alive is called.
func (x *Exchange) Pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
}

// SetIdle changes the idle timeout.
func (x *Exchange) SetIdle(idle time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if idle != x.idle {
		x.wait, x.idle = idle, idle
		x.timer.Reset(idle)
	}
}

// Settle ends the request after d, or the idle timeout if that is shorter,
// whatever is received.
func (x *Exchange) Settle(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settled = true
	x.timer.Reset(min(d, x.idle))
}
