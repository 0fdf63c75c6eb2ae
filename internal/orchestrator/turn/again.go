package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

const (
	// countsDown is the longest wait for the next try of a turn that its worker stays
	// for, and counts the seconds. For a longer one it gives the conversation back.
	countsDown = 2 * time.Minute

	// parksFor is how long after its message came in a turn may wait for the end of a
	// provider's limit.
	parksFor = 24 * time.Hour

	// countEvery is how often a countdown is shown; platforms with scarcer edits leave
	// some out.
	countEvery = 5 * time.Second

	// lastCount is how much has to be left for another edit of a countdown: what comes
	// next shall not have to wait behind it.
	lastCount = 2 * time.Second
)

// retrying is a turn that failed for a passing reason and waits for its next try.
type retrying struct {
	entry   sessions.Entry
	placed  *messages.Delivery // nil where nothing is shown
	why     string             // for people
	until   time.Time
	next    int // the number of the next try
	of      int // how many tries there are
	buttons []messages.Button
}

// text is what people read d before the next try.
func (r *retrying) text(left time.Duration, how string) string {
	return fmt.Sprintf("⏳ %s Trying again in %s, %d of %d.%s", r.why, wording.Clock(max(left, time.Second)), r.next, r.of, how)
}

// triedAgain puts a turn aside that failed for a passing reason. It runs again
// after wait, with the same placeholder, for as many tries as there are.
func (cl closing) triedAgain(wait time.Duration, tries int) ending {
	at, errText := time.Now().Add(wait), cl.out.err.Error()
	return ending{
		outcome: "retried", change: sessions.EntryUpdate{NextAt: &at, Error: &errText}, run: sessions.RunRunning, reason: errText,
		again: &retrying{
			entry: cl.d.entry, why: cl.w.o.redact(fault.Public(cl.out.err)), until: at, next: cl.d.entry.Attempts + 1, of: tries, buttons: cl.w.againButtons(cl.d.entry, cl.d.begun.session.ID != ""),
		},
		within: cl.ringAt(at),
	}
}

// ringAt has somebody work on the conversation at a time.
func (cl closing) ringAt(at time.Time) func(context.Context, port.Tx, *ending) error {
	return func(ctx context.Context, tx port.Tx, _ *ending) error {
		return cl.w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: cl.w.conv.ID, At: at})
	}
}

// limitEnds returns when a limit ends that the other side named the end of, if that is
// too long for a countdown.
func limitEnds(err error) (at time.Time, ok bool) {
	after, again := fault.Retry(err)
	return time.Now().Add(after), again && after > countsDown
}

// parked begins the note on an entry that waits for the end of a provider's limit.
const parked = "parked: "

// parks puts a turn aside until a provider's limit ends; the attempt does not count.
// It survives restarts as any turn that waits. One that would wait for longer than a
// day after its message fails at once.
func (cl closing) parks(at time.Time) ending {
	until := wording.Moment(at)
	if at.UTC().Format(time.DateOnly) == time.Now().UTC().Format(time.DateOnly) {
		until = at.UTC().Format("15:04 UTC")
	}
	if at.Sub(cl.d.entry.AcceptedAt) > parksFor {
		cl.out.err = &fault.Error{Kind: fault.Exhausted, Err: cl.out.err,
			Public: fault.Public(cl.out.err) + " It does not end within a day of your message."} // it may name the day
		return cl.failed()
	}
	attempts, errText := max(cl.d.entry.Attempts-1, 0), parked+cl.out.err.Error()
	text := fmt.Sprintf("⏳ The provider's limit is reached. I'll continue at %s. %s", until, cl.w.command("stop")+" to cancel.")
	e := ending{
		outcome: "parked", change: sessions.EntryUpdate{Attempts: &attempts, NextAt: &at, Error: &errText},
		run: sessions.RunRunning, reason: errText, parked: text, buttons: cl.w.againButtons(cl.d.entry, cl.d.begun.session.ID != ""),
	}
	ring := cl.ringAt(at)
	e.within = func(ctx context.Context, tx port.Tx, e *ending) error {
		told := strings.HasPrefix(cl.d.entry.Error, parked) || cl.w.o.outbox.ShowsProgress(cl.w.conv.Key.Platform)
		if !told { // nothing else shows it
			if err := outbox.AddNotice(ctx, tx, cl.w.conv.ID, cl.d.entry.ID, text); err != nil {
				return err
			}
		}
		return ring(ctx, tx, e)
	}
	return e
}

