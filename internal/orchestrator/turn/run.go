package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// run is a turn that has begun, in the hands of its worker.
type run struct {
	w *worker
	d decision

	taken []sessions.Entry // said while it ran, and answered with it
	shows *progress

	told   atomic.Bool // something was told on the way, below the placeholder
	unseen atomic.Bool // people know of files that they are not shown
}

// runTurn runs the assistant on a begun turn and settles it.
func (r *run) runTurn(ctx context.Context) error {
	o := r.w.o
	r.w.turns++
	r.sendShown()
	r.w.tries = r.d.entry.Attempts
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := newTurnLimit(o.config.Live().TurnTimeout, func() { cancel(errTurnLimit) })
	defer limit.stop()
	log := o.config.Log.With("conversation", r.d.entry.In.Conversation, "entry", r.d.entry.ID, "attempt", r.d.entry.Attempts)
	o.outbox.Unmark(r.d.entry)
	o.config.Metrics.Running(1)
	defer o.config.Metrics.Running(-1)
	p := r.startProgress()
	begin := time.Now()
	out := r.do(ctx, p, limit)
	out.took = time.Since(begin)
	if cause := context.Cause(ctx); cause != nil && out.err != nil {
		out.err = cause
	}
	out.card = r.summary(ctx, out, p)
	p.finish()
	if r.d.begun.again {
		r.w.asked.Store(true) // in an earlier run, for all that is known
	}
	result, err := closing{r, out}.settleTurn(p)
	o.config.Metrics.TurnEnded(r.w.conv.Assistant, r.trigger(), result, out.took)
	r.countUse(out.finished)
	if err != nil {
		return err
	}
	r.sendShown()
	if p.gone && r.d.entry.In.Schedule != 0 {
		r.endTask(r.w.ctx)
	}
	switch result {
	case "answered":
		if out.reply == nil && r.lesson(r.d.entry) != nil {
			o.config.Learner.Noted()
		}
		r.markEnd(true)
	case "failed", "stopped":
		r.markEnd(false)
	}
	said := []any{"outcome", result, "duration_ms", out.took.Milliseconds(), "assistant", r.w.conv.Assistant, "session_id", r.d.begun.session.ID}
	if out.err != nil {
		said = append(said, "err", out.err)
	}
	log.InfoContext(ctx, "turn finished", said...)
	return nil
}

// trigger says what the turn is an answer to, for the metrics.
func (r *run) trigger() string {
	switch {
	case r.d.entry.In.Schedule != 0:
		return "schedule"
	case r.d.entry.In.Kind == messages.KindAction:
		return "button"
	case r.d.begun.job != nil, r.d.begun.prompt != nil:
		return "command"
	}
	return "message"
}

// countUse counts what a run of the assistant used, for the metrics. The model is the one that
// was asked, if one was: a provider may answer with another name.
func (r *run) countUse(f assistant.Finished) {
	asked := r.modelOf()
	r.w.o.config.Metrics.Use(r.w.conv.Assistant, cmp.Or(asked, f.Model), metrics.Used{
		Input: f.Usage.InputTokens, Output: f.Usage.OutputTokens, Cached: f.Usage.CachedTokens,
		Micros: spend.Priced(spend.Record{Model: cmp.Or(f.Model, asked), Usage: f.Usage}).Micros,
	})
}

// markEnd marks the message of the turn, and those that it took in, as answered or not.
func (r *run) markEnd(ok bool) {
	taken := r.taken
	if e := r.d.entry; r.d.begun.again || e.Attempts > 1 { // an earlier run may have taken some in
		err := r.w.o.config.Storage.InRead(r.w.ctx, func(tx port.Tx) (err error) {
			taken, err = r.w.takenIn(r.w.ctx, tx, e, r.d.begun.session.ID)
			return err
		})
		if err != nil {
			taken = r.taken
		}
	}
	for _, e := range append(slices.Clip(taken), r.d.entry) {
		r.w.o.outbox.MarkEnd(e, ok)
	}
}

