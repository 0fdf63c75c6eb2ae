package turn

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// worker drains the inbox of one conversation while it holds its lease. Nobody
// else writes the conversation's turn lane meanwhile, so it keeps what it knows and
// reads again only what the numbers on the conversation's row say has moved.
type worker struct {
	o       *Turns
	lease   sessions.Lease
	conv    sessions.Conversation        // as of the last step; not written while a turn runs
	ctx     context.Context              // ends when the lease is lost or the process must stop
	sent    []sending                    // sent but not yet recorded; the next transaction records them
	ready   map[string]ready             // what was prepared for entries, by id
	untried map[messages.DeliveryID]bool // stored as sending, but not sent by anybody yet
	unsent  string                       // what the platform refused last
	turns   int                          // turns run since the lease was claimed
	tries   int                          // how often the last of them has begun
	retries *retrying                    // the turn that this worker put aside a moment ago; else nil
	slot    *slotHold                    // nil outside of workOn
	mayGet  *NeedsClone                  // what somebody has allowed to clone for the next entry; nil for nothing
	asked   atomic.Bool                  // a person may have been asked something in this turn

	begun    *firstTurn           // what was begun with the lease; nil afterwards
	open     *sessions.OpenWork   // what was read with the claim, in its transaction; else nil
	calm     *lastNumbers         // nothing was open then but the entry that is being prepared; else nil
	numbered int                  // numbers of deliveries that Accept has kept
	stored   *sessions.Checkpoint // with which Accept has stored the entry as running, if it has
	outbox   *outgoing            // what the turn that just ended has to send, if nothing else is open
}

// outgoing is all that is open in a conversation after a turn.
type outgoing struct {
	open []messages.Delivery // in order
	seq  int64               // of the entry that was answered
}

// lastNumbers are the last ones that were given out in a conversation. While they stay the
// same, nothing came in, and nothing is to go out that was not before.
type lastNumbers struct{ inbox, deliveries int64 }

func (w *worker) numbers() lastNumbers { return lastNumbers{w.conv.InboxSeq, w.conv.DeliverySeq} }

// newWorker returns a worker for a conversation whose lease is about to be
// claimed, or was.
func (o *Turns) newWorker(conv sessions.Conversation) *worker {
	return &worker{o: o, conv: conv, slot: &slotHold{}, untried: make(map[messages.DeliveryID]bool)}
}

// workOn is a worker's life. It owns a slot and a lease and gives both back.
func (o *Turns) workOn(ctx context.Context, w *worker) {
	failpoint.Hit(failpoint.Claimed)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.ctx = ctx
	defer w.slot.release(o.slots)
	o.holders.Store(w, cancel)
	defer o.holders.Delete(w)
	beat := make(chan struct{})
	go func() {
		defer close(beat)
		w.heartbeat(cancel)
	}()
	defer func() {
		cancel(nil)
		<-beat
	}()
	log := o.config.Log.With("conversation_id", w.lease.ConversationID)
	// After a panic the lease runs out by itself; crashAttempts bounds repeats.
	defer background.Recover(ctx, o.config.Log, "worker", nil)
	for {
		more, err := w.step()
		switch {
		case err == nil && more:
			continue
		case err == nil:
			return
		case errors.Is(err, sessions.ErrLeaseLost):
			o.config.Metrics.LeaseLost()
			log.WarnContext(ctx, "lost the lease; another process has this conversation")
			return
		case context.Cause(ctx) != nil:
			w.abandon()
			return
		default:
			// The lease runs out by itself and the sweep rings again: the pause is
			// the backoff. A database that was away has it end sooner.
			log.ErrorContext(ctx, "work on a conversation failed; it is taken up again", "err", err)
			if fault.Passing(err) {
				w.giveUpAfter(retries(0).Pause(w.tries))
			}
			return
		}
	}
}

// step does one thing: deliver what is open, or work on the oldest entry. It
// reports false when the lease has been given back.
func (w *worker) step() (more bool, err error) {
	if out := w.outbox; out != nil {
		w.outbox = nil
		return w.sendRest(*out)
	}
	first := w.begun
	if w.begun = nil; first == nil {
		first = w.o.expect(w.lease.ConversationID) // before the turn is taken from the inbox, so that no stop falls between the two
		first.decision, err = w.take()
	}
	turnCtx, cancel := context.WithCancelCause(w.ctx)
	defer cancel(nil)
	w.o.running.arm(first.handle, cancel)
	defer w.o.forget(first)
	if err != nil {
		return false, err
	}
	return w.act(turnCtx, first)
}

