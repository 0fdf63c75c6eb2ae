package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// BenchmarkTurn measures the five transactions of a typical turn, for one chat
// after the other and for 32 chats at once. One operation is one turn.
func BenchmarkTurn(b *testing.B) {
	for _, dialect := range []struct {
		name string
		open func(testing.TB) func(testing.TB) *store.Store
	}{{"SQLite", storetest.SQLite}, {"Postgres", storetest.Postgres}} {
		for _, chats := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/chats=%d", dialect.name, chats), func(b *testing.B) {
				benchmarkTurns(b, bundle{dialect.open(b)(b)}, chats)
			})
		}
	}
}

// BenchmarkCodebases reads 200 codebases and a registry of 2,000 commands.
func BenchmarkCodebases(b *testing.B) {
	for name, open := range map[string]func(testing.TB) func(testing.TB) *store.Store{
		"SQLite": storetest.SQLite, "Postgres": storetest.Postgres,
	} {
		b.Run(name, func(b *testing.B) {
			s := bundle{open(b)(b)}
			first := s.fillCodebases(b)
			for b.Loop() {
				if err := s.listCodebases(context.Background(), first); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkTurns(b *testing.B, s bundle, chats int) {
	b.Helper()
	b.ReportAllocs()
	var wg sync.WaitGroup
	next := make(chan int)
	errs := make(chan error, chats)
	for chat := range chats {
		wg.Go(func() {
			for i := range next {
				if err := oneTurn(context.Background(), s.Store, fmt.Sprint("chat-", chat), fmt.Sprint(i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	b.ResetTimer()
	for i := range b.N {
		select {
		case next <- i:
		case err := <-errs:
			b.Fatal(err)
		}
	}
	close(next)
	wg.Wait()
}

// oneTurn writes what a turn writes, in the transactions in which it does.
func oneTurn(ctx context.Context, s *store.Store, chat, event string) error {
	var e sessions.Entry
	var lease sessions.Lease
	if err := s.InTx(ctx, func(tx *store.Tx) error {
		c, _, err := tx.GetOrCreateConversation(ctx, key(chat), "demo")
		if err != nil {
			return err
		}
		e = sessions.Entry{ConversationID: c.ID, In: inbound(chat, event)}
		if _, err := tx.InsertEntry(ctx, &e); err != nil {
			return err
		}
		lease, _, err = tx.ClaimLease(ctx, c.ID, "bench", time.Minute)
		return err
	}); err != nil {
		return err
	}
	var session sessions.Session
	answer := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Placeholder: "..."}
	held := func(fn func(tx *store.Tx) error) error {
		return s.InTx(ctx, func(tx *store.Tx) error {
			if _, err := tx.HoldLease(ctx, lease); err != nil {
				return err
			}
			return fn(tx)
		})
	}
	if err := held(func(tx *store.Tx) error {
		var err error
		session, err = begin(ctx, tx, e)
		if err != nil {
			return err
		}
		answer.ID = ""
		return tx.AddDelivery(ctx, &answer)
	}); err != nil {
		return err
	}
	if err := held(func(tx *store.Tx) error {
		answer.State, answer.Message = messages.DeliveryPlaced, "7"
		return tx.UpdateDelivery(ctx, answer)
	}); err != nil {
		return err
	}
	if err := held(func(tx *store.Tx) error {
		if _, err := tx.AppendMessages(ctx, session.ID, e.ID, messages.NewText(messages.RoleAssistant, "the answer")); err != nil {
			return err
		}
		if err := tx.RecordTurn(ctx, session.ID, sessions.TurnRecord{Model: "m", Result: "the", InputTokens: 9}); err != nil {
			return err
		}
		if err := tx.UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone)}); err != nil {
			return err
		}
		answer.Text, answer.Final = "the answer", true
		return tx.UpdateDelivery(ctx, answer)
	}); err != nil {
		return err
	}
	return held(func(tx *store.Tx) error {
		answer.State = messages.DeliverySent
		if err := tx.UpdateDelivery(ctx, answer); err != nil {
			return err
		}
		if _, ok, err := tx.NextEntry(ctx, e.ConversationID); err != nil || ok {
			return fmt.Errorf("the inbox is not empty: %v, %w", ok, err)
		}
		return tx.ReleaseLease(ctx, lease)
	})
}

// begin is the first transaction of a turn under its lease.
func begin(ctx context.Context, tx *store.Tx, e sessions.Entry) (s sessions.Session, err error) {
	if _, _, err = tx.NextEntry(ctx, e.ConversationID); err != nil {
		return s, err
	}
	s, ok, err := tx.ActiveSession(ctx, e.ConversationID)
	if err == nil && !ok {
		s, err = tx.CreateSession(ctx, sessions.NewSession{ConversationID: e.ConversationID, Assistant: "demo"})
	}
	if err != nil {
		return s, err
	}
	if err := tx.UpdateEntry(ctx, e.ID, sessions.EntryUpdate{
		State: new(sessions.EntryRunning), Attempts: new(1), SessionID: &s.ID,
	}); err != nil {
		return s, err
	}
	if _, err := tx.MessagesBefore(ctx, s.ID, s.LastSeq+1, 50); err != nil {
		return s, err
	}
	_, err = tx.AppendMessages(ctx, s.ID, e.ID, messages.NewText(messages.RoleUser, e.In.Text))
	return s, err
}
