package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// maxSteered is how many messages a turn takes in at a time.
const maxSteered = 20

// usage is the record of what was used since the last time; nil if that is
// nothing.
func (h *host) usage(used, recorded assistant.Usage, model string) *spend.Record {
	delta := assistant.Usage{
		InputTokens:   used.InputTokens - recorded.InputTokens,
		OutputTokens:  used.OutputTokens - recorded.OutputTokens,
		CachedTokens:  used.CachedTokens - recorded.CachedTokens,
		WrittenTokens: used.WrittenTokens - recorded.WrittenTokens,
		CostUSD:       used.CostUSD - recorded.CostUSD,
	}
	if delta.InputTokens+delta.OutputTokens <= 0 && delta.CostUSD <= 0 {
		return nil
	}
	if model == "" {
		model = h.r.modelOf()
	}
	r := spend.Priced(spend.Record{
		EntryID: h.r.d.entry.ID, ConversationID: h.r.w.conv.ID, SessionID: h.r.d.begun.session.ID, CodebaseID: h.r.w.conv.CodebaseID,
		Actor: h.r.d.entry.In.Actor(), Assistant: h.r.w.conv.Assistant, Model: model, Usage: delta,
	})
	if used.CostUSD > 0 && delta.CostUSD <= 0 {
		r.Micros, r.Known = 0, true // an agent has said what all of it cost
	}
	return &r
}

// unrecorded is what is not on record yet of what the turn used at its end. A job
// of ours, and a turn that did not get as far, have no host.
func (h *host) unrecorded(f assistant.Finished) *spend.Record {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	recorded := h.recorded
	h.mu.Unlock()
	return h.usage(f.Usage, recorded, f.Model)
}

// again records what a run used that is followed by another one.
func (h *host) again(ctx context.Context, f assistant.Finished) error {
	_, err := h.settle(ctx, f, nil)
	h.rounds = max(h.rounds, h.sofar)
	h.mu.Lock()
	h.recorded = assistant.Usage{}
	h.mu.Unlock()
	return err
}

// ranBefore reports whether earlier runs of the turn asked the model.
func (h *host) ranBefore() bool { return h != nil && h.rounds > 0 }

// spent is what all runs of the turn used, with what is not on record yet.
func (h *host) spent(ctx context.Context, tx port.Tx, f assistant.Finished) (spend.Sum, error) {
	sum, err := tx.Spending().SumUsage(ctx, spend.Filter{EntryID: h.r.d.entry.ID})
	if rest := h.unrecorded(f); rest != nil {
		sum.InputTokens += rest.Usage.InputTokens
		sum.OutputTokens += rest.Usage.OutputTokens
		if rest.Known {
			sum.Micros += rest.Micros
		}
	}
	return sum, err
}

// addEarlier adds to the record of a turn what its earlier runs used. r may be nil.
func (h *host) addEarlier(ctx context.Context, tx port.Tx, f assistant.Finished, r *sessions.TurnRecord) error {
	if r == nil || !h.ranBefore() {
		return nil
	}
	sum, err := h.spent(ctx, tx, f)
	r.InputTokens, r.OutputTokens = sum.InputTokens, sum.OutputTokens
	return err
}

// summary is what the card of a turn says when the turn is over: empty if it only
// talked.
func (r *run) summary(ctx context.Context, out outcome, p *progress) string {
	if out.host == nil || !p.worked() {
		return ""
	}
	var sum spend.Sum
	err := r.w.o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		sum, err = out.host.spent(ctx, tx, out.finished)
		return err
	})
	if err != nil || sum.InputTokens+sum.OutputTokens == 0 && sum.Micros == 0 {
		return p.summary(out.took, "")
	}
	return p.summary(out.took, sum.String())
}

// limited reports whether mayGoOn has anything to check before a request.
func (h *host) limited(rounds int64) bool {
	b := h.r.w.o.config.Live().Budget
	return !b.IsZero() || rounds >= h.r.maxRounds()
}

// mayGoOn checks budgets and the cap on rounds before a request to the model. A
// turn that reached its own limit asks; a budget of the day just ends it.
func (h *host) mayGoOn(ctx context.Context, tx port.Tx, rounds int64) (ruling, error) {
	if used, err := h.usedUp(ctx, tx); err != nil || used != nil {
		return ruling{denied: used}, err
	}
	if b := h.r.w.o.config.Live().Budget; b.TurnMicros > 0 || b.TurnTokens > 0 {
		sum, err := tx.Spending().SumUsage(ctx, spend.Filter{EntryID: h.r.d.entry.ID})
		if err != nil {
			return ruling{}, err
		}
		allowed, err := tx.Questions().CountApprovals(ctx, h.r.d.entry.ID, approval.ToolBudget, approval.Allowed)
		if err != nil {
			return ruling{}, err
		}
		if used, reached := b.CheckTurn(sum, 1+allowed); reached {
			return h.ask(ctx, tx, approval.ToolBudget, allowed, fmt.Sprintf("Continue this turn? It has used its budget: %s.", used))
		}
	}
	every := h.r.maxRounds()
	if rounds < every {
		return ruling{}, nil
	}
	allowed, err := tx.Questions().CountApprovals(ctx, h.r.d.entry.ID, approval.ToolContinue, approval.Allowed)
	if err != nil || rounds < every*(1+allowed) {
		return ruling{}, err
	}
	return h.ask(ctx, tx, approval.ToolContinue, allowed, fmt.Sprintf("Continue this turn? It has made %d model requests.", rounds))
}

// usedUp is spend.Budget.UsedUp for whose turn it is.
func (h *host) usedUp(ctx context.Context, tx port.Tx) (used, err error) {
	return h.r.w.o.config.Live().Budget.UsedUp(ctx, tx.Spending(), h.r.d.entry.In.Actor(), time.Now())
}