// sendRest sends what a turn left, straight after it, and gives the lease up if
// nothing came in meanwhile.
func (w *worker) sendRest(out outgoing) (more bool, err error) {
	if err := w.deliverAll(out.open); err != nil {
		return false, err
	}
	var sent []messages.Delivery
	for _, d := range w.sent {
		if d.State != messages.DeliverySent && d.State != messages.DeliveryFailed {
			return true, nil // it has to wait
		}
		sent = append(sent, d.Delivery)
	}
	news, err := w.o.config.Storage.Commit(w.ctx, w.lease, commit.Changes{
		Deliveries: sent, Release: &commit.Release{InboxSeq: out.seq, DeliverySeq: w.conv.DeliverySeq},
	})
	if err != nil {
		return false, fmt.Errorf("record what was sent: %w", err)
	}
	w.sent = nil
	return !news.Released, nil
}

// deliverAll sends deliveries in order until one has to wait. The
// transaction of the next step records what became of them.
func (w *worker) deliverAll(open []messages.Delivery) error {
	for _, d := range open {
		begun := d.Text
		record := func(ctx context.Context, d messages.Delivery, moved *outbox.Move) error {
			return w.hold(ctx, func(tx port.Tx) error {
				if err := moved.Apply(ctx, tx); err != nil {
					return err
				}
				return tx.Deliveries().RecordSending(ctx, d, begun)
			})
		}
		switch {
		case w.untried[d.ID]:
			d.State = messages.DeliveryPending // so that it is not looked up for nothing
			delete(w.untried, d.ID)
		case d.State == messages.DeliveryPending:
			// It was not sent yet, or refused. From here on nobody else may think so.
			trying := d
			trying.State = messages.DeliverySending
			if err := record(w.ctx, trying, nil); err != nil {
				return err
			}
		}
		key, done, err := w.o.outbox.Send(w.ctx, w.conv.Key, &d, record)
		w.conv.Key = key
		if err != nil {
			return err
		}
		w.sent = append(w.sent, sending{d, begun})
		if d.State == messages.DeliveryFailed {
			w.unsent = begun
		}
		if !done {
			return nil // the rest waits behind it
		}
	}
	return nil
}

// markFound marks what was answered by deliveries that this worker found and sent: the process
// that made them may have died before it did so.
func (w *worker) markFound() {
	if w.turns > 0 {
		return // they are of its own turns
	}
	marked := make(map[string]bool)
	for _, s := range w.sent {
		if s.State == messages.DeliverySent && s.Final && !s.Control && !marked[s.EventID] {
			marked[s.EventID] = true
			w.o.outbox.MarkAnswered(w.ctx, w.conv.Key.Platform, s.Delivery)
		}
	}
}

// take decides what to do next, in one transaction that also records what was
// sent.
func (w *worker) take() (next decision, err error) {
	before := w.calm
	err = w.o.config.Storage.InTx(w.ctx, func(tx port.Tx) (err error) {
		w.calm = nil
		if w.conv, err = tx.Leases().HoldLease(w.ctx, w.lease); err != nil {
			return err
		}
		if err := w.recordSent(w.ctx, tx); err != nil {
			return err
		}
		next, err = w.decide(w.ctx, tx, before != nil && *before == w.numbers())
		return err
	})
	if err != nil {
		return next, fmt.Errorf("take the next entry: %w", err)
	}
	w.sent = nil
	return next, nil
}

// act does what was decided.
func (w *worker) act(ctx context.Context, first *firstTurn) (more bool, err error) {
	next, handle := first.decision, first.handle
	switch next.what {
	case leave:
		return false, nil
	case deliver:
		err := w.deliverAll(next.open)
		w.markFound()
		return true, err
	case prepare:
		preparation{w}.prepare(ctx, handle, next)
		return true, nil
	case settled:
		return true, nil
	case putOff:
		w.showParked(ctx, next.begun.placeholder, ending{again: next.again})
		if time.Until(next.again.until) > countsDown {
			w.retries = nil // the conversation is given back
		}
		return true, nil
	case again:
		w.countDown(ctx, handle, w.retries)
		return true, nil
	case ahead:
		return true, w.o.config.Commands.RunNow(ctx, next.entry)
	case refused:
		if next.tell {
			w.o.outbox.RefuseUnadmitted(next.entry.In, next.why)
		}
		return true, nil
	default:
		w.o.running.begin(handle, next.entry, next.begun.role, next.access)
		return true, (&run{w: w, d: next}).runTurn(ctx)
	}
}

