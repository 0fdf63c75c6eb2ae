package turn

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// Reserve takes a free slot, unless somebody waits for one.
func (o *Turns) Reserve() bool { return o.slots.try() }

// HasRoom reports whether Reserve would have a slot at this moment.
func (o *Turns) HasRoom() bool { return o.slots.room() }

// BeginError says that a message could be stored, but a turn not be begun with it.
type BeginError struct{ Err error }

func (e *BeginError) Error() string { return e.Err.Error() }

func (e *BeginError) Unwrap() error { return e.Err }

// Admit stores an entry, for which a slot was reserved, and claims its
// conversation, whose row is locked and which nobody holds. With atOnce it begins the turn,
// or has it prepared, if nothing else is to be done there; a failure of that, or a panic, is
// a BeginError.
// The slot is the work's from now on; without work, which is nil then, it is free again.
func (o *Turns) Admit(ctx context.Context, tx port.Tx, e *sessions.Entry, conv sessions.Conversation, open sessions.OpenWork, v access.Verdict, atOnce bool) (fresh bool, work *Work, err error) {
	w := o.newWorker(conv)
	defer background.Recover(ctx, o.config.Log, "admit", func(failed error) {
		fresh, work, err = true, &Work{w}, &BeginError{Err: failed} // with the slot, which is given back as after any other
	})
	first := *e
	first.Seq = conv.InboxSeq + 1
	_, isCommand := command.Parse(first.In.Text) // which may have reasons not to begin
	next := atOnce && !open.Waiting && !open.Control && !open.Deliveries && !isCommand && first.In.Kind == messages.KindMessage
	atOnce = next && !w.needsPreparing(first)
	admission := sessions.Admission{Owner: o.owner, TTL: o.config.LeaseTTL}
	if atOnce && o.outbox.ShowsProgress(conv.Key.Platform) {
		admission.Deliveries = 1
	}
	stored := *e
	if atOnce && open.Active {
		stored.State, stored.Attempts, stored.SessionID = sessions.EntryRunning, 1, open.Session.ID
		admission.Begins = true
	}
	fresh, admitted, err := tx.Inbox().AdmitEntry(ctx, &stored, admission)
	w.lease, w.conv.DeliverySeq = admitted.Lease, admitted.DeliverySeq
	e.ID, e.Seq, e.AcceptedAt = stored.ID, stored.Seq, stored.AcceptedAt
	if err != nil || !fresh {
		o.slots.release()
		return fresh, nil, err
	}
	w.conv.InboxSeq, w.conv.Owner, w.conv.Epoch, w.conv.Leased = e.Seq, w.lease.Owner, w.lease.Epoch, true
	if !next {
		return true, &Work{w}, nil
	}
	w.open, w.numbered = &open, int(admission.Deliveries)
	if admission.Begins {
		w.stored = &sessions.Checkpoint{EntryID: e.ID, ConversationID: conv.ID, SessionID: stored.SessionID, Seq: admitted.MessageSeq}
	}
	w.begun = o.expect(conv.ID) // before the commit, so that no stop falls between the two
	if b := (beginning{w, tx, *e}); !atOnce {
		w.begun.decision = b.prepares(v)
	} else if w.begun.decision, err = b.begin(ctx, v); err != nil {
		return true, &Work{w}, &BeginError{Err: err}
	}
	w.open, w.stored = nil, nil
	return true, &Work{w}, nil
}

// Work is a conversation that this process holds, with a slot.
type Work struct{ w *worker }

// Start works on it in the background. While the process stops it hands it back
// instead: somebody else takes over.
func (a *Work) Start(ctx context.Context) {
	if !a.w.o.background.Go(func(ctx context.Context) { a.w.o.workOn(ctx, a.w) }) {
		a.w.handBack(ctx)
		a.Drop(nil)
	}
}

// Drop gives back in this process what a transaction that failed took. Where it is
// not known whether it did, the lease is given back as well: nobody would work under it.
func (a *Work) Drop(failed error) {
	a.w.unclaim(failed)
	a.w.o.slots.release()
	a.w.o.forget(a.w.begun)
}

// Release gives back what a closed conversation holds: its worktree, whose state
// is saved, and an agent's process. While something still runs or waits there it
// stays; the sweep of idle worktrees comes later.
func (o *Turns) Release(ctx context.Context, conv sessions.Conversation) {
	var open sessions.OpenWork
	err := o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		open, err = tx.Conversations().OpenWork(ctx, conv.ID)
		return err
	})
	if err != nil || open.Waiting {
		return
	}
	o.releaseAgent(conv)
	if o.config.Worktrees == nil || conv.CodebaseID == "" {
		return
	}
	if err := o.config.Worktrees.Release(ctx, conv); err != nil {
		o.config.Log.InfoContext(ctx, "could not free a worktree; the sweep does", "conversation", conv.Key, "err", err)
	}
}
