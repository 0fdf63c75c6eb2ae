package exchange_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/exchange"
)

// transport answers without a network.
type transport struct {
	answer func(req *http.Request) (*http.Response, error)
	idle   int
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) { return t.answer(req) }

func (t *transport) CloseIdleConnections() { t.idle++ }

// body is a body that tells what became of it.
type body struct {
	io.Reader
	fails  error
	reads  int
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.reads++; b.fails != nil {
		return 0, b.fails
	}
	return b.Reader.Read(p)
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestACallBeforeItsFirstRequest(t *testing.T) {
	t.Parallel()
	call := new(exchange.Call)
	if call.Status() != 0 || call.Answered() != nil || call.Wrote() || call.RetryAfter() != 0 || call.Uncertain() {
		t.Errorf("something is known of a request that was not made: %d, %v", call.Status(), call.Answered())
	}
}

// TestWhatAFailureSays: the operation, the status if there was an answer, and no secret.
func TestWhatAFailureSays(t *testing.T) {
	t.Parallel()
	scrub := exchange.NewScrubber(nil, "a-secret")
	for status, want := range map[int]string{0: "posting: the SDK says ***", 502: "posting: HTTP status 502: the SDK says ***"} {
		client := exchange.Client(&transport{answer: func(*http.Request) (*http.Response, error) {
			if status == 0 {
				return nil, errors.New("no connection")
			}
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		}})
		call := &exchange.Call{Scrub: scrub}
		_ = post(call.Context(t.Context()), client, "http://x.example/")
		if f := call.Failure(t.Context(), "posting", errors.New("the SDK says a-secret")); f.Err.Error() != want {
			t.Errorf("status %d: %q, want %q", status, f.Err, want)
		}
	}
	if scrub.Error(nil) != nil {
		t.Error("no error became one")
	}
	if err := scrub.Error(errors.New("x")); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Error("an error became one of a context")
	}
	if text := strings.Repeat("x", 500); scrub.Text(text) != text {
		t.Error("a text of 500 bytes was cut")
	}
}

// TestARequestThatWasNotWritten: what failed while it was written did not arrive whole.
func TestARequestThatWasNotWritten(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset")
	for _, failed := range []error{nil, reset} {
		client := exchange.Client(&transport{answer: func(req *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(req.Context()).WroteRequest(httptrace.WroteRequestInfo{Err: failed})
			return nil, reset
		}})
		call := new(exchange.Call)
		_ = post(call.Context(t.Context()), client, "http://x.example/")
		if call.Wrote() != (failed == nil) {
			t.Errorf("wrote %v after %v", call.Wrote(), failed)
		}
	}
}

// TestBodiesAreClosed: who writes a request into a pipe waits until it is.
func TestBodiesAreClosed(t *testing.T) {
	t.Parallel()
	full := fault.New(fault.RateLimited, "")
	for name, test := range map[string]struct {
		refused, broken error
		length          int64 // 0: unknown
		reads           bool  // before it is sent
	}{
		"refused":        {refused: full},
		"broken":         {broken: errors.New("no file"), reads: true},
		"unknown length": {reads: true},
		"known length":   {length: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, answer := &body{Reader: strings.NewReader("hello"), fails: test.broken}, &body{Reader: strings.NewReader("ok")}
			reads := false
			client := exchange.Client(&transport{answer: func(req *http.Request) (*http.Response, error) {
				reads = sent.reads > 0
				if text, err := io.ReadAll(req.Body); string(text) != "hello" || req.ContentLength != 5 || err != nil {
					t.Errorf("%q of %d bytes was sent: %v", text, req.ContentLength, err)
				}
				_ = req.Body.Close()
				return &http.Response{StatusCode: http.StatusOK, Body: answer}, nil
			}})
			call := new(exchange.Call)
			if test.refused != nil {
				call.Admit = func(*http.Request) error { return test.refused }
			}
			req, err := http.NewRequestWithContext(call.Context(t.Context()), http.MethodPost, "http://x.example/", sent)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = test.length
			resp, err := client.Do(req)
			if resp != nil {
				_ = resp.Body.Close()
			}
			fails := test.refused != nil || test.broken != nil
			if (err != nil) != fails || !sent.closed || !fails && (!answer.closed || reads != test.reads) {
				t.Errorf("%v; the request is closed: %v, read before it was sent: %v; the answer is closed: %v", err, sent.closed, reads, answer.closed)
			}
		})
	}
}

// TestRedirectsEnd: a thing that was renamed is found, and a circle is left.
func TestRedirectsEnd(t *testing.T) {
	t.Parallel()
	requests := 0
	below := &transport{answer: func(req *http.Request) (*http.Response, error) {
		requests++
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"/again"}}, Body: http.NoBody, Request: req}, nil
	}}
	client := exchange.Client(below)
	call := new(exchange.Call)
	req, err := http.NewRequestWithContext(call.Context(t.Context()), http.MethodGet, "http://x.example/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Body = nil // as many SDKs do it
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if requests != 4 || call.Status() != http.StatusFound {
		t.Errorf("%d requests, the last answer is %d", requests, call.Status())
	}
	client.CloseIdleConnections()
	if below.idle != 1 {
		t.Error("the transport was not told to close its connections")
	}
	exchange.Client(http.NewFileTransport(http.Dir(t.TempDir()))).CloseIdleConnections() // which has none
}

// TestTheTransportKeepsItsConnections: as many as it may have to a host, so that a burst does
// not open them anew.
func TestTheTransportKeepsItsConnections(t *testing.T) {
	t.Parallel()
	transport := exchange.Transport(50)
	if transport.MaxConnsPerHost != 50 || transport.MaxIdleConnsPerHost < 50 || transport.MaxIdleConns < 2*50 {
		t.Errorf("of %d connections to a host %d stay, of all %d", transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost, transport.MaxIdleConns)
	}
}
