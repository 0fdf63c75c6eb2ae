// Package loop makes an assistant of a model API: it asks the model, runs the
// tools that it calls, hands it the results, and asks again until it answers.
//
// It keeps nothing between turns. What a turn has done is in the messages that
// it yields; a turn that was put aside goes on from them.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const (
	// safetyRounds ends a turn whose host never does.
	safetyRounds = 500

	// stopGrace is how long a turn that was stopped waits for its tools. A tool
	// may take longer, but Run returns within a second.
	stopGrace = 800 * time.Millisecond
)

// Config configures an Assistant. The zero value is usable.
type Config struct {
	// MaxRounds is the most requests to the model in one run of a turn. It is a
	// last defense: Host.Round ends or parks a turn long before it. Zero means
	// 500.
	MaxRounds int

	Log *slog.Logger // nil means no log
}

// Assistant answers turns with a model and the tools of the turn's host. It is
// safe for concurrent use.
type Assistant struct {
	model assistant.Model
	max   int
	log   *slog.Logger

	blind sync.Map // names of models that refused pictures
}

var _ assistant.ToolUser = (*Assistant)(nil)

// New returns an assistant that asks model. It does no I/O.
func New(model assistant.Model, c Config) *Assistant {
	a := &Assistant{model: model, max: c.MaxRounds, log: c.Log}
	if a.max <= 0 {
		a.max = safetyRounds
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	return a
}

// Name implements assistant.Assistant.
func (a *Assistant) Name() assistant.Name { return a.model.Name() }

// Model implements assistant.Assistant.
func (a *Assistant) Model() string { return a.model.Model() }

// Models implements assistant.Lister.
func (a *Assistant) Models(ctx context.Context) ([]string, error) {
	if l, ok := a.model.(assistant.Lister); ok {
		return l.Models(ctx)
	}
	return nil, errors.ErrUnsupported
}

// UsesTools implements assistant.ToolUser.
func (*Assistant) UsesTools() {}

// Run implements assistant.Assistant. Beyond its contract:
//
//   - Calls that are open at the end of Turn.Array are run before the first
//     request, like calls of the model; their message is not yielded again.
//   - An assistant message is yielded before any of its calls is permitted or
//     run, and a result before the next call that may change something. A host
//     that stores each message when it gets it can go on after a crash without
//     repeating an effect that has a result.
//   - Calls run one at a time in order, except that neighbors for which
//     Host.Parallel holds run side by side, at most eight at once. Their results
//     are one message.
//   - What cannot be run is answered with an error and without asking: an
//     unknown tool, arguments that are no JSON object or above 1 MiB, a call
//     that had the same result twice in a row. When the model makes that call
//     once more, the turn fails with fault.Exhausted.
//   - Call ids are unique within the array and fit messages.SafeID, names fit
//     messages.SafeName, and arguments that are missing are "{}", before a
//     message is yielded.
//   - An error of Host.Permit or Host.Round ends the turn as it is. The results
//     that were there before it have been yielded.
//   - Without a host or tools, calls are answered with an error. The model is
//     asked once more; when it calls again the turn fails with
//     fault.Unsupported.
//   - An answer without text and calls is assistant.ErrEmpty, unless the model said
//     something with the calls before it: then that is the answer.
//   - Finished has the usage of all requests of this run.
func (a *Assistant) Run(ctx context.Context, turn assistant.Turn) iter.Seq2[assistant.Event, error] {
	return assistant.Events(func(emit assistant.Emit) error { return newRun(a, turn, emit).do(ctx) })
}

// run is one run of a turn.
type run struct {
	assistant *Assistant
	turn      assistant.Turn
	emit      assistant.Emit

	tools []messages.ToolSpec
	known map[string]bool // names of tools
	array *messages.Array
	ids   map[string]bool // of the calls in array
	cut   map[string]int  // lengths of arguments that were cut, by call id

	requests int
	used     assistant.Usage
	answered string // the model that answered last
	repeats  repeats
	refused  int // answers that called tools although there are none

	unreadable bool // the model does not take the files of the array
	noticed    bool // that was said
}

func newRun(a *Assistant, turn assistant.Turn, emit assistant.Emit) *run {
	r := &run{
		assistant: a, turn: turn, emit: emit,
		array: messages.NewArray(turn.Array...), // appending to it copies it
		known: make(map[string]bool), ids: make(map[string]bool), answered: cmp.Or(turn.Model, a.Model()),
	}
	if turn.Host != nil {
		r.tools = turn.Host.Tools()
	}
	for _, t := range r.tools {
		r.known[t.Name] = true
	}
	for _, m := range turn.Array {
		for _, b := range m.Blocks {
			if c, ok := b.(messages.ToolCall); ok {
				r.ids[c.ID] = true
			}
		}
	}
	r.repeats.seed(turn.Array, r.changes)
	return r
}

func (r *run) do(ctx context.Context) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if open := messages.OpenCalls(r.array.Messages()); len(open) > 0 {
		if err := r.answerCalls(ctx, open); err != nil {
			return err
		}
	}
	for {
		if err := r.beforeRequest(ctx); err != nil {
			return err
		}
		msg, finished, err := r.complete(ctx)
		if r.isBlind(err) {
			if err := r.hideFiles(); err != nil {
				return err
			}
			msg, finished, err = r.complete(ctx)
		}
		if errors.Is(err, assistant.ErrEmpty) {
			msg, err = r.saidBefore()
			finished.Model = r.answered
		}
		if err != nil {
			return err
		}
		r.answered = finished.Model
		msg = r.admit(msg)
		if err := r.done(msg); err != nil {
			return err
		}
		if err := r.spent(finished); err != nil {
			return err
		}
		calls := callsOf(msg)
		if len(calls) == 0 {
			return r.emit(assistant.Finished{Usage: r.used, Model: finished.Model})
		}
		r.repeats.round++
		if len(r.tools) == 0 {
			r.refused++
		}
		if err := r.answerCalls(ctx, calls); err != nil {
			return err
		}
		if r.refused > 1 {
			return unsupported(calls)
		}
	}
}

