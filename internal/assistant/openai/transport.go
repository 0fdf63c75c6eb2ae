package openai

import (
	"bufio"
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
	maxLine      = 4 << 20  // of a stream; a chunk with a whole answer fits
	maxStream    = 64 << 20 // of a whole answer, with its framing
	maxWait      = 24 * time.Hour
)

var (
	errIdle      = errors.New("the API went silent")
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

// exchange is one request and what its response said beyond what go-openai
// passes on: the wait that was asked for, and errors as they were sent.
type exchange struct {
	retryAfter time.Duration
	failure    *apiFailure // nil while nothing failed

	mu     sync.Mutex // guards idle and timer
	idle   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// apiFailure is an error that the API sent.
type apiFailure struct {
	status  int    // HTTP status; 200 for an error inside a stream
	code    string // error.code; also a number in digits
	kind    string // error.type
	message string
	body    bool // there was a body
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
	x.timer.Reset(x.idle)
}

// pause stops the watch until alive is called.
func (x *exchange) pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
}

func (x *exchange) setIdle(idle time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if idle != x.idle {
		x.idle = idle
		x.timer.Reset(idle)
	}
}

// roundTripper keeps what go-openai drops, and cleans the stream that it reads.
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
	x.retryAfter = retryAfter(resp.Header, time.Now())
	switch {
	case resp.StatusCode >= http.StatusBadRequest, resp.StatusCode == http.StatusOK && isDocument(resp.Header):
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the error of the API: %w", err)
		}
		x.failure = parseFailure(resp.StatusCode, body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if resp.StatusCode == http.StatusOK && x.failure.message == "" {
			return nil, errNotStream
		}
	default:
		resp.Body = newEventReader(resp.Body, x)
	}
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

// parseFailure reads the errors of all the servers that call themselves
// compatible: {"error":{...}}, {"error":"text"}, {"message":"text"},
// {"detail":...}, a list of one of these, or plain text.
func parseFailure(status int, body []byte) *apiFailure {
	f := &apiFailure{status: status, body: len(bytes.TrimSpace(body)) > 0}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
	}
	if json.Unmarshal(body, &outer) != nil {
		if status != http.StatusOK {
			f.message = string(body)
		}
		return f
	}
	f.message = firstOf(plain(outer.Message), plain(outer.Detail))
	f.code, f.kind = plain(outer.Code), plain(outer.Type)
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		f.addInner(outer.Error)
	}
	if status == http.StatusOK && len(outer.Error) == 0 {
		f.message = ""
	}
	return f
}

func (f *apiFailure) addInner(raw json.RawMessage) {
	var inner struct {
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Status  json.RawMessage `json:"status"` // Google
	}
	if json.Unmarshal(raw, &inner) != nil {
		f.message = firstOf(plain(raw), f.message)
		return
	}
	f.message = firstOf(plain(inner.Message), f.message, string(raw))
	f.code = firstOf(plain(inner.Code), f.code)
	f.kind = firstOf(plain(inner.Type), plain(inner.Status), f.kind)
}

// plain returns the text of a JSON string, or other JSON as it is.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil || len(raw) == 0 {
		return s
	}
	return string(raw)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// retryAfter reads how long to wait: retry-after-ms, or Retry-After in seconds
// or as a date. It is zero if there is none.
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

// eventReader passes on the data lines of an event stream, each with a blank
// line after it. go-openai mixes comments and "event:" lines into the error
// that follows them and then cannot read it, so errors are taken out here.
type eventReader struct {
	body  io.ReadCloser
	lines *bufio.Reader
	x     *exchange
	rest  []byte // of the line being passed on
	buf   []byte // what rest is cut from; used again
	total int
	err   error
}

func newEventReader(body io.ReadCloser, x *exchange) *eventReader {
	r := &eventReader{body: body, x: x}
	r.lines = bufio.NewReaderSize(&aliveReader{body, x}, 8<<10)
	return r
}

// aliveReader tells the exchange about every byte, so that comments count.
type aliveReader struct {
	r io.Reader
	x *exchange
}

func (a *aliveReader) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if n > 0 {
		a.x.alive()
	}
	return n, err
}

// Read implements io.Reader.
func (r *eventReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *eventReader) Close() error { return r.body.Close() }

func (r *eventReader) next() {
	line, err := r.readLine()
	r.err = err
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	if !ok {
		return
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return
	}
	if err != nil && !json.Valid(data) && string(data) != "[DONE]" {
		r.err = io.ErrUnexpectedEOF // cut in the middle of the line
		return
	}
	if f := streamFailure(data); f != nil {
		r.x.failure, r.err = f, errors.New("the API sent an error inside the stream")
		return
	}
	r.buf = append(r.buf[:0], "data: {"...)
	// go-openai takes every chunk that begins with an error for one, also with
	// "error":null. A space keeps it from seeing that.
	if rest, ok := bytes.CutPrefix(data, []byte(`{"error"`)); ok {
		r.buf = append(append(r.buf, ` "error"`...), rest...)
	} else {
		r.buf = append(r.buf[:len("data: ")], data...)
	}
	r.buf = append(r.buf, "\n\n"...)
	r.rest = r.buf
}

func (r *eventReader) readLine() ([]byte, error) {
	var line []byte
	for {
		piece, err := r.lines.ReadSlice('\n')
		r.total += len(piece)
		if len(line)+len(piece) > maxLine || r.total > maxStream {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if line == nil {
				return piece, err
			}
			return append(line, piece...), err
		}
		line = append(line, piece...)
	}
}

// streamFailure returns the error in a chunk, if there is one.
func streamFailure(data []byte) *apiFailure {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	var chunk struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &chunk) != nil || len(chunk.Error) == 0 || string(chunk.Error) == "null" {
		return nil
	}
	return parseFailure(http.StatusOK, data)
}
