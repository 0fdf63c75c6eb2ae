package telegram_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/telegram"
	"remote-agent/internal/waittest"
)

// run starts the adapter. stop ends it and waits.
func (b bundle) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, b.sink) }()
	var once atomic.Bool
	stop = func() {
		if once.Swap(true) {
			return
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func (b bundle) await(t *testing.T, n int) {
	t.Helper()
	b.until(t, func() bool { return len(b.sink.Events()) >= n })
}

func (b bundle) until(t *testing.T, done func() bool) {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := b.sink.Wait(ctx, done); err != nil {
		t.Fatal(context.Cause(ctx))
	}
}

func (b bundle) acknowledged(t *testing.T, id int64) {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := b.server.WaitFor(ctx, func() bool { return b.server.Acknowledged(id) }); err != nil {
		t.Fatalf("update %d is not acknowledged", id)
	}
}

func TestPollParameters(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.run(t)
	sent := b.server.Person(ann).Says("hi")
	b.acknowledged(t, sent.UpdateID)
	for _, c := range b.server.Calls("getUpdates") {
		if offset := c.Params["offset"]; strings.HasPrefix(offset, "-") {
			t.Errorf("offset %s", offset)
		}
		if c.Params["timeout"] != "50" || c.Params["allowed_updates"] != `["message","edited_message","my_chat_member","callback_query"]` {
			t.Errorf("asked with %v", c.Params)
		}
	}
}

// After a week without updates the ids start at a random number, which may be
// smaller.
func TestUpdateIDsMayJump(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.run(t)
	b.acknowledged(t, b.server.Person(ann).Says("one").UpdateID)
	b.server.SetNextUpdateID(1 << 40)
	b.acknowledged(t, b.server.Person(ann).Says("two").UpdateID)
	b.await(t, 2)
}

func TestPollTakesDownAWebhook(t *testing.T) {
	t.Parallel()
	b := open(t)
	sent := b.server.Person(ann).Says("waiting")
	hooked := setupHook(t, b)
	if err := hooked(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.run(t)
	b.acknowledged(t, sent.UpdateID)
	if f := b.server.Forgotten(); len(f) != 0 {
		t.Errorf("forgotten: %v", f)
	}
}

// setupHook makes another deployment's adapter own the webhook.
func setupHook(t *testing.T, b bundle) func(context.Context) error {
	t.Helper()
	other, err := telegram.New(telegram.Config{
		Token: token, APIURL: b.server.URL(), Webhook: true, WebhookSecret: secret,
		Surroundings: platform.Surroundings{PublicURL: "http://127.0.0.1:1", Log: testLog(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.CloseIdle)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(waittest.Context(ctx, t))
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx, b.sink) }()
		if err := b.server.WaitFor(ctx, func() bool { return b.server.Count("setWebhook") > 0 }); err != nil {
			return err
		}
		cancel()
		return <-ended
	}
}

func TestConflictBacksOff(t *testing.T) {
	t.Parallel()
	b := open(t)
	conflict := emulator.Refuse(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	b.server.Inject("getUpdates", conflict)
	started := time.Now()
	sent := b.server.Person(ann).Says("hi")
	b.run(t)
	b.acknowledged(t, sent.UpdateID)
	if d := time.Since(started); d < 3*time.Second {
		t.Errorf("asked again after %v", d)
	}
}

// Telegram answers, and yet nothing comes in, while somebody else asks with the token.
func TestWhoIsNotHeardSaysWhy(t *testing.T) {
	t.Parallel()
	b := open(t)
	refusals := make([]emulator.Fault, 2)
	for i := range refusals {
		refusals[i] = emulator.Refuse(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	}
	b.server.Inject("getUpdates", refusals...)
	if err := b.Receiving(); err != nil {
		t.Errorf("before the first try: %v", err)
	}
	sent := b.server.Person(ann).Says("hi")
	b.run(t)
	waittest.Until(t, "the conflict is known", func() bool { return b.Receiving() != nil })
	if err := b.Receiving(); !strings.Contains(fault.Public(err), "TELEGRAM_BOT_TOKEN") {
		t.Errorf("the reason is %q", fault.Public(err))
	}
	b.acknowledged(t, sent.UpdateID)
	if err := b.Receiving(); err != nil {
		t.Errorf("messages come in, and it says %v", err)
	}
}

func TestPollHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.Inject("getUpdates", emulator.FloodWait(2*time.Second))
	started := time.Now()
	sent := b.server.Person(ann).Says("hi")
	b.run(t)
	b.acknowledged(t, sent.UpdateID)
	if d := time.Since(started); d < 2*time.Second {
		t.Errorf("asked again after %v", d)
	}
	if n := b.server.Count("getUpdates"); n > 4 {
		t.Errorf("%d requests", n)
	}
}

func TestRefusedTokenEndsRun(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusNotFound} {
		for _, method := range []string{"getMe", "getUpdates"} {
			t.Run(method+strconv.Itoa(status), func(t *testing.T) {
				t.Parallel()
				b := open(t)
				b.server.Inject(method, emulator.Refuse(status, "no"))
				if method != "getMe" { // the token is refused everywhere, and not by one method
					b.server.Inject("getMe", emulator.Fault{}, emulator.Refuse(status, "no"))
				}
				err := b.Run(t.Context(), b.sink)
				if !fault.Is(err, fault.Unauthorized) || !strings.Contains(fault.Public(err), "TELEGRAM_BOT_TOKEN") {
					t.Errorf("Run returned %v", err)
				}
			})
		}
	}
}

func TestPollSurvivesFailures(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.Inject("getMe", emulator.ServerError(502), emulator.Fault{End: platformapi.Before}, emulator.Fault{}, emulator.Fault{}, emulator.ServerError(502))
	b.server.Inject("getUpdates", emulator.Refuse(404, "Not Found"), emulator.ServerError(500), emulator.Fault{End: platformapi.After}, emulator.Fault{End: platformapi.Garbage},
		emulator.Fault{End: platformapi.Truncated}, emulator.Refuse(401, "Unauthorized"))
	sent := b.server.Person(ann).Says("hi")
	b.run(t)
	b.acknowledged(t, sent.UpdateID)
	if events := b.sink.Events(); len(events) != 1 || events[0].Text != "hi" {
		t.Errorf("received %+v", events)
	}
	if kept := b.sink.Kept(); len(kept) != 0 {
		t.Errorf("kept %+v", kept)
	}
}

func TestMalformedUpdatesAreKeptAndSkipped(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"WrongType": `{"update_id":%d,"message":5}`, "TextID": `{"update_id":"%d","message":{"text":[]}}`,
		"NoID": `{"message":{}} `, "NotAnObject": `"%d"`, "NotJSON": `{"update_id":%d,"message":{]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.server.DeliverRaw(ann, func(id int64) string {
				if !strings.Contains(body, "%d") {
					return body
				}
				return fmt.Sprintf(body, id)
			})
			sent := b.server.Person(ann).Says("after")
			b.run(t)
			b.until(t, func() bool { return len(b.sink.Kept()) > 0 && len(b.sink.Events()) > 0 })
			b.acknowledged(t, sent.UpdateID)
			if kept := b.sink.Kept(); len(kept) != 1 || kept[0].Account != "4711" || kept[0].Reason == "" {
				t.Errorf("kept %+v", kept)
			}
		})
	}
}

func TestInvalidEventDoesNotBlockTheBatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sink.BeforeAccept = func(events []messages.Inbound) error {
		for _, e := range events {
			if e.Text == "bad" {
				return fault.New(fault.Invalid, "no")
			}
		}
		return nil
	}
	person := b.server.Person(ann)
	person.Says("one")
	person.Says("bad")
	last := person.Says("two")
	b.run(t)
	b.acknowledged(t, last.UpdateID)
	if n, k := len(b.sink.Events()), len(b.sink.Kept()); n != 2 || k != 1 {
		t.Errorf("%d events, %d kept", n, k)
	}
}

// What is refused as a batch is passed on one by one. An update that cannot be stored then,
// for another reason than what it is, comes again.
func TestAnEventThatCannotBeStoredNowComesAgain(t *testing.T) {
	t.Parallel()
	b := open(t)
	var away atomic.Bool
	away.Store(true)
	b.sink.BeforeAccept = func(events []messages.Inbound) error {
		switch {
		case len(events) > 1:
			return fault.New(fault.Invalid, "not as a batch")
		case events[0].Text == "two" && away.Swap(false):
			return fault.New(fault.Unavailable, "the database is away")
		}
		return nil
	}
	person := b.server.Person(ann)
	person.Says("one")
	last := person.Says("two")
	b.run(t)
	b.acknowledged(t, last.UpdateID)
	if n, k := len(b.sink.Events()), len(b.sink.Kept()); n != 2 || k != 0 {
		t.Errorf("%d events, %d kept", n, k)
	}
}

// A server that gives the same update again although it was confirmed is not asked in a
// tight loop.
func TestConfirmedUpdatesOnceMore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var polls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"ok":true,"result":{"id":4711,"is_bot":true,"username":"acme_bot"}}`
		if strings.HasSuffix(r.URL.Path, "/getUpdates") {
			if answer = `{"ok":true,"result":[{"update_id":7}]}`; polls.Add(1) == 4 {
				cancel()
			}
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	b := setup(t, func(c *telegram.Config) { c.APIURL = server.URL })
	started := time.Now()
	if err := b.Run(ctx, b.sink); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(started); d < 300*time.Millisecond { // the first one, and at least 100 ms and 200 ms
		t.Errorf("asked four times in %v", d)
	}
}

// What was stored is confirmed on the way out, even if the next poll was never
// sent.
func TestShutdownConfirms(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	sent := b.server.Person(ann).Says("hi")
	sink := &cancelingSink{bundle: b, cancel: cancel}
	if err := b.Run(ctx, sink); err != nil {
		t.Fatal(err)
	}
	if !b.server.Acknowledged(sent.UpdateID) {
		t.Error("a stored update was not confirmed at shutdown")
	}
}

// Stopping waits for nothing but an update that has to be confirmed, and not
// long for that. The emulator holds back a poll that repeats the one before, as
// the real server does.
func TestStopIsQuick(t *testing.T) {
	t.Parallel()
	const quick = 400 * time.Millisecond
	tests := map[string]struct {
		receive bool // an update before the end
		confirm bool // and its confirmation
		hang    bool // the server does not answer the last poll
		most    time.Duration
		polls   int64 // that are made after the end began
	}{
		"NothingReceived": {most: quick},
		"AllConfirmed":    {receive: true, confirm: true, most: quick},
		"OneNotConfirmed": {receive: true, most: quick, polls: 1},
		"ServerHangs":     {receive: true, hang: true, most: 900 * time.Millisecond, polls: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var polls atomic.Int64
			b.server.InjectFunc(func(c emulator.Call) emulator.Fault {
				if c.Method == "getUpdates" && polls.Add(1) > 1 && tt.hang {
					return emulator.Fault{Delay: time.Minute}
				}
				return emulator.Fault{}
			})
			var began time.Time
			var before int64
			end := func() { began, before = time.Now(), polls.Load(); cancel() }
			sink := &cancelingSink{bundle: b, cancel: end}
			if tt.confirm || !tt.receive {
				sink.cancel = func() {}
			}
			ended := make(chan error, 1)
			go func() { ended <- b.Run(ctx, sink) }()
			switch {
			case tt.confirm:
				b.acknowledged(t, b.server.Person(ann).Says("hi").UpdateID)
				end()
			case tt.receive:
				b.server.Person(ann).Says("hi")
			default:
				if err := b.server.WaitFor(t.Context(), func() bool { return polls.Load() > 0 }); err != nil {
					t.Fatal(err)
				}
				end()
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			took, more := time.Since(began), polls.Load()-before
			t.Logf("stopped after %v", took)
			if waittest.TooLong(took, tt.most) || more != tt.polls {
				t.Errorf("stopping took %v and %d polls", took, more)
			}
		})
	}
}

// cancelingSink ends the adapter right after it stored something.
type cancelingSink struct {
	bundle
	cancel context.CancelFunc
}

func (s *cancelingSink) Accept(ctx context.Context, events ...messages.Inbound) error {
	err := s.sink.Accept(ctx, events...)
	s.cancel()
	return err
}

func (s *cancelingSink) Keep(ctx context.Context, raw messages.RawEvent) error {
	return s.sink.Keep(ctx, raw)
}
