package turn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// Causes of a turn's end that have to do with authority.
var (
	// ErrHalted is why turns end when the service is halted.
	ErrHalted  = errors.New("the service was halted")
	errRemoved = errors.New("who asked may not use the bot any more")
	errReads   = errors.New("who asked may only ask now")
)

// JudgeRunning ends the turns that began under an authority which does not hold
// any more, after a change of access.
func (o *Turns) JudgeRunning(ctx context.Context, seq int64) { o.judge(ctx, seq, seq) }

// JudgeAll does so after a change of the configuration.
func (o *Turns) JudgeAll(ctx context.Context) { o.judge(ctx, math.MaxInt64, 0) }

func (o *Turns) judge(ctx context.Context, before, seq int64) {
	for _, h := range o.running.before(before) {
		var v access.Verdict
		err := o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
			v, err = o.access.Judge(ctx, tx, h.in)
			return err
		})
		if err != nil {
			o.config.Log.WarnContext(ctx, "could not check who may still use the bot; running turns continue", "err", err)
			return
		}
		o.running.judged(h.handle, seq, v.Role)
	}
}

// waitHalted leaves an entry in the inbox because the service is halted, and sees
// to it that its sender knows.
func (b beginning) waitHalted(ctx context.Context, state sessions.ServiceState) (decision, error) {
	told, err := b.o.outbox.AddHalted(ctx, b.tx, b.conv, b.entry, state, false)
	if err != nil {
		return decision{}, err
	}
	if told != nil {
		return decision{what: settled}, nil // the next step brings it
	}
	return decision{what: leave}, b.release(ctx, b.tx)
}

// isCut reports whether a turn was ended by a halt or because its person was
// removed.
func isCut(err error) bool {
	return errors.Is(err, ErrHalted) || errors.Is(err, errRemoved) || errors.Is(err, errReads)
}

// cutText is what a person reads of a turn that a halt or the removal of its person
// ended. It is not taken up again: what has to be stopped at once is not begun anew
// by itself.
func cutText(out outcome) string {
	shown := "⏹ Stopped: the person who asked can no longer use the bot."
	switch {
	case errors.Is(out.err, errReads):
		shown = "⏹ Stopped: the person who asked has read-only access now. Ask again for anything that only needs reading."
	case errors.Is(out.err, ErrHalted):
		shown = fmt.Sprintf("⏹ Stopped after %s because the bot was halted. The conversation so far is saved; after the resume, send again what you still need.", wording.Clock(out.took))
	}
	if out.text != "" {
		shown = out.text + "\n\n" + shown
	}
	return shown
}

// begun is a turn that runs, with who asked for it.
type begun struct {
	handle *turnHandle
	in     messages.Inbound
}

// cutAll cancels all turns of this process.
func (r *running) cutAll(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.turns {
		if h.seq != 0 {
			h.cancel(cause)
		}
	}
}

// before returns the turns that were last judged before a change of access.
func (r *running) before(seq int64) (list []begun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.turns {
		if h.seq != 0 && h.access < seq {
			list = append(list, begun{handle: h, in: h.in})
		}
	}
	return list
}

// judged notes up to which change of access a turn was judged, and cancels it if
// its person may not any more, or may only ask while it began under more.
func (r *running) judged(h *turnHandle, seq int64, role sessions.Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.access = max(h.access, seq)
	switch {
	case role == sessions.Stranger:
		h.cancel(errRemoved)
	case role == sessions.Reader && h.role != "" && h.role != sessions.Reader:
		h.cancel(errReads)
	}
}

// errTurnLimit is a cause of a turn's context, as command.ErrStopped is.
var errTurnLimit = errors.New("the turn reached its time limit")
