package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// BenchmarkTurn measures the three transactions of a plain turn, for one chat
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

// oneTurn writes what a turn writes, in the transactions in which it does: those
// of a journey are counted, see TestWhatATurnAsksOfTheDatabase.
func oneTurn(ctx context.Context, s *store.Store, chat, event string) error {
	var (
		e       sessions.Entry
		lease   sessions.Lease
		session sessions.Session
		run     sessions.BegunRun
		answer  messages.Delivery
	)
	err := s.InTx(ctx, func(tx *store.Tx) error {
		c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(chat), "demo")
		if err != nil {
			return err
		}
		open, err := tx.Conversations().OpenWork(ctx, c.ID)
		if err != nil {
			return err
		}
		e = sessions.Entry{ConversationID: c.ID, In: inbound(chat, event), State: sessions.EntryRunning, Attempts: 1}
		if session = open.Session; open.Active {
			e.SessionID = session.ID
		}
		_, got, err := tx.Inbox().AdmitEntry(ctx, &e, sessions.Admission{Owner: "bench", TTL: time.Minute, Deliveries: 1, Begins: open.Active})
		if err != nil {
			return err
		}
		lease, answer.Seq = got.Lease, got.DeliverySeq
		if !open.Active {
			if session, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"}); err != nil {
				return err
			}
		}
		if run, err = tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: session.ID, EntryID: e.ID, Model: "m"}, messages.NewText(messages.RoleUser, e.In.Text)); err != nil {
			return err
		}
		if !open.Active {
			first := sessions.Checkpoint{SessionID: session.ID, Seq: run.Seqs[0]}
			if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &first}); err != nil {
				return err
			}
		}
		answer = messages.Delivery{Seq: answer.Seq, ConversationID: c.ID, EventID: e.ID, Placeholder: "...", State: messages.DeliverySending}
		return tx.Deliveries().AddNumbered(ctx, &answer)
	})
	if err != nil {
		return err
	}
	done := sessions.EntryDone
	answer.Text, answer.Final, answer.State, answer.Message = "the answer", true, messages.DeliveryPlaced, "7"
	news, err := s.Commit(ctx, lease, commit.Changes{
		Entry: &commit.Entry{ID: e.ID, EntryUpdate: sessions.EntryUpdate{State: &done}},
		Session: &commit.Session{
			ID: session.ID, Run: e.ID, Messages: []messages.Message{messages.NewText(messages.RoleAssistant, "the answer")},
			Turn: &sessions.TurnRecord{Model: "m", Result: "the", InputTokens: 9},
		},
		Run:        &commit.Run{SessionID: session.ID, Number: run.Number, RunEnd: sessions.RunEnd{Status: sessions.RunCompleted, Model: "m", Took: time.Millisecond}},
		Usage:      &spend.Record{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: session.ID, Actor: "test/1", Assistant: "demo", Model: "m"},
		Deliveries: []messages.Delivery{answer},
	})
	if err != nil {
		return err
	}
	answer.State = messages.DeliverySent
	news, err = s.Commit(ctx, lease, commit.Changes{
		Deliveries: []messages.Delivery{answer}, Release: &commit.Release{InboxSeq: e.Seq, DeliverySeq: news.DeliverySeq},
	})
	if err == nil && !news.Released {
		err = fmt.Errorf("the lease was kept: %+v", news)
	}
	return err
}