// recordSent writes down deliveries that were sent since the last transaction.
func (w *worker) recordSent(ctx context.Context, tx port.Tx) error {
	for _, d := range w.sent {
		if err := tx.Deliveries().RecordSending(ctx, d.Delivery, d.begun); err != nil {
			return err
		}
	}
	return nil
}

// sending is a delivery on its way.
type sending struct {
	messages.Delivery
	begun string // its text when it was taken up; a question may get another one meanwhile
}

// what is the kind of a decision.
type what int

const (
	leave   what = iota // nothing to do now: the lease is released
	deliver             // open deliveries come first
	prepare             // files, directory and prompt have to be read before the turn
	settled             // the entry was settled without a turn
	refused             // the platform does not admit its sender
	putOff              // the turn could not be prepared, and waits for its next try
	again               // the turn that was put aside is counted down to
	ahead               // a command that was sent before the entry runs first
	turn                // the turn has begun
)

// decision is what a step does.
type decision struct {
	what  what
	open  []messages.Delivery
	entry sessions.Entry
	begun begunTurn
	tell  bool  // the sender is told that they may not
	why   error // why that is not known
	again *retrying

	access int64 // the change of access up to which the sender was judged
}

// decide looks at the conversation, whose row is locked, and begins what is to
// be done. Calm says that nothing else is open there than an entry.
func (w *worker) decide(ctx context.Context, tx port.Tx, calm bool) (decision, error) {
	now := time.Now()
	var (
		open []messages.Delivery
		wait time.Time
		err  error
	)
	if !calm && (w.open == nil || w.open.Deliveries) {
		if open, wait, err = w.openDeliveries(ctx, tx, now); err != nil {
			return decision{}, err
		}
	}
	if len(open) > 0 {
		return decision{what: deliver, open: open}, nil
	}
	if !wait.IsZero() {
		return w.leaveUntil(ctx, tx, wait)
	}
	entry, ok, err := tx.Inbox().NextEntry(ctx, w.conv.ID)
	if err != nil {
		return decision{}, err
	}
	if !ok {
		return decision{what: leave}, w.release(ctx, tx)
	}
	if entry.In.Kind == messages.KindUnreadable {
		entry.In.Conversation, entry.In.Queued = w.conv.Key, true // it may have the mark that says so
	}
	stopped := entry.Seq <= w.conv.StopSeq
	switch {
	case !stopped && entry.NextAt.After(now) && w.retries != nil && w.retries.entry.ID == entry.ID && !w.o.slots.isClosed():
		return decision{what: again, entry: entry}, nil
	case !stopped && entry.NextAt.After(now):
		return w.leaveUntil(ctx, tx, entry.NextAt)
	case !stopped && w.turns > 0 && w.o.slots.contended(), // others had to wait for this one
		!stopped && w.slot.isGone(),      // they have its slot
		!stopped && w.o.slots.isClosed(): // the process stops and begins nothing
		return w.leaveUntil(ctx, tx, time.Time{})
	}
	if stopped {
		return decision{what: settled}, w.settleStopped(ctx, tx, entry)
	}
	if entry.State == sessions.EntryWaiting && !calm && (w.open == nil || w.open.Control) {
		if first, ok, err := w.o.nextAhead(ctx, tx, w.conv.ID, entry.Seq); err != nil || ok {
			return decision{what: ahead, entry: first}, err
		}
	}
	return beginning{w, tx, entry}.beginEntry(ctx)
}

// leaveUntil releases the lease and asks to be woken at a time (zero: now,
// behind those who wait for a slot).
func (w *worker) leaveUntil(ctx context.Context, tx port.Tx, at time.Time) (decision, error) {
	if err := w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: w.conv.ID, At: at}); err != nil {
		return decision{}, err
	}
	return decision{what: leave}, w.release(ctx, tx)
}

// openDeliveries returns the deliveries to send now, in order. If the first of
// them has to wait, wait says until when. Answers to control commands are left
// to those who run them, unless they are overdue.
func (w *worker) openDeliveries(ctx context.Context, tx port.Tx, now time.Time) (open []messages.Delivery, wait time.Time, err error) {
	all, err := tx.Deliveries().AllOpenDeliveries(ctx, w.conv.ID)
	if err != nil {
		return nil, wait, err
	}
	for _, d := range all {
		if d.Control && !d.NextAt.After(now) {
			open = append(open, d)
		}
	}
	for _, d := range all {
		if d.Control || !d.Final {
			continue // or the placeholder of a turn that is not over
		}
		if d.NextAt.After(now) {
			if len(open) == 0 {
				wait = d.NextAt
			}
			break
		}
		open = append(open, d)
	}
	return open, wait, nil
}
