package platformtest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Failure is a way in which the platform can fail the next outgoing call.
type Failure string

// The failures. A rig that cannot produce one skips the test.
const (
	RefusedCredentials Failure = "refused credentials" // 401
	RateLimit          Failure = "rate limit"          // 429 with RateLimitWait
	ServerError        Failure = "server error"        // 5xx from the platform itself
	ChatGone           Failure = "chat gone"           // the bot was blocked or removed
	MessageGone        Failure = "message gone"        // what is to be edited was deleted
	NoAnswer           Failure = "no answer"           // the connection breaks after the request
)

// RateLimitWait is how long the platform asks to wait in a RateLimit failure.
const RateLimitWait = 17 * time.Second

// wait bounds what is waited for in the suite.
const wait = 20 * time.Second

// Harness says how to try one adapter. New is called for each test, so that
// tests do not see each other.
type Harness struct {
	// New starts a stand-in of the platform and returns an adapter that talks to
	// it. It ends everything through t.Cleanup.
	New func(t *testing.T) Rig
}

// Rig is one adapter with a stand-in of its platform. Functions that are nil
// are things that the platform does not have; their tests are skipped.
type Rig struct {
	Adapter platform.Adapter

	// Kind is what the program knows of the platform, with options that are not read.
	Kind platform.Kind

	// Conversation is one that the bot may post in.
	Conversation messages.ConversationKey

	// Secrets must appear in no error.
	Secrets []string

	// Mount makes the stand-in deliver to the adapter's webhook. It is called
	// once, before anything is delivered.
	Mount func(h http.Handler)

	// Deliver makes a person say text to the bot in Conversation. It returns
	// the id that the event will have, without waiting for it to be received.
	Deliver func(text string) messages.EventID

	// Redeliver makes the stand-in deliver unacknowledged events again, if it
	// does not do so by itself.
	Redeliver func()

	// Malformed delivers something that is not a valid event.
	Malformed func()

	// Acknowledged reports whether the platform holds the event for received.
	Acknowledged func(id messages.EventID) bool

	// Posts returns the texts that the conversation shows now, by message id.
	Posts func() map[messages.MessageID]string

	// Fail makes the next outgoing call fail. It reports false if it cannot.
	Fail func(f Failure) bool

	// Close ends the stand-in. It is called before goroutines are counted.
	Close func()
}

// rig returns a fresh rig that is closed at the end of the test.
func (h Harness) rig(t *testing.T) Rig {
	t.Helper()
	r := h.New(t)
	if r.Close != nil {
		t.Cleanup(r.Close)
	}
	return r
}

// start runs the adapter and returns a function that ends it and waits.
func (r Rig) start(t *testing.T, sink platform.Sink) (stop func()) {
	t.Helper()
	if hook, ok := r.Adapter.(platform.WebhookReceiver); ok && r.Mount != nil {
		r.Mount(hook.Webhook(sink))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Adapter.Run(ctx, sink) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run returned %v after its context was done, want nil", err)
			}
		case <-time.After(wait):
			t.Errorf("Run did not return within %v after its context was done", wait)
		}
	}
	t.Cleanup(stop)
	return stop
}

func (s *Sink) has(id messages.EventID) func() bool {
	return func() bool {
		return slices.ContainsFunc(s.Events(), func(e messages.Inbound) bool { return e.Event == id })
	}
}

func (s *Sink) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := s.Wait(ctx, done); err != nil {
		t.Fatalf("%s: still waiting after %v", what, wait)
	}
}

// eventually polls, for what only the stand-in can tell.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: still waiting after %v", what, wait)
		case <-tick.C:
		}
	}
}

func (r Rig) needs(t *testing.T, ok bool, what string) {
	t.Helper()
	if !ok {
		t.Skipf("this platform's rig has no %s", what)
	}
}

func (r Rig) send(ctx context.Context, text string) (messages.Ref, error) {
	return r.Adapter.Send(ctx, messages.Outbound{Delivery: "d-1", Conversation: r.Conversation, Text: text})
}

func (r Rig) checkError(t *testing.T, f Failure, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", f)
		return
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, s := range r.Secrets {
			if strings.Contains(e.Error(), s) || strings.Contains(fault.Public(e), s) {
				t.Errorf("%s: the error contains a credential", f)
			}
		}
	}
}
