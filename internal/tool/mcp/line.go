package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/tool"
)

const (
	maxMessage  = 4 << 20  // bytes of one message
	maxExchange = 16 << 20 // bytes that a server may send for one request of ours
	maxIdle     = 1 << 20  // bytes that a program may send after that in a minute, unasked
)

var (
	errFlood = errors.New("the server sends more than it may")
	errBatch = errors.New("the server sends a batch, which the protocol no longer has")
)

// stdio talks to a program.
type stdio struct {
	process *Process
	out     *bufio.Reader
	line    []byte // the rest of a message that was begun to be read
	log     *slog.Logger
	skipped int // lines that were no messages

	mu        sync.Mutex // guards what follows
	exchanges int        // that go on
	left      int        // bytes that it may still send
	since     time.Time  // when left was set last
}

func newStdio(p *Process, log *slog.Logger) *stdio {
	return &stdio{process: p, out: bufio.NewReaderSize(p.Stdout, 64<<10), log: log, left: maxIdle}
}

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
		s.left, s.since = maxIdle, time.Now()
	}
}

// spend counts what was sent, and reports whether it is too much.
func (s *stdio) spend(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exchanges == 0 && time.Since(s.since) > time.Minute {
		s.left, s.since = maxIdle, time.Now()
	}
	s.left -= n
	return s.left < 0
}

func (s *stdio) refusal() string { return "" }

func (s *stdio) wrote() string {
	if s.process.Said == nil {
		return ""
	}
	return strings.Join(strings.Fields(s.process.Said()), " ")
}

func (s *stdio) stop() error {
	err := s.process.Stop()
	_ = s.process.Stdin.Close()
	_ = s.process.Stdout.Close()
	return err
}

// Read implements io.Reader for the transport, one reader at a time. It returns
// messages; a line that is none, such as a greeting or a warning that belongs on
// stderr, is skipped and logged. A server that never stops talking, with
// notifications for instance, is cut off.
func (s *stdio) Read(p []byte) (int, error) {
	for len(s.line) == 0 {
		line, err := s.next()
		if err != nil {
			return 0, err
		}
		switch text := bytes.TrimSpace(line); {
		case len(text) == 0:
		case text[0] == '[' && json.Valid(text):
			return 0, errBatch
		case isMessage(text):
			s.line = line
		default:
			s.skip(text)
		}
	}
	n := copy(p, s.line)
	s.line = s.line[n:]
	return n, nil
}

// next reads a line with its end.
func (s *stdio) next() ([]byte, error) {
	var line []byte
	for {
		part, err := s.out.ReadSlice('\n')
		line = append(line, part...)
		if s.spend(len(part)) || len(line) > maxMessage {
			return nil, errFlood
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// isMessage reports whether a line is JSON-RPC 2.0.
func isMessage(line []byte) bool {
	var m struct {
		Version string `json:"jsonrpc"`
	}
	return json.Unmarshal(line, &m) == nil && m.Version == "2.0"
}

// maxSkipped is how many lines of a server that are no messages are logged.
const maxSkipped = 5

func (s *stdio) skip(line []byte) {
	if s.skipped++; s.skipped > maxSkipped {
		return
	}
	s.log.Warn("an MCP server wrote a line that is no message; it is skipped",
		"line", tool.Line(string(line[:min(len(line), 1000)]), 200), "last_logged", s.skipped == maxSkipped)
}

// Close implements io.Closer for the transport.
func (s *stdio) Close() error { return s.process.Stdout.Close() }

// web talks streamable HTTP.
type web struct {
	server Server
	base   *http.Transport
	life   context.Context // ends all requests; it belongs to no caller
	cancel context.CancelFunc
	said   atomic.Value // string: the last answer that was none
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

func (w *web) refusal() string {
	said, _ := w.said.Load().(string)
	return said
}

func (w *web) wrote() string { return "" }

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
	switch {
	case err != nil:
		release()
		w.said.Store("its address does not answer")
		return nil, err
	case resp.StatusCode >= http.StatusMultipleChoices:
		w.said.Store("its address answered " + strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))))
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
