//nolint:thelper // each runs tests, not helpers
package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"remote-agent/internal/commit"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/waittest"
)

// What a transaction changes is told once it was committed, and not if it was not.
func TestChangesAreToldBehindTheirCommit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var told []live.Topic
		b.OnChange(func(topics ...live.Topic) { told = append(told, topics...) })
		changes := func(what string, do func(), want ...live.Topic) {
			t.Helper()
			told = nil
			do()
			if !slices.Equal(told, want) {
				t.Errorf("%s: told %v, want %v", what, told, want)
			}
		}
		conv := b.conversation(t, "chat")
		topic := live.Conversation(conv.ID)
		changes("a message", func() { b.accept(t, "chat", "1") }, topic)
		var lease sessions.Lease
		changes("a lease", func() {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				lease, _, _, err = tx.Leases().ClaimLease(ctx, conv.ID, "me", 1<<40)
				return err
			})
		}, topic)
		changes("a step of a turn", func() {
			if _, err := b.Commit(t.Context(), lease, commit.Changes{Added: []messages.Delivery{{ConversationID: conv.ID, Text: "…"}}}); err != nil {
				t.Error(err)
			}
		}, topic)
		changes("a transaction of a turn", func() {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.Leases().HoldLease(ctx, lease); err != nil {
					return err
				}
				_, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conv.ID, Assistant: "demo"})
				return err
			})
		}, topic)
		changes("what failed", func() {
			_ = b.try(t, func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.Leases().HoldLease(ctx, lease); err != nil {
					return err
				}
				return errors.New("no")
			})
			lease.Epoch++
			if _, err := b.Commit(t.Context(), lease, commit.Changes{}); !errors.Is(err, sessions.ErrLeaseLost) {
				t.Error(err)
			}
		})
		s, _ := signin.NewSession(signin.Account{Platform: "telegram", ID: "1"}, "", conv.CreatedAt, signin.SessionLife)
		changes("a session of a browser", func() {
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.SignIn().InsertWebSession(ctx, s) })
		})
		changes("its end", func() {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, _, err := tx.SignIn().RevokeWebSession(ctx, s.ID)
				return err
			})
		}, live.Browser(s.ID))
		changes("a role", func() {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.People().SetRole(ctx, sessions.Identity{Platform: "telegram", UserID: "1", Role: sessions.User}, "telegram/2", false)
			})
		}, live.Access)
		changes("the end of a conversation", func() {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Conversations().DeleteConversation(ctx, conv.ID)
			})
		}, topic)
	})
}

// Processes on PostgreSQL hear of each other.
func TestProcessesHearOfEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		if !b.Shared() {
			t.Skip("one process works on SQLite")
		}
		ctx, stop := context.WithCancel(waittest.Context(t.Context(), t))
		ready, heard, ended := make(chan struct{}), make(chan string, 2), make(chan error, 1)
		go func() { ended <- b.Listen(ctx, func() { close(ready) }, func(text string) { heard <- text }) }()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatal(err)
		}
		for _, text := range []string{"a conversation/1", "it's"} {
			if err := b.Notify(ctx, text); err != nil {
				t.Fatal(err)
			}
			if got := <-heard; got != text {
				t.Errorf("heard %q, want %q", got, text)
			}
		}
		stop()
		if err := <-ended; err == nil {
			t.Error("it ended without an error")
		}
	})
}
