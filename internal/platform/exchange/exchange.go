// Package exchange is the HTTP below the platforms' SDKs: one http.RoundTripper
// that adds to each of their calls what the SDKs do not tell or do.
//
// An adapter gives the SDK the client that Client returns, and wraps each call of
// the SDK:
//
//	call := &exchange.Call{Idempotent: true, Scrub: a.scrub, Admit: a.admit}
//	me, err := a.api.AuthTestContext(call.Context(ctx))
//	if err != nil {
//		return call.Failure(ctx, "auth.test", err) // after the SDK's own errors were looked at
//	}
//
// The round tripper asks Admit before it sends (the rate budget, see Budget), sets
// the call's headers, bounds time and size of the answer, reads it whole so that no
// connection is lost to a body that the SDK leaves unread, and notes whether the
// request was written, the status, and Retry-After. A request without a Call in its
// context passes unchanged: downloads and other streams.
package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/fault"
)

const (
	defaultTimeout   = 30 * time.Second
	defaultMaxAnswer = 32 << 20

	// LongestWait is the longest wait that a platform is believed to ask for; see
	// fault.Asked. Telegram has asked for hours.
	LongestWait = 24 * time.Hour

	// maxRedirects is how many redirects a renamed thing may take.
	maxRedirects = 3

	// smallBody is up to how many bytes a body of unknown length is gathered before
	// it is sent.
	smallBody = 32 << 10
)

// ErrTooLong ends an answer that is longer than the call's MaxAnswer.
var ErrTooLong = errors.New("the answer is longer than the limit")

// Call is one call of an SDK, which may make several requests. What is seen is
// always of the last one. Its fields are set before Context and not changed after
// that; its methods are safe for concurrent use.
type Call struct {
	// Idempotent says that making the call again does no harm, so that its failure
	// is never Uncertain.
	Idempotent bool

	// Admit is asked before each request is sent and may wait. Its error ends the
	// request, which is not sent, and comes out of the SDK's wrapping through
	// Failure. Nil admits all.
	Admit func(req *http.Request) error

	// Header is set on requests to where the first one goes, and on no others:
	// credentials, If-None-Match.
	Header http.Header

	// Timeout bounds each request with its answer, from when it is admitted. Zero
	// is 30 seconds.
	Timeout time.Duration

	// MaxAnswer bounds an answer in bytes; whoever reads a longer one gets so much
	// of it and then ErrTooLong. Zero is 32 MiB.
	MaxAnswer int64

	// Scrub takes credentials out of the errors that Failure returns. It may be nil.
	Scrub *Scrubber

	// Clock learns from the answers what time it is on the other side. It may be nil.
	Clock *Clock

	mu     sync.Mutex // guards all below
	origin string     // of the first request
	last   *seen
}

// seen is what was seen of one request.
type seen struct {
	wrote  atomic.Bool // all of it was written to a connection
	status int         // of the answer, 0 if there was none
	header http.Header
}

type callKey struct{}

// Context returns the context to make the call with.
func (c *Call) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// Status returns the status of the answer, or 0 if none came, however the SDK
// words its absence.
func (c *Call) Status() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return 0
	}
	return c.last.status
}

// Answered returns the header of the answer, which is nil if none came.
func (c *Call) Answered() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return nil
	}
	return c.last.header
}

// Wrote reports whether the request was written to a connection completely, so
// that the other side may have read it.
func (c *Call) Wrote() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last != nil && c.last.wrote.Load()
}

// RetryAfter returns how long the answer asks to wait, in seconds or by a date, at
// most a day; zero if it does not.
func (c *Call) RetryAfter() time.Duration { return retryAfter(c.Answered(), time.Now()) }

func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseInt(value, 10, 64); err == nil {
		return fault.Asked(float64(s), LongestWait)
	}
	if at, err := http.ParseTime(value); err == nil {
		return fault.Asked(at.Sub(now).Seconds(), LongestWait)
	}
	return 0
}

// Uncertain reports whether a call that failed may have had its effect: the request
// was written, doing it again does harm, and there was no answer, or one cut off, or
// one that says that something failed on the way (5xx but 503).
func (c *Call) Uncertain() bool {
	status := c.Status()
	return !c.Idempotent && c.Wrote() && (status < 300 || status >= 500 && status != http.StatusServiceUnavailable)
}

