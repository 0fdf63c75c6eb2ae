package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// agentAttempts is how often the turn of an external agent is tried. Agents
// repeat refused requests to their provider themselves.
const agentAttempts = 2

// retries is when a turn that failed runs again.
func retries(tries int) fault.Policy {
	return fault.Policy{Longest: time.Minute, Tries: tries}
}

// ending is how a turn ends, or is put aside to go on later.
type ending struct {
	outcome string // for the log and the metrics
	change  sessions.EntryUpdate
	keep    []messages.Message   // added to the session
	record  *sessions.TurnRecord // nil if the turn goes on later
	run     sessions.RunStatus   // running if the turn is put aside
	reason  string               // why the run did not come to an answer, for the operator
	word    *outbox.Word         // what the person reads; nil if the turn goes on later
	parked  string               // what the placeholder says until it goes on
	buttons []messages.Button    // under that
	again   *retrying            // how it is tried again, if it is soon

	// within does what else belongs to the end, and may change the ending; after is
	// told which message has the last word. Both run in its transaction. Nil: nothing.
	within func(ctx context.Context, tx port.Tx, e *ending) error
	after  func(ctx context.Context, tx port.Tx, last messages.DeliveryID) error
}

// settleTurn ends a turn in one transaction: its messages, its record, its
// deliveries. It returns the outcome's name for the log.
func (r *run) settleTurn(out outcome, p *progress) (string, error) {
	placed, unrecorded := p.finish()
	if errors.Is(out.err, sessions.ErrLeaseLost) {
		if unrecorded && !p.unsure { // whoever goes on does not know of it; else it may have the answer by now
			r.w.o.outbox.TakeBack(r.w.ctx, messages.Ref{Conversation: r.w.conv.Key, Message: placed.Message})
		}
		return "lease_lost", out.err
	}
	ctx, cancel := r.w.settling()
	defer cancel()
	e := r.endingOf(out)
	c, news, err := r.end(ctx, out, placed, unrecorded, &e)
	switch {
	case err != nil:
		r.w.o.windows.forget(r.d.begun.session.ID)
		return e.outcome, fmt.Errorf("store the end of a turn: %w", err)
	case e.outcome != "answered":
		r.w.o.windows.forget(r.d.begun.session.ID)
	default:
		r.w.o.windows.extend(r.d.begun.session.ID, e.keep, news.LastSeq)
	}
	if e.word != nil {
		failpoint.Hit(failpoint.AnswerStored)
		r.w.keepOutbox(r.d.entry, c, news)
	} else {
		r.w.showParked(ctx, placed, e)
	}
	if e.outcome == "interrupted" {
		return e.outcome, out.err
	}
	return e.outcome, nil
}

// end stores how a turn ends: as one value, unless something has to be read for it.
func (r *run) end(ctx context.Context, out outcome, placed *messages.Delivery, unrecorded bool, e *ending) (c commit.Changes, news commit.News, err error) {
	asked := e.word != nil && r.w.asked.Load()
	if c, _ = r.changes(out, placed, unrecorded, e); e.within == nil && e.after == nil && !asked && !out.host.ranBefore() && !outbox.HasFiles(c.Added) {
		news, err = r.w.o.config.Storage.Commit(ctx, r.w.lease, c)
		return c, news, err
	}
	written := *e
	err = r.w.hold(ctx, func(tx port.Tx) error {
		*e = written // of an earlier run of this function
		if e.within != nil {
			if err := e.within(ctx, tx, e); err != nil {
				return err
			}
		}
		if asked {
			if err := r.w.o.cancelQuestions(ctx, tx, r.d.entry); err != nil {
				return err
			}
		}
		if err := out.host.addEarlier(ctx, tx, out.finished, e.record); err != nil {
			return err
		}
		var last messages.DeliveryID
		c, last = r.changes(out, placed, unrecorded, e)
		var err error
		if news, err = tx.Leases().Apply(ctx, r.w.lease, c); err != nil {
			return err
		}
		if err := outbox.AuditFiles(ctx, tx, r.d.entry.In, c.Added); err != nil || e.after == nil {
			return err
		}
		return e.after(ctx, tx, last)
	})
	if asked {
		news.DeliverySeq = unknownSeq // questions that were canceled are open deliveries again
	}
	return c, news, err
}

// unknownSeq is no number of a delivery.
const unknownSeq = -1

