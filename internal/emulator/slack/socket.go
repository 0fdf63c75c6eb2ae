package slack

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	maxConnections = 10
	maxAck         = 20 << 10 // bytes; larger acknowledgements are not seen
)

// Sockets are the Socket Mode connections of the app.
type Sockets struct {
	*platform

	on      bool            // whether deliveries go over them
	tickets map[string]bool // unused connection URLs
	conns   []*socket
	opened  int
}

// socket is one Socket Mode connection.
type socket struct {
	number  int
	ws      *websocket.Conn
	writing sync.Mutex
	gone    chan struct{} // closed when the connection is

	// Guarded by the lock of the platform.
	leaving bool // was told to disconnect: gets no new envelopes
	waiting map[string]chan json.RawMessage
}

func (c *socket) send(v any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.ws.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return c.ws.WriteJSON(v)
}

func (c *socket) sendText(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.ws.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return c.ws.WriteMessage(websocket.TextMessage, text)
}

// pick returns one of the connections that take envelopes, by chance.
func (s *Sockets) pick() *socket {
	ready := slices.DeleteFunc(slices.Clone(s.conns), func(c *socket) bool { return c.leaving })
	if len(ready) == 0 {
		return nil
	}
	return ready[rand.IntN(len(ready))] //nolint:gosec // need not be secret
}

func (s *Sockets) connectionsOpen(*request) (map[string]any, *apiError) {
	if !s.on {
		return nil, refuse("access_denied")
	}
	ticket := s.id("ticket-")
	s.tickets[ticket] = true
	base := strings.Replace(s.URL(), "http://", "ws://", 1)
	return map[string]any{"url": base + "/link?ticket=" + ticket + "&app_id=" + s.opts.AppID}, nil
}

// serveSocket takes a connection with a URL that was not used before.
func (s *Sockets) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	good := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	done := s.Enter()
	if done != nil {
		defer done()
	}
	if !good || done == nil {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.converse(&socket{ws: ws, gone: make(chan struct{}), waiting: map[string]chan json.RawMessage{}})
}

// converse runs a connection until it ends.
func (s *Sockets) converse(c *socket) {
	defer func() { _ = c.ws.Close() }()
	s.mu.Lock()
	if s.Closed() {
		s.mu.Unlock()
		return
	}
	s.opened++
	c.number = s.opened
	many := len(s.conns) >= maxConnections
	hello := map[string]any{
		"type": "hello", "num_connections": len(s.conns) + 1,
		"connection_info": map[string]any{"app_id": s.opts.AppID},
		"debug_info":      map[string]any{"host": "applink-emulated", "build_number": 1, "approximate_connection_time": 18060},
	}
	s.mu.Unlock()
	if many {
		_ = c.send(disconnectFrame("too_many_websockets"))
		return
	}
	if c.send(hello) != nil {
		return
	}
	s.mu.Lock()
	s.conns = append(s.conns, c)
	if s.Closed() {
		_ = c.ws.NetConn().Close()
	}
	s.Go(func() { s.ping(c) })
	s.unlock()
	s.listen(c)
	close(c.gone)
	s.mu.Lock()
	s.conns = slices.DeleteFunc(slices.Clone(s.conns), func(other *socket) bool { return other == c })
	s.unlock()
}

// ping keeps a connection alive: clients give up on one that is not pinged.
func (s *Sockets) ping(c *socket) {
	ticker := time.NewTicker(s.opts.PingInterval)
	defer ticker.Stop()
	for {
		if c.ws.WriteControl(websocket.PingMessage, []byte("Ping from the emulator"), time.Now().Add(5*time.Second)) != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-c.gone:
			return
		case <-s.Context().Done():
			return
		}
	}
}

// listen takes acknowledgements until the connection ends.
func (s *Sockets) listen(c *socket) {
	for {
		_, frame, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		known := json.Unmarshal(frame, &ack) == nil && len(frame) < maxAck
		s.mu.Lock()
		if waiting := c.waiting[ack.EnvelopeID]; known && waiting != nil {
			delete(c.waiting, ack.EnvelopeID)
			waiting <- ack.Payload
		}
		s.unlock()
	}
}

// send sends a delivery over one connection, for which it waits if there is
// none. sent is false if Socket Mode is off.
func (s *Sockets) send(d *delivery, a Attempt) (answer []byte, after Attempt, sent bool) {
	for {
		var c *socket
		var off bool
		err := s.WaitFor(s.Context(), func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			c, off = s.pick(), !s.on
			return c != nil || off
		})
		if err != nil {
			a.Error = "closed"
			return nil, a, true
		}
		if off {
			return nil, a, false
		}
		if answer, after, sent = s.envelope(c, d, a); sent {
			return answer, after, true
		}
	}
}

// envelope sends a delivery over a connection and waits for the acknowledgement.
// sent is false if the connection was gone before.
func (s *Sockets) envelope(c *socket, d *delivery, a Attempt) (answer []byte, after Attempt, sent bool) {
	ack := make(chan json.RawMessage, 1)
	s.mu.Lock()
	id := s.id("envelope-")
	c.waiting[id] = ack
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(c.waiting, id)
		s.mu.Unlock()
	}()
	a.Connection = c.number
	frame := map[string]any{
		"envelope_id": id, "type": d.Kind, "accepts_response_payload": d.Kind != Events, "payload": json.RawMessage(d.Payload),
	}
	if d.Kind == Events {
		frame["retry_attempt"], frame["retry_reason"] = a.Retry, a.Reason
	}
	body, err := json.Marshal(frame)
	if err != nil { // the payload is not JSON
		body = append(append([]byte(`{"envelope_id":"`+id+`","type":"`+string(d.Kind)+`","payload":`), d.Payload...), '}')
	}
	if c.sendText(body) != nil {
		return nil, a, false
	}
	timer := time.NewTimer(s.opts.AckTimeout)
	defer timer.Stop()
	select {
	case answer := <-ack:
		return answer, a, true
	case <-timer.C:
		a.Error = "timeout"
	case <-c.gone:
		a.Error = "connection_closed"
	case <-s.Context().Done():
		a.Error = "closed"
	}
	return nil, a, true
}

func disconnectFrame(reason string) map[string]any {
	return map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-emulated"}}
}

// ConnectionsOpened returns how many there ever were.
func (s *Sockets) ConnectionsOpened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Disconnect asks all connections to go, with a reason such as "warning",
// "refresh_requested" or "link_disabled". They get no new envelopes, and stay
// open until the bot closes them or CutConnections does. It returns how many
// there were.
func (s *Sockets) Disconnect(reason string) int {
	s.mu.Lock()
	asked := slices.Clone(s.conns)
	for _, c := range asked {
		c.leaving = true
	}
	s.unlock()
	for _, c := range asked {
		_ = c.send(disconnectFrame(reason))
	}
	return len(asked)
}

// CutConnections breaks all connections without a word. Envelopes that were not
// acknowledged are sent again over others.
func (s *Sockets) CutConnections() {
	s.mu.Lock()
	defer s.unlock()
	for _, c := range s.conns {
		_ = c.ws.NetConn().Close()
	}
}