// failed is the end of a turn whose error is final.
func (cl closing) failed() ending {
	e := cl.endedEarly("failed", sessions.EntryFailed, cl.out.err.Error(), cl.errorText())
	if cl.d.begun.session.ID == "" {
		return e
	}
	if cl.w.caps().Buttons && !tooLong(cl.out.err) {
		e.word.Buttons = []messages.Button{{ID: command.TurnButton(cl.w.conv.ID, cl.d.entry.Seq, command.Retry), Label: "Retry", Style: messages.ButtonPrimary}}
	}
	e.within = func(ctx context.Context, tx port.Tx, e *ending) error {
		if err := cl.out.host.rests(ctx, tx, e); err != nil {
			return err
		}
		if len(e.keep) == 0 {
			if err := cl.withdraw(ctx, tx); err != nil {
				return err
			}
		}
		return finishPlan(ctx, tx, cl.d.entry, cl.d.begun, plan.Approved)
	}
	return e
}

// withdraw takes the request of a turn out of the message array if nothing came of it:
// whoever asks again asks once.
func (cl closing) withdraw(ctx context.Context, tx port.Tx) error {
	stored, err := tx.Messages().RunMessages(ctx, cl.d.entry.ID)
	if err != nil || len(stored) == 0 {
		return err
	}
	for _, m := range stored {
		if m.Role != messages.RoleUser {
			return nil
		}
	}
	return tx.Messages().WithdrawMessages(ctx, cl.d.begun.session.ID, stored[0].Seq)
}

// againButtons are under what says that the turn of an entry waits for its next try.
// session says that the turn has one, in which another model can be chosen.
func (w *worker) againButtons(entry sessions.Entry, session bool) []messages.Button {
	if !w.caps().Buttons {
		return nil
	}
	button := func(what command.TurnAction, label string) messages.Button {
		return messages.Button{ID: command.TurnButton(w.conv.ID, entry.Seq, what), Label: label}
	}
	all := []messages.Button{button(command.RetryNow, "Retry now")}
	if session && w.hasOtherModel() {
		all = append(all, button(command.OtherModel, "Other model"))
	}
	return append(all, messages.Button{ID: command.StopButton(w.conv.ID, entry.Seq), Label: "Stop", Style: messages.ButtonDanger})
}

// hasOtherModel reports whether another model is configured that the conversation could
// choose.
func (w *worker) hasOtherModel() bool {
	a := w.o.config.Assistants[assistant.Name(w.conv.Assistant)]
	if a == nil || a.Model() == "" {
		return false
	}
	now := w.conv.Settings.Model
	if now == "" {
		now = a.Model()
	}
	for _, t := range w.o.config.Live().Tiers {
		if t.Model != now && (t.Provider == "" || t.Provider == w.conv.Assistant) {
			return true
		}
	}
	return false
}

// command returns how a command is typed in the conversation.
func (w *worker) command(name string) string {
	return "`" + w.o.outbox.Prefix(w.conv.Key) + name + "`"
}

// inPlace is command.InPlace for the conversation.
func (w *worker) inPlace(text string) string {
	return command.InPlace(text, w.o.outbox.Prefix(w.conv.Key), func(name string) bool {
		_, ok := w.o.config.Commands.Find(name)
		return ok
	})
}

// failed says why something failed.
func (w *worker) failed(err error) string { return "✖ " + w.inPlace(w.o.redact(fault.Public(err))) }

// how names the commands of a turn that waits, where there are no buttons for them.
func (w *worker) how() string {
	if w.caps().Buttons {
		return ""
	}
	return fmt.Sprintf(" %s tries now, %s cancels.", w.command("retry"), w.command("stop"))
}

// countDown waits for the next try of a turn and shows how long that is. It returns
// when it is due, or when anything else is to be looked at: a stop, an end of the
// process, or someone who does not want to wait. The conversation stays this worker's,
// so that nobody else edits the message; its slot goes to others meanwhile. If none is
// free within ringPatience then, the worker goes on without: it may settle what was
// stopped, and begins nothing. What was prepared before is too old for the next try.
func (w *worker) countDown(ctx context.Context, handle *turnHandle, t *retrying) {
	w.o.running.waits(handle, t.entry)
	w.slot.yield(w.o.slots)
	defer func() {
		w.retries = nil
		delete(w.ready, t.entry.ID)
		patience, cancel := context.WithTimeout(ctx, ringPatience) // a stop ends that as well
		defer cancel()
		w.slot.resume(patience, w.o.slots)
	}()
	every := max(countEvery, w.caps().EditInterval)
	for {
		left := time.Until(t.until)
		if left <= 0 {
			return
		}
		tick := time.NewTimer(min(left, every))
		select {
		case <-tick.C:
		case <-handle.wake:
		case <-w.o.slots.closing:
		case <-ctx.Done():
		}
		tick.Stop()
		if ctx.Err() != nil || w.o.slots.isClosed() || w.isDue(ctx, t.entry) {
			return
		}
		if left = time.Until(t.until); left > lastCount && w.caps().SilentEdits {
			w.showAgain(ctx, t, left)
		}
	}
}

