package slack

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	maxConnections = 10
	maxAck         = 20 << 10 // bytes; larger acknowledgements are not seen
)

// hub holds the Socket Mode connections, guarded by the server.
type hub struct {
	tickets map[string]bool // unused connection URLs
	conns   []*socket
	opened  int
	oddAcks int // acknowledgements that were too large or of nothing known
	dropped int // acknowledgements that were too large
}

func newHub() hub { return hub{tickets: map[string]bool{}} }

// socket is one Socket Mode connection.
type socket struct {
	number  int
	ws      *websocket.Conn
	writing sync.Mutex
	gone    chan struct{} // closed when the connection is

	// Guarded by the server.
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

func (h *hub) cutAll() {
	for _, c := range h.conns {
		_ = c.ws.NetConn().Close()
	}
}

// pick returns one of the connections that take envelopes, by chance.
func (h *hub) pick() *socket {
	var ready []*socket
	for _, c := range h.conns {
		if !c.leaving {
			ready = append(ready, c)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[rand.IntN(len(ready))] //nolint:gosec // need not be secret
}

func (s *Server) connectionsOpen(*request) (map[string]any, *apiError) {
	if !s.socketMode {
		return nil, refuse("access_denied")
	}
	ticket := s.id("ticket-")
	s.hub.tickets[ticket] = true
	base := strings.Replace(s.URL(), "http://", "ws://", 1)
	return map[string]any{"url": base + "/link?ticket=" + ticket + "&app_id=" + s.opts.AppID}, nil
}

// serveSocket takes a connection with a URL that was not used before.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	good := s.hub.tickets[ticket]
	delete(s.hub.tickets, ticket)
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
func (s *Server) converse(c *socket) {
	defer func() { _ = c.ws.Close() }()
	s.mu.Lock()
	if s.Closed() {
		s.mu.Unlock()
		return
	}
	s.hub.opened++
	c.number = s.hub.opened
	many := len(s.hub.conns) >= maxConnections
	hello := map[string]any{
		"type": "hello", "num_connections": len(s.hub.conns) + 1,
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
	s.hub.conns = append(s.hub.conns, c)
	if s.Closed() {
		_ = c.ws.NetConn().Close()
	}
	s.Go(func() { s.ping(c) })
	s.unlock()
	s.listen(c)
	close(c.gone)
	s.mu.Lock()
	for i, other := range s.hub.conns {
		if other == c {
			s.hub.conns = append(s.hub.conns[:i:i], s.hub.conns[i+1:]...)
			break
		}
	}
	s.unlock()
}

// ping keeps a connection alive: clients give up on one that is not pinged.
func (s *Server) ping(c *socket) {
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
func (s *Server) listen(c *socket) {
	for {
		_, frame, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		bad := json.Unmarshal(frame, &ack) != nil
		s.mu.Lock()
		waiting := c.waiting[ack.EnvelopeID]
		switch {
		case len(frame) >= maxAck:
			s.hub.dropped++
		case bad || waiting == nil:
			s.hub.oddAcks++
		default:
			delete(c.waiting, ack.EnvelopeID)
			waiting <- ack.Payload
		}
		s.unlock()
	}
}

// sendSocket sends a delivery over one connection, for which it waits if there
// is none.
func (s *Server) sendSocket(d *delivery, a Attempt) ([]byte, Attempt) {
	for {
		var c *socket
		var http bool
		err := s.WaitFor(s.Context(), func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			c, http = s.hub.pick(), !s.socketMode
			return c != nil || http
		})
		if err != nil {
			a.Error = "closed"
			return nil, a
		}
		if http {
			answer, after, _ := s.sendHTTP(d, a)
			return answer, after
		}
		if answer, after, sent := s.envelope(c, d, a); sent {
			return answer, after
		}
	}
}

// envelope sends a delivery over a connection and waits for the acknowledgement.
// sent is false if the connection was gone before.
func (s *Server) envelope(c *socket, d *delivery, a Attempt) (answer []byte, after Attempt, sent bool) {
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

// Connections returns how many Socket Mode connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hub.conns)
}

// ConnectionsOpened returns how many there ever were.
func (s *Server) ConnectionsOpened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub.opened
}

// OddAcks returns how many acknowledgements came for no envelope that waits on
// their connection, or were no JSON; and how many were dropped because they had
// 20 KiB or more.
func (s *Server) OddAcks() (unknown, tooLarge int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub.oddAcks, s.hub.dropped
}

// Disconnect asks all connections to go, with a reason such as "warning",
// "refresh_requested" or "link_disabled". They get no new envelopes, and stay
// open until the bot closes them or CutConnections does. It returns how many
// there were.
func (s *Server) Disconnect(reason string) int {
	s.mu.Lock()
	asked := append([]*socket(nil), s.hub.conns...)
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
func (s *Server) CutConnections() {
	s.mu.Lock()
	defer s.unlock()
	s.hub.cutAll()
}