// Paused reports whether a standing task runs no more because its last run has said that a
// budget of this day is used up, and it still is: each further run would ring to say so.
func (o *Turns) Paused(ctx context.Context, tx port.Tx, last sessions.Entry) (bool, error) {
	if now := time.Now(); last.Pauses(spend.Today(now)) {
		used, err := o.config.Live().Budget.UsedUp(ctx, tx.Spending(), last.In.Actor(), now)
		return used != nil, err
	}
	return false, nil
}

// rests has a standing task pause for this day, and says so, once a budget of it is used up.
func (h *host) rests(ctx context.Context, tx port.Tx, e *ending) error {
	if h == nil || h.r.d.entry.In.Schedule == 0 {
		return nil
	}
	if used, err := h.usedUp(ctx, tx); err != nil || used == nil {
		return err
	}
	word, note := *e.word, sessions.Paused+*e.change.Error // the transaction may run again
	word.Text += "\n\n⏰ The standing task is paused. It continues with its first run after the daily budget is reset (at 00:00 UTC) or raised."
	e.word, e.change.Error = &word, &note
	return nil
}

// ask asks whether a turn may go on beyond a limit of its own.
func (h *host) ask(ctx context.Context, tx port.Tx, what string, times int64, title string) (ruling, error) {
	id := fmt.Sprintf("%s-%d", what, times+1)
	arguments, err := json.Marshal(map[string]int64{"times": times + 1})
	if err != nil {
		return ruling{}, fault.Wrap(err, fault.Internal, "encode a question")
	}
	result, err := h.r.consult(ctx, tx, approval.Approval{
		CallID: id, Tool: what, Arguments: string(arguments), Kind: assistant.KindOther, Title: title,
		Detail: "Everything so far is saved either way.",
	}, 0)
	if err == nil && !result.waits && !result.verdict.Allow {
		result.denied = fault.Newf(fault.Exhausted, "Stopped here: this turn reached its limit and was not allowed to continue (%s).", result.approval.Name())
	}
	return result, err
}

// mayBegin checks the limits before the first request of a run.
func (h *host) mayBegin(ctx context.Context) error {
	if !h.limited(h.rounds) {
		return nil
	}
	var asked ruling
	err := h.r.w.hold(ctx, func(tx port.Tx) (err error) {
		asked, err = h.mayGoOn(ctx, tx, h.rounds)
		return err
	})
	switch {
	case err != nil:
		return err
	case asked.denied != nil:
		return asked.denied
	case asked.waits:
		return fmt.Errorf("%w: %s", assistant.ErrWaiting, asked.approval.Name())
	}
	return nil
}

// steer takes plain messages of the same person that wait behind a running turn
// into it: the model reads them after the current tools. Commands keep their place, and so does
// everything behind the first of them, or behind one such as /new that has run or will: it
// belongs to the next session. The answer of the turn is the answer to
// them as well.
func (r *run) steer(ctx context.Context, tx port.Tx) ([]sessions.Entry, []messages.Message, error) {
	if r.w.o.access.Gated(r.w.conv.Key.Platform) {
		return nil, nil, nil // each is to be admitted first, outside of a transaction
	}
	waiting, err := tx.Inbox().WaitingEntries(ctx, r.w.conv.ID, r.d.entry.Seq, maxSteered)
	if err != nil || len(waiting) == 0 {
		return nil, nil, err
	}
	if s, err := tx.Sessions().Session(ctx, r.d.begun.session.ID); err != nil || !s.Active {
		return nil, nil, err
	}
	first, behind, err := r.w.o.nextAhead(ctx, tx, r.w.conv.ID, math.MaxInt64)
	if err != nil {
		return nil, nil, err
	}
	var (
		taken []sessions.Entry
		said  []messages.Message
		c     commit.Changes
	)
	for _, e := range waiting {
		if behind && e.Seq > first.Seq {
			break
		}
		_, isCommand := command.Parse(e.In.Text)
		if isCommand || e.In.Kind != messages.KindMessage || len(e.In.Attachments) > 0 {
			break
		}
		if e.In.Schedule != 0 {
			break // it has an answer of its own
		}
		if e.In.Actor() != r.d.entry.In.Actor() {
			break // what a turn does is done in the name of one person
		}
		v, err := r.w.o.access.Authorize(ctx, tx, e.In)
		if err != nil {
			return nil, nil, err
		}
		if v.Role == sessions.Stranger || v.Role == sessions.Reader && r.d.begun.role != sessions.Reader {
			break // refused when its turn comes, or that turn may do less than this one
		}
		c.Lessons = append(c.Lessons, r.lesson(e)...)
		message, _ := requestMessage(e.In, nil, command.Call{}, "")
		taken, said = append(taken, e), append(said, message)
		done := sessions.EntryDone
		err = tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &done, SessionID: &r.d.begun.session.ID})
		if err != nil {
			return nil, nil, err
		}
	}
	if len(said) > 0 {
		c.Session = &commit.Session{ID: r.d.begun.session.ID, Run: r.d.entry.ID, Messages: said}
		_, err = tx.Leases().Apply(ctx, r.w.lease, c)
	}
	return taken, said, err
}

// modelOf returns the model that a turn asks: that of its prompt, else the one
// that was chosen for the conversation, else the assistant's own.
func (r *run) modelOf() string {
	if m := r.turnModel(); m != "" {
		return m
	}
	if a := r.w.o.config.Assistants[assistant.Name(r.w.conv.Assistant)]; a != nil {
		return a.Model()
	}
	return ""
}
