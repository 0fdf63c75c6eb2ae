package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// agentAttempts is how often the turn of an external agent is tried. Agents
// repeat refused requests to their provider themselves.
const agentAttempts = 2

// notifyAfter is how long a turn may take until its answer is a new message:
// an edit of the placeholder notifies nobody.
const notifyAfter = 45 * time.Second

// settleTurn ends a turn in one transaction: its messages, its record, its
// deliveries. It returns the outcome's name for the log.
func (w *worker) settleTurn(d decision, out outcome, placed *messages.Delivery) (string, error) {
	switch {
	case out.err == nil:
		return "answered", w.settleAnswer(d, out, placed)
	case errors.Is(out.err, sessions.ErrLeaseLost):
		return "lease_lost", out.err
	case errors.Is(out.err, errStopped):
		return "stopped", w.settleStop(d, out, placed)
	case isCut(out.err):
		return "stopped", w.settleCut(d, out, placed)
	case waits(out.err):
		return "waiting", w.waitTurn(d, out, placed)
	case errors.Is(out.err, errShutdown):
		return "interrupted", w.putBack(d, out, placed)
	case errors.Is(out.err, errTurnLimit):
		out.err = fault.Newf(fault.Exhausted, "This took longer than the limit of %s, so I stopped it.", w.o.config.TurnTimeout)
	}
	// What an agent began it may have done: the person decides whether to repeat it.
	attempts := w.o.config.MaxAttempts
	if w.runsAgent() {
		attempts = min(attempts, agentAttempts)
	}
	begun := w.runsAgent() && (out.text != "" || out.card != "")
	if after, ok := fault.Retry(out.err); ok && !begun && d.entry.Attempts < attempts {
		return "retried", w.parkTurn(d, out, placed, max(after, backoff(d.entry.Attempts)))
	}
	return "failed", w.settleError(d, out, placed)
}

// lastWord is what a person reads at the end of a turn.
type lastWord struct {
	text    string
	buttons []messages.Button
	card    string // what the placeholder says instead, if the text is to be a message of its own
}

// settleAnswer stores the answer together with the deliveries that bring it.
func (w *worker) settleAnswer(d decision, out outcome, placed *messages.Delivery) error {
	ctx, cancel := w.settling()
	defer cancel()
	if out.reply != nil {
		return w.settleJob(ctx, d, *out.reply, placed, out.took)
	}
	var seqs []int64
	noted := false
	err := w.hold(ctx, func(tx Tx) error {
		var err error
		if seqs, err = tx.AppendMessages(ctx, d.begun.session.ID, d.entry.ID, out.rest...); err != nil {
			return err
		}
		if noted, err = w.note(ctx, tx, d.begun.profile, d.entry); err != nil {
			return err
		}
		return w.recordAnswer(ctx, tx, d, out, placed)
	})
	if err != nil {
		w.o.windows.forget(d.begun.session.ID)
		return fmt.Errorf("store the answer: %w", err)
	}
	failpoint.Hit(failpoint.AnswerStored)
	if noted {
		w.o.config.Learner.Noted()
	}
	w.o.windows.extend(d.begun.session.ID, out.rest, seqs)
	w.o.config.Metrics.Tokens(w.conv.Assistant, "input", out.finished.Usage.InputTokens)
	w.o.config.Metrics.Tokens(w.conv.Assistant, "output", out.finished.Usage.OutputTokens)
	return nil
}

