package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/waittest"
)

// socket is the other end of Socket Mode.
type socket struct {
	t     *testing.T
	conns chan *websocket.Conn // those that were opened, in order
	acks  chan string
}

// socketSetup returns an adapter that runs in Socket Mode.
func socketSetup(t *testing.T, change ...func(*bundle)) (bundle, *socket) {
	t.Helper()
	s := &socket{t: t, conns: make(chan *websocket.Conn, 16), acks: make(chan string, 1024)}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // the end
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello","num_connections":1}`))
		s.conns <- conn
		for {
			var ack struct {
				Envelope string `json:"envelope_id"`
			}
			if conn.ReadJSON(&ack) != nil {
				return
			}
			s.acks <- ack.Envelope
		}
	}))
	t.Cleanup(server.Close)
	b := setup(t, func(c *slack.Config) { c.AppToken, c.SigningSecret = appToken, "" })
	b.api.answer("apps.connections.open", `{"ok":true,"url":"`+strings.Replace(server.URL, "http", "ws", 1)+`/link?ticket=secretsecret"}`)
	for _, c := range change {
		c(&b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, b.sink) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-waittest.Late(t):
			t.Error("Run did not return")
		}
	})
	return b, s
}

func (s *socket) conn() *websocket.Conn {
	s.t.Helper()
	select {
	case c := <-s.conns:
		return c
	case <-waittest.Late(s.t):
		s.t.Fatal("no connection was opened")
		return nil
	}
}

func (s *socket) send(c *websocket.Conn, id, kind, payload string) {
	s.t.Helper()
	frame := fmt.Sprintf(`{"envelope_id":%q,"type":%q,"payload":%s,"accepts_response_payload":false}`, id, kind, payload)
	if err := c.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) acked(want ...string) {
	s.t.Helper()
	for _, w := range want {
		select {
		case got := <-s.acks:
			if got != w {
				s.t.Errorf("acknowledged %s, want %s", got, w)
			}
		case <-waittest.Late(s.t):
			s.t.Fatalf("%s is not acknowledged", w)
		}
	}
}

func dm(ts string) string {
	return wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"` + ts + `"}`)
}

func TestSocketAcknowledgesWhatIsStored(t *testing.T) {
	t.Parallel()
	b, s := socketSetup(t)
	c := s.conn()
	s.send(c, "e1", "events_api", dm("10.1"))
	s.send(c, "e2", "slash_commands", `{"team_id":"T1","channel_id":"C1","user_id":"U1","trigger_id":"1.2","text":"x","is_enterprise_install":"false"}`)
	s.send(c, "e3", "interactive", `{"type":"block_actions","trigger_id":"3.4","team":{"id":"T1"},"user":{"id":"U1"},"channel":{"id":"D1"},"message":{"ts":"10.1"},"actions":[{"type":"button","value":"b-1"}]}`)
	s.send(c, "e4", "events_api", wrapped(`{"type":"message","channel":"C1","user":"U1","text":"not for the bot","ts":"10.1"}`))
	seen := map[string]bool{}
	for range 4 {
		seen[<-s.acks] = true
	}
	if len(seen) != 4 || len(b.sink.Events()) != 3 {
		t.Errorf("acknowledged %v, stored %d", seen, len(b.sink.Events()))
	}
	s.send(c, "e5", "something_new", `{"x":1}`)
	s.acked("e5")
	// What is no JSON has no envelope; the library drops it.
	if err := c.WriteMessage(websocket.TextMessage, []byte(`{"envelope_id":`)); err != nil {
		t.Fatal(err)
	}
	// An event that the library refuses for one of its blocks.
	s.send(c, "e7", "events_api", wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"12.1","blocks":[{"type":7}]}`))
	s.acked("e7")
	s.send(c, "e6", "events_api", dm("11.1"))
	s.acked("e6")
	ctx := waittest.Context(t.Context(), t)
	if err := b.sink.Wait(ctx, func() bool { return len(b.sink.Kept()) == 1 && len(b.sink.Events()) == 5 }); err != nil {
		t.Errorf("kept %+v", b.sink.Kept())
	}
}

