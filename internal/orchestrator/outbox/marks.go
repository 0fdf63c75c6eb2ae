package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// AddWaiting stores what tells the sender of a message that it waits, where the
// platform has no marks for that.
func (o *Outbox) AddWaiting(ctx context.Context, tx port.Tx, entry sessions.Entry) error {
	if _, ok := o.Adapters[entry.In.Conversation.Platform].(platform.Marker); ok {
		return nil
	}
	return addWaiting(ctx, tx, entry)
}

func addWaiting(ctx context.Context, tx port.Tx, entry sessions.Entry) error {
	waiting, err := tx.Inbox().WaitingEntries(ctx, entry.ConversationID, 0, 100)
	if err != nil {
		return err
	}
	head, ok, err := tx.Inbox().NextEntry(ctx, entry.ConversationID)
	if err != nil {
		return err
	}
	before := 0
	if ok && head.State == sessions.EntryRunning {
		before++
	}
	for _, e := range waiting {
		if e.Seq < entry.Seq {
			before++
		}
	}
	text := "Queued."
	if before > 0 {
		text = fmt.Sprintf("Queued: %s to be answered before it.", wording.Count(before, "message has", "messages have"))
	}
	d := Held(entry.ConversationID, entry, text)
	return tx.Deliveries().AddDelivery(ctx, &d)
}

// ShowWaiting shows the sender that a message waits: by a mark, or by sending
// the notice that AddWaiting stored. Where a mark is refused for good, it is told in words, too.
func (o *Outbox) ShowWaiting(ctx context.Context, entry sessions.Entry) {
	defer o.Marked(entry)
	o.Rush.Wait(ctx)
	key := entry.In.Conversation
	if _, ok := o.Adapters[key.Platform].(platform.Marker); ok && !o.markQueued(ctx, entry) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bestEffort)
	defer cancel()
	var open []messages.Delivery
	err := o.Storage.InRead(ctx, func(tx port.Tx) error {
		all, err := tx.Deliveries().EntryDeliveries(ctx, entry.ID)
		open = nil
		for _, d := range all {
			if d.Control && d.State == messages.DeliverySending {
				d.State = messages.DeliveryPending // it was stored just now, and nobody has sent it
				open = append(open, d)
			}
		}
		return err
	})
	if err == nil {
		err = o.SendHeld(ctx, key, open)
	}
	if err != nil {
		o.Log.InfoContext(ctx, "could not show that a message is queued", "conversation", key, "err", err)
	}
}

// markedAfter is how long a message waits before a mark says so: what is begun sooner, as
// after an answer that is just being brought, would only flicker.
const markedAfter = 600 * time.Millisecond

// markQueued marks a message as one that waits, unless its turn begins first. It reports
// whether it has stored the notice of AddWaiting, because the mark is refused for good: a
// chat may allow none, or not this one.
func (o *Outbox) markQueued(ctx context.Context, entry sessions.Entry) (words bool) {
	timer := time.NewTimer(markedAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.Background.Stopping():
	case <-ctx.Done():
		return false
	}
	select {
	case o.marking <- struct{}{}:
		defer func() { <-o.marking }()
	case <-ctx.Done():
		return false
	}
	m := o.announced(entry)
	if m != nil && m.state.Load() != markAhead {
		return false
	}
	if state, ok := o.state(ctx, entry); ok && state != sessions.EntryWaiting {
		return false
	}
	if m != nil && !m.state.CompareAndSwap(markAhead, markBegun) {
		return false
	}
	err := o.tryMark(ctx, entry, platform.MarkQueued)
	if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Forbidden) {
		o.lookAgain(ctx, entry)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, bestEffort)
	defer cancel()
	err = o.Storage.InTx(ctx, func(tx port.Tx) error {
		now, err := tx.Inbox().Entry(ctx, entry.ID)
		if words = err == nil && now.State == sessions.EntryWaiting; !words {
			return err
		}
		return addWaiting(ctx, tx, entry)
	})
	return words && err == nil
}