// changes makes the value of an ending. last is the delivery that has the buttons.
func (r *run) changes(out outcome, placed *messages.Delivery, unrecorded bool, e *ending) (c commit.Changes, last messages.DeliveryID) {
	c.Entry = &commit.Entry{ID: r.d.entry.ID, EntryUpdate: e.change}
	c.Usage = out.host.unrecorded(out.finished)
	if id := r.d.begun.session.ID; id != "" && (e.record != nil || len(e.keep) > 0) {
		c.Session = &commit.Session{ID: id, Run: r.d.entry.ID, Messages: e.keep, Turn: e.record}
	}
	if id := r.d.begun.session.ID; id != "" {
		c.Run = &commit.Run{SessionID: id, Number: r.d.begun.run, RunEnd: sessions.RunEnd{
			Status: e.run, Model: out.finished.Model, Error: e.reason, Took: out.took,
		}}
	}
	if e.word != nil {
		if placed != nil && placed.Message == "" && placed.State == messages.DeliveryPending {
			r.w.untried[placed.ID] = true // the turn was too short for a placeholder
		}
		c.Deliveries, c.Added, last = r.w.o.outbox.Last(r.w.conv, r.d.entry, placed, *e.word, out.took)
	} else if unrecorded {
		c.Deliveries = []messages.Delivery{*placed}
	}
	return c, last
}

// keepOutbox keeps what an ended turn has to send, if nobody else has added
// deliveries since it began: then it goes out without being read again.
func (w *worker) keepOutbox(entry sessions.Entry, c commit.Changes, news commit.News) {
	w.untry(c.Added)
	if news.DeliverySeq != w.conv.DeliverySeq+int64(len(c.Added)) {
		return
	}
	w.conv.DeliverySeq = news.DeliverySeq
	w.outbox = &outgoing{open: slices.Concat(c.Deliveries, c.Added), seq: entry.Seq}
}

// untry remembers deliveries that this worker stores: it is the one who sends them, and so
// knows that nobody has. Whoever finds them later has to look them up.
func (w *worker) untry(added []messages.Delivery) {
	for _, d := range added {
		w.untried[d.ID] = true
	}
}

// endingOf decides how a turn ends after what the assistant made of it.
func (r *run) endingOf(out outcome) ending {
	switch {
	case out.err == nil && out.reply != nil:
		return r.jobDone(*out.reply)
	case out.err == nil:
		return r.answered(out)
	case errors.Is(out.err, errStopped):
		shown := fmt.Sprintf("⏹ Stopped after %s.", wording.Clock(out.took))
		if out.text != "" {
			shown = out.text + "\n\n" + shown
		}
		e := r.endedEarly(out, "stopped", sessions.EntryStopped, "stopped", shown)
		e.word.Quiet = true // whoever stopped it knows
		return e
	case isCut(out.err):
		return r.endedEarly(out, "stopped", sessions.EntryStopped, out.err.Error(), cutText(out))
	case waits(out.err):
		return r.waitsForDecision(out)
	case errors.Is(out.err, background.ErrShutdown):
		attempts := max(r.d.entry.Attempts-1, 0) // this one does not count
		return ending{
			outcome: "interrupted", change: sessions.EntryUpdate{Attempts: &attempts}, run: sessions.RunInterrupted,
			parked: "⏸ Restarting. I'll continue this answer afterwards.",
		}
	case errors.Is(out.err, errTurnLimit):
		out.err = fault.Newf(fault.Exhausted, "Stopped: this took longer than the limit of %s.", r.w.o.config.Live().TurnTimeout)
	}
	// What an agent began it may have done: the person decides whether to repeat it.
	attempts := r.w.o.config.MaxAttempts
	if r.w.runsAgent() {
		attempts = min(attempts, agentAttempts)
	}
	begun := r.w.runsAgent() && (out.text != "" || out.card != "")
	if at, parks := limitEnds(out.err); parks && !begun {
		return r.parks(out, at)
	}
	if pause, again := retries(attempts).Next(r.d.entry.Attempts, out.err); again && !begun {
		return r.triedAgain(out, pause)
	}
	return r.failed(out)
}

