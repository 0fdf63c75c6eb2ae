//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

var errMine = errors.New("mine")

func TestTransactionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		create := func(ctx context.Context, tx *store.Tx, id string) error {
			_, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(id), "demo")
			return err
		}
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(create(ctx, tx, "a"), errMine)
		})
		if !errors.Is(err, errMine) {
			t.Errorf("the closure's error came back as %v", err)
		}
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v, want boom", got)
				}
			}()
			_ = b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_ = create(ctx, tx, "b")
				panic("boom")
			})
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = b.InTx(context.WithoutCancel(t.Context()), func(tx *store.Tx) error {
				_ = create(t.Context(), tx, "c")
				runtime.Goexit()
				return nil
			})
		}()
		<-done
		if got := b.counts(t).conversations; got != 0 {
			t.Errorf("%d conversations, want none: an error, a panic and an exit roll back", got)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		ran := false
		if err := b.InTx(canceled, func(*store.Tx) error { ran = true; return nil }); !errors.Is(err, context.Canceled) || ran {
			t.Errorf("with a context that has ended: %v, ran %v", err, ran)
		}
	})
}

// TestCallersInAGroupDoNotTouchEachOther lets many callers write at once, so that
// SQLite commits them in groups, and some of them fail in every way there is.
func TestCallersInAGroupDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const callers = 64
		var mu sync.Mutex
		kept := map[string]bool{}
		together(callers, func(i int) (err error) {
			defer func() { _ = recover() }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			id := fmt.Sprint(i)
			err = b.InTx(ctx, func(tx *store.Tx) error {
				c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(id), "demo")
				if err != nil {
					return err
				}
				switch i % 4 {
				case 1:
					return errMine
				case 2:
					panic("boom")
				case 3:
					cancel() // the statement after it does not start
					_, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"})
					return err
				}
				return nil
			})
			if err == nil {
				mu.Lock()
				kept[id] = true
				mu.Unlock()
			}
			return err
		})
		if len(kept) != callers/4 {
			t.Errorf("%d callers were told of success, want %d", len(kept), callers/4)
		}
		if got := b.counts(t); got.conversations != len(kept) || got.sessions != 0 {
			t.Errorf("stored %+v, want the %d conversations of the callers that succeeded", got, len(kept))
		}
		for id := range kept {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Conversations().FindConversation(ctx, key(id))
				return err
			})
		}
	})
}

// TestWaitingCallersAreCommittedTogether holds the writer while callers queue up.
func TestWaitingCallersAreCommittedTogether(t *testing.T) {
	t.Parallel()
	b := bundleOf(t)
	const callers = 20
	holding, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = b.InTx(t.Context(), func(*store.Tx) error {
			close(holding)
			<-release
			return nil
		})
	})
	<-holding
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		left <- b.InTx(gone, func(tx *store.Tx) error { t.Error("a caller that had left was run"); return nil })
	}()
	store.AwaitQueued(b.Store, 1)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}
	for i := range callers {
		wg.Go(func() {
			err := b.InTx(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), key(fmt.Sprint(i)), "demo")
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	store.AwaitQueued(b.Store, callers+1)
	before := store.Commits(b.Store)
	close(release)
	wg.Wait()
	if got := store.Commits(b.Store) - before; got != 1 {
		t.Errorf("%d commits for %d waiting callers, want 1", got, callers)
	}
	if got := b.counts(t).conversations; got != callers {
		t.Errorf("%d conversations, want %d", got, callers)
	}
}

func TestCloseLetsWaitingCallersFinish(t *testing.T) {
	t.Parallel()
	b := bundleOf(t)
	holding, release := make(chan struct{}), make(chan struct{})
	results := make(chan error, 6)
	go func() {
		results <- b.InTx(t.Context(), func(*store.Tx) error { close(holding); <-release; return nil })
	}()
	<-holding
	for i := range 5 {
		go func() {
			results <- b.InTx(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), key(fmt.Sprint(i)), "demo")
				return err
			})
		}()
	}
	store.AwaitQueued(b.Store, 5)
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	close(release)
	for range 6 {
		if err := <-results; err != nil {
			t.Errorf("a caller that had queued before Close: %v", err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	err := b.InTx(t.Context(), func(*store.Tx) error { return nil })
	wantKind(t, err, fault.Unavailable)
}

func TestWritingToAClosedPostgresIsUnavailable(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantKind(t, s.InTx(t.Context(), func(*store.Tx) error { return nil }), fault.Unavailable)
}

// TestStatementsAreParsedOnce runs a transaction twice and looks for statements
// that the connection's cache did not have the second time.
func TestStatementsAreParsedOnce(t *testing.T) {
	t.Parallel()
	b := bundleOf(t)
	turn := func(i int) {
		e := b.accept(t, "chat", fmt.Sprint(i))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Deliveries().AddDelivery(ctx, delivery(e, "x"))
		})
	}
	turn(1)
	before := store.Prepared(t.Context(), b.Store)
	if before == 0 {
		t.Fatal("the cache is empty: nothing was cached")
	}
	for i := range 10 {
		turn(i + 2)
	}
	if got := store.Prepared(t.Context(), b.Store); got != before {
		t.Errorf("%d statements parsed after the first turn", got-before)
	}
}