// recordAnswer closes the turn: the session's record, what the command leaves
// behind, the entry and its deliveries.
func (w *worker) recordAnswer(ctx context.Context, tx Tx, d decision, out outcome, placed *messages.Delivery) error {
	session, text := d.begun.session.ID, answer(out.rest)
	used, err := out.host.recordEnd(ctx, tx, out.finished)
	if err != nil {
		return err
	}
	err = tx.RecordTurn(ctx, session, d.begun.record(sessions.TurnRecord{
		Model:        out.finished.Model,
		Result:       head(text, 500),
		InputTokens:  used.InputTokens,
		OutputTokens: used.OutputTokens,
	}))
	if err != nil {
		return err
	}
	if err := finishPlan(ctx, tx, d.entry, d.begun, plan.Done); err != nil {
		return err
	}
	if d.begun.prompt == nil {
		_, err = w.settleEntry(ctx, tx, d.entry, sessions.EntryDone, "", placed, lastWord{text: text, card: out.card}, out.took)
		return err
	}
	if err := tx.UpdateSessionMetadata(ctx, session, sessions.Remember(d.begun.prompt.Meta)); err != nil {
		return err
	}
	if d.begun.prompt.Meta.Produces != sessions.Plan {
		_, err = w.settleEntry(ctx, tx, d.entry, sessions.EntryDone, "", placed, lastWord{text: text, card: out.card}, out.took)
		return err
	}
	p, err := w.propose(ctx, tx, d, text)
	if err != nil {
		return err
	}
	word := lastWord{card: out.card}
	if word.text, word.buttons, err = w.o.ShowPlan(ctx, tx, w.conv, p); err != nil {
		return err
	}
	shown, err := w.settleEntry(ctx, tx, d.entry, sessions.EntryDone, "", placed, word, out.took)
	if err != nil {
		return err
	}
	p.DeliveryID = string(shown)
	return tx.SettlePlan(ctx, p)
}

// settleJob stores what a job of ours answers.
func (w *worker) settleJob(ctx context.Context, d decision, reply Reply, placed *messages.Delivery, took time.Duration) error {
	err := w.hold(ctx, func(tx Tx) error {
		if _, err := w.o.addThen(ctx, tx, Request{Entry: d.entry, Conv: w.conv}, reply); err != nil {
			return err
		}
		_, err := w.settleEntry(ctx, tx, d.entry, sessions.EntryDone, "", placed, lastWord{text: reply.Text, buttons: reply.Buttons}, took)
		return err
	})
	if err != nil {
		return fmt.Errorf("store the end of a job: %w", err)
	}
	failpoint.Hit(failpoint.AnswerStored)
	return nil
}

// settling returns the context for the end of a turn: what was done is written
// down even if the process has begun to stop.
func (w *worker) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
}

// settleStop ends a turn that a person stopped. What was said so far is kept.
func (w *worker) settleStop(d decision, out outcome, placed *messages.Delivery) error {
	shown := fmt.Sprintf("⏹ Stopped after %s.", clock(out.took))
	if out.text != "" {
		shown = out.text + "\n\n" + shown
	}
	return w.settleEarly(d, out, sessions.EntryStopped, placed, "stopped", shown)
}

// settleError ends a turn that cannot be finished, visibly: what happened, what
// was kept, what to do next.
func (w *worker) settleError(d decision, out outcome, placed *messages.Delivery) error {
	text := "✖ " + fault.Public(out.err)
	if d.entry.Attempts > 1 {
		text += fmt.Sprintf(" I tried %d times.", d.entry.Attempts)
	}
	text += "\n\nYour message is kept. " + nextStep(out.err)
	if fault.KindOf(out.err) == fault.Internal {
		text += fmt.Sprintf(" (Error %s, for the operator's log.)", d.entry.ID[len(d.entry.ID)-8:])
	}
	if out.text != "" {
		text = out.text + "\n\n" + text
	}
	return w.settleEarly(d, out, sessions.EntryFailed, placed, out.err.Error(), text)
}

// nextStep says what a person can do about an error.
func nextStep(err error) string {
	switch fault.KindOf(err) {
	case fault.Unauthorized, fault.Unsupported:
		return "An operator has to look at the configuration."
	case fault.Exhausted:
		return "/new starts a fresh conversation."
	case fault.Invalid:
		return "Ask in another way, or /new for a fresh conversation."
	default:
		return "Send it again to try once more."
	}
}

