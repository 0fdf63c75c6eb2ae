package mcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxMessage  = 4 << 20  // bytes of one message
	maxExchange = 16 << 20 // bytes that a server may send for one request of ours
	maxIdle     = 1 << 20  // bytes that a program may send after that, unasked
)

var (
	errFlood = errors.New("the server sends more than it may")
	errBatch = errors.New("the server sends a batch, which the protocol no longer has")
)

// stdio talks to a program.
type stdio struct {
	process *Process
	inLine  bool // the reader is inside a line

	mu        sync.Mutex // guards what follows
	exchanges int        // that go on
	left      int        // bytes that it may still send
}

func newStdio(p *Process) *stdio { return &stdio{process: p, left: maxIdle} }

func (s *stdio) transport() sdk.Transport {
	return &sdk.IOTransport{Reader: s, Writer: s.process.Stdin, MaxLineLength: maxMessage}
}

func (s *stdio) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges++
	s.left = maxExchange
}

func (s *stdio) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exchanges--; s.exchanges == 0 {
		s.left = maxIdle
	}
}

// spend counts what was sent, and reports whether it is too much.
func (s *stdio) spend(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= n
	return s.left < 0
}

func (s *stdio) stop() error {
	err := s.process.Stop()
	_ = s.process.Stdin.Close()
	_ = s.process.Stdout.Close()
	return err
}

// Read implements io.Reader for the transport, one reader at a time. A server
// that never stops talking, with notifications for instance, is cut off.
func (s *stdio) Read(p []byte) (int, error) {
	n, err := s.process.Stdout.Read(p)
	if s.spend(n) {
		return 0, errFlood
	}
	for rest := p[:n]; len(rest) > 0; {
		if !s.inLine {
			if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
				break
			}
			if rest[0] == '[' {
				return 0, errBatch
			}
		}
		end := bytes.IndexByte(rest, '\n')
		if s.inLine = end < 0; s.inLine {
			break
		}
		rest = rest[end+1:]
	}
	return n, err
}

// Close implements io.Closer for the transport.
func (s *stdio) Close() error { return s.process.Stdout.Close() }

// web talks streamable HTTP.
type web struct {
	server Server
	base   *http.Transport
	life   context.Context // ends all requests; it belongs to no caller
	cancel context.CancelFunc
}

func newHTTP(s Server, opts Options) *web {
	w := &web{server: s, base: &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.RootCAs},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    5 * time.Second,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}}
	w.life, w.cancel = context.WithCancel(context.Background())
	return w
}

func (w *web) transport() sdk.Transport {
	return &sdk.StreamableClientTransport{
		Endpoint: w.server.URL,
		HTTPClient: &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the server redirects, which is not followed") // with our headers
		}},
		MaxRetries:           -1,
		DisableStandaloneSSE: true, // nothing that a server says by itself is of use
		MaxEventSize:         maxMessage,
	}
}

func (w *web) begin() {}

func (w *web) end() {}

func (w *web) stop() error {
	w.cancel()
	w.base.CloseIdleConnections()
	return nil
}

// RoundTrip implements http.RoundTripper: with the headers of the server, an end
// when the line ends, and a bound on the answer.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	unlink := context.AfterFunc(w.life, cancel) //nolint:contextcheck // the end of the line ends each request, whoever made it
	release := func() { unlink(); cancel() }
	req = req.Clone(ctx)
	for name, values := range w.server.Headers {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = &boundedBody{body: resp.Body, left: maxExchange, release: release}
	return resp, nil
}

type boundedBody struct {
	body    io.ReadCloser
	left    int64
	release func()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errFlood
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.release()
	return b.body.Close()
}
