package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/assistant"
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
	keep    []messages.Message // added to the session
	over    bool               // calls of its tools that are open fail
	lessons []commit.Lesson
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

// closing ends a run after what the assistant made of it.
type closing struct {
	*run
	out outcome
}

// settleTurn ends a turn in one transaction: its messages, its record, its
// deliveries. It returns the outcome's name for the log.
func (cl closing) settleTurn(p *progress) (string, error) {
	placed, unrecorded := p.finish()
	if errors.Is(cl.out.err, sessions.ErrLeaseLost) {
		if unrecorded && !p.unsure { // whoever goes on does not know of it; else it may have the answer by now
			cl.w.o.outbox.TakeBack(cl.w.ctx, messages.Ref{Conversation: cl.w.conv.Key, Message: placed.Message})
		}
		return "lease_lost", cl.out.err
	}
	e := cl.endingOf()
	s := cl.say(placed, e.word) // before the time for storing it begins: to cut a long text takes its own
	ctx, cancel := cl.w.settling()
	defer cancel()
	c, news, err := cl.end(ctx, placed, unrecorded, &e, s)
	switch {
	case err != nil:
		cl.w.o.windows.forget(cl.d.begun.session.ID)
		return e.outcome, fmt.Errorf("store the end of a turn: %w", err)
	case e.outcome != "answered":
		cl.w.o.windows.forget(cl.d.begun.session.ID)
	default:
		cl.w.o.windows.extend(cl.d.begun.session.ID, e.keep, news.LastSeq)
	}
	if e.word != nil {
		failpoint.Hit(failpoint.AnswerStored)
		if cl.d.begun.job != nil {
			news.DeliverySeq = unknownSeq // it may have changed what was said before
		}
		cl.w.keepOutbox(cl.d.entry, c, news)
	} else {
		cl.w.showParked(ctx, placed, e)
	}
	if e.outcome == "interrupted" {
		return e.outcome, cl.out.err
	}
	return e.outcome, nil
}

// lastWord is what a person reads at the end of a turn, as deliveries in the order in
// which they are sent.
type lastWord struct {
	word           *outbox.Word // nil: there is none
	changed, added []messages.Delivery
	last           messages.DeliveryID // the one that has the buttons
}

// say makes deliveries of a last word, if there is one.
func (cl closing) say(placed *messages.Delivery, word *outbox.Word) lastWord {
	s := lastWord{word: word}
	if word == nil {
		return s
	}
	if placed != nil && placed.Message == "" && placed.State == messages.DeliveryPending {
		cl.w.untried[placed.ID] = true // the turn was too short for a placeholder
	}
	said := *word
	said.Below = cl.told.Load()
	s.changed, s.added, s.last = cl.w.o.outbox.Last(cl.w.conv, cl.d.entry, placed, said, cl.out.took)
	return s
}

// end stores how a turn ends: as one value, unless something has to be read for it. s is
// its last word.
func (cl closing) end(ctx context.Context, placed *messages.Delivery, unrecorded bool, e *ending, s lastWord) (c commit.Changes, news commit.News, err error) {
	asked := e.word != nil && cl.w.asked.Load()
	if e.within == nil && e.after == nil && !asked && !cl.out.host.ranBefore() && !outbox.HasFiles(s.added) {
		c = cl.changes(placed, unrecorded, e, s)
		news, err = cl.w.o.config.Storage.Commit(ctx, cl.w.lease, c)
		return c, news, err
	}
	written := *e
	err = cl.w.hold(ctx, func(tx port.Tx) error {
		*e = written // of an earlier run of this function
		if e.within != nil {
			if err := e.within(ctx, tx, e); err != nil {
				return err
			}
		}
		if asked {
			if err := cl.w.o.cancelQuestions(ctx, tx, cl.d.entry, ""); err != nil {
				return err
			}
		}
		if err := cl.out.host.addEarlier(ctx, tx, cl.out.finished, e.record); err != nil {
			return err
		}
		now := s
		if e.word != s.word { // which is a plan now
			now = cl.say(placed, e.word)
		}
		c = cl.changes(placed, unrecorded, e, now)
		var err error
		if news, err = tx.Leases().Apply(ctx, cl.w.lease, c); err != nil {
			return err
		}
		if err := outbox.AuditFiles(ctx, tx, cl.d.entry.In.Actor(), c.Added); err != nil || e.after == nil {
			return err
		}
		return e.after(ctx, tx, now.last)
	})
	if asked {
		news.DeliverySeq = unknownSeq // questions that were canceled are open deliveries again
	}
	return c, news, err
}