// settleEarly ends a turn without an answer. Text that was shown stays in the
// session, so that the next turn knows of it.
func (w *worker) settleEarly(d decision, out outcome, state sessions.EntryState, placed *messages.Delivery, errText, shown string) error {
	ctx, cancel := w.settling()
	defer cancel()
	w.o.windows.forget(d.begun.session.ID)
	err := w.hold(ctx, func(tx Tx) error {
		if d.begun.session.ID == "" { // a job of ours
			_, err := w.settleEntry(ctx, tx, d.entry, state, errText, placed, lastWord{text: shown}, out.took)
			return err
		}
		rest := out.rest
		if answer(rest) == "" && out.text != "" {
			rest = append(rest, messages.NewText(messages.RoleAssistant, out.text))
		}
		if len(rest) > 0 {
			if _, err := tx.AppendMessages(ctx, d.begun.session.ID, d.entry.ID, rest...); err != nil {
				return err
			}
		}
		if err := endCalls(ctx, tx, d.begun.session.ID); err != nil {
			return err
		}
		used, err := out.host.recordEnd(ctx, tx, out.finished)
		if err != nil {
			return err
		}
		err = tx.RecordTurn(ctx, d.begun.session.ID, d.begun.record(sessions.TurnRecord{
			Model: out.finished.Model, Error: errText, InputTokens: used.InputTokens, OutputTokens: used.OutputTokens,
		}))
		if err != nil {
			return err
		}
		if err := finishPlan(ctx, tx, d.entry, d.begun, plan.Approved); err != nil {
			return err
		}
		_, err = w.settleEntry(ctx, tx, d.entry, state, errText, placed, lastWord{text: shown}, out.took)
		return err
	})
	if err != nil {
		return fmt.Errorf("store the end of a turn: %w", err)
	}
	return nil
}

// settleStopped ends an entry that was told to stop while nobody worked on it.
func (w *worker) settleStopped(ctx context.Context, tx Tx, entry sessions.Entry) error {
	return w.settleWith(ctx, tx, entry, sessions.EntryStopped, "stopped", "⏹ Stopped before it went on.")
}

// settleWith ends an entry without a turn, in the transaction that found it.
func (w *worker) settleWith(ctx context.Context, tx Tx, entry sessions.Entry, state sessions.EntryState, errText, shown string) error {
	placed, err := openPlaceholder(ctx, tx, entry)
	if err != nil {
		return err
	}
	if entry.State == sessions.EntryRunning && entry.SessionID != "" {
		if err := endCalls(ctx, tx, entry.SessionID); err != nil {
			return err
		}
		if err := w.releasePlan(ctx, tx); err != nil {
			return err
		}
	}
	_, err = w.settleEntry(ctx, tx, entry, state, errText, placed, lastWord{text: shown}, 0)
	return err
}

// endCalls ends the calls of a session whose turn is over: what was running may
// have had its effect, what had not begun has none.
func endCalls(ctx context.Context, tx Tx, session string) error {
	if _, err := tx.FailExecuting(ctx, session, "interrupted, may have run"); err != nil {
		return err
	}
	_, err := tx.FailInterrupted(ctx, session, "not run: the turn ended before")
	return err
}

// releasePlan takes the plan back that a turn was carrying out when it ended
// without one of its own.
func (w *worker) releasePlan(ctx context.Context, tx Tx) error {
	p, ok, err := tx.LatestPlan(ctx, w.conv.ID)
	if err != nil || !ok || p.State != plan.Executing {
		return err
	}
	p.State = plan.Approved
	return tx.SettlePlan(ctx, p)
}

// settleEntry closes an entry and stores the deliveries of its last word. The
// placeholder takes the first part, unless the turn took so long that the
// answer has to be a message of its own. It returns the last delivery, which has
// the buttons.
func (w *worker) settleEntry(ctx context.Context, tx Tx, entry sessions.Entry, state sessions.EntryState, errText string, placed *messages.Delivery, word lastWord, took time.Duration) (last messages.DeliveryID, err error) {
	if err := tx.UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{State: &state, Error: &errText}); err != nil {
		return "", err
	}
	if w.o.asks() {
		if err := w.o.cancelQuestions(ctx, tx, entry); err != nil {
			return "", err
		}
	}
	text, files := w.extract(word.text)
	parts := w.split(text)
	announce := ""
	if placed != nil {
		d := *placed
		d.Final, d.NextAt = true, time.Time{}
		switch {
		case d.Message != "" && word.card != "":
			d.Text, announce = word.card, "✔ Ready"
		case d.Message != "" && took >= notifyAfter:
			d.Text, announce = fmt.Sprintf("✔ Worked for %s", clock(took)), "✔ Ready"
		default:
			d.Text, parts = parts[0], parts[1:]
		}
		if len(parts) == 0 {
			d.Buttons = word.buttons
		}
		if err := tx.UpdateDelivery(ctx, d); err != nil {
			return "", err
		}
		last = d.ID
	}
	for i, part := range parts {
		d := w.newDelivery(entry, part)
		d.Placeholder = announce
		announce = ""
		if i == len(parts)-1 {
			d.Buttons = word.buttons
		}
		if err := tx.AddDelivery(ctx, &d); err != nil {
			return "", err
		}
		w.untried[d.ID] = true
		last = d.ID
	}
	for _, f := range files {
		d := w.newDelivery(entry, "")
		d.FileName, d.File = f.Name, f.Data
		if err := tx.AddDelivery(ctx, &d); err != nil {
			return "", err
		}
		if err := auditFile(ctx, tx, entry.In, d); err != nil {
			return "", err
		}
	}
	return last, nil
}

