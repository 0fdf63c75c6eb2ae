package orchestrator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// refusing is a database in which the lease of one conversation cannot be claimed.
type refusing struct {
	orchestrator.Storage
	id string
}

func (s refusing) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.Storage.InTx(ctx, func(tx orchestrator.Tx) error { return fn(refusingTx{tx, s.id}) })
}

type refusingTx struct {
	orchestrator.Tx
	id string
}

func (t refusingTx) Leases() commit.LeaseStore { return refusingLeases{t.Tx.Leases(), t.id} }

type refusingLeases struct {
	commit.LeaseStore
	id string
}

func (l refusingLeases) ClaimLease(ctx context.Context, id, owner string, ttl time.Duration) (sessions.Lease, sessions.Conversation, bool, error) {
	if id == l.id {
		return sessions.Lease{}, sessions.Conversation{}, false, fault.New(fault.Internal, "what is stored there cannot be read")
	}
	return l.LeaseStore.ClaimLease(ctx, id, owner, ttl)
}

// TestSweepGoesOnBehindABadConversation has the conversation that waited longest fail, at
// the start and in each sweep: the others are looked after.
func TestSweepGoesOnBehindABadConversation(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("busy", ot.Hold("", ot.Say("I was busy.")), ot.Say("I am not any more."))
		first := w.Start()
		w.Chat.Say("busy")
		for n := range 5 { // the first one is the one that waits longest
			w.Pass(time.Second)
			w.Chat.Say("hello", ot.In(fmt.Sprint("room ", n)))
		}
		w.Settle()
		first.Kill()
		bad := w.Value(`SELECT id FROM remote_agent_conversations WHERE platform_conversation_id = 'room 0'`)
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Storage = refusing{c.Storage, bad}
		}
		w.Start()
		w.Pass(30 * time.Second)
		if n := answered(w, 5, 1); n != 4 {
			t.Errorf("%d rooms are answered, want 4", n)
		}
	})
}

// unreadable is a database in which what one conversation has open cannot be read.
type unreadable struct{ refusing }

func (s unreadable) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.Storage.InTx(ctx, func(tx orchestrator.Tx) error { return fn(unreadableTx{tx, s.id}) })
}

type unreadableTx struct {
	orchestrator.Tx
	id string
}

func (t unreadableTx) Conversations() sessions.ConversationStore {
	return unreadableConversations{t.Tx.Conversations(), t.id}
}

type unreadableConversations struct {
	sessions.ConversationStore
	id string
}

func (c unreadableConversations) OpenWork(ctx context.Context, id string) (sessions.OpenWork, error) {
	if id == c.id {
		return sessions.OpenWork{}, fault.New(fault.Internal, "the metadata of its session is no JSON object")
	}
	return c.ConversationStore.OpenWork(ctx, id)
}

// TestABadConversationKeepsNobodyFromBeingHeard has a session that cannot be read: what is
// said there is stored, because a platform that delivers in order would deliver nothing
// behind it, and is answered as soon as the session can be read.
func TestABadConversationKeepsNobodyFromBeingHeard(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		w.Chat.Say("hello", ot.In("room 0"))
		w.Pass(time.Second)
		bad := w.Value(`SELECT id FROM remote_agent_conversations WHERE platform_conversation_id = 'room 0'`)
		w.Process().Stop()
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Storage = unreadable{refusing{c.Storage, bad}} }
		w.Start()
		w.Chat.Say("and now", ot.In("room 0"))
		w.Pass(30 * time.Second)
		if state := w.States("and now"); state != "done" || w.Chat.Unacknowledged() > 0 {
			t.Errorf("the message is %q, and %d are not acknowledged", state, w.Chat.Unacknowledged())
		}
	})
}

// illegible is a database in which no command registry can be read, and not what was said last.
type illegible struct{ orchestrator.Storage }

func (s illegible) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.Storage.InTx(ctx, func(tx orchestrator.Tx) error { return fn(illegibleTx{tx}) })
}

type illegibleTx struct{ orchestrator.Tx }

func (t illegibleTx) Registry() sessions.CodebaseStore { return illegibleRegistry{t.Tx.Registry()} }

type illegibleRegistry struct{ sessions.CodebaseStore }

func (illegibleRegistry) CodebaseCommands(context.Context, string) (map[string]sessions.CommandDef, error) {
	return nil, fault.New(fault.Internal, "the commands are no JSON object")
}

func (t illegibleTx) Inbox() sessions.InboxStore { return illegibleInbox{t.Tx.Inbox()} }

type illegibleInbox struct{ sessions.InboxStore }

func (illegibleInbox) EntryNumbered(context.Context, string, int64) (e sessions.Entry, err error) {
	return e, fault.New(fault.Internal, "the event is no JSON object")
}

// TestABadRegistryKeepsNobodyFromBeingHeard has a repository whose commands cannot be read: a
// command that may be one of them is stored, and its turn says what it finds.
func TestABadRegistryKeepsNobodyFromBeingHeard(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		scripted := scriptedWorktrees(w)
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		w.Process().Stop()
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees, c.Storage = scripted, illegible{c.Storage} }
		w.Start()
		w.Chat.Say("/ship it", about)
		w.Pass(30 * time.Second)
		if state := w.States("/ship it"); state != "done" || w.Chat.Unacknowledged() > 0 {
			t.Errorf("the message is %q, and %d are not acknowledged", state, w.Chat.Unacknowledged())
		}
	})
}

// TestBusyProcessComesBack has a message wait for the only slot: it is looked after when that
// is free again, not with the next sweep.
func TestBusyProcessComesBack(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("busy", ot.Later(6500*time.Millisecond, ot.Say("I was busy."))) // a sweep is at 5 s, and waits for a second
		w.Start()
		w.Chat.Say("busy")
		w.Chat.Say("hello", ot.In("room 0"))
		w.Pass(9500 * time.Millisecond)
		if n := answered(w, 1, 1); n != 1 {
			t.Errorf("it is not answered three seconds after the slot is free: %q", w.Chat.Texts("room 0"))
		}
	})
}

// TestStopWithoutASlotFreesNone has somebody say stop to what waits while all slots are in use:
// there are no more of them behind it.
func TestStopWithoutASlotFreesNone(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("busy", ot.Hold("", ot.Say("I was busy.")))
		w.Start()
		w.Chat.Say("busy")
		w.Chat.Say("hello", ot.In("room 0"))
		w.Pass(time.Second)
		w.Chat.Say("/stop", ot.In("room 0"))
		w.Pass(10 * time.Second)
		w.Chat.Say("hello", ot.In("room 1"))
		w.Pass(10 * time.Second)
		if got := w.Chat.Texts("room 1"); len(w.Model.Requests()) != 1 {
			t.Errorf("the model was asked %d times, want once: %q", len(w.Model.Requests()), got)
		}
	})
}
