package turn

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// idle is a database in which nothing is to be done in any conversation.
type idle struct {
	port.Storage
	idleTx

	ends error // of each transaction
}

func (s idle) InTx(_ context.Context, fn func(tx port.Tx) error) error {
	return errors.Join(fn(s.idleTx), s.ends)
}

type idleTx struct {
	port.Tx
	claim func(id string) error
}

func (t idleTx) Abreast(_ context.Context, n int, part func(i int) error) (err error) {
	for i := 0; i < n && err == nil; i++ {
		err = part(i)
	}
	return err
}

func (t idleTx) Leases() commit.LeaseStore                 { return idleLeases{claim: t.claim} }
func (t idleTx) Conversations() sessions.ConversationStore { return idleConversations{} }
func (t idleTx) Inbox() sessions.InboxStore                { return idleInbox{} }

type idleLeases struct {
	commit.LeaseStore
	claim func(id string) error
}

func (l idleLeases) ClaimLease(_ context.Context, id, owner string, _ time.Duration) (lease sessions.Lease, c sessions.Conversation, ok bool, err error) {
	if err = l.claim(id); err != nil {
		return lease, c, false, err
	}
	return sessions.Lease{ConversationID: id, Owner: owner}, sessions.Conversation{ID: id}, true, nil
}

func (idleLeases) Apply(context.Context, sessions.Lease, commit.Changes) (news commit.News, err error) {
	return news, nil
}

type idleConversations struct{ sessions.ConversationStore }

func (idleConversations) OpenWork(context.Context, string) (open sessions.OpenWork, err error) {
	return open, nil
}

type idleInbox struct{ sessions.InboxStore }

func (idleInbox) NextEntry(context.Context, string) (e sessions.Entry, ok bool, err error) {
	return e, false, nil
}

// TestClaimLeavesNothing: after a claim that begins no work, however it ends, no slot is in use
// and no turn is expected, for which a stop would wait.
func TestClaimLeavesNothing(t *testing.T) {
	t.Parallel()
	bad := func(id string) error {
		if id == "2" {
			return fault.New(fault.Internal, "")
		}
		return nil
	}
	for name, s := range map[string]idle{
		"NothingToDo": {idleTx: idleTx{claim: func(string) error { return nil }}},
		"OneIsBad":    {idleTx: idleTx{claim: bad}},
		"Unknown":     {idleTx: idleTx{claim: func(string) error { return nil }}, ends: &fault.Error{Kind: fault.Unavailable, Uncertain: true}},
		"Panic":       {idleTx: idleTx{claim: func(string) error { panic("bad") }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &Turns{
				owner: "me", slots: newSlots(4), background: new(background.Group), running: running{turns: make(map[string]*turnHandle)},
				config: Config{Storage: s, Log: slog.New(slog.DiscardHandler)},
			}
			left, err := o.RingAll(t.Context(), []string{"1", "2", "3", "4", "5"})
			fails, want := name != "NothingToDo", 5 // all, or the one for which there is no slot
			if !fails {
				want = 1
			}
			if (err != nil) != fails || len(left) != want {
				t.Errorf("RingAll leaves %q to others: %v", left, err)
			}
			_ = o.Ring(t.Context(), "2")
			if o.slots.free != 4 || len(o.running.turns) > 0 {
				t.Errorf("%d of 4 slots are free, %d turns are expected", o.slots.free, len(o.running.turns))
			}
		})
	}
}