// isDue reports whether a turn that waits is to be looked at now, as the database has it.
func (w *worker) isDue(ctx context.Context, entry sessions.Entry) bool {
	var now sessions.Entry
	err := w.o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		now, err = tx.Inbox().Entry(ctx, entry.ID)
		return err
	})
	return err == nil && !now.NextAt.After(time.Now())
}

// showAgain edits a countdown, unless the platform has no room for that now.
func (w *worker) showAgain(ctx context.Context, t *retrying, left time.Duration) {
	editor, ok := w.adapter().(platform.Editor)
	if !ok || t.placed == nil || t.placed.Message == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := editor.Edit(ctx, platform.Edit{
		Ref:  messages.Ref{Conversation: w.conv.Key, Message: t.placed.Message},
		Text: t.text(left, w.how()), Buttons: t.buttons, Progress: true,
	})
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.RateLimited) {
		w.o.config.Log.DebugContext(ctx, "could not show a countdown", "err", err)
	}
}

// RetryNow has the turn at the head of a conversation run now that waits for its next
// try, or for the end of a provider's limit. It reports false if none does. seq is the
// number of its entry; 0 is any. Once more it changes nothing.
func (o *Turns) RetryNow(ctx context.Context, conv sessions.Conversation, seq int64) (bool, error) {
	var waited bool
	err := o.config.Storage.InTx(ctx, func(tx port.Tx) error {
		waited = false
		if _, _, err := tx.Conversations().GetOrCreateConversation(ctx, conv.Key, conv.Assistant); err != nil { // locks it
			return err
		}
		head, ok, err := waitingTurn(ctx, tx, conv.ID)
		if err != nil || !ok || seq != 0 && head.Seq != seq {
			return err
		}
		waited = true
		now := time.Now()
		return tx.Inbox().UpdateEntry(ctx, head.ID, sessions.EntryUpdate{NextAt: &now})
	})
	if err != nil || !waited {
		return false, err
	}
	o.running.wake(conv.ID)
	_ = o.Ring(ctx, conv.ID) // a worker that counts down holds the lease; else the sweep rings
	return true, nil
}

// waitingTurn returns the entry at the head of a conversation if its turn waits for its
// next try, and not for a decision.
func waitingTurn(ctx context.Context, tx port.Tx, conversationID string) (head sessions.Entry, ok bool, err error) {
	head, ok, err = tx.Inbox().NextEntry(ctx, conversationID)
	if err != nil || !ok || head.Error == "" || !head.NextAt.After(time.Now()) {
		return head, false, err
	}
	open, err := tx.Questions().EntryApprovals(ctx, head.ID)
	return head, err == nil && len(open) == 0, err
}

// Waiting reports whether the turn at the head of a conversation waits for its next try;
// it is not looked up, and false, unless asked.
func (o *Turns) Waiting(ctx context.Context, tx port.Tx, conversationID string, asked bool) (bool, error) {
	if !asked {
		return false, nil
	}
	_, ok, err := waitingTurn(ctx, tx, conversationID)
	return ok, err
}

// showParked shows that a turn waits, in its placeholder, which is posted for that if
// the turn was too short to need one. It waits its turn with the platform: somebody waits
// for this. It is best effort.
func (w *worker) showParked(ctx context.Context, placed *messages.Delivery, e ending) {
	text, buttons := e.parked, e.buttons
	w.retries = e.again
	if t := e.again; t != nil {
		t.placed = placed
		text, buttons = t.text(time.Until(t.until), w.how()), t.buttons
	}
	editor, ok := w.adapter().(platform.Editor)
	if !ok || placed == nil || text == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if placed.Message == "" {
		d := *placed
		d.Placeholder = text
		_, err := w.o.outbox.Place(ctx, w.conv.Key, &d, func(ctx context.Context, d messages.Delivery, moved *outbox.Move) error {
			d.Placeholder = placed.Placeholder
			return w.hold(ctx, func(tx port.Tx) error {
				if err := moved.Apply(ctx, tx); err != nil {
					return err
				}
				return tx.Deliveries().UpdateDelivery(ctx, d)
			})
		})
		if err != nil {
			w.o.config.Log.DebugContext(ctx, "could not show that a turn waits", "err", err)
			return
		}
		placed.Message, placed.State = d.Message, d.State
		if len(buttons) == 0 && w.caps().SilentEdits {
			return // else it says nothing yet
		}
	}
	err := editor.Edit(ctx, platform.Edit{
		Ref: messages.Ref{Conversation: w.conv.Key, Message: placed.Message}, Text: text, Buttons: buttons,
		Progress: e.again == nil && len(buttons) == 0,
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		w.o.config.Log.DebugContext(ctx, "could not show that a turn waits", "err", err)
	}
}