// unknownSeq is no number of a delivery.
const unknownSeq = -1

// changes makes the value of an ending and its last word.
func (cl closing) changes(placed *messages.Delivery, unrecorded bool, e *ending, s lastWord) (c commit.Changes) {
	c.Entry = &commit.Entry{ID: cl.d.entry.ID, EntryUpdate: e.change}
	c.Usage, c.Lessons = cl.out.host.unrecorded(cl.out.finished), e.lessons
	if id := cl.d.begun.session.ID; id != "" {
		c.Session = &commit.Session{ID: id, Run: cl.d.entry.ID, Messages: e.keep, Turn: e.record, Twice: true, Over: e.over}
		c.Run = &commit.Run{SessionID: id, Number: cl.d.begun.run, RunEnd: sessions.RunEnd{
			Status: e.run, Model: cl.out.finished.Model, Error: e.reason, Took: cl.out.took,
		}}
	}
	if s.word != nil {
		c.Deliveries, c.Added = s.changed, slices.Clone(s.added) // which get their numbers with each try
	} else if unrecorded {
		c.Deliveries = []messages.Delivery{*placed}
	}
	return c
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
func (cl closing) endingOf() ending {
	switch {
	case cl.out.err == nil && cl.out.reply != nil:
		return cl.jobDone(*cl.out.reply)
	case cl.out.err == nil:
		return cl.answered()
	case errors.Is(cl.out.err, command.ErrStopped):
		shown := fmt.Sprintf("⏹ Stopped after %s.", wording.Clock(cl.out.took))
		if cl.out.text != "" {
			shown = cl.out.text + "\n\n" + shown
		}
		e := cl.endedEarly("stopped", sessions.EntryStopped, "stopped", shown)
		e.word.Quiet = true // whoever stopped it knows
		return e
	case isCut(cl.out.err):
		return cl.endedEarly("stopped", sessions.EntryStopped, cl.out.err.Error(), cutText(cl.out))
	case waits(cl.out.err):
		return cl.waitsForDecision()
	case errors.Is(cl.out.err, background.ErrShutdown):
		attempts := max(cl.d.entry.Attempts-1, 0) // this one does not count
		return ending{
			outcome: "interrupted", change: sessions.EntryUpdate{Attempts: &attempts}, run: sessions.RunInterrupted,
			parked: "⏸ Restarting. I'll continue this answer afterwards.",
		}
	case errors.Is(cl.out.err, errTurnLimit):
		cl.out.err = fault.Newf(fault.Exhausted, "Stopped: this took longer than the limit of %s.", cl.w.o.config.Live().TurnTimeout)
	}
	// What an agent began it may have done: the person decides whether to repeat it.
	attempts := cl.w.o.config.MaxAttempts
	if cl.w.runsAgent() {
		attempts = min(attempts, agentAttempts)
	}
	begun := cl.w.runsAgent() && (cl.out.text != "" || cl.out.card != "")
	if at, parks := limitEnds(cl.out.err); parks && !begun {
		return cl.parks(at)
	}
	if pause, again := retries(attempts).Next(cl.d.entry.Attempts, cl.out.err); again && !begun {
		return cl.triedAgain(pause, attempts)
	}
	return cl.failed()
}

// answered is the end of a turn that has an answer.
func (cl closing) answered() ending {
	state, none, text := sessions.EntryDone, "", answer(cl.out.rest)
	e := ending{
		outcome: "answered", change: sessions.EntryUpdate{State: &state, Error: &none}, keep: cl.out.rest, run: sessions.RunCompleted,
		record: cl.d.begun.ended(cl.out, wording.Head(text, 500), ""),
		word:   &outbox.Word{Text: text, Card: cl.out.card},
	}
	e.lessons = cl.lesson(cl.d.entry)
	if cl.d.begun.prompt == nil {
		return e
	}
	var proposed *plan.Plan
	e.within = func(ctx context.Context, tx port.Tx, e *ending) error {
		if err := finishPlan(ctx, tx, cl.d.entry, cl.d.begun, plan.Done); err != nil {
			return err
		}
		if err := tx.Sessions().UpdateSession(ctx, cl.d.begun.session.ID, sessions.SessionUpdate{Metadata: sessions.Remember(cl.d.begun.prompt.Meta)}); err != nil {
			return err
		}
		if cl.d.begun.prompt.Meta.Produces != sessions.Plan {
			return nil
		}
		p, err := cl.propose(ctx, tx, text)
		if err != nil {
			return err
		}
		proposed, e.word = &p, &outbox.Word{Card: cl.out.card}
		e.word.Text, e.word.Buttons, err = command.ShowPlan(ctx, tx.Buttons(), p, cl.w.o.outbox.Prefix(cl.w.conv.Key), cl.w.o.outbox.Pages, cl.w.caps().Buttons)
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
func (cl closing) jobDone(reply command.Reply) ending {
	state, none := sessions.EntryDone, ""
	text := reply.Text
	if !reply.Whole { // else it is somebody else's words
		text = cl.w.inPlace(text)
	}
	return ending{
		outcome: "answered", change: sessions.EntryUpdate{State: &state, Error: &none},
		word: &outbox.Word{Text: text, Buttons: reply.Buttons, Whole: reply.Whole},
		within: func(ctx context.Context, tx port.Tx, _ *ending) error {
			_, err := cl.w.o.config.Commands.FollowUp(ctx, tx, command.Request{Entry: cl.d.entry, Conv: cl.w.conv}, reply)
			return err
		},
	}
}

// noAnswer ends a request that was stopped: else the next message asks for the same again.
const noAnswer = "(Stopped before there was an answer.)"

// endedEarly is the end of a turn without an answer. Text that was shown stays in
// the session, so that the next turn knows of it.
func (cl closing) endedEarly(outcome string, state sessions.EntryState, errText, shown string) ending {
	e := ending{
		outcome: outcome, change: sessions.EntryUpdate{State: &state, Error: &errText}, word: &outbox.Word{Text: shown, Failed: true},
		run: runEnded(state), reason: errText,
	}
	if cl.d.begun.session.ID == "" { // a job of ours
		return e
	}
	said := cl.out.text
	if said == "" && state == sessions.EntryStopped {
		said = noAnswer
	}
	if e.keep = cl.out.rest; answer(e.keep) == "" && said != "" {
		e.keep = append(slices.Clip(e.keep), messages.NewText(messages.RoleAssistant, said))
	}
	e.record, e.over = cl.d.begun.ended(cl.out, "", errText), true
	if cl.d.begun.executes {
		e.within = func(ctx context.Context, tx port.Tx, _ *ending) error {
			return finishPlan(ctx, tx, cl.d.entry, cl.d.begun, plan.Approved)
		}
	}
	return e
}

// errorText says what happened and what to do next.
func (cl closing) errorText() string {
	entry := cl.d.entry
	text := cl.w.failed(cl.out.err)
	if entry.Attempts > 1 {
		text += fmt.Sprintf(" Tried %d times.", entry.Attempts)
	}
	saved := "\n\nYour message is saved. "
	if cl.d.begun.job != nil {
		switch fault.KindOf(cl.out.err) {
		case fault.Invalid, fault.Forbidden, fault.Unsupported:
			return text // it was refused, and says why
		default:
			saved = "\n\n"
		}
	}
	if !tooLong(cl.out.err) {
		text += saved + cl.nextStep(cl.out.err) + inLog(entry, cl.out.err)
	}
	if id := cl.d.begun.session.ID; id != "" {
		text += cl.w.o.outbox.Open("/sessions/" + id)
	}
	if cl.out.text != "" {
		text = cl.out.text + "\n\n" + text
	}
	return text
}

// tooLong reports whether a new session is all that helps, which the error says itself:
// asked again, the model would refuse the same again.
func tooLong(err error) bool {
	_, is := errors.AsType[*assistant.OverflowError](err)
	return is
}

// inLog names the entry to ask the operator about if nobody else can say what went wrong.
func inLog(entry sessions.Entry, err error) string {
	if fault.KindOf(err) != fault.Internal {
		return ""
	}
	return fmt.Sprintf(" (Error %s in the operator's log.)", entry.ID[len(entry.ID)-8:])
}

// settling returns the context for the end of a turn: what was done is written
// down even if the process has begun to stop.
func (w *worker) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
}

// nextStep says what a person can do about an error.
func (cl closing) nextStep(err error) string {
	again := cl.w.command("retry")
	if job := cl.d.begun.job; job != nil {
		again = cl.w.command(job.Name) // retry would take back the turn before it
	}
	switch fault.KindOf(err) {
	case fault.Unauthorized, fault.Unsupported:
		return "An owner needs to check the configuration. Then use " + again + "."
	case fault.Invalid:
		return "Ask in another way, or use " + cl.w.command("new") + " for a new session."
	default:
		return "Use " + again + " to try again."
	}
}

// settleStopped ends an entry that was told to stop while nobody worked on it.
func (w *worker) settleStopped(ctx context.Context, tx port.Tx, entry sessions.Entry) error {
	shown := "⏹ Canceled before it started."
	if entry.State == sessions.EntryRunning { // it waited for its next try, or for a decision
		shown = "⏹ Stopped before it was done."
	}
	return w.settleWith(ctx, tx, entry, sessions.EntryStopped, "stopped", shown)
}

// settleWith ends an entry without a turn, in the transaction that found it.
func (w *worker) settleWith(ctx context.Context, tx port.Tx, entry sessions.Entry, state sessions.EntryState, errText, shown string) error {
	placed, err := openPlaceholder(ctx, tx, entry)
	if err != nil {
		return err
	}
	if entry.State == sessions.EntryRunning && entry.SessionID != "" {
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
		if err := w.o.cancelQuestions(ctx, tx, entry, ""); err != nil {
			return err
		}
	}
	c := commit.Changes{Entry: &commit.Entry{ID: entry.ID, EntryUpdate: sessions.EntryUpdate{State: &state, Error: &errText}}}
	if entry.State == sessions.EntryRunning && entry.SessionID != "" {
		c.Session = &commit.Session{
			ID: entry.SessionID, Run: entry.ID, Messages: []messages.Message{messages.NewText(messages.RoleAssistant, noAnswer)}, Over: true,
		}
	}
	c.Deliveries, c.Added, _ = w.o.outbox.Last(w.conv, entry, placed, word, 0)
	w.untry(c.Added)
	if _, err := tx.Leases().Apply(ctx, w.lease, c); err != nil {
		return err
	}
	taken, err := w.takenIn(ctx, tx, entry, entry.SessionID)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		for _, e := range append(taken, entry) {
			w.o.outbox.MarkEnd(e, false)
		}
	})
	return outbox.AuditFiles(ctx, tx, entry.In.Actor(), c.Added)
}
