package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// maxFrame bounds one frame of Socket Mode.
	maxFrame = 4 << 20

	// pingEvery is how often the connection is tried; silence of silentAfter ends
	// it. Slack pings by itself, too.
	pingEvery   = 20 * time.Second
	silentAfter = 60 * time.Second
	dialTimeout = 15 * time.Second

	// drainFor is how long a connection that Slack is about to close goes on
	// receiving after another has taken its place.
	drainFor = 30 * time.Second

	// maxBatch is how many envelopes are stored in one transaction.
	maxBatch = 64

	// storeFor is how long storing is tried before an envelope is given back by
	// not being acknowledged. Slack does not send commands and presses again.
	storeFor = 20 * time.Second
)

// frame is what Slack sends over Socket Mode.
type frame struct {
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`
	Reason   string          `json:"reason"`
}

var errLinkDisabled = errors.New("socket mode is switched off in the app's settings")

// socketMode keeps a connection until ctx is done. When Slack announces the end
// of one, the next is opened before it ends, so that no event falls between.
func (a *Adapter) socketMode(ctx context.Context, sink platform.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	wait := platform.NewBackoff(100*time.Millisecond, 30*time.Second)
	for ctx.Err() == nil {
		conn, err := a.connect(ctx)
		if fault.Is(err, fault.Unauthorized) {
			return err
		}
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			a.log.WarnContext(ctx, "slack does not open a socket, trying again", "error", err)
			_ = wait.Sleep(ctx, retryAfter(err))
			continue
		}
		l := &link{a: a, sink: sink, conn: conn, arrived: make(chan frame, 4*maxBatch), leaving: make(chan error, 1)}
		running.Go(func() { l.run(ctx) })
		opened := time.Now()
		err = <-l.leaving // run always sends
		if ctx.Err() != nil {
			break
		}
		a.observe("socket_reconnect")
		a.log.DebugContext(ctx, "a socket is replaced", "reason", err)
		if time.Since(opened) > time.Minute {
			wait = platform.NewBackoff(100*time.Millisecond, 30*time.Second)
		}
		if errors.Is(err, errLinkDisabled) {
			a.log.WarnContext(ctx, "socket mode is switched off for the slack app; switch it on or set SLACK_SIGNING_SECRET")
			_ = wait.Sleep(ctx, 30*time.Second)
		} else if err != nil {
			_ = wait.Sleep(ctx, 0)
		}
	}
	return nil
}

// connect opens a connection. Its address holds a ticket and appears nowhere.
func (a *Adapter) connect(ctx context.Context) (*websocket.Conn, error) {
	var out struct {
		URL string `json:"url"`
	}
	_, err := a.call(ctx, request{method: "apps.connections.open", token: a.cfg.AppToken, idempotent: true}, &out)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(out.URL)
	if err != nil || u.Scheme != "wss" && (u.Scheme != "ws" || a.base == defaultAPIURL) {
		return nil, fault.Wrap(errBadSocket, fault.Unavailable, "opening a socket")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := &websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTimeout}
	conn, resp, err := dialer.DialContext(ctx, out.URL, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, fault.Wrap(errors.New("the connection was refused or broke"), networkKind(ctx), "opening a socket")
	}
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

var errBadSocket = errors.New("slack named an address that is not a secure socket")

// link is one connection. Its reader, its worker and its pinger end with it.
type link struct {
	a       *Adapter
	sink    platform.Sink
	conn    *websocket.Conn
	arrived chan frame // closed by the reader
	leaving chan error // one value: why another connection is needed; nil if Slack asked

	writing sync.Mutex // held while a message is written
	left    sync.Once
}

func (l *link) leave(err error) { l.left.Do(func() { l.leaving <- err }) }

// run reads until the connection ends, ctx is done, or it was replaced long
// enough ago.
func (l *link) run(ctx context.Context) {
	connected, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	// What has arrived is stored even if the connection is gone: Slack does not
	// send commands again.
	parts.Go(func() { l.work(ctx) })
	parts.Go(func() { l.keepAlive(connected) })
	err := l.read(ctx)
	close(l.arrived)
	l.leave(err)
	cancel()
	_ = l.conn.Close()
	parts.Wait()
}

// read passes frames on and returns why the connection ended.
func (l *link) read(ctx context.Context) error {
	alive := func() error { return l.conn.SetReadDeadline(time.Now().Add(silentAfter)) }
	answer := l.conn.PingHandler()
	l.conn.SetPingHandler(func(data string) error {
		_ = alive()
		return answer(data)
	})
	l.conn.SetPongHandler(func(string) error { return alive() })
	_ = alive()
	for {
		_, raw, err := l.conn.ReadMessage()
		if err != nil {
			return l.a.scrub(err)
		}
		_ = alive()
		var f frame
		if lenient(raw, &f) != nil {
			f = frame{Payload: raw} // kept as it is
		}
		switch f.Type {
		case "hello":
			l.a.log.InfoContext(ctx, "connected to slack", "account", l.a.ownAccount())
			continue
		case "disconnect":
			if f.Reason == "link_disabled" {
				return errLinkDisabled
			}
			l.leave(nil)
			time.AfterFunc(drainFor, func() { _ = l.conn.Close() })
			continue
		}
		select {
		case l.arrived <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keepAlive pings, and ends the connection when ctx is done.
func (l *link) keepAlive(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = l.conn.Close()
			return
		case <-tick.C:
			_ = l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(5*time.Second))
		}
	}
}

// work stores what has arrived, in order and many at a time, and acknowledges
// it.
func (l *link) work(ctx context.Context) {
	for f := range l.arrived {
		batch := []frame{f}
	more:
		for len(batch) < maxBatch {
			select {
			case f, ok := <-l.arrived:
				if !ok {
					break more
				}
				batch = append(batch, f)
			default:
				break more
			}
		}
		l.store(ctx, batch)
	}
}

// pending is an envelope whose meaning is known.
type pending struct {
	frame
	result
}

// store makes a batch durable and acknowledges it. If the batch cannot be
// stored as one, each envelope is stored by itself, so that one which is
// refused does not hold up the others.
func (l *link) store(ctx context.Context, batch []frame) {
	failpoint.Hit(failpoint.Received)
	var events []messages.Inbound
	var together, alone []pending
	for _, f := range batch {
		r, err := l.a.translate(ctx, payloadKind(f.Type), f.Payload)
		switch {
		case err != nil:
			alone = append(alone, pending{frame: f})
		case len(r.events) > 0:
			together = append(together, pending{f, r})
			events = append(events, r.events...)
		case r.reason != "":
			alone = append(alone, pending{f, r})
		default:
			l.ack(f)
		}
	}
	if len(events) > 0 {
		if err := l.sink.Accept(ctx, events...); err != nil {
			l.a.observe("sink_error")
			alone = append(together, alone...)
		} else {
			failpoint.Hit(failpoint.Stored)
			for _, p := range together {
				l.ack(p.frame)
			}
		}
	}
	for _, p := range alone {
		l.storeOne(ctx, p)
	}
}

// storeOne tries until the envelope is durable, for a while.
func (l *link) storeOne(ctx context.Context, p pending) {
	deadline := time.Now().Add(storeFor)
	wait := platform.NewBackoff(50*time.Millisecond, 2*time.Second)
	for ctx.Err() == nil {
		var err error
		if len(p.events) == 0 && p.reason == "" {
			p.result, err = l.a.translate(ctx, payloadKind(p.Type), p.Payload)
		}
		if err == nil {
			err = l.a.store(ctx, l.sink, p.result)
		}
		if err == nil {
			l.ack(p.frame)
			return
		}
		l.a.observe("sink_error")
		if ctx.Err() != nil || time.Now().After(deadline) {
			l.a.log.ErrorContext(ctx, "an event from slack could not be stored; it is not acknowledged", "kind", p.Type, "error", err)
			return
		}
		l.a.log.WarnContext(ctx, "an event from slack could not be stored, trying again", "kind", p.Type, "error", err)
		_ = wait.Sleep(ctx, 0)
	}
}

// ack tells Slack that an envelope is durable. If that does not arrive, Slack
// sends it again, which changes nothing.
func (l *link) ack(f frame) {
	if f.Envelope == "" {
		return
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_ = l.conn.WriteJSON(map[string]string{"envelope_id": f.Envelope})
}
