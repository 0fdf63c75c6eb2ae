package slack

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	// maxFrame bounds one frame of Socket Mode.
	maxFrame = 4 << 20

	// silentAfter is how often it is asked whether Slack has pinged since the last
	// time, so a connection that is silent ends within twice as long.
	silentAfter = 30 * time.Second
	dialTimeout = 15 * time.Second

	// links is how many connections are open, each in its turn: Slack ends them now
	// and then, and what comes meanwhile comes over another one. They are opened
	// linkGap apart, so that Slack does not end them at the same time.
	links   = 2
	linkGap = 15 * time.Second

	// maxBatch is how many envelopes are stored in one transaction.
	maxBatch = 64

	// storeFor is how long storing is tried before an envelope is given back by
	// not being acknowledged. Slack does not send commands and presses again.
	storeFor = time.Minute
)

// frame is what Slack sends over Socket Mode, with the connection that it came
// over, and since when it is here. It keeps the payload as it is: the library refuses a whole event for one
// field or block that it does not know.
type frame struct {
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`

	link    *link
	since   time.Time
	meaning platform.Meaning // empty until it is known
	unknown error            // why it is not
}

// socket receives in Socket Mode.
type socket struct {
	api        *api
	translator *translator
	gap        time.Duration // between the first openings
	log        *slog.Logger
	observe    func(string)
	open       atomic.Int32
	trusted    atomic.Bool // Slack has taken the token before
	hearing    platform.Hearing
}

// receive keeps connections until ctx is done or the token is refused.
func (s *socket) receive(ctx context.Context, sink platform.Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	arrived := make(chan *frame, 4*maxBatch)
	var open, working sync.WaitGroup
	working.Go(func() { s.work(ctx, sink, arrived) })
	for i := range links {
		open.Go(func() {
			if platform.Sleep(ctx, time.Duration(i)*s.gap) == nil {
				if err := s.keepLink(ctx, arrived); err != nil {
					cancel(err)
				}
			}
		})
	}
	open.Wait()
	close(arrived)
	working.Wait()
	if err := context.Cause(ctx); fault.Is(err, fault.Unauthorized) {
		return err
	}
	return nil
}

// keepLink opens one connection after the other. It returns an error only for a token that
// is refused the first time. One that was good may be good again: Slack also refuses it in an
// outage, and for an address of ours that it does not know.
func (s *socket) keepLink(ctx context.Context, arrived chan<- *frame) error {
	wait := platform.NewBackoff(100*time.Millisecond, 30*time.Second)
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.openLink(ctx, arrived)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // ending is no error
		case fault.Is(err, fault.Unauthorized) && !s.trusted.Load():
			s.hearing.Note(err)
			return err
		case err != nil:
			if s.open.Load() == 0 {
				s.hearing.Note(err)
			}
			s.log.WarnContext(ctx, "slack does not open a socket, trying again", "err", err)
		default:
			s.observe("socket_reconnect")
			if time.Since(begun) > time.Minute {
				wait = platform.NewBackoff(100*time.Millisecond, 30*time.Second)
				continue
			}
		}
		_ = wait.Sleep(ctx, exchange.RetryAfter(err))
	}
	return nil
}

// Receiving implements platform.Receiving. Over HTTP nothing is known: silence may be
// that nobody says anything.
func (s *socket) Receiving() error { return s.hearing.Trouble() }

// link is one connection of the library, with a client of its own: that one would
// send an acknowledgement over whichever connection it has then.
type link struct {
	client *socketmode.Client
	ctx    context.Context //nolint:containedctx // ends with the connection
}

var (
	errBadSocket = errors.New("slack named an address that is not a secure socket")
	errLinkOver  = errors.New("the connection has ended")
)

// openLink opens a connection and passes on what arrives until it ends. It returns
// nil if it was open. The library would open the next one itself, without a pause
// where Slack ends each at once, and with pauses of minutes where it does not
// answer, so it is stopped before it does.
//
// When Slack announces the end of a connection the library closes it at once. An
// envelope that is on its way over it is neither stored nor acknowledged then: an
// event comes again, and of a command or a press Slack tells the person that the
// app did not respond.
func (s *socket) openLink(ctx context.Context, arrived chan<- *frame) error {
	linked, cancel := context.WithCancel(ctx)
	l := &link{ctx: linked, client: socketmode.New(s.api.web,
		socketmode.OptionReadLimit(maxFrame), socketmode.OptionPingInterval(silentAfter), socketmode.OptionDialer(dialer(s.api.base)))}
	opened := 0
	call := &exchange.Call{Idempotent: true, Timeout: callTimeout, MaxAnswer: maxAnswer, Scrub: s.api.scrub, Admit: func(*http.Request) error {
		if opened++; opened > 1 {
			return errLinkOver
		}
		return nil
	}}
	r := request{method: "apps.connections.open", idempotent: true, app: true}
	seen := &answer{}
	ended := make(chan error, 1)
	go func() { ended <- l.client.RunContext(context.WithValue(call.Context(linked), answerKey{}, seen)) }()
	var err error
	connected := false
	for running := true; running; {
		select {
		case e := <-l.client.Events:
			if failed, ok := e.Data.(*slack.ConnectionErrorEvent); ok {
				err = failed.ErrorObj
				cancel() // it would wait and try again
			}
			if e.Type == socketmode.EventTypeConnected && !connected {
				connected = true
				s.trusted.Store(true)
				s.open.Add(1)
				defer s.open.Add(-1)
				s.hearing.Note(nil)
			}
			s.take(ctx, l, e, arrived)
		case last := <-ended:
			running = false
			if err == nil {
				err = last
			}
		}
	}
	cancel()
	// What has arrived is stored even if the connection is gone: Slack does not send
	// commands again.
	for len(l.client.Events) > 0 {
		s.take(ctx, l, <-l.client.Events, arrived)
	}
	switch {
	case connected:
		return nil
	case seen.read && seen.head.OK: // the address holds a ticket and appears nowhere
		return fault.Wrap(errors.New("the connection was refused or broke"), fault.Unavailable, "opening a socket")
	}
	return s.api.outcome(ctx, r, call, seen, err)
}

// dialer opens connections to secure addresses only, unless Slack is a stand-in.
func dialer(base string) *websocket.Dialer {
	return &websocket.Dialer{HandshakeTimeout: dialTimeout, Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme != "https" && base == defaultAPIURL {
			return nil, errBadSocket
		}
		return http.ProxyFromEnvironment(r)
	}}
}

// take passes on what an event of the library brought.
func (s *socket) take(ctx context.Context, l *link, e socketmode.Event, arrived chan<- *frame) {
	f := &frame{link: l, since: time.Now()}
	switch bad, refused := e.Data.(*socketmode.ErrorBadMessage); {
	case refused: // by the library, for some field
		if platform.Lenient(bad.Message, f) != nil {
			f.Payload = bad.Message // kept as it is
		}
	case e.Type == socketmode.EventTypeHello:
		s.log.InfoContext(ctx, "connected to slack", "account", s.translator.me.ownAccount())
		return
	case e.Type == socketmode.EventTypeIncomingError:
		s.observe("socket_error")
		return
	case e.Request == nil:
		return
	default:
		f.Type, f.Envelope, f.Payload = e.Request.Type, e.Request.EnvelopeID, e.Request.Payload
	}
	select {
	case arrived <- f:
	case <-ctx.Done():
	}
}

// work stores what has arrived, in order and many at a time, and acknowledges it. What
// cannot be stored is tried again together with what comes meanwhile.
func (s *socket) work(ctx context.Context, sink platform.Sink, arrived <-chan *frame) {
	wait := platform.NewBackoff(50*time.Millisecond, 2*time.Second)
	for f := range arrived {
		batch := []*frame{f}
		for wait.Reset(); len(batch) > 0; {
		more:
			for len(batch) < maxBatch {
				select {
				case f, ok := <-arrived:
					if !ok {
						break more
					}
					batch = append(batch, f)
				default:
					break more
				}
			}
			if batch = s.storeBatch(ctx, sink, batch); len(batch) > 0 && wait.Sleep(ctx, 0) != nil {
				return
			}
		}
	}
}

// storeBatch makes a batch durable, acknowledges it, and returns what is to be tried again.
// If the batch cannot be stored as one, each envelope is stored by itself, so that one
// which is refused holds up no others than those of its conversation.
func (s *socket) storeBatch(ctx context.Context, sink platform.Sink, batch []*frame) (left []*frame) {
	failpoint.Hit(failpoint.Received)
	var events []messages.Inbound
	for _, f := range batch {
		if len(f.meaning.Events) == 0 && f.meaning.Reason == "" {
			f.meaning, f.unknown = s.translator.translate(ctx, payloadKind(f.Type), f.Payload)
		}
		events = append(events, f.meaning.Events...)
	}
	together := len(events) > 0 && sink.Accept(ctx, events...) == nil
	if together {
		failpoint.Hit(failpoint.Stored)
	}
	for _, f := range batch {
		err := f.unknown
		switch {
		case err != nil, together && len(f.meaning.Events) > 0:
		case slices.ContainsFunc(left, f.follows):
			left = append(left, f)
			continue
		default:
			err = s.translator.store(ctx, sink, f.meaning)
		}
		if err == nil {
			f.ack()
			continue
		}
		s.observe("sink_error")
		if ctx.Err() != nil || time.Since(f.since) > storeFor {
			s.log.ErrorContext(ctx, "an event from slack could not be stored; it is not acknowledged", "kind", f.Type, "err", err)
			continue
		}
		s.log.WarnContext(ctx, "an event from slack could not be stored, trying again", "kind", f.Type, "err", err)
		left = append(left, f)
	}
	return left
}

// follows reports whether f was said after an earlier one, where that was said.
func (f *frame) follows(earlier *frame) bool {
	now, before := f.meaning.Events, earlier.meaning.Events
	return len(now) > 0 && len(before) > 0 && now[0].Conversation == before[0].Conversation
}

// ack tells Slack that an envelope is durable. If that does not arrive, Slack
// sends it again, which changes nothing.
func (f *frame) ack() {
	if f.Envelope != "" {
		_ = f.link.client.AckCtx(f.link.ctx, f.Envelope, nil)
	}
}