// takenIn returns what the runs of a turn in a session took in and has marks.
func (w *worker) takenIn(ctx context.Context, tx port.Tx, e sessions.Entry, session string) ([]sessions.Entry, error) {
	if session == "" || !w.o.outbox.MarksOutcomes(w.conv.Key.Platform) {
		return nil, nil
	}
	e.SessionID = session
	return tx.Inbox().TakenEntries(ctx, e)
}

// do runs what the turn is: a job of ours, or the assistant.
func (r *run) do(ctx context.Context, p *progress, limit *turnLimit) (out outcome) {
	if r.d.begun.job == nil {
		return r.ask(ctx, p, limit)
	}
	defer background.Recover(ctx, r.w.o.config.Log, "job", func(err error) { out.err = err })
	reply, err := r.d.begun.job.Run(ctx, command.Request{
		Entry: r.d.entry, Conv: r.w.conv, Call: r.d.begun.call, Role: r.d.begun.role, Show: p.replace,
	})
	return outcome{reply: &reply, err: err}
}

// ask runs the assistant. When the model's context window overflows it goes on with what the
// turn has done so far, with half the window if that came to nothing, and once only. What fits
// then is remembered for the model.
func (r *run) ask(ctx context.Context, p *progress, limit *turnLimit) outcome {
	name := assistant.Name(r.w.conv.Assistant)
	a := r.w.o.config.Assistants[name]
	if a == nil {
		return outcome{err: fault.Newf(fault.Unsupported,
			"This conversation belongs to the assistant %q, which is not configured here. An operator can configure it; /handoff continues with another one.", name)}
	}
	h, err := r.openHost(ctx, a, p, limit)
	if err != nil {
		return outcome{err: err}
	}
	defer h.close()
	if err := h.tellOfProfile(ctx); err != nil {
		return outcome{err: err, host: h}
	}
	remembered := r.recall(ctx)
	model := string(name) + "/" + cmp.Or(r.turnModel(), a.Model())
	budget := r.budget(model)
	for shrunk, learns := false, false; ; {
		array, err := r.collect(ctx, a, h, budget)
		if err != nil {
			return outcome{err: err, host: h}
		}
		failpoint.Hit(failpoint.BeforeModel)
		out := r.consume(ctx, a, assistant.Turn{
			Conversation: r.w.conv.ID,
			Run:          r.d.entry.ID,
			System:       r.d.begun.system,
			Array:        withRemembered(array, remembered),
			Said:         r.d.entry.In.Text,
			Resume:       r.d.begun.session.AssistantSessionID,
			Model:        r.turnModel(),
			Mode:         r.modeName(),
			Dir:          r.d.begun.work.Dir,
			Tree:         r.d.begun.work.Tree,
			GitData:      r.d.begun.work.GitData,
			Host:         h,

			ResumeCostUSD: r.d.begun.session.Metadata.AgentCost(),
		}, h, p)
		out.host = h
		if learns && out.went && messages.EstimateAll(array) <= budget {
			r.w.o.fits.learn(model, budget, r.w.o.config.Now())
		}
		overflow, is := errors.AsType[*assistant.OverflowError](out.err)
		if !is || ctx.Err() != nil {
			return out
		}
		if shrunk && !out.went {
			out.err = &fault.Error{Kind: fault.Exhausted, Err: out.err,
				Public: "This conversation is too long for the model, even when shortened. Start a new session with /new; nothing is deleted."}
			return out
		}
		if shrunk = !out.went; shrunk {
			budget = smallerBudget(budget, overflow.Limit, array)
			learns = !assistant.ShowsFiles(array...) // what a file takes says nothing of texts
		}
		r.d.begun.request = nil // what it did since belongs to the window
		p.reset()
		r.countUse(out.finished)
		if err := h.again(ctx, out.finished); err != nil {
			return outcome{err: err, host: h}
		}
		r.w.o.config.Log.InfoContext(ctx, "context window exceeded; trying a smaller one", "tokens", budget)
	}
}

