package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
)

// runTurn runs the assistant on a begun turn and settles it.
func (w *worker) runTurn(ctx context.Context, d decision) error {
	o := w.o
	w.turns++
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := newTurnLimit(o.config.Live().TurnTimeout, func() { cancel(errTurnLimit) })
	defer limit.stop()
	log := o.config.Log.With("conversation", d.entry.In.Conversation, "entry", d.entry.ID, "attempt", d.entry.Attempts)
	o.outbox.Unmark(d.entry)
	o.config.Metrics.Running(1)
	defer o.config.Metrics.Running(-1)
	p := w.startProgress(d)
	begin := time.Now()
	out := w.do(ctx, d, p, limit)
	out.took = time.Since(begin)
	if cause := context.Cause(ctx); cause != nil && out.err != nil {
		out.err = cause
	}
	out.card = w.summary(ctx, d, out, p)
	placed, unrecorded := p.finish()
	if d.begun.again {
		w.asked.Store(true) // in an earlier run, for all that is known
	}
	result, err := w.settleTurn(d, out, placed, unrecorded)
	o.config.Metrics.TurnEnded(w.conv.Assistant, result, out.took)
	if err != nil {
		return err
	}
	switch result {
	case "answered":
		w.countAnswer(d, out)
		o.outbox.MarkEnd(d.entry, true)
	case "failed", "stopped":
		o.outbox.MarkEnd(d.entry, false)
	}
	log.InfoContext(ctx, "Turn finished", "outcome", result, "duration_ms", out.took.Milliseconds(),
		"assistant", w.conv.Assistant, "session_id", d.begun.session.ID, "err", out.err)
	return nil
}

// countAnswer keeps the figures of an answer, and has it learned from.
func (w *worker) countAnswer(d decision, out outcome) {
	if out.reply != nil {
		return
	}
	if w.teaches(d) {
		w.o.config.Learner.Noted()
	}
	w.o.config.Metrics.Tokens(w.conv.Assistant, "input", out.finished.Usage.InputTokens)
	w.o.config.Metrics.Tokens(w.conv.Assistant, "output", out.finished.Usage.OutputTokens)
}

// do runs what the turn is: a job of ours, or the assistant.
func (w *worker) do(ctx context.Context, d decision, p *progress, limit *turnLimit) (out outcome) {
	if d.begun.job == nil {
		return w.ask(ctx, d, p, limit)
	}
	defer background.Recover(ctx, w.o.config.Log, "job", func(err error) { out.err = err })
	reply, err := d.begun.job.Run(ctx, command.Request{
		Entry: d.entry, Conv: w.conv, Call: d.begun.call, Role: d.begun.role, Show: p.replace,
	})
	return outcome{reply: &reply, err: err}
}

// ask runs the assistant. When the model's context window overflows it tries
// once more with half the window.
func (w *worker) ask(ctx context.Context, d decision, p *progress, limit *turnLimit) outcome {
	name := assistant.Name(w.conv.Assistant)
	a := w.o.config.Assistants[name]
	if a == nil {
		return outcome{err: fault.Newf(fault.Unsupported,
			"This conversation belongs to the assistant %q, which is not configured here. An operator can configure it; /handoff goes on with another one.", name)}
	}
	h, err := w.openHost(ctx, a, d, p, limit)
	if err != nil {
		return outcome{err: err}
	}
	defer h.close()
	if err := h.tellOfProfile(ctx); err != nil {
		return outcome{err: err, host: h}
	}
	remembered := w.recall(ctx, d)
	budget := w.o.config.Live().ContextTokens
	budget = max(budget-messages.EstimateTokens(messages.NewText(messages.RoleUser, d.begun.system)), budget/2)
	for try := 1; ; try++ {
		array, err := w.assemble(ctx, a, d, budget)
		if err == nil {
			err = h.recall(ctx)
		}
		if err == nil {
			err = h.mayBegin(ctx)
		}
		if err != nil {
			return outcome{err: err, host: h}
		}
		failpoint.Hit(failpoint.BeforeModel)
		out := w.consume(ctx, a, assistant.Turn{
			Conversation: w.conv.ID,
			Run:          d.entry.ID,
			System:       d.begun.system,
			Array:        withRemembered(array, remembered),
			Resume:       d.begun.session.AssistantSessionID,
			Model:        w.turnModel(d),
			Mode:         w.modeName(d),
			Dir:          d.begun.work.Dir,
			Tree:         d.begun.work.Tree,
			GitData:      d.begun.work.GitData,
			Host:         h,
		}, d, p)
		out.host = h
		overflow, is := errors.AsType[*assistant.OverflowError](out.err)
		if !is || try > 1 || ctx.Err() != nil {
			if is {
				out.err = &fault.Error{Kind: fault.Exhausted, Err: out.err,
					Public: "This conversation is too long for the model, even shortened. /new starts a fresh one; nothing is deleted."}
			}
			return out
		}
		budget = smallerBudget(budget, overflow.Limit, array)
		p.reset()
		if err := h.again(ctx, out.finished); err != nil {
			return outcome{err: err, host: h}
		}
		d.begun.again = true // what the first try did is stored
		w.o.config.Log.InfoContext(ctx, "Context window exceeded; trying a smaller one", "tokens", budget)
	}
}

