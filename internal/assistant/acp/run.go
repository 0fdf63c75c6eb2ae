package acp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

var (
	// errTooMuch ends a turn that says or does more than is kept of one.
	errTooMuch = errors.New("the agent sent too much")

	// errGone ends a turn whose process had ended before it was prompted.
	errGone = errors.New("the process ended between two turns")

	// errForgotten ends a turn whose session the agent does not know any more.
	errForgotten = errors.New("the agent does not know the session that it was prompted in")
)

const (
	// startAfter is how long a call is taken to wait for a permission request,
	// which comes at once, before it is taken to run.
	startAfter = 250 * time.Millisecond

	// queued is how many updates wait for the turn before the agent has to wait.
	queued = 64
)

// arrival is something that the agent sent during a turn.
type arrival struct {
	update     json.RawMessage // params of session/update
	permission json.RawMessage // params of session/request_permission
	id         json.RawMessage // of the request
	withdrawn  json.RawMessage // params of $/cancel_request
	do         func() error    // what a call of a served tool does with the transcript
}

// run is one turn at work. Its fields are used by the goroutine of Run, except
// the channels.
type run struct {
	agent *agent
	kept  bool  // the process worked on an earlier turn
	cost  meter // as it was before the turn
	turn  assistant.Turn
	t     transcript

	arrivals chan arrival
	verdicts chan verdict
	closed   chan struct{} // the turn takes nothing more
	once     sync.Once

	asks    map[string]*ask // permission requests without an answer, by request id
	refused string          // the title of the last call that was not allowed
	asking  sync.WaitGroup

	ctx     context.Context //nolint:containedctx // of the turn, for the calls that arrive at the toolbox
	serving sync.WaitGroup  // these calls; it grows only while the turn is attached
	served  atomic.Int32    // how many there are
}

// deliver hands an arrival over, and waits while the turn is behind: then the
// agent has to wait too. It reports false once the turn is over.
func (r *run) deliver(x arrival) bool {
	select {
	case <-r.closed:
		return false
	default:
	}
	select {
	case r.arrivals <- x:
		return true
	case <-r.closed:
		return false
	}
}

func (r *run) over() { r.once.Do(func() { close(r.closed) }) }

// answered is the answer to session/prompt.
type answered struct {
	result promptAnswer
	err    error
}

// promptAnswer is what is used of the answer to session/prompt.
type promptAnswer struct {
	StopReason string
	Usage      *sdk.Usage
	Model      string // what both known front ends say beyond the protocol
}