// answered is the end of a turn that has an answer.
func (r *run) answered(out outcome) ending {
	state, none, text := sessions.EntryDone, "", answer(out.rest)
	e := ending{
		outcome: "answered", change: sessions.EntryUpdate{State: &state, Error: &none}, keep: out.rest, run: sessions.RunCompleted,
		record: r.d.begun.ended(out, wording.Head(text, 500), ""),
		word:   &outbox.Word{Text: text, Card: out.card},
	}
	if r.d.begun.prompt == nil && !r.teaches() {
		return e
	}
	var proposed *plan.Plan
	e.within = func(ctx context.Context, tx port.Tx, e *ending) error {
		if err := r.note(ctx, tx, r.d.entry); err != nil || r.d.begun.prompt == nil {
			return err
		}
		if err := finishPlan(ctx, tx, r.d.entry, r.d.begun, plan.Done); err != nil {
			return err
		}
		if err := tx.Sessions().UpdateSession(ctx, r.d.begun.session.ID, sessions.SessionUpdate{Metadata: sessions.Remember(r.d.begun.prompt.Meta)}); err != nil {
			return err
		}
		if r.d.begun.prompt.Meta.Produces != sessions.Plan {
			return nil
		}
		p, err := r.propose(ctx, tx, text)
		if err != nil {
			return err
		}
		proposed, e.word = &p, &outbox.Word{Card: out.card}
		e.word.Text, e.word.Buttons, err = command.ShowPlan(ctx, tx.Buttons(), p, r.w.o.outbox.Prefix(r.w.conv.Key), r.w.o.outbox.Pages, r.w.caps().Buttons)
		return err
	}
	e.after = func(ctx context.Context, tx port.Tx, last messages.DeliveryID) error {
		if proposed == nil {
			return nil
		}
		proposed.DeliveryID = string(last)
		return tx.Proposals().SettlePlan(ctx, *proposed)
	}
	return e
}

// ended is the record of a turn that ended with a result or an error.
func (b begunTurn) ended(out outcome, result, errText string) *sessions.TurnRecord {
	r := b.record(sessions.TurnRecord{
		Model: out.finished.Model, Result: result, Error: errText,
		InputTokens: out.finished.Usage.InputTokens, OutputTokens: out.finished.Usage.OutputTokens,
	})
	return &r
}

// jobDone is the end of a job of ours.
func (r *run) jobDone(reply command.Reply) ending {
	state, none := sessions.EntryDone, ""
	text := command.InPlace(reply.Text, r.w.o.outbox.Prefix(r.w.conv.Key), func(name string) bool {
		_, ok := r.w.o.config.Commands.Find(name)
		return ok
	})
	if reply.Whole {
		text = reply.Text // somebody else's words
	}
	return ending{
		outcome: "answered", change: sessions.EntryUpdate{State: &state, Error: &none},
		word: &outbox.Word{Text: text, Buttons: reply.Buttons, Whole: reply.Whole},
		within: func(ctx context.Context, tx port.Tx, _ *ending) error {
			_, err := r.w.o.config.Commands.FollowUp(ctx, tx, command.Request{Entry: r.d.entry, Conv: r.w.conv}, reply)
			return err
		},
	}
}

// endedEarly is the end of a turn without an answer. Text that was shown stays in
// the session, so that the next turn knows of it.
func (r *run) endedEarly(out outcome, outcome string, state sessions.EntryState, errText, shown string) ending {
	e := ending{
		outcome: outcome, change: sessions.EntryUpdate{State: &state, Error: &errText}, word: &outbox.Word{Text: shown, Failed: true},
		run: runEnded(state), reason: errText,
	}
	if r.d.begun.session.ID == "" { // a job of ours
		return e
	}
	if e.keep = out.rest; answer(e.keep) == "" && out.text != "" {
		e.keep = append(slices.Clip(e.keep), messages.NewText(messages.RoleAssistant, out.text))
	}
	e.record = r.d.begun.ended(out, "", errText)
	e.within = func(ctx context.Context, tx port.Tx, _ *ending) error {
		if err := endCalls(ctx, tx, r.d.begun.session.ID); err != nil {
			return err
		}
		return finishPlan(ctx, tx, r.d.entry, r.d.begun, plan.Approved)
	}
	return e
}