// smallerBudget halves what was really sent, or less if the provider named its
// limit.
func smallerBudget(budget, limit int, array []messages.Message) int {
	sent := 0
	for _, m := range array {
		sent += messages.EstimateTokens(m)
	}
	budget = min(budget, sent) / 2
	if limit > 0 {
		budget = min(budget, limit/2)
	}
	return budget
}

// consume ranges over the assistant's events: it shows text, stores messages as
// they complete, and keeps the last one for the transaction that ends the turn.
func (w *worker) consume(ctx context.Context, a assistant.Assistant, t assistant.Turn, d decision, p *progress) (out outcome) {
	defer background.Recover(ctx, w.o.config.Log, "assistant", func(err error) { out.err = err })
	deltas := 0
	for event, err := range a.Run(ctx, t) {
		if err != nil {
			out.err = err
			break
		}
		switch e := event.(type) {
		case assistant.TextDelta:
			if deltas++; deltas == 1 {
				p.firstText()
			} else {
				failpoint.Hit(failpoint.MidStream)
			}
			p.write(e.Text)
		case assistant.Resumable:
			err = w.hold(w.ctx, func(tx port.Tx) error { return tx.UpdateSession(w.ctx, d.begun.session.ID, e.Session) })
		case assistant.ThoughtDelta:
			p.thought(e.Text)
		case assistant.PlanUpdated:
			p.steps(e.Steps)
		case assistant.Notice:
			err = w.hold(w.ctx, func(tx port.Tx) error { return outbox.AddNotice(w.ctx, tx, w.conv.ID, d.entry.ID, "⚠ "+e.Text) })
		case assistant.ToolStarted:
			p.tool(e)
			err = w.toolStarted(d, e)
		case assistant.ToolFinished:
			p.toolDone(e)
		case assistant.MessageDone:
			m := w.o.redactMessage(e.Message, w.runsAgent())
			err = w.messageDone(&out, d, m)
			p.messageDone(m)
		case assistant.UsageUpdated:
			out.finished = assistant.Finished(e)
		case assistant.Finished:
			out.finished = e
		}
		if err != nil {
			out.err = fmt.Errorf("store what the assistant did: %w", err)
			break
		}
	}
	out.text = w.o.redact(p.text())
	if out.err == nil && answer(out.rest) == "" {
		out.err = fault.New(fault.Unavailable, "The model gave an empty answer.")
	}
	return out
}

// answer returns the text of the turn's last assistant message.
func answer(rest []messages.Message) string {
	for _, m := range slices.Backward(rest) {
		if m.Role == messages.RoleAssistant {
			return m.PlainText()
		}
	}
	return ""
}

// turnModel returns the model that was chosen for a turn, empty for the
// assistant's own.
func (w *worker) turnModel(d decision) string {
	if m := d.begun.model(); m != "" {
		return m
	}
	if w.conv.Settings.Model != "" {
		return w.conv.Settings.Model
	}
	model, _ := w.o.profileModel(d.begun.profile, w.conv)
	return model
}