// state reads how far a message is now.
func (o *Outbox) state(ctx context.Context, entry sessions.Entry) (state sessions.EntryState, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, bestEffort)
	defer cancel()
	err := o.Storage.InRead(ctx, func(tx port.Tx) error {
		now, err := tx.Inbox().Entry(ctx, entry.ID)
		state = now.State
		return err
	})
	if err != nil {
		o.Log.DebugContext(ctx, "could not look whether a message still waits", "entry", entry.ID, "err", err)
	}
	return state, err == nil
}

// lookAgain puts right the mark of a message that waited a moment ago. Meanwhile its turn
// may have begun in another process, which knows nothing of the mark that this one
// was about to put there, and so did not wait for it.
func (o *Outbox) lookAgain(ctx context.Context, entry sessions.Entry) {
	now, ok := o.state(ctx, entry)
	if !ok {
		return
	}
	mark := platform.MarkNone
	switch outcomes := o.MarksOutcomes(entry.In.Conversation.Platform); {
	case outcomes && now == sessions.EntryDone:
		mark = platform.MarkDone
	case outcomes && (now == sessions.EntryFailed || now == sessions.EntryStopped):
		mark = platform.MarkFailed
	case outcomes || now == sessions.EntryWaiting:
		return
	}
	if m := o.announced(entry); m == nil || m.state.CompareAndSwap(markBegun, markOver) {
		o.mark(ctx, entry, mark)
	}
}

// marking is a mark that was announced.
type marking struct {
	state atomic.Int32
	done  chan struct{} // closed when it is there, or never will be
}

// The states of a mark.
const (
	markAhead int32 = iota // announced
	markBegun              // the platform is being asked for it
	markOver               // it is not wanted any more: it never comes, or somebody sees to it that it goes
)

func (o *Outbox) announced(entry sessions.Entry) *marking {
	m, _ := o.marks.Load(entry.ID)
	announced, _ := m.(*marking)
	return announced
}

// WillMark announces that this process is about to mark a message: whoever takes
// the mark away, or puts another one there, waits for that, so that the calls keep their
// order. Announcing it twice changes nothing.
func (o *Outbox) WillMark(entry sessions.Entry) {
	o.marks.LoadOrStore(entry.ID, &marking{done: make(chan struct{})})
}

// WillNotMark takes the announcement back.
func (o *Outbox) WillNotMark(entry sessions.Entry) { o.marks.Delete(entry.ID) }

// Marked says that the mark of a message is there, or never will be.
func (o *Outbox) Marked(entry sessions.Entry) {
	if m, ok := o.marks.LoadAndDelete(entry.ID); ok {
		close(m.(*marking).done) //nolint:errcheck,forcetypeassert // there is nothing else in it
	}
}

// Unmark takes the mark of a message away when its turn begins or is dropped,
// also a mark that a process before this one has put there. One that this process was
// about to put there never comes.
func (o *Outbox) Unmark(entry sessions.Entry) {
	_, ok := o.Adapters[entry.In.Conversation.Platform].(platform.Marker)
	if !ok || !entry.In.Queued || o.MarksOutcomes(entry.In.Conversation.Platform) {
		return
	}
	switch m := o.announced(entry); {
	case m != nil && m.state.Swap(markOver) != markBegun:
		return
	case m == nil && time.Since(entry.AcceptedAt) < markedAfter/2:
		return // another process accepted it, and looks at it before it puts the mark there
	}
	o.markNext(entry, platform.MarkNone)
}

// markNext changes the mark of a message in the background, behind the mark that this
// process is about to put there, and behind the change before: a platform may take several
// calls for one. It does so during a stop, too: nobody does it later.
func (o *Outbox) markNext(entry sessions.Entry, mark platform.Mark) {
	pending := o.announced(entry)
	done := make(chan struct{})
	before, _ := o.changing.Swap(entry.ID, done)
	over := func() {
		close(done)
		o.changing.CompareAndDelete(entry.ID, done)
	}
	runs := o.Background.Follow(func(ctx context.Context) {
		defer over()
		patience, cancel := context.WithTimeout(ctx, bestEffort)
		defer cancel()
		if pending != nil {
			await(patience, pending.done)
		}
		if earlier, ok := before.(chan struct{}); ok {
			await(patience, earlier)
		}
		o.mark(ctx, entry, mark)
	})
	if !runs {
		over()
	}
}