// beforeRequest asks the host whether the turn may go on and takes in what was
// said meanwhile. Of files, also those that tools show, the request has what it may.
func (r *run) beforeRequest(ctx context.Context) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if r.requests > 0 && r.turn.Host != nil {
		said, err := r.turn.Host.Round(ctx, r.requests, r.used)
		switch {
		case ctx.Err() != nil:
			return canceled(ctx)
		case err != nil:
			return err
		case len(said) > 0:
			// A person may have asked for the same thing again.
			r.array.Append(said...)
			r.repeats.forget()
		}
	}
	if r.requests == r.assistant.max {
		return fault.Newf(fault.Exhausted,
			"Stopped after %d model requests in one turn. What was done so far is kept; send a message to continue.", r.requests)
	}
	r.requests++
	r.array = messages.NewArray(messages.BoundFiles(r.array.Messages())...)
	return r.hideFiles()
}

// complete asks the model once and passes on what it says. The message is only
// returned when the answer is complete.
func (r *run) complete(ctx context.Context) (messages.Message, assistant.Finished, error) {
	var msg *messages.Message
	var finished *assistant.Finished
	started := time.Now()
	request := assistant.Request{
		Conversation: r.turn.Conversation, Run: r.turn.Run, System: r.turn.System,
		Array: messages.Repair(r.array.Messages()), Tools: r.tools, Model: r.turn.Model,
	}
	for event, err := range r.assistant.model.Complete(ctx, request) {
		if err != nil {
			return messages.Message{}, assistant.Finished{}, err
		}
		switch e := event.(type) {
		case assistant.TextDelta, assistant.ThoughtDelta:
			if err := r.emit(e); err != nil {
				return messages.Message{}, assistant.Finished{}, err
			}
		case assistant.MessageDone:
			msg = &e.Message
		case assistant.Finished:
			finished = &e
		case assistant.UsageUpdated: // of a request that fails
			if err := r.spent(assistant.Finished(e)); err != nil {
				return messages.Message{}, assistant.Finished{}, err
			}
		case assistant.Resumable, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.ToolStarted, assistant.ToolFinished:
			// A model has none of these.
		}
	}
	switch {
	case ctx.Err() != nil:
		return messages.Message{}, assistant.Finished{}, canceled(ctx)
	case msg == nil, finished == nil:
		return messages.Message{}, assistant.Finished{}, &fault.Error{
			Kind: fault.Unavailable, Public: "The model's answer was cut off before it was complete.",
			Err: fmt.Errorf("the answer of %s ended without a message or without its end", r.assistant.model.Name()),
		}
	case len(callsOf(*msg)) == 0 && strings.TrimSpace(msg.PlainText()) == "":
		if err := r.spent(*finished); err != nil {
			return messages.Message{}, assistant.Finished{}, err
		}
		return messages.Message{}, assistant.Finished{}, assistant.ErrEmpty
	}
	r.assistant.log.DebugContext(ctx, "request of a turn", "conversation", r.turn.Conversation, "run", r.turn.Run,
		"request", r.requests, "messages", len(request.Array), "calls", len(callsOf(*msg)), "duration", time.Since(started))
	return *msg, *finished, nil
}

// spent adds what a request used to what the turn has used, and says so.
func (r *run) spent(f assistant.Finished) error {
	r.used = r.used.Add(f.Usage)
	return r.emit(assistant.UsageUpdated{Usage: r.used, Model: f.Model})
}

// saidBefore returns what the model said with its last calls as its answer: models that
// have answered there end with nothing behind the results, however often they are asked.
func (r *run) saidBefore() (messages.Message, error) {
	for _, m := range slices.Backward(r.array.Messages()) {
		if m.Role == messages.RoleUser {
			break
		}
		if text := strings.TrimSpace(m.PlainText()); m.Role == messages.RoleAssistant && text != "" {
			text += "\n\n(The model finished without another message.)"
			return messages.NewText(messages.RoleAssistant, text), r.emit(assistant.TextDelta{Text: text})
		}
	}
	return messages.Message{}, assistant.ErrEmpty
}

// done yields a complete message, which the host stores, and takes it in if another
// request comes after it.
func (r *run) done(m messages.Message) error {
	if err := r.emit(assistant.MessageDone{Message: m}); err != nil {
		return err
	}
	if m.Role != messages.RoleAssistant || len(callsOf(m)) > 0 {
		r.array.Append(m) // copies the array
	}
	return nil
}

func callsOf(m messages.Message) []messages.ToolCall {
	var calls []messages.ToolCall
	for _, b := range m.Blocks {
		if c, ok := b.(messages.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

func unsupported(calls []messages.ToolCall) error {
	var names []string
	for _, c := range calls {
		if name := messages.SafeName(c.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > maxListed {
		names = append(names[:maxListed], "...")
	}
	return fault.Newf(fault.Unsupported, "The model called a tool (%s), but there are no tools here. Nothing was run.",
		strings.Join(names, ", "))
}

func canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &fault.Error{Kind: fault.Unavailable, Public: "The turn took too long.", Err: cause}
	}
	return &fault.Error{Kind: fault.Canceled, Err: cause}
}