// extract takes what is better posted as a file out of a text, where the platform
// has files.
func (w *worker) extract(text string) (string, []platform.FilePart) {
	x, ok := w.adapter().(platform.Extractor)
	if !ok {
		return text, nil
	}
	return x.Extract(text)
}

func (w *worker) newDelivery(entry sessions.Entry, text string) messages.Delivery {
	d := messages.Delivery{
		ID:             newDeliveryID(),
		ConversationID: w.conv.ID,
		EventID:        entry.ID,
		Text:           text,
		Final:          true,
		State:          messages.DeliverySending, // it may exist as soon as this is committed
		Asker:          entry.In.Sender,
	}
	if !entry.In.Private {
		d.ReplyTo = entry.In.Message
	}
	return d
}

func newDeliveryID() messages.DeliveryID {
	return messages.DeliveryID(uuid.Must(uuid.NewV7()).String())
}

// split cuts a text for the conversation's platform.
func (w *worker) split(text string) []string {
	caps := w.caps()
	if caps.MaxText <= 0 {
		return []string{text}
	}
	if parts := platform.Split(text, caps.MaxText, caps.Measure); len(parts) > 0 {
		return parts
	}
	return []string{text}
}

// parkTurn puts a turn aside that failed for a passing reason. It runs again
// after wait, with the same placeholder.
func (w *worker) parkTurn(d decision, out outcome, placed *messages.Delivery, wait time.Duration) error {
	ctx, cancel := w.settling()
	defer cancel()
	at := time.Now().Add(wait)
	errText := out.err.Error()
	w.o.windows.forget(d.begun.session.ID)
	err := w.hold(ctx, func(tx Tx) error {
		if _, err := out.host.recordEnd(ctx, tx, out.finished); err != nil {
			return err
		}
		if err := tx.UpdateEntry(ctx, d.entry.ID, sessions.EntryUpdate{NextAt: &at, Error: &errText}); err != nil {
			return err
		}
		return w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: w.conv.ID, At: at})
	})
	if err != nil {
		return fmt.Errorf("park a turn: %w", err)
	}
	w.showParked(ctx, placed, fmt.Sprintf("⏳ %s Try %d of %d in %s. Nothing is lost.", fault.Public(out.err),
		d.entry.Attempts+1, w.o.config.MaxAttempts, clock(wait)))
	return nil
}

// putBack returns a turn that the shutdown interrupted to the inbox. The attempt
// does not count.
func (w *worker) putBack(d decision, out outcome, placed *messages.Delivery) error {
	ctx, cancel := w.settling()
	defer cancel()
	attempts := max(d.entry.Attempts-1, 0)
	err := w.hold(ctx, func(tx Tx) error {
		if _, err := out.host.recordEnd(ctx, tx, out.finished); err != nil {
			return err
		}
		return tx.UpdateEntry(ctx, d.entry.ID, sessions.EntryUpdate{Attempts: &attempts})
	})
	if err != nil {
		return fmt.Errorf("put a turn back: %w", err)
	}
	w.showParked(ctx, placed, "⏸ The service restarts. I go on with this afterwards.")
	return out.err
}

// backoff is the pause after the n-th failed attempt: 1, 2, 4, ... 60 seconds.
func backoff(n int) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 6), time.Minute)
}

// clock writes a duration as people read it: 12 s, 4:05, 1:02:03.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	default:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
}

// head returns the beginning of a text, at most n runes.
func head(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}
