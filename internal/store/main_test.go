//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// bundle is an open store with short ways to use it.
type bundle struct {
	*store.Store
}

// each runs test on every database with a fresh store.
func each(t *testing.T, test func(t *testing.T, b bundle)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		test(t, bundle{open(t)})
	})
}

// do runs fn in a transaction that has to succeed.
func (b bundle) do(tb testing.TB, fn func(ctx context.Context, tx *store.Tx) error) {
	tb.Helper()
	if err := b.try(tb, fn); err != nil {
		tb.Fatal(err)
	}
}

func (b bundle) try(tb testing.TB, fn func(ctx context.Context, tx *store.Tx) error) error {
	tb.Helper()
	ctx := tb.Context()
	return b.InTx(ctx, func(tx *store.Tx) error { return fn(ctx, tx) })
}

func key(id string) messages.ConversationKey {
	return messages.ConversationKey{Platform: "test", ID: id}
}

func (b bundle) conversation(tb testing.TB, id string) sessions.Conversation {
	tb.Helper()
	var c sessions.Conversation
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		c, _, err = tx.Conversations().GetOrCreateConversation(ctx, key(id), "demo")
		return err
	})
	return c
}

func (b bundle) session(tb testing.TB, conversationID string) sessions.Session {
	tb.Helper()
	var s sessions.Session
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conversationID, Assistant: "demo"})
		return err
	})
	return s
}

// accept stores a message as the orchestrator does: under the row lock.
func (b bundle) accept(tb testing.TB, chat, event string, change ...func(*sessions.Entry)) sessions.Entry {
	tb.Helper()
	e, _, err := b.tryAccept(tb, chat, event, change...)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func (b bundle) tryAccept(
	tb testing.TB, chat, event string, change ...func(*sessions.Entry),
) (e sessions.Entry, fresh bool, err error) {
	tb.Helper()
	err = b.try(tb, func(ctx context.Context, tx *store.Tx) error {
		c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(chat), "demo")
		if err != nil {
			return err
		}
		e = sessions.Entry{ConversationID: c.ID, In: inbound(chat, event)}
		for _, f := range change {
			f(&e)
		}
		fresh, err = tx.Inbox().InsertEntry(ctx, &e)
		return err
	})
	return e, fresh, err
}

func inbound(chat, event string) messages.Inbound {
	return messages.Inbound{
		Account: "bot", Event: messages.EventID(event), Kind: messages.KindMessage, Conversation: key(chat),
		Message: messages.MessageID("m" + event), Sender: messages.Sender{ID: "42", Name: "Ann"},
		Text: "text of " + event, SentAt: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Raw: []byte(`{"update":"` + event + `"}`),
	}
}

// together calls fn n times at once and returns the errors that were not nil.
func together(n int, fn func(i int) error) []error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			if err := fn(i); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("caller %d: %w", i, err))
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func wantKind(tb testing.TB, err error, kind fault.Kind) {
	tb.Helper()
	if !fault.Is(err, kind) {
		tb.Errorf("error = %v (kind %q), want kind %q", err, fault.KindOf(err), kind)
	}
}