// await waits until something is done or ctx is.
func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// MarksOutcomes reports whether the mark on a message tells how its turn ended.
func (o *Outbox) MarksOutcomes(p messages.Platform) bool {
	_, ok := o.Adapters[p].(platform.Marker)
	return ok && o.Caps(p).OutcomeMarks
}

// marksOutcome reports whether the message of an entry gets marks. That of a pressed button is
// the bot's own: a question that was denied would look as if it had been allowed.
func (o *Outbox) marksOutcome(entry sessions.Entry) bool {
	return entry.In.Kind != messages.KindAction && o.MarksOutcomes(entry.In.Conversation.Platform)
}

// MarkSeen puts the mark on a message that says that it arrived, where the platform has
// such marks. With elsewhere another process may begin its turn, and end it. It is best effort.
func (o *Outbox) MarkSeen(ctx context.Context, entry sessions.Entry, elsewhere bool) {
	if !o.marksOutcome(entry) {
		return
	}
	if m := o.announced(entry); m != nil {
		m.state.CompareAndSwap(markAhead, markBegun)
	}
	o.mark(ctx, entry, platform.MarkSeen)
	if elsewhere {
		o.lookAgain(ctx, entry)
	}
}

// MarkEnd puts the last mark on a message in the background, behind the one that says
// that it arrived.
func (o *Outbox) MarkEnd(entry sessions.Entry, ok bool) {
	mark := platform.MarkDone
	if !ok {
		mark = platform.MarkFailed
	}
	if o.marksOutcome(entry) {
		if m := o.announced(entry); m != nil {
			m.state.Store(markOver)
		}
		o.markNext(entry, mark)
	}
}

// MarkAnswered marks the message that a delivery answers by how its turn ended, if it has: as
// failed if nobody sees the answer.
func (o *Outbox) MarkAnswered(ctx context.Context, p messages.Platform, d messages.Delivery) {
	if d.EventID == "" || !o.MarksOutcomes(p) {
		return
	}
	entry, err := o.answered(ctx, d)
	switch {
	case err != nil:
	case d.State == messages.DeliveryFailed || entry.State == sessions.EntryFailed || entry.State == sessions.EntryStopped:
		o.MarkEnd(entry, false)
	case entry.State == sessions.EntryDone:
		o.MarkEnd(entry, true)
	}
}

// answered returns what a delivery answers.
func (o *Outbox) answered(ctx context.Context, d messages.Delivery) (entry sessions.Entry, err error) {
	err = o.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		entry, err = tx.Inbox().Entry(ctx, d.EventID)
		return err
	})
	if err != nil {
		o.Log.DebugContext(ctx, "could not look up what an answer is for", "delivery", d.ID, "err", err)
	}
	return entry, err
}

// mark asks the platform, which has marks, for one that nobody misses.
func (o *Outbox) mark(ctx context.Context, entry sessions.Entry, mark platform.Mark) {
	_ = o.tryMark(ctx, entry, mark)
}

// tryMark asks the platform, which has marks, for one. What is no message has none.
func (o *Outbox) tryMark(ctx context.Context, entry sessions.Entry, mark platform.Mark) error {
	marker, ok := o.Adapters[entry.In.Conversation.Platform].(platform.Marker)
	if !ok || entry.In.Message == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bestEffort)
	defer cancel()
	err := marker.Mark(ctx, messages.Ref{Conversation: entry.In.Conversation, Message: entry.In.Message}, mark)
	if err != nil {
		o.Log.DebugContext(ctx, "could not mark a message", "conversation", entry.In.Conversation, "err", err)
	}
	return err
}
