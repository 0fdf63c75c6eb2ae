package loop

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const maxParallel = 8

// item is a call on its way to a result.
type item struct {
	call    messages.ToolCall
	key     callKey
	run     bool // it is permitted and has no result yet
	changes bool // it may change something
	result  messages.ToolResult
	files   []messages.Attachment // that the result came with
}

// answerCalls gives each of the calls of one answer a result, in order. An error
// leaves calls open.
func (r *run) answerCalls(ctx context.Context, calls []messages.ToolCall) error {
	var batch []item
	flush := func() error {
		err := r.flush(ctx, batch)
		batch = batch[:0]
		return err
	}
	for at, c := range calls {
		next := item{call: c, key: r.repeats.key(c)}
		problem := r.problem(at, c)
		next.changes = problem == "" && !r.turn.Host.Parallel(c)
		if next.changes || contains(batch, next.key) {
			if err := flush(); err != nil {
				return err
			}
		}
		switch what := r.repeats.check(next.key); {
		case len(r.tools) == 0:
			next.refuse(problem)
		case what == endTurn:
			return r.end(ctx, append(batch, refusals(calls[at:])...), c)
		case what == refuseIt:
			next.refuse(textRepeated)
		case problem != "":
			next.refuse(problem)
		default:
			if err := r.permit(ctx, &next); err != nil {
				// What is done already must not be done again.
				if failed := flush(); failed != nil {
					return failed
				}
				return err
			}
		}
		batch = append(batch, next)
		if next.run && next.changes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// permit asks the host about a call.
func (r *run) permit(ctx context.Context, next *item) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	verdict, err := r.turn.Host.Permit(ctx, next.call)
	switch {
	case ctx.Err() != nil:
		return canceled(ctx)
	case err != nil:
		return err
	case verdict.Allow:
		next.run = true
	case clean(verdict.Reason) != "":
		next.refuse(verdict.Reason)
	default:
		next.refuse(textRefused)
	}
	return nil
}

// refuse answers a call without running it.
func (i *item) refuse(reason string) {
	i.result = messages.ToolResult{CallID: i.call.ID, Name: i.call.Name, Content: reason, IsError: true}
	i.changes = false
}

// end answers what is left of an answer and ends a turn that goes in circles.
func (r *run) end(ctx context.Context, rest []item, again messages.ToolCall) error {
	if err := r.flush(ctx, rest); err != nil {
		return err
	}
	return fault.Newf(fault.Exhausted, "Stopped: the model kept making the same call of the tool %s. "+
		"What was done so far is kept; send a message to continue.", again.Name)
}

func refusals(calls []messages.ToolCall) []item {
	items := make([]item, len(calls))
	for i, c := range calls {
		items[i].call = c
		items[i].refuse(textEnded)
	}
	return items
}

func contains(batch []item, key callKey) bool {
	for i := range batch {
		if batch[i].key == key {
			return true
		}
	}
	return false
}

// changes reports whether a call may change something.
func (r *run) changes(c messages.ToolCall) bool { return r.known[c.Name] && !r.turn.Host.Parallel(c) }

// flush runs what is to be run of a batch and yields all its results in one
// message.
func (r *run) flush(ctx context.Context, batch []item) error {
	if len(batch) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if err := r.runAll(ctx, batch); err != nil {
		return err
	}
	m := messages.Message{Role: messages.RoleTool}
	for i := range batch {
		it := &batch[i]
		it.result.Content = clean(it.result.Content)
		m.Blocks = append(m.Blocks, it.result)
		for _, a := range it.files {
			m.Blocks = append(m.Blocks, a)
		}
		r.repeats.note(it.key, it.result, it.files, it.changes)
	}
	return r.done(m)
}

// outcome is what came of a tool.
type outcome struct {
	at     int // in the batch
	result messages.ToolResult
	files  []messages.Attachment
	panic  error
}

// runAll runs the calls of a batch side by side. Events are yielded by the
// caller's goroutine only.
func (r *run) runAll(ctx context.Context, batch []item) error {
	turn := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// There is room for all, so that a tool that is not waited for can end.
	outcomes := make(chan outcome, len(batch))
	active, next := 0, 0
	stop := func(err error) error {
		cancel()
		r.settle(turn, outcomes, active)
		return err
	}
	for {
		for ; next < len(batch) && active < maxParallel; next++ {
			if !batch[next].run {
				continue
			}
			if ctx.Err() != nil {
				return stop(canceled(turn))
			}
			if err := r.emit(r.started(batch[next].call)); err != nil {
				return stop(err)
			}
			active++
			go r.runOne(ctx, next, batch[next].call, outcomes)
		}
		if active == 0 {
			return nil
		}
		var out outcome
		select {
		case <-turn.Done():
			return stop(canceled(turn))
		case out = <-outcomes:
			active--
		}
		switch {
		case turn.Err() != nil:
			return stop(canceled(turn))
		case out.panic != nil:
			return stop(out.panic)
		}
		it := &batch[out.at]
		it.result, it.files = out.result, out.files
		it.result.CallID, it.result.Name = it.call.ID, it.call.Name
		if err := r.emit(assistant.ToolFinished{ID: it.call.ID, OK: !it.result.IsError}); err != nil {
			return stop(err)
		}
	}
}

// settle waits for tools that were stopped. The host promises that they end
// within seconds; the caller has one.
func (r *run) settle(ctx context.Context, outcomes <-chan outcome, active int) {
	if active == 0 {
		return
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	for ; active > 0; active-- {
		select {
		case <-outcomes:
		case <-grace.C:
			r.assistant.log.WarnContext(ctx, "tools keep running after their turn was stopped",
				"conversation", r.turn.Conversation, "run", r.turn.Run, "tools", active)
			return
		}
	}
}

// runOne runs a call in a goroutine of its own.
func (r *run) runOne(ctx context.Context, at int, call messages.ToolCall, outcomes chan<- outcome) {
	out := outcome{at: at}
	defer func() {
		if p := recover(); p != nil {
			r.assistant.log.ErrorContext(ctx, "recovered from a panic", "stage", "running a tool", "tool", call.Name,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out.panic = fault.Wrap(fmt.Errorf("panic: %v", p), fault.Internal, "running a tool")
		}
		outcomes <- out
	}()
	out.result, out.files = r.turn.Host.RunTool(ctx, call)
}

// kinder is implemented by hosts that know what a call does.
type kinder interface {
	Kind(call messages.ToolCall) assistant.PermissionKind
}

func (r *run) started(c messages.ToolCall) assistant.ToolStarted {
	s := assistant.ToolStarted{ID: c.ID, Name: c.Name, Summary: r.turn.Host.Describe(c)}
	if host, ok := r.turn.Host.(kinder); ok {
		s.Kind = host.Kind(c)
	} else if r.turn.Host.Parallel(c) {
		s.Kind = assistant.KindRead
	}
	return s
}
