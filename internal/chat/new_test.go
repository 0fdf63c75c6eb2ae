package chat

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// accepts stores an entry as if this process had accepted it at a time.
func (r *room) accepts(at time.Time, sessionID string) sessions.Entry {
	r.t.Helper()
	id := uuid.Must(uuid.NewV7()).String()
	e := sessions.Entry{
		ID: id, ConversationID: r.conv.ID, State: sessions.EntryDone, SessionID: sessionID, AcceptedAt: at,
		In: messages.Inbound{Event: messages.EventID(id), Kind: messages.KindMessage, Conversation: r.conv.Key, Text: "x"},
	}
	r.do(func(tx *store.Tx) error {
		_, err := tx.Inbox().InsertEntry(r.t.Context(), &e)
		return err
	})
	return e
}

func (r *room) session() (s sessions.Session) {
	r.t.Helper()
	r.do(func(tx *store.Tx) error {
		var err error
		s, err = tx.Sessions().CreateSession(r.t.Context(), sessions.NewSession{ConversationID: r.conv.ID, Assistant: r.conv.Assistant})
		return err
	})
	return s
}

// TestNewAsksNoClock: the clock of the database may be ahead of that of the process or
// behind it. Which session a command is about follows from the order of the inbox.
func TestNewAsksNoClock(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) { //nolint:thelper // a test
		r := newRoom(t, open)
		for name, skew := range map[string]time.Duration{"ahead": -time.Hour, "behind": time.Hour} {
			for _, before := range []bool{true, false} {
				s := r.session()
				var given sessions.Entry
				if before {
					r.accepts(time.Now(), s.ID)
					given = r.accepts(time.Now().Add(skew), "")
				} else {
					given = r.accepts(time.Now().Add(skew), "")
					r.accepts(time.Now(), s.ID)
				}
				reply, err := r.h.newSessions.runNew(t.Context(), command.Request{Entry: given, Conv: r.conv})
				if err != nil {
					t.Fatal(err)
				}
				if ended := strings.HasPrefix(reply.Text, "Session ended"); ended != before {
					t.Errorf("the database's clock is %s, the session began before the command: %v; it says %q", name, before, reply.Text)
				}
				r.do(func(tx *store.Tx) error {
					return tx.Sessions().DeactivateSession(t.Context(), s.ID, "the test is over")
				})
			}
		}
	})
}