// errorText says what happened and what to do next.
func (r *run) errorText(out outcome) string {
	entry := r.d.entry
	text := "✖ " + fault.Public(out.err)
	if entry.Attempts > 1 {
		text += fmt.Sprintf(" Tried %d times.", entry.Attempts)
	}
	text += "\n\nYour message is saved. " + r.nextStep(out.err)
	if fault.KindOf(out.err) == fault.Internal {
		text += fmt.Sprintf(" (Error %s in the operator's log.)", entry.ID[len(entry.ID)-8:])
	}
	if id := r.d.begun.session.ID; id != "" {
		text += r.w.o.outbox.Open("/sessions/" + id)
	}
	if out.text != "" {
		text = out.text + "\n\n" + text
	}
	return text
}

// settling returns the context for the end of a turn: what was done is written
// down even if the process has begun to stop.
func (w *worker) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
}

// nextStep says what a person can do about an error.
func (r *run) nextStep(err error) string {
	again := r.w.command("retry")
	switch fault.KindOf(err) {
	case fault.Unauthorized, fault.Unsupported:
		return "An owner needs to check the configuration. Then use " + again + "."
	case fault.Exhausted:
		return r.w.command("new") + " starts a new session; " + again + " tries again."
	case fault.Invalid:
		return "Ask in another way, or use " + r.w.command("new") + " for a new session."
	default:
		return "Use " + again + " to try again."
	}
}

// settleStopped ends an entry that was told to stop while nobody worked on it.
func (w *worker) settleStopped(ctx context.Context, tx port.Tx, entry sessions.Entry) error {
	return w.settleWith(ctx, tx, entry, sessions.EntryStopped, "stopped", "⏹ Canceled before it started.")
}

// settleWith ends an entry without a turn, in the transaction that found it.
func (w *worker) settleWith(ctx context.Context, tx port.Tx, entry sessions.Entry, state sessions.EntryState, errText, shown string) error {
	placed, err := openPlaceholder(ctx, tx, entry)
	if err != nil {
		return err
	}
	if entry.State == sessions.EntryRunning && entry.SessionID != "" {
		if err := endCalls(ctx, tx, entry.SessionID); err != nil {
			return err
		}
		if err := releasePlan(ctx, tx, w.conv.ID); err != nil {
			return err
		}
		if err := tx.Sessions().EndOpenRun(ctx, entry.SessionID, entry.ID, sessions.RunEnd{Status: runEnded(state), Error: errText}); err != nil {
			return err
		}
	}
	return w.settleEntry(ctx, tx, entry, state, errText, placed, outbox.Word{Text: shown, Quiet: true})
}

// runEnded is the status of a run whose entry ended in a state without an answer.
func runEnded(state sessions.EntryState) sessions.RunStatus {
	if state == sessions.EntryFailed {
		return sessions.RunFailed
	}
	return sessions.RunStopped
}

// endCalls ends the calls of a session whose turn is over: what was running may
// have had its effect, what had not begun has none.
func endCalls(ctx context.Context, tx port.Tx, session string) error {
	if _, err := tx.Calls().FailExecuting(ctx, session, "interrupted, may have run"); err != nil {
		return err
	}
	_, err := tx.Calls().FailInterrupted(ctx, session, "not run: the turn ended before")
	return err
}

// releasePlan takes the plan back that a turn was carrying out when it ended
// without one of its own.
func releasePlan(ctx context.Context, tx port.Tx, conversationID string) error {
	p, ok, err := tx.Proposals().LatestPlan(ctx, conversationID)
	if err != nil || !ok || p.State != plan.Executing {
		return err
	}
	p.State = plan.Approved
	return tx.Proposals().SettlePlan(ctx, p)
}

// settleEntry closes an entry that has no turn now, in the transaction that found
// it, and stores the deliveries of its last word.
func (w *worker) settleEntry(ctx context.Context, tx port.Tx, entry sessions.Entry, state sessions.EntryState, errText string, placed *messages.Delivery, word outbox.Word) error {
	if w.o.asks() {
		if err := w.o.cancelQuestions(ctx, tx, entry); err != nil {
			return err
		}
	}
	c := commit.Changes{Entry: &commit.Entry{ID: entry.ID, EntryUpdate: sessions.EntryUpdate{State: &state, Error: &errText}}}
	c.Deliveries, c.Added, _ = w.o.outbox.Last(w.conv, entry, placed, word, 0)
	w.untry(c.Added)
	if _, err := tx.Leases().Apply(ctx, w.lease, c); err != nil {
		return err
	}
	tx.AfterCommit(func() { w.o.outbox.MarkEnd(entry, false) })
	return outbox.AuditFiles(ctx, tx, entry.In, c.Added)
}
