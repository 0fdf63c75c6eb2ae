// Package modelhttp is the HTTP below the assistants that ask a model API: a
// client made for many streams at once, a watch over each request, and the
// faults that come of the connection. What an API says, and how, is known to
// its assistant only.
package modelhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// MaxWait is the longest wait that an API is believed to ask for; see fault.Asked. Some
// have limits of a day.
const MaxWait = 24 * time.Hour

const (
	maxErrorBody = 64 << 10
	maxStream    = 64 << 20 // of a whole answer, with its framing
)

// How an exchange can end besides the errors of the connection and of the API.
var (
	ErrIdle      = errors.New("the API went silent")
	ErrNotStream = errors.New("the API did not answer with an event stream")
	ErrTooLong   = errors.New("the API sent more than the limit")
	ErrRedirect  = errors.New("the API redirects elsewhere")
)

// Client returns a client whose transport reports to the Exchange of the
// request; a request without one passes unchanged. It refuses redirects with
// ErrRedirect, because the conversation would follow them. own is used with its
// transport and its timeout, and is not changed. Without a transport of the
// caller the client has a connection for each of 64 turns at once, and without a
// client no timeout either: the idle timeout is the limit.
func Client(own *http.Client) *http.Client {
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
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return ErrRedirect }
	return &c
}

// roundTripper gives each response to the exchange of its request, and limits
// what is read.
type roundTripper struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*Exchange)
	if !ok {
		return t.next.RoundTrip(req)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x.RetryAfter = retryAfter(resp.Header, time.Now())
	if x.RetryAfter == 0 && resp.StatusCode == http.StatusTooManyRequests {
		x.RetryAfter = resetAfter(resp.Header, time.Now())
	}
	if resp.StatusCode < http.StatusBadRequest && (resp.StatusCode != http.StatusOK || !isDocument(resp.Header)) {
		resp.Body = x.receiver.Stream(&watchedBody{body: resp.Body, x: x})
		return resp, nil
	}
	x.Alive()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("reading the error of the API: %w", err)
	}
	if !x.receiver.Refused(resp.StatusCode, resp.Header, body) && resp.StatusCode == http.StatusOK {
		return nil, ErrNotStream
	}
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

// watchedBody tells the exchange about every byte, so that pings and comments
// count, and ends an answer that is too long.
type watchedBody struct {
	body io.ReadCloser
	x    *Exchange
	n    int
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.x.Alive()
	}
	if b.n += n; b.n > maxStream {
		return 0, ErrTooLong
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchedBody) Close() error { return b.body.Close() }

// retryAfter reads how long to wait: retry-after-ms, or Retry-After in seconds
// or as a date. It is zero if there is none, and at most MaxWait.
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

// resets are the headers in which APIs say when a limit ends, with those of what is left
// of it.
var resets = []struct{ reset, remaining string }{
	{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining"},
	{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Unified-Reset", ""},
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"},
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
	{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"},
	{"Ratelimit-Reset", "Ratelimit-Remaining"},
}

// resetAfter reads how long to wait until all limits of which nothing is left have
// ended: zero if none says so, and at most MaxWait.
func resetAfter(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for _, r := range resets {
		left := strings.TrimSpace(h.Get(r.remaining))
		if value := strings.TrimSpace(h.Get(r.reset)); value != "" && (left == "" || left == "0") {
			wait = max(wait, until(value, now))
		}
	}
	return wait
}

// until reads a time: "6m0s", a date, seconds from now, or seconds or milliseconds since
// 1970.
func until(value string, now time.Time) time.Duration {
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return seconds(at.Sub(now).Seconds())
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		d, _ := time.ParseDuration(value)
		return seconds(d.Seconds())
	case n > 1e12:
		return seconds(n/1000 - float64(now.Unix()))
	case n > 1e9:
		return seconds(n - float64(now.Unix()))
	}
	return seconds(n)
}

// Down says that an API which answered with a status is down or overloaded.
func Down(status int) string {
	if status == http.StatusServiceUnavailable || status == 529 {
		return fmt.Sprintf("The model is overloaded (%d).", status)
	}
	return fmt.Sprintf("The model API failed (%d).", status)
}

func seconds(s float64) time.Duration { return fault.Asked(s, MaxWait) }