// UnmarshalJSON fails over the stop reason only: the usage is no settled part of the protocol, and
// _meta may hold anything. A turn that is done does not fail over them.
func (a *promptAnswer) UnmarshalJSON(b []byte) error {
	var w struct {
		StopReason string          `json:"stopReason"`
		Usage      json.RawMessage `json:"usage"`
		Meta       json.RawMessage `json:"_meta"`
	}
	var meta struct {
		Quota struct {
			ModelUsage []struct {
				Model string `json:"model"`
			} `json:"model_usage"`
		} `json:"quota"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	a.StopReason = w.StopReason
	if json.Unmarshal(w.Usage, &a.Usage) != nil {
		a.Usage = nil
	}
	if json.Unmarshal(w.Meta, &meta) == nil && len(meta.Quota.ModelUsage) > 0 {
		a.Model = oneLine(meta.Quota.ModelUsage[0].Model, 200)
	}
	return nil
}

// Run implements assistant.Assistant. Turns of one conversation run one after
// the other. A turn that is stopped gives the agent two seconds to end it in
// its own way; what it still says in that time is dropped.
func (a *Assistant) Run(ctx context.Context, turn assistant.Turn) iter.Seq2[assistant.Event, error] {
	return assistant.Events(func(emit assistant.Emit) error {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return a.run(ctx, turn, emit)
	})
}

// run does a turn. It begins once more if the session turns out to be forgotten,
// or the process that was kept to have ended, only when it is prompted.
func (a *Assistant) run(ctx context.Context, turn assistant.Turn, emit assistant.Emit) error {
	p, err := a.enter(ctx, turn.Conversation)
	if err != nil {
		return err
	}
	held := true
	defer func() {
		if held {
			a.leave(p)
		}
	}()
	o, events, err := a.ready(ctx, p, turn)
	for again := true; ; again = false {
		if err := a.prepare(ctx, o, turn, emit, events, err); err != nil {
			return err
		}
		r := newRun(o, turn, emit)
		prompt := make(chan answered, 1)
		blocks, unseen := o.agent.blocks(a.prompt(o, turn), turn.Array)
		if unseen != "" {
			if err := emit(assistant.Notice{Text: unseen}); err != nil {
				return err
			}
		}
		err = r.do(ctx, prompt, blocks)
		switch {
		case errors.Is(err, assistant.ErrStopped) || ctx.Err() != nil && err != nil:
			held = false
			used := a.stop(ctx, p, r, prompt)
			if errors.Is(err, assistant.ErrStopped) {
				return err // and nothing more is said
			}
			if used != nil {
				if err := emit(assistant.UsageUpdated{Usage: r.usage(used), Model: r.t.model}); err != nil {
					return err
				}
			}
			return canceled(ctx)
		case errors.Is(err, errForgotten) && again:
			o.fresh = true
			events, err = o.agent.afresh(ctx, &sdk.RequestError{Code: codeNotFound, Message: err.Error()})
		case errors.Is(err, errGone) && again:
			o, events, err = a.ready(ctx, p, turn)
		case errors.Is(err, errForgotten):
			return o.agent.broken(ctx, atPrompt, err)
		default:
			return err
		}
	}
}

// prepare yields what happened while the session was opened, and configures it.
func (a *Assistant) prepare(
	ctx context.Context, o opened, turn assistant.Turn, emit assistant.Emit, events []assistant.Event, err error,
) error {
	if err == nil {
		var more []assistant.Event
		more, err = o.agent.configure(ctx, turn)
		events = append(events, more...)
	}
	for _, e := range events {
		if emitErr := emit(e); emitErr != nil {
			return emitErr
		}
	}
	return err
}

func newRun(o opened, turn assistant.Turn, emit assistant.Emit) *run {
	g := o.agent
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	r := &run{
		agent: g, kept: o.kept, cost: g.cost, turn: turn, arrivals: make(chan arrival, queued), verdicts: make(chan verdict), closed: make(chan struct{}),
		asks: map[string]*ask{},
	}
	r.t = transcript{emit: emit, provider: string(g.a.config.Name), suffix: hex.EncodeToString(random[:]), mode: g.mode, model: g.model}
	return r
}

// do prompts the agent and takes what comes until it has answered.
func (r *run) do(ctx context.Context, prompt chan answered, blocks []any) error {
	g := r.agent
	asking, stopAsking := context.WithCancel(ctx)
	r.ctx = asking
	g.attach(r)
	defer r.refuseQueued(ctx)
	defer r.serving.Wait()
	defer g.detach(r, false)
	defer r.asking.Wait()
	defer stopAsking()
	g.a.wg.Go(func() {
		var x answered
		// The end of ctx does not take the request back: session/cancel does.
		x.err = g.conn.callThen(context.WithoutCancel(ctx), 0, sdk.AgentMethodSessionPrompt, map[string]any{
			"sessionId": g.session, "prompt": blocks,
		}, &x.result, func() { g.detach(r, true) })
		prompt <- x
	})
	err := r.loop(ctx, asking, prompt)
	r.withdrawAll(ctx)
	if len(g.earlier) > maxCalls {
		clear(g.earlier)
	}
	for id := range r.t.calls {
		g.earlier[id] = true
	}
	g.mode = r.t.mode
	if r.t.cost != nil {
		g.cost.set(*r.t.cost)
	}
	if err != nil && !errors.Is(err, assistant.ErrStopped) && !errors.Is(err, errForgotten) {
		if unheard := r.settleCost(true); unheard != nil {
			return unheard
		}
	}
	return err
}

// refuseQueued answers the permission requests that came too late.
func (r *run) refuseQueued(ctx context.Context) {
	for {
		select {
		case x := <-r.arrivals:
			if x.permission != nil {
				r.reply(ctx, x.id, canceledPermission())
			}
		default:
			return
		}
	}
}

func (r *run) loop(ctx, asking context.Context, prompt chan answered) error {
	quiet := time.NewTimer(r.agent.a.config.SilenceTimeout)
	defer quiet.Stop()
	starting := time.NewTimer(startAfter)
	defer starting.Stop()
	for {
		var err error
		select {
		case x := <-r.arrivals:
			err = r.take(asking, x)
			if r.t.unstarted() {
				starting.Reset(startAfter)
			}
		case v := <-r.verdicts:
			err = r.decided(ctx, v)
		case <-starting.C:
			err = r.t.startAll()
		case x := <-prompt:
			err = r.finish(ctx, asking, x)
			if ctx.Err() != nil || errors.Is(err, assistant.ErrStopped) {
				prompt <- x // for stop, which looks whether the turn is over
			}
			return err
		case <-quiet.C:
			if len(r.asks) == 0 && r.served.Load() == 0 {
				return r.agent.broken(ctx, atPrompt, errSilent)
			}
		case <-ctx.Done():
			return canceled(ctx)
		}
		if errors.Is(err, errTooMuch) {
			return r.agent.broken(ctx, atPrompt, err)
		}
		if err != nil {
			return err
		}
		quiet.Reset(r.agent.a.config.SilenceTimeout)
	}
}

// take handles something that the agent sent.
func (r *run) take(asking context.Context, x arrival) error {
	switch {
	case x.permission != nil:
		return r.permission(asking, x)
	case x.withdrawn != nil:
		r.withdraw(asking, x.withdrawn)
		return nil
	case x.do != nil:
		return x.do()
	}
	var w notification
	if !decoded(x.update, &w) {
		return nil // of another kind than we know
	}
	if w.SessionID != r.agent.session && !strings.HasPrefix(w.Update.Kind, "tool_call") {
		return nil // what a subagent says is for the agent
	}
	w.Update.ToolCallID = r.callID(w.SessionID, w.Update.ToolCallID)
	if id := w.Update.ToolCallID; w.Update.Kind == "tool_call_update" && r.t.calls[id] == nil && r.agent.earlier[id] {
		return nil
	}
	if err := r.t.apply(w.Update); err != nil || w.Update.Kind != "usage_update" {
		return err
	}
	// On record also if the turn ends early.
	return r.t.emit(assistant.UsageUpdated{Usage: r.usage(nil), Model: r.t.model})
}

// finish ends the turn after the agent has answered.
func (r *run) finish(ctx, asking context.Context, x answered) error {
	g := r.agent
	// What came before the answer is in the queue.
	for {
		select {
		case late := <-r.arrivals:
			if err := r.take(asking, late); err != nil {
				if errors.Is(err, errTooMuch) {
					return g.broken(ctx, atPrompt, err)
				}
				return err
			}
			continue
		default:
		}
		break
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if x.err != nil {
		if refusal, ok := errors.AsType[*sdk.RequestError](x.err); ok && refusal.Code == codeNotFound && !r.t.said {
			return errForgotten
		}
		if r.kept && !r.t.said && errors.Is(x.err, errEnded) {
			g.end()
			return errGone
		}
		if err := r.t.startAll(); err != nil { // what it began may have been done
			return err
		}
		return g.broken(ctx, atPrompt, x.err)
	}
	if x.result.Model != "" {
		r.t.model = x.result.Model
	}
	usage := r.usage(x.result.Usage)
	if err := r.t.emit(assistant.UsageUpdated{Usage: usage, Model: r.t.model}); err != nil {
		return err
	}
	if r.t.failed {
		return g.broken(ctx, atPrompt, &sdk.RequestError{Message: r.t.failure.String()})
	}
	if err := r.stopped(x.result.StopReason); err != nil {
		return err
	}
	if err := r.t.closeAll(); err != nil {
		return err
	}
	if r.t.text.Len() == 0 {
		if err := r.nothingSaid(); err != nil {
			return err
		}
	}
	if err := r.settleCost(false); err != nil {
		return err
	}
	last := r.t.complete()
	last.ProviderMetadata = r.metadata(x.result.StopReason)
	if err := r.t.emit(assistant.MessageDone{Message: last}); err != nil {
		return err
	}
	return r.t.emit(assistant.Finished{Usage: usage, Model: r.t.model})
}

// silentEnd is what a person reads when an agent worked and then said nothing, below
// what it had said before its last call: that may well be the answer.
const silentEnd = "(The agent finished without a message.)"

// nothingSaid handles a turn without a closing text.
func (r *run) nothingSaid() error {
	if r.t.numbered == 0 {
		r.agent.end()
		return fault.New(fault.Unavailable, "The agent gave an empty answer.")
	}
	text := strings.TrimSpace(r.t.last + "\n\n" + silentEnd)
	r.t.text.WriteString(text)
	return r.t.emit(assistant.TextDelta{Text: text})
}

// stopped returns the error for a stop reason that is not the end of an answer.
func (r *run) stopped(reason string) error {
	switch sdk.StopReason(reason) {
	case sdk.StopReasonEndTurn:
		return nil
	case sdk.StopReasonMaxTokens:
		return fault.New(fault.Exhausted, "The agent reached its limit of tokens in the middle of the answer. What it did so far is kept; ask it to continue.")
	case sdk.StopReasonMaxTurnRequests:
		return fault.New(fault.Exhausted, "The agent reached its limit of steps for one turn. What it did so far is kept; ask it to continue.")
	case sdk.StopReasonRefusal:
		return fault.New(fault.Invalid, "The agent refused this request.")
	case sdk.StopReasonCancelled:
		if r.refused != "" {
			return fault.Newf(fault.Forbidden, "The agent stopped, because this was not allowed: %s", r.refused)
		}
		return fault.New(fault.Unavailable, "The agent stopped before it was done. What it did so far is kept.")
	}
	r.agent.end()
	return &fault.Error{
		Kind: fault.Internal, Err: errors.New("unknown stop reason " + oneLine(reason, 100)),
		Public: "The agent stopped for an unknown reason, so its answer may be incomplete. What it did so far is kept.",
	}
}

// stop tells the agent that the turn is over and gives it a moment to agree.
// Then its process is ended. The place is given back behind the back of the
// caller, who waits for most of the moment only. Returned is what the agent says in
// that time that the turn used.
func (a *Assistant) stop(ctx context.Context, p *place, r *run, prompt <-chan answered) *sdk.Usage {
	var used *sdk.Usage // to be read once done is closed
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	a.settle(func() {
		defer close(done)
		defer a.leave(p)
		g := r.agent
		if !g.alive() {
			return
		}
		grace, cancel := context.WithTimeout(ctx, cancelGrace)
		defer cancel()
		last, err := g.cancelTurn(grace, prompt)
		if used = last.result.Usage; err != nil {
			g.log.InfoContext(ctx, "the agent did not end a turn that was stopped; its process is ended")
			g.end()
			<-g.gone
		}
	})
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-done:
		return used
	case <-timer.C:
		return nil
	}
}
