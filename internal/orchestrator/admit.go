package orchestrator

import (
	"context"

	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/inbox"
	"remote-agent/internal/sessions"
)

// turns lets the inbox hand conversations over.
type turns struct{ o *Orchestrator }

// Reserve implements inbox.Turns.
func (t turns) Reserve() bool { return t.o.slots.try() }

// Admit implements inbox.Turns.
func (t turns) Admit(ctx context.Context, tx Tx, e *sessions.Entry, conv sessions.Conversation, open sessions.OpenWork, v access.Verdict, atOnce bool) (fresh bool, work inbox.Work, err error) {
	o := t.o
	w := o.newWorker(conv)
	first := *e
	first.Seq = conv.InboxSeq + 1
	atOnce = atOnce && !open.Waiting && !open.Control && !open.Deliveries && w.beginsAtOnce(first)
	admission := sessions.Admission{Owner: o.owner, TTL: o.config.LeaseTTL}
	if atOnce && o.outbox.ShowsProgress(conv.Key.Platform) {
		admission.Deliveries = 1
	}
	stored := *e
	if atOnce && open.Active {
		stored.State, stored.Attempts, stored.SessionID = sessions.EntryRunning, 1, open.Session.ID
	}
	fresh, w.lease, w.conv.DeliverySeq, err = tx.AdmitEntry(ctx, &stored, admission)
	e.ID, e.Seq, e.AcceptedAt = stored.ID, stored.Seq, stored.AcceptedAt
	if err != nil || !fresh {
		o.slots.release()
		return fresh, nil, err
	}
	w.conv.InboxSeq, w.conv.Owner, w.conv.Epoch, w.conv.Leased = e.Seq, w.lease.Owner, w.lease.Epoch, true
	if !atOnce {
		return true, admitted{w}, nil
	}
	w.session, w.numbered, w.runs = &open, int(admission.Deliveries), stored.SessionID
	w.begun = o.expect(conv.ID) // before the commit, so that no stop falls between the two
	if w.begun.decision, err = w.begin(ctx, tx, *e, v); err != nil {
		return true, admitted{w}, &inbox.BeginError{Err: err}
	}
	w.session, w.runs = nil, ""
	return true, admitted{w}, nil
}

// admitted is a conversation that was handed over.
type admitted struct{ w *worker }

// Start implements inbox.Work.
func (a admitted) Start(ctx context.Context) {
	if !a.w.o.background.Go(func(ctx context.Context) { a.w.o.workOn(ctx, a.w) }) {
		a.w.handBack(ctx)
		a.Drop()
	}
}

// Drop implements inbox.Work.
func (a admitted) Drop() {
	a.w.o.slots.release()
	a.w.o.forget(a.w.begun)
}

// release gives back what a closed conversation holds: its worktree, whose state
// is saved, and an agent's process. While something still runs or waits there it
// stays; the sweep of idle worktrees comes later.
func (o *Orchestrator) release(ctx context.Context, conv sessions.Conversation) {
	waiting := 0
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		waiting, err = tx.CountWaiting(ctx, conv.ID)
		return err
	})
	if err != nil || waiting > 0 {
		return
	}
	o.releaseAgent(conv)
	if o.config.Workshop == nil || conv.CodebaseID == "" {
		return
	}
	if err := o.config.Workshop.Release(ctx, conv); err != nil {
		o.config.Log.InfoContext(ctx, "Could not free a worktree; the sweep does", "conversation", conv.Key, "err", err)
	}
}