// budget returns what the array of a turn may have, in tokens.
func (r *run) budget(model string) int {
	budget := r.w.o.config.Live().ContextTokens
	budget = max(budget-messages.EstimateTokens(messages.NewText(messages.RoleUser, r.d.begun.system)), budget/2)
	return r.w.o.fits.within(model, budget, r.w.o.config.Now())
}

// collect returns the array of a request, if the turn may make it.
func (r *run) collect(ctx context.Context, a assistant.Assistant, h *host, budget int) ([]messages.Message, error) {
	array, err := r.assemble(ctx, a, budget)
	if err == nil {
		array, err = r.show(ctx, array)
	}
	if err == nil {
		err = h.recall(ctx)
	}
	if err == nil {
		err = h.mayBegin(ctx)
	}
	return array, err
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
func (r *run) consume(ctx context.Context, a assistant.Assistant, t assistant.Turn, h *host, p *progress) (out outcome) {
	defer background.Recover(ctx, r.w.o.config.Log, "assistant", func(err error) { out.err = err })
	deltas, asked := 0, time.Now() // since the last message
	for event, err := range a.Run(ctx, t) {
		if err != nil {
			out.err = err
			break
		}
		p.heard()
		switch e := event.(type) {
		case assistant.TextDelta:
			if deltas++; deltas == 1 {
				r.w.o.config.Metrics.FirstToken(r.w.conv.Assistant, r.modelOf(), time.Since(asked))
			} else {
				failpoint.Hit(failpoint.MidStream)
			}
			p.write(e.Text)
		case assistant.Resumable:
			err = r.resumable(h, out.finished, e)
		case assistant.ThoughtDelta:
			p.thought(e.Text)
		case assistant.PlanUpdated:
			p.steps(e.Steps)
		case assistant.Notice:
			err = r.noted(ctx, e)
		case assistant.FileMade:
			_, err = r.fileMade(ctx, e)
		case assistant.ToolStarted:
			p.tool(e)
			err = r.toolStarted(e)
		case assistant.ToolFinished:
			p.toolDone(e)
		case assistant.MessageDone:
			m := r.w.o.redactMessage(e.Message, r.w.runsAgent())
			out.went = true
			err = r.messageDone(&out, m)
			p.messageDone(m)
			deltas, asked = 0, time.Now()
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
	out.text = r.w.o.redact(p.text())
	if out.err == nil && answer(out.rest) == "" {
		out.err = assistant.ErrEmpty
	}
	return out
}

// metaNoted is the key of a session's metadata under which it stands what an assistant wanted
// to be read once.
const metaNoted = "noted"

// noted has people told what an assistant says beside its answer.
func (r *run) noted(ctx context.Context, e assistant.Notice) error {
	session, text := &r.d.begun.session, "⚠ "+r.w.o.redact(e.Text)
	if e.Once && session.Metadata[metaNoted] == text {
		return nil
	}
	return r.tell(ctx, text, func(tx port.Tx) error {
		if !e.Once {
			return nil
		}
		return tx.Sessions().UpdateSession(r.w.ctx, session.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{metaNoted: text}})
	})
}

// fileMade sends a file that the assistant made, where files can be sent: it is seen when it is
// there, and outlives the process.
func (r *run) fileMade(ctx context.Context, e assistant.FileMade) (can bool, err error) {
	if _, can = r.w.adapter().(platform.Filer); !can {
		if r.unseen.Swap(true) {
			return false, nil
		}
		return false, r.noted(ctx, assistant.Notice{Text: "The answer comes with files, such as " + e.Name + ", that the bot cannot send here."})
	}
	d := outbox.Held(r.w.conv.ID, r.d.entry, "")
	d.FileName, d.File = e.Name, e.Data
	err = r.w.hold(r.w.ctx, func(tx port.Tx) error {
		if err := tx.Deliveries().AddDelivery(r.w.ctx, &d); err != nil {
			return err
		}
		return outbox.AuditFiles(r.w.ctx, tx, r.d.entry.In.Actor(), []messages.Delivery{d})
	})
	if err == nil {
		r.sendTold(ctx, []messages.Delivery{d})
	}
	return true, err
}

// tell has people told something while the turn runs, and stores what belongs to that.
func (r *run) tell(ctx context.Context, text string, also func(tx port.Tx) error) error {
	var told []messages.Delivery
	err := r.w.hold(r.w.ctx, func(tx port.Tx) (err error) {
		if told, err = r.addNotices(r.w.ctx, tx, text); err != nil {
			return err
		}
		return also(tx)
	})
	if err == nil {
		r.sendTold(ctx, told)
	}
	return err
}

// addNotices stores what is told while the turn runs, for sendTold.
func (r *run) addNotices(ctx context.Context, tx port.Tx, text string) (told []messages.Delivery, err error) {
	for _, part := range r.w.o.outbox.Split(r.w.conv.Key.Platform, text) {
		d := outbox.Held(r.w.conv.ID, r.d.entry, part)
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return nil, err
		}
		told = append(told, d)
	}
	return told, nil
}

// sendTold sends what this run has stored to be sent at once, so that people read it when it
// happens and above the last word. What cannot be sent now is left to the worker.
func (r *run) sendTold(ctx context.Context, told []messages.Delivery) {
	if len(told) == 0 {
		return
	}
	if r.shows.stands.Load() {
		r.told.Store(true)
	}
	for i := range told {
		told[i].State = messages.DeliveryPending // nobody has sent it yet, as this process knows
	}
	if err := r.w.o.outbox.SendHeld(ctx, r.w.conv.Key, told); err != nil && ctx.Err() == nil {
		r.w.o.config.Log.WarnContext(ctx, "could not send what a turn tells on its way; it is sent later", "conversation", r.w.conv.Key, "err", err)
	}
}

// resumable stores how the agent's session goes on, and what it has cost. That the turn
// used a part of it is on record with it, or a crash would lose it.
func (r *run) resumable(h *host, used assistant.Finished, e assistant.Resumable) error {
	u := sessions.SessionUpdate{AssistantSessionID: &e.Session}
	if e.CostUSD > 0 || r.d.begun.session.Metadata.AgentCost() > 0 {
		u.Metadata = sessions.Metadata{sessions.MetaAgentCost: e.CostUSD}
	}
	update := func(tx port.Tx) error { return tx.Sessions().UpdateSession(r.w.ctx, r.d.begun.session.ID, u) }
	if e.CostUSD > 0 {
		_, err := h.settle(r.w.ctx, used, update)
		return err
	}
	return r.w.hold(r.w.ctx, update)
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
func (r *run) turnModel() string {
	if m := r.d.begun.model(); m != "" {
		return m
	}
	if r.w.conv.Settings.Model != "" {
		return r.w.conv.Settings.Model
	}
	model, _ := r.w.o.profileModel(r.d.begun.profile, r.w.conv)
	return model
}

// endTask switches the standing task off that a turn was a run of, in a chat that takes no
// messages any more. What fails is done at the end of its next run.
func (r *run) endTask(ctx context.Context) {
	err := r.w.hold(ctx, func(tx port.Tx) error {
		if ended, err := tx.Tasks().EndSchedule(ctx, r.w.conv.ID); err != nil || !ended {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: "system", Action: "schedule.off", ConversationID: r.w.conv.ID})
	})
	if err != nil {
		r.w.o.config.Log.WarnContext(ctx, "could not end the standing task of a chat that is gone", "conversation", r.w.conv.Key, "err", err)
	}
}