func TestSocketTriesToStoreAgain(t *testing.T) {
	t.Parallel()
	tries, looked := make(chan struct{}), make(chan error)
	b, s := socketSetup(t, func(b *bundle) {
		b.sink.BeforeAccept = func([]messages.Inbound) error {
			tries <- struct{}{}
			return <-looked
		}
	})
	s.send(s.conn(), "e1", "events_api", dm("10.1"))
	for _, err := range []error{errors.New("the database is away"), errors.New("still away"), errors.New("and still"), nil} {
		<-tries
		if len(s.acks) != 0 {
			t.Error("acknowledged before it was stored")
		}
		looked <- err
	}
	s.acked("e1")
	b.one(t)
}

// TestSocketStoresWhatItCan: an envelope that cannot be stored holds up those of its
// conversation, which keep their order, and no others.
func TestSocketStoresWhatItCan(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	b, s := socketSetup(t, func(b *bundle) {
		b.sink.BeforeAccept = func(events []messages.Inbound) error {
			for _, e := range events {
				if e.Message == "10.1" && !mended.Load() {
					return errors.New("the row of this chat cannot be read")
				}
			}
			return nil
		}
	})
	c := s.conn()
	s.send(c, "e1", "events_api", dm("10.1"))
	s.send(c, "e2", "events_api", dm("11.1"))
	s.send(c, "e3", "events_api", strings.Replace(dm("12.1"), "D1", "D2", 1))
	s.acked("e3")
	s.send(c, "e4", "events_api", strings.Replace(dm("13.1"), "D1", "D2", 1))
	s.acked("e4")
	mended.Store(true)
	s.acked("e1", "e2")
	if n := len(b.sink.Events()); n != 4 {
		t.Errorf("%d events", n)
	}
}

func TestSocketGivesAnInvalidEventToTheRecord(t *testing.T) {
	t.Parallel()
	b, s := socketSetup(t, func(b *bundle) {
		b.sink.BeforeAccept = func(events []messages.Inbound) error {
			for _, e := range events {
				if e.Message == "10.1" {
					return fault.New(fault.Invalid, "no")
				}
			}
			return nil
		}
	})
	c := s.conn()
	s.send(c, "e1", "events_api", dm("10.1"))
	s.send(c, "e2", "events_api", dm("11.1"))
	s.acked("e1", "e2")
	b.one(t)
	if len(b.sink.Kept()) != 1 {
		t.Errorf("kept %+v", b.sink.Kept())
	}
}

// Slack announces the end of a connection, or one breaks: what comes meanwhile comes
// over the other, and another one takes its place.
func TestSocketsOverlap(t *testing.T) {
	t.Parallel()
	b, s := socketSetup(t, func(b *bundle) { b.OpenSocketsTogether() })
	one, two := s.conn(), s.conn()
	if err := one.WriteMessage(websocket.TextMessage, []byte(`{"type":"disconnect","reason":"warning"}`)); err != nil {
		t.Fatal(err)
	}
	s.send(two, "e1", "events_api", dm("10.1"))
	s.acked("e1")
	three := s.conn()
	_ = two.Close() // without a word
	s.send(three, "e2", "events_api", dm("11.1"))
	s.acked("e2")
	s.send(s.conn(), "e3", "events_api", dm("12.1"))
	s.acked("e3")
	if n := len(b.sink.Events()); n != 3 {
		t.Errorf("%d events", n)
	}
}

