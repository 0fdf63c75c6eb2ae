package orchestratortest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// AgentName names the scripted external agent.
const AgentName assistant.Name = "agent"

// Errand is what the agent does in a turn; it returns its answer.
type Errand func(r *Errands) (string, error)

// Errands is a turn of the agent, while it is at work.
type Errands struct {
	assistant.Turn

	// Used is what the turn used. Zero is 100 tokens in and 50 out.
	Used assistant.Usage

	ctx   context.Context
	life  *life
	yield func(assistant.Event, error) bool
	over  bool
}

// Context ends with the turn.
func (r *Errands) Context() context.Context { return r.ctx }

// Tell yields an event.
func (r *Errands) Tell(e assistant.Event) {
	r.life.serve()
	if !r.over {
		r.over = !r.yield(e, nil)
	}
}

// Ask asks a person whether the agent may run something.
func (r *Errands) Ask(p assistant.Permission) (assistant.Verdict, error) {
	v, err := r.Host.Ask(r.ctx, p)
	r.life.serve()
	return v, err
}

// Agent is the scripted external agent: an assistant with a loop, tools and sessions of
// its own. Without a script it answers "agent: " and what was asked. It is safe for
// concurrent use.
type Agent struct {
	mu       sync.Mutex
	script   []errand
	turns    []assistant.Turn
	models   []string
	released []string
}

type errand struct {
	on string
	do []Errand
}

// On sets what the agent does with turns whose newest words of a person contain on: one
// errand after the other; the last one is repeated.
func (a *Agent) On(on string, do ...Errand) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.script = append([]errand{{on, do}}, a.script...)
}

// Turns returns what the agent was asked so far.
func (a *Agent) Turns() []assistant.Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.turns)
}

// Offer sets the models that the agent offers.
func (a *Agent) Offer(models ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.models = models
}

// Released returns the conversations whose processes were ended.
func (a *Agent) Released() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.released)
}

func (a *Agent) next(t assistant.Turn) Errand {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns = append(a.turns, t)
	said := newest(t.Array)
	for i := range a.script {
		s := &a.script[i]
		if !strings.Contains(said, s.on) {
			continue
		}
		do := s.do[0]
		if len(s.do) > 1 {
			s.do = s.do[1:]
		}
		return do
	}
	return func(*Errands) (string, error) { return "agent: " + said, nil }
}

// agentPort is the agent as a process runs it.
type agentPort struct {
	agent *Agent
	life  *life
}

var (
	_ assistant.Agent  = agentPort{}
	_ assistant.Lister = agentPort{}
)

// Name implements assistant.Assistant.
func (agentPort) Name() assistant.Name { return AgentName }

// Model implements assistant.Assistant.
func (agentPort) Model() string { return "" }

// Models implements assistant.Lister.
func (p agentPort) Models(context.Context) ([]string, error) {
	p.agent.mu.Lock()
	defer p.agent.mu.Unlock()
	return slices.Clone(p.agent.models), nil
}

// Release implements assistant.Agent.
func (p agentPort) Release(conversation string) {
	p.agent.mu.Lock()
	defer p.agent.mu.Unlock()
	p.agent.released = append(p.agent.released, conversation)
}

// Close implements assistant.Agent.
func (agentPort) Close() error { return nil }

// Run implements assistant.Assistant.
func (p agentPort) Run(ctx context.Context, t assistant.Turn) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		p.life.serve()
		r := &Errands{Turn: t, ctx: ctx, life: p.life, yield: yield}
		answer, err := p.agent.next(t)(r)
		p.life.serve()
		switch {
		case r.over:
		case err != nil:
			yield(nil, err)
		default:
			r.Tell(assistant.MessageDone{Message: messages.NewText(messages.RoleAssistant, answer)})
			if r.Used == (assistant.Usage{}) {
				r.Used = assistant.Usage{InputTokens: 100, OutputTokens: 50}
			}
			r.Tell(assistant.Finished{Usage: r.Used})
		}
	}
}
