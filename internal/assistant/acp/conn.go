package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

const (
	// maxLine bounds one message of an agent, in bytes. The largest real ones
	// are file contents in tool results.
	maxLine = 8 << 20

	// keptBuffer is how large a line may be for its buffer to be used again.
	keptBuffer = 64 << 10

	// Before an agent has answered initialize, a wrapper around it may print
	// something. Afterward every stray line may be a lost part of an answer.
	maxStrayLines = 100
	maxStrayBytes = 64 << 10

	codeMethodNotFound = -32601
)

// What ends a connection.
var (
	errEnded   = errors.New("the agent closed its output")
	errMidLine = errors.New("the agent's output ended in the middle of a message")
	errGarbage = errors.New("the agent wrote something that is not JSON-RPC")
	errTooLong = fmt.Errorf("the agent wrote a message of more than %d bytes", maxLine)
	errSilent  = errors.New("the agent is silent")
)

// handler gets what an agent sends by itself. Its methods are called by one
// goroutine, in the order of arrival; while one runs, nothing more is read.
type handler interface {
	notified(method string, params json.RawMessage)
	requested(id json.RawMessage, method string, params json.RawMessage)
}

// conn is a JSON-RPC connection to one agent, one message a line.
//
// The names of methods, errors and usage are the SDK's. Its requests are not used: their
// code for JSON is 40 KB of the program. Neither is its connection: it logs
// what it cannot read as it came, closes when more than 1024 notifications
// arrive faster than they are handled, as in the replay of a long session, and
// can lose an answer that is followed by the end of the process. Here
// everything is handled in the order of arrival, and an agent that is faster
// than we are has to wait in its own write.
type conn struct {
	handler handler
	out     chan []byte

	mu      sync.Mutex
	next    int64
	pending map[string]pending
	err     error

	busy func() bool // asked of an agent that is silent: whether it is at work all the same; may be nil

	ready atomic.Bool  // initialize was answered
	heard atomic.Int64 // when the last message came, in Unix nanoseconds
	done  chan struct{}
	wg    sync.WaitGroup
}

// wire is any message.
type wire struct {
	ID     json.RawMessage   `json:"id,omitempty"`
	Method string            `json:"method,omitempty"`
	Params json.RawMessage   `json:"params,omitempty"`
	Result json.RawMessage   `json:"result,omitempty"`
	Error  *sdk.RequestError `json:"error,omitempty"`
}

// pending is a request that waits for its answer.
type pending struct {
	answered chan reply // capacity 1
	then     func()     // called before anything after the answer is read; may be nil
}

type reply struct {
	result json.RawMessage
	err    error
}

// connect starts to talk. The connection ends with the streams, which the
// caller closes; wait returns when nothing of it is running.
func connect(h handler, stdin io.Writer, stdout io.Reader) *conn {
	c := &conn{handler: h, out: make(chan []byte, 16), pending: map[string]pending{}, done: make(chan struct{})}
	c.heard.Store(time.Now().UnixNano())
	c.wg.Go(func() { c.write(stdin) })
	c.wg.Go(func() { c.end(c.read(stdout)) })
	return c
}

func (c *conn) wait() { c.wg.Wait() }

// end makes the connection useless; the first reason counts.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
}

// cause returns why the connection ended, or nil.
func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *conn) write(w io.Writer) {
	for {
		select {
		case line := <-c.out:
			if _, err := w.Write(line); err != nil {
				// The reader finds the end of the process, with what it still said.
				return
			}
		case <-c.done:
			return
		}
	}
}

// send queues a message. It waits while the agent does not read.
func (c *conn) send(ctx context.Context, m any) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	select {
	case c.out <- append(line, '\n'):
		return nil
	case <-c.done:
		return c.cause()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type outgoing struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  any               `json:"params,omitempty"`
	Result  any               `json:"result,omitempty"`
	Error   *sdk.RequestError `json:"error,omitempty"`
}

func (c *conn) notify(ctx context.Context, method string, params any) error {
	return c.send(ctx, outgoing{JSONRPC: "2.0", Method: method, Params: params})
}

func (c *conn) answer(ctx context.Context, id json.RawMessage, result any) error {
	return c.send(ctx, outgoing{JSONRPC: "2.0", ID: id, Result: result})
}