func TestSocketKeepsOrder(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	b, s := socketSetup(t, func(b *bundle) {
		b.sink.BeforeAccept = func([]messages.Inbound) error {
			<-sent // so that there is something to store together
			return nil
		}
	})
	c := s.conn()
	for i := range 300 {
		s.send(c, fmt.Sprint("e", i), "events_api", dm(fmt.Sprintf("1%03d.1", i)))
	}
	close(sent)
	for i := range 300 {
		s.acked(fmt.Sprint("e", i))
	}
	for i, e := range b.sink.Events() {
		if string(e.Message) != fmt.Sprintf("1%03d.1", i) {
			t.Fatalf("event %d is %s", i, e.Message)
		}
	}
	if b.sink.Calls() >= 300 {
		t.Error("nothing was stored together")
	}
}

func TestRefusedAppTokenEndsRun(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]fault.Kind{
		`{"ok":false,"error":"invalid_auth"}`:           fault.Unauthorized,
		`{"ok":false,"error":"not_allowed_token_type"}`: fault.Unauthorized,
	} {
		b := setup(t, func(c *slack.Config) { c.AppToken = appToken })
		b.api.answer("apps.connections.open", answer)
		err := b.Run(t.Context(), b.sink)
		if !fault.Is(err, want) || !strings.Contains(fault.Public(err), "SLACK_APP_TOKEN") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// Slack answers calls and opens no socket any more: nothing comes in, until it does.
func TestWhoIsNotHeardSaysWhy(t *testing.T) {
	t.Parallel()
	b, s := socketSetup(t)
	open := []*websocket.Conn{s.conn(), s.conn()}
	if err := b.Receiving(); err != nil {
		t.Errorf("connected, and it says %v", err)
	}
	b.api.mu.Lock()
	address := b.api.answers["apps.connections.open"]
	b.api.mu.Unlock()
	b.api.answer("apps.connections.open", `{"ok":false,"error":"internal_error"}`)
	_ = open[0].Close()
	_ = open[1].Close()
	waittest.Until(t, "it is known that nothing comes in", func() bool { return b.Receiving() != nil })
	b.api.answer("apps.connections.open", address...)
	s.conn()
	waittest.Until(t, "it is known that something comes in", func() bool { return b.Receiving() == nil })
}

// Slack refuses a token that it has taken before, as it does in outages and for an address that it
// does not know: it is heard again when it is taken, without a restart.
func TestATokenThatWasGoodIsTriedAgain(t *testing.T) {
	t.Parallel()
	b, s := socketSetup(t)
	open := []*websocket.Conn{s.conn(), s.conn()}
	b.api.mu.Lock()
	address := b.api.answers["apps.connections.open"]
	b.api.mu.Unlock()
	b.api.answer("apps.connections.open", `{"ok":false,"error":"invalid_auth"}`)
	_ = open[0].Close()
	_ = open[1].Close()
	waittest.Until(t, "it is known that the token is refused", func() bool { return fault.Is(b.Receiving(), fault.Unauthorized) })
	b.api.answer("apps.connections.open", address...)
	c := s.conn()
	s.send(c, "e1", "events_api", dm("10.1"))
	s.acked("e1")
}

// Slack ends each connection at once: the next ones are opened more and more slowly.
// So it is with more connections than an app may have.
func TestSocketsThatEndAtOnce(t *testing.T) {
	t.Parallel()
	_, s := socketSetup(t)
	var opened []time.Time
	for range 5 {
		c := s.conn()
		opened = append(opened, time.Now())
		if err := c.WriteMessage(websocket.TextMessage, []byte(`{"type":"disconnect","reason":"too_many_websockets"}`)); err != nil {
			t.Fatal(err)
		}
	}
	// The pauses are of at least 50, 100, 200 and 400 milliseconds.
	if took := opened[4].Sub(opened[0]); took < 700*time.Millisecond {
		t.Errorf("five connections were opened within %v", took)
	}
}

// Slack names a plain address where it is not a stand-in.
func TestSocketsAreSecure(t *testing.T) {
	t.Parallel()
	if err := slack.DialerRefuses("ws://127.0.0.1:1/link"); err == nil {
		t.Error("a plain address is taken")
	}
	if err := slack.DialerRefuses("wss://127.0.0.1:1/link"); err != nil {
		t.Errorf("a secure one is not: %v", err)
	}
}
