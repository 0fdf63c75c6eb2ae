package orchestratortest

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
)

// ModelName names the scripted assistant.
const ModelName assistant.Name = "scripted"

// Step is what the model does with one request. It returns the whole message, or an
// error.
type Step func(r *Requested) (messages.Message, error)

// Requested is a request to the model, while it is being answered.
type Requested struct {
	assistant.Request

	ctx   context.Context
	life  *life
	model *Model
	yield func(assistant.Event, error) bool
	over  bool // the caller wants no more events
}

// Write yields a piece of the answer.
func (r *Requested) Write(text string) { r.send(assistant.TextDelta{Text: text}, nil) }

func (r *Requested) send(e assistant.Event, err error) {
	if !r.over {
		r.over = !r.yield(e, err)
	}
}

func (r *Requested) writePieces(text string) {
	for _, piece := range strings.SplitAfter(text, " ") {
		if piece != "" {
			r.Write(piece)
		}
	}
}

// Wait waits for ch, for the end of the turn, whose cause it returns then, or for the end of the process.
func (r *Requested) Wait(ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	case <-r.life.dead:
		runtime.Goexit()
		return nil
	}
}

// Say answers with a text, piece by piece.
func Say(text string) Step {
	return func(r *Requested) (messages.Message, error) {
		r.writePieces(text)
		return messages.NewText(messages.RoleAssistant, text), nil
	}
}

// Call asks for a tool. Its argument is what the tool shall do.
func Call(tool, argument string) Step {
	return func(r *Requested) (messages.Message, error) {
		return messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
			messages.ToolCall{ID: r.model.nextID(), Name: tool, Arguments: fmt.Sprintf(`{"do":%q}`, argument)},
		}}, nil
	}
}

// Fail says the beginning of an answer, which may be empty, and fails then.
func Fail(beginning string, err error) Step {
	return func(r *Requested) (messages.Message, error) {
		r.writePieces(beginning)
		return messages.Message{}, err
	}
}

// Bill fails, and says what was used before it does.
func Bill(used assistant.Usage, err error) Step {
	return func(r *Requested) (messages.Message, error) {
		r.send(assistant.UsageUpdated{Model: "script-1", Usage: used}, nil)
		return messages.Message{}, err
	}
}

// Then calls fn, and continues with a step.
func Then(fn func(), step Step) Step {
	return func(r *Requested) (messages.Message, error) {
		fn()
		return step(r)
	}
}

// Given continues with a step, and calls fn when that is over.
func Given(fn func(), step Step) Step {
	return func(r *Requested) (messages.Message, error) {
		defer fn()
		return step(r)
	}
}

// Panic breaks.
func Panic() Step {
	return func(*Requested) (messages.Message, error) { panic("the model's client broke") }
}

// Hold says the beginning of an answer, and continues with then after Model.Release.
func Hold(beginning string, then Step) Step {
	return func(r *Requested) (messages.Message, error) {
		r.writePieces(beginning)
		open := r.model.held(r.life)
		defer r.model.leave(open)
		if err := r.Wait(open); err != nil {
			return messages.Message{}, err
		}
		return then(r)
	}
}

// Later does something after a while.
func Later(d time.Duration, then Step) Step {
	return func(r *Requested) (messages.Message, error) {
		ch := make(chan struct{})
		timer := time.AfterFunc(d, func() { close(ch) })
		defer timer.Stop()
		if err := r.Wait(ch); err != nil {
			return messages.Message{}, err
		}
		return then(r)
	}
}

// Model is the scripted model. Without a script it answers "re: " and what was asked. It
// is safe for concurrent use.
type Model struct {
	// Listed are the models that the API lists; none: it has no list. It is set before
	// the start.
	Listed []string

	world *World

	mu       sync.Mutex // guards all below
	script   []*scripted
	requests []assistant.Request
	ids      int
	gates    []gate // of those who are held
	free     bool   // nobody is held any more
}

// gate is where a request waits.
type gate struct {
	open chan struct{}
	life *life
}

type scripted struct {
	on    string
	steps []Step
}

func newModel(w *World) *Model { return &Model{world: w} }

// On sets what the model does with requests whose newest words of a person contain on:
// one step after the other; the last one is repeated.
func (m *Model) On(on string, steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append([]*scripted{{on, steps}}, m.script...)
}

// Requests returns what the model was asked so far.
func (m *Model) Requests() []assistant.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]assistant.Request(nil), m.requests...)
}

// Asked returns what people said last in each request.
func (m *Model) Asked() []string {
	return lists.Map(m.Requests(), func(r assistant.Request) string { return newest(r.Array) })
}

// Held returns how many requests are held, of processes that live.
func (m *Model) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.alive())
}

func (m *Model) alive() []gate {
	m.gates = slices.DeleteFunc(m.gates, func(g gate) bool { return g.life.over() })
	return m.gates
}

// Release lets the longest held request go on.
func (m *Model) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.alive()) == 0 {
		m.world.T.Error("nothing is held")
		return
	}
	close(m.gates[0].open)
	m.gates = m.gates[1:]
}

// ReleaseAll lets all go on, also those to come.
func (m *Model) ReleaseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = true
	for _, g := range m.gates {
		close(g.open)
	}
	m.gates = nil
}

func (m *Model) held(l *life) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := gate{make(chan struct{}), l}
	if m.free {
		close(g.open)
	} else {
		m.gates = append(m.gates, g)
	}
	return g.open
}

// leave takes a request away that is not held any more.
func (m *Model) leave(open <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gates = slices.DeleteFunc(m.gates, func(g gate) bool { return g.open == open })
}

func (m *Model) nextID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids++
	return fmt.Sprintf("call_%d", m.ids)
}

func (m *Model) step(r assistant.Request) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	said := newest(r.Array)
	for _, s := range m.script {
		if !strings.Contains(said, s.on) {
			continue
		}
		step := s.steps[0]
		if len(s.steps) > 1 {
			s.steps = s.steps[1:]
		}
		return step
	}
	return Say("re: " + said)
}

// newest returns what a person said last.
func newest(array []messages.Message) string {
	for _, m := range slices.Backward(array) {
		if m.Role == messages.RoleUser {
			return m.PlainText()
		}
	}
	return ""
}

// modelPort is the model as a process asks it.
type modelPort struct {
	model *Model
	life  *life
}

var _ assistant.Model = modelPort{}

// Name implements assistant.Model.
func (modelPort) Name() assistant.Name { return ModelName }

// Model implements assistant.Model.
func (modelPort) Model() string { return "script-1" }

// Models implements assistant.Lister.
func (p modelPort) Models(context.Context) ([]string, error) {
	return slices.Clone(p.model.Listed), nil
}

// Complete implements assistant.Model.
func (p modelPort) Complete(ctx context.Context, r assistant.Request) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		p.life.serve()
		step := p.model.step(r)
		asked := &Requested{Request: r, ctx: ctx, life: p.life, model: p.model, yield: yield}
		message, err := step(asked)
		if err != nil {
			asked.send(nil, err)
			return
		}
		asked.send(assistant.MessageDone{Message: message}, nil)
		asked.send(assistant.Finished{Model: p.Model(), Usage: assistant.Usage{InputTokens: 10, OutputTokens: 5}}, nil)
	}
}