func (c *conn) refuse(ctx context.Context, id json.RawMessage, code int, text string) error {
	return c.send(ctx, outgoing{JSONRPC: "2.0", ID: id, Error: &sdk.RequestError{Code: code, Message: text}})
}

// call sends a request and decodes the answer into result. If quiet is positive
// and the agent sends nothing at all for that long, and is not busy, it returns errSilent. An
// answer that says no is a *sdk.RequestError. What came before the answer was
// handled when call returns.
func (c *conn) call(ctx context.Context, quiet time.Duration, method string, params, result any) error {
	return c.callThen(ctx, quiet, method, params, result, nil)
}

// callThen is call, and calls then before anything that came after the answer is
// handled.
func (c *conn) callThen(
	ctx context.Context, quiet time.Duration, method string, params, result any, then func(),
) error {
	c.mu.Lock()
	c.next++
	id := strconv.FormatInt(c.next, 10)
	answered := make(chan reply, 1)
	c.pending[id] = pending{answered, then}
	c.mu.Unlock()
	defer c.forget(id)
	c.heard.Store(time.Now().UnixNano())
	r, err := c.await(ctx, quiet, outgoing{JSONRPC: "2.0", ID: json.RawMessage(id), Method: method, Params: params}, answered)
	if err != nil {
		return err
	}
	if r.err != nil {
		return r.err
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.result, result); err != nil {
		return fmt.Errorf("%w: the answer to %s: %w", errGarbage, method, err)
	}
	return nil
}

func (c *conn) await(ctx context.Context, quiet time.Duration, m outgoing, answered <-chan reply) (reply, error) {
	if quiet > 0 {
		limited, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		watch := c.watch(quiet, func() bool {
			silent := c.busy == nil || !c.busy()
			if silent {
				stop(errSilent)
			}
			return silent
		})
		defer watch()
		ctx = limited
	}
	if err := c.send(ctx, m); err != nil {
		return reply{}, err
	}
	select {
	case r := <-answered:
		return r, nil
	case <-c.done:
		select {
		case r := <-answered: // it came before the end
			return r, nil
		default:
			return reply{}, c.cause()
		}
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// watch calls silent whenever nothing was heard for quiet, until that returns true or stop is called.
func (c *conn) watch(quiet time.Duration, silent func() bool) (stop func()) {
	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(quiet, func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		if left := quiet - time.Since(time.Unix(0, c.heard.Load())); left > 0 {
			timer.Reset(left)
			return
		}
		if stopped = silent(); !stopped {
			timer.Reset(quiet)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

func (c *conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

func (c *conn) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 16<<10)
	var buf []byte
	strayLines, strayBytes := 0, 0
	for {
		line, err := readLine(lines, buf[:0])
		if err != nil {
			return err
		}
		if cap(line) <= keptBuffer {
			buf = line
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var m wire
		if err := json.Unmarshal(line, &m); err != nil || line[0] != '{' || !m.valid() {
			strayLines++
			strayBytes += len(line)
			if c.ready.Load() || strayLines > maxStrayLines || strayBytes > maxStrayBytes {
				return errGarbage
			}
			continue
		}
		c.heard.Store(time.Now().UnixNano())
		c.dispatch(m)
	}
}

func (m wire) valid() bool { return m.Method != "" || len(m.ID) > 0 }

func (c *conn) dispatch(m wire) {
	switch {
	case m.Method == "":
		c.mu.Lock()
		p, ok := c.pending[string(m.ID)]
		delete(c.pending, string(m.ID))
		c.mu.Unlock()
		if !ok {
			return // nobody waits for it any more
		}
		if p.then != nil {
			p.then()
		}
		if m.Error != nil {
			p.answered <- reply{err: m.Error}
			return
		}
		p.answered <- reply{result: m.Result}
	case len(m.ID) == 0 || string(m.ID) == "null":
		c.handler.notified(m.Method, m.Params)
	default:
		c.handler.requested(m.ID, m.Method, m.Params)
	}
}

// readLine appends the next line to buf and returns it without its end.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(buf)+len(part) > maxLine {
			return nil, errTooLong
		}
		buf = append(buf, part...)
		switch {
		case err == nil:
			return buf[:len(buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(buf) > 0:
			return nil, errMidLine
		default:
			return nil, errEnded
		}
	}
}