// Failure classifies the error of a call that the platform did not refuse in its own
// words: what Admit returned as it is, else fault.Canceled if ctx, the caller's, was
// canceled, that of a fault.Resource, and fault.Unavailable with RetryAfter and Uncertain otherwise. doing
// names the operation. The foreign error is reduced to a text without credentials.
func (c *Call) Failure(ctx context.Context, doing string, err error) *fault.Error {
	if ours, ok := errors.AsType[*fault.Error](err); ok {
		return ours
	}
	f := &fault.Error{Kind: fault.Or(err, fault.Unavailable), RetryAfter: c.RetryAfter(), Uncertain: c.Uncertain()}
	if errors.Is(ctx.Err(), context.Canceled) {
		f.Kind = fault.Canceled
	}
	err = c.Scrub.Error(err)
	if status := c.Status(); status != 0 {
		err = fmt.Errorf("HTTP status %d: %w", status, err)
	}
	f.Err = fmt.Errorf("%s: %w", doing, err)
	return f
}

// Client returns a client for an SDK. next is nil, or the transport below. Redirects
// are followed with the same method within the same origin only; others are answers.
func Client(next http.RoundTripper) *http.Client {
	if next == nil {
		next = Transport(50)
	}
	return &http.Client{Transport: &roundTripper{next: next}, CheckRedirect: sameOrigin}
}

// Transport returns a transport below Client with at most maxConns connections to a
// host at once; calls beyond that wait. Zero is no limit.
func Transport(maxConns int) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost = maxConns
	transport.MaxIdleConns = 128
	transport.MaxIdleConnsPerHost = 64
	transport.IdleConnTimeout = 30 * time.Second
	return transport
}

func sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects || originOf(req) != originOf(via[0]) || req.Method != via[0].Method {
		return http.ErrUseLastResponse
	}
	return nil
}

func originOf(req *http.Request) string { return req.URL.Scheme + "://" + req.URL.Host }

type roundTripper struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(callKey{}).(*Call)
	if !ok {
		return t.next.RoundTrip(req)
	}
	now := &seen{}
	home := c.begin(req, now)
	if c.Admit != nil {
		if err := c.Admit(req); err != nil {
			discard(req.Body)
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(req.Context(), cmp.Or(c.Timeout, defaultTimeout))
	defer cancel()
	req = req.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				now.wrote.Store(true)
			}
		},
	}))
	if home {
		maps.Copy(req.Header, c.Header)
	}
	if err := gather(req); err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	now.status, now.header = resp.StatusCode, resp.Header
	c.mu.Unlock()
	if c.Clock != nil && home {
		c.Clock.observe(resp)
	}
	resp.Body = whole(resp.Body, cmp.Or(c.MaxAnswer, defaultMaxAnswer))
	return resp, nil
}

// gather gives a small body of unknown length, as SDKs write forms into a pipe, its
// length. Otherwise it would go out in chunks, each of them in a packet of its own, and
// some proxies refuse those. What is longer, as files are, stays a stream.
func gather(req *http.Request) error {
	if req.Body == nil || req.Body == http.NoBody || req.ContentLength > 0 {
		return nil
	}
	stop := context.AfterFunc(req.Context(), func() { discard(req.Body) }) // who writes it may have stopped
	var small bytes.Buffer
	_, err := io.CopyN(&small, req.Body, smallBody+1)
	if !stop() {
		return req.Context().Err()
	}
	switch {
	case err == nil: // there may be more
		req.Body = &rest{Reader: io.MultiReader(&small, req.Body), Closer: req.Body}
		return nil
	case !errors.Is(err, io.EOF):
		discard(req.Body)
		return err
	}
	discard(req.Body)
	all := small.Bytes()
	if len(all) == 0 {
		req.Body = http.NoBody
		return nil
	}
	req.ContentLength = int64(len(all))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(all)), nil }
	req.Body, err = req.GetBody()
	return err
}

// rest is a body of which the beginning was read.
type rest struct {
	io.Reader
	io.Closer
}

// begin makes a request the last one, and reports whether it goes where the first
// one went.
func (c *Call) begin(req *http.Request, now *seen) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = now
	if c.origin == "" {
		c.origin = originOf(req)
	}
	return c.origin == originOf(req)
}

// whole reads a body of at most limit bytes and closes it. It returns one of what
// came, which ends with the error that ended that.
func whole(body io.ReadCloser, limit int64) io.ReadCloser {
	defer body.Close() //nolint:errcheck // only read
	all, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(all)) > limit {
		all, err = all[:limit], ErrTooLong
	}
	return &answer{read: bytes.NewReader(all), err: err}
}

// answer is a body that was read.
type answer struct {
	read *bytes.Reader
	err  error // instead of io.EOF
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.read.Read(p)
	if err != nil && a.err != nil {
		err = a.err
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error { return nil }

func discard(body io.ReadCloser) {
	if body != nil {
		_ = body.Close()
	}
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t *roundTripper) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
