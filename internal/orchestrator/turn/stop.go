package turn

import (
	"context"
	"slices"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// stopPatience is how long /stop waits for the turn to end before it answers.
// An assistant returns within a second of its cancellation.
const stopPatience = 3 * time.Second

// Stopped is what a stop found.
type Stopped struct {
	State   StopState
	Dropped int // messages that waited and do not start any more
}

// StopState is what became of the turn that a stop is for.
type StopState int

// The states.
const (
	StopNothing StopState = iota // nothing ran and nothing waited for a decision
	StopAsked                    // it is on another replica, or is being ended now
	StopSlow                     // it runs here and does not end at once
	StopDone                     // it has ended
)

// Stop ends the turn of a conversation and drops what waits there, up to a sequence
// number of its inbox, for someone who is named as in the audit log. It waits a
// few seconds for the end of a turn in this process. Once more, as after a crash, it
// changes nothing and returns what it had found.
func (o *Turns) Stop(ctx context.Context, conv sessions.Conversation, upTo int64, by string) (Stopped, error) {
	var (
		dropped []sessions.Entry
		ended   bool // what had begun was stopped when this came before
		parked  bool
	)
	err := o.config.Storage.InTx(ctx, func(tx port.Tx) error {
		current, _, err := tx.Conversations().GetOrCreateConversation(ctx, conv.Key, conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if dropped, err = tx.Inbox().StopEntries(ctx, conv.ID, upTo); err != nil {
			return err
		}
		ended = false
		if current.StopSeq >= upTo {
			if dropped, err = tx.Inbox().StoppedEntries(ctx, conv.ID, upTo); err != nil {
				return err
			}
			begun := func(e sessions.Entry) bool { return e.Attempts > 0 }
			ended = slices.ContainsFunc(dropped, begun)
			dropped = slices.DeleteFunc(dropped, begun)
		}
		for _, e := range dropped { // one that waits to begin may have asked whether to clone
			if err := o.cancelQuestions(ctx, tx, e, ""); err != nil {
				return err
			}
		}
		head, ok, err := tx.Inbox().NextEntry(ctx, conv.ID)
		if err != nil {
			return err
		}
		parked = ok && head.Seq <= upTo
		return tx.Audit(ctx, sessions.AuditEntry{Actor: by, Action: "turn.stop", ConversationID: conv.ID})
	})
	if err != nil {
		return Stopped{}, err
	}
	for _, e := range dropped {
		o.outbox.Unmark(e)
		o.outbox.MarkEnd(e, false)
	}
	s := Stopped{State: o.stopRunning(ctx, conv, upTo, parked), Dropped: len(dropped)}
	if ended && s.State == StopNothing {
		s.State = StopDone
	}
	if len(dropped) > 0 {
		_ = o.ringStopped(ctx, conv.ID) // shows what became of questions; else the sweep does
	}
	return s, nil
}

// Withdraw drops an entry whose turn has not begun, of a conversation whose row is locked.
func (o *Turns) Withdraw(ctx context.Context, tx port.Tx, e sessions.Entry) error {
	if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryStopped)}); err != nil {
		return err
	}
	return o.cancelQuestions(ctx, tx, e, "") // it may have asked whether to clone
}

// stopRunning ends the turn that runs here, or wakes the one that is parked or
// runs elsewhere.
func (o *Turns) stopRunning(ctx context.Context, conv sessions.Conversation, upTo int64, active bool) StopState {
	handle := o.running.stop(conv.ID, upTo)
	switch {
	case !active:
		return StopNothing
	case handle == nil:
		// Parked, or on another replica: its holder sees the stop at its next
		// heartbeat; a parked one is settled by whoever claims it now.
		if err := o.ringStopped(ctx, conv.ID); err != nil {
			o.config.Log.InfoContext(ctx, "a stop is settled by the next sweep", "conversation", conv.Key, "err", err)
		}
		return StopAsked
	}
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-handle.done:
		return StopDone
	case <-patience.C:
		return StopSlow
	case <-ctx.Done():
		return StopAsked
	}
}

// Running returns since when a turn of a conversation runs in this process; ok is
// false if none does.
func (o *Turns) Running(conversationID string) (since time.Time, ok bool) {
	return o.running.sinceOf(conversationID)
}

// Wake looks for work in a conversation in the background; if it cannot, the sweep
// does.
func (o *Turns) Wake(conversationID string) {
	o.background.Go(func(ctx context.Context) { _ = o.Ring(ctx, conversationID) })
}

// releaseAgent ends what an agent keeps running for a conversation.
func (o *Turns) releaseAgent(conv sessions.Conversation) {
	if a, is := o.config.Assistants[assistant.Name(conv.Assistant)].(assistant.Agent); is {
		a.Release(conv.ID)
	}
}
