package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxErrorBody = 64 << 10
	maxStream    = 64 << 20 // of a whole answer, with its framing
	maxWait      = 24 * time.Hour

	// settleTimeout is how long the end of a stream is waited for after the
	// answer is complete.
	settleTimeout = 250 * time.Millisecond
)

var (
	errIdle      = errors.New("the API went silent")
	errCut       = errors.New("the stream ended before the message did")
	errNotStream = errors.New("the API did not answer with an event stream")
	errTooLong   = errors.New("the API sent more than the limit")
	errRedirect  = errors.New("the API redirects elsewhere")
)

// httpClient returns a client whose transport reports to the exchange of the
// request. Without one of the caller it has a connection for each of 64 turns
// at once, and no timeout of its own: the idle timeout is the limit.
func httpClient(own *http.Client) *http.Client {
	var c http.Client
	if own != nil {
		c = *own
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           128,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true, // it would hold pieces of the stream back
			// Finds a dead connection that many turns share.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	c.Transport = &roundTripper{next: c.Transport}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	return &c
}

// exchange watches one request: it ends it when nothing is received for the idle
// timeout, and keeps the error that the API answered with.
type exchange struct {
	failure *apiFailure // nil while nothing failed

	mu      sync.Mutex // guards timer and settled
	idle    time.Duration
	timer   *time.Timer
	settled bool // the answer is complete
	cancel  context.CancelCauseFunc
}

// apiFailure is an error that the API sent.
type apiFailure struct {
	status     int           // HTTP status; 200 for an error inside a stream
	kind       string        // error.type
	message    string        // error.message, or the body if there is none
	retryAfter time.Duration // zero if the API did not say
	hopeless   bool          // the API says that another try is of no use
}

type exchangeKey struct{}

func newExchange(idle time.Duration) *exchange { return &exchange{idle: idle} }

// start returns the context to send the request with. It ends with errIdle when
// nothing is received for the idle timeout. stop must be called.
func (x *exchange) start(ctx context.Context) context.Context {
	ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(x.idle, func() { x.cancel(errIdle) })
	return context.WithValue(ctx, exchangeKey{}, x)
}

func (x *exchange) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
	x.cancel(context.Canceled)
}

// alive is called whenever something was received.
func (x *exchange) alive() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.settled {
		x.timer.Reset(x.idle)
	}
}

// pause stops the watch until alive is called.
func (x *exchange) pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
}

// settle ends the request soon, whatever is received.
func (x *exchange) settle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settled = true
	x.timer.Reset(min(settleTimeout, x.idle))
}

// roundTripper keeps errors of the API with their headers, and limits what is
// read.
type roundTripper struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.next.RoundTrip(req)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x.alive()
	if resp.StatusCode < http.StatusBadRequest && (resp.StatusCode != http.StatusOK || !isDocument(resp.Header)) {
		resp.Body = &watchedBody{body: resp.Body, x: x}
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("reading the error of the API: %w", err)
	}
	f := parseFailure(resp.StatusCode, body)
	if resp.StatusCode == http.StatusOK && f.kind == "" {
		return nil, errNotStream
	}
	f.retryAfter = retryAfter(resp.Header, time.Now())
	f.hopeless = resp.Header.Get("X-Should-Retry") == "false"
	x.failure = f
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t *roundTripper) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// isDocument reports whether a response is certainly no event stream: a web
// page, or a server that cannot stream.
func isDocument(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (kind == "text/html" || kind == "application/json")
}

// watchedBody tells the exchange about every byte, so that pings count, and ends
// an answer that is too long.
type watchedBody struct {
	body io.ReadCloser
	x    *exchange
	n    int
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.x.alive()
	}
	if b.n += n; b.n > maxStream {
		return 0, errTooLong
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchedBody) Close() error { return b.body.Close() }

// parseFailure reads {"type":"error","error":{"type":...,"message":...}}, and what
// proxies in between answer instead: another JSON form, or plain text.
func parseFailure(status int, body []byte) *apiFailure {
	f := &apiFailure{status: status}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &outer) != nil {
		if status != http.StatusOK {
			f.message = string(body)
		}
		return f
	}
	f.message = outer.Message
	var inner struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	}
	if len(outer.Error) == 0 || string(outer.Error) == "null" {
		return f
	}
	if json.Unmarshal(outer.Error, &inner) != nil {
		f.kind, f.message = "error", string(outer.Error)
		return f
	}
	f.kind, f.message = inner.Type, inner.Message
	if len(inner.Details) > 0 && string(inner.Details) != "null" {
		f.message += " " + string(inner.Details)
	}
	if f.kind == "" {
		f.kind = "error"
	}
	return f
}

// retryAfter reads how long to wait: retry-after-ms, or Retry-After in seconds
// or as a date. It is zero if there is none, and at most a day.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		return seconds(at.Sub(now).Seconds())
	}
	return 0
}

func seconds(s float64) time.Duration {
	switch {
	case !(s > 0): // also not a number
		return 0
	case s > maxWait.Seconds():
		return maxWait
	}
	return time.Duration(s * float64(time.Second))
}
