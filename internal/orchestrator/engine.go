//nolint:revive // names of types that the rooms document
package orchestrator

import (
	"context"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/control"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/orchestrator/turn"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
)

// What others know of the rooms is named here; the rooms say what it is.
type (
	// Storage is the database, as the engine sees it.
	Storage = port.Storage

	// Tx is a transaction of it.
	Tx = port.Tx

	Commands = control.Commands

	Tools        = turn.Tools
	ToolTurn     = turn.ToolTurn
	Worktrees    = turn.Worktrees
	Prepared     = turn.Prepared
	NeedsClone   = turn.NeedsClone
	Memory       = turn.Memory
	RecallLimits = turn.RecallLimits
	Learner      = turn.Learner
	Files        = turn.Files
	Decision     = turn.Decision
	Stopped      = turn.Stopped
	StopState    = turn.StopState
)

// The states of a stop; see turn.
const (
	StopNothing = turn.StopNothing
	StopAsked   = turn.StopAsked
	StopSlow    = turn.StopSlow
	StopDone    = turn.StopDone
)

// Ring looks after a conversation: it claims its lease and drains its inbox, in
// the background. It returns queue.ErrBusy if no slot becomes free within a
// second, and nil if there is nothing to do or somebody else does it.
func (o *Orchestrator) Ring(ctx context.Context, conversationID string) error {
	return o.turns.Ring(ctx, conversationID)
}

// Wake looks for work in a conversation in the background; if it cannot, the sweep
// does.
func (o *Orchestrator) Wake(conversationID string) { o.turns.Wake(conversationID) }

// Stop ends the turn of a conversation and drops what waits there; see turn.Turns.
func (o *Orchestrator) Stop(ctx context.Context, conv sessions.Conversation, upTo int64, by string) (Stopped, error) {
	return o.turns.Stop(ctx, conv, upTo, by)
}

// Running returns since when a turn of a conversation runs in this process; ok is
// false if none does.
func (o *Orchestrator) Running(conversationID string) (since time.Time, ok bool) {
	return o.turns.Running(conversationID)
}

// Decide settles an approval, once, and lets the turn that asked go on, wherever it
// is; see turn.Turns.
func (o *Orchestrator) Decide(ctx context.Context, r command.Request, v Decision) (approval.Approval, error) {
	return o.turns.Decide(ctx, r, v)
}

// SystemPrompt returns what the next session of a conversation begins with, without
// what a repository adds.
func (o *Orchestrator) SystemPrompt(conv sessions.Conversation, in messages.Inbound, p *profile.Profile) string {
	return o.turns.SystemPrompt(conv, in, p)
}

// ModelProblem says why a profile cannot have the model that it wants in a
// conversation; empty if it can.
func (o *Orchestrator) ModelProblem(p *profile.Profile, conv sessions.Conversation) string {
	return o.turns.ModelProblem(p, conv)
}

// noCommands knows none.
type noCommands struct{}

func (noCommands) Find(string) (command.Command, bool) { return command.Command{}, false }

func (noCommands) Unknown(context.Context, command.Request) (command.Reply, error) {
	return command.Reply{}, fault.New(fault.NotFound, "There are no commands here.")
}

func (noCommands) Plain(_ context.Context, r command.Request) (command.Reply, error) {
	return command.Reply{Again: &r.Entry.In}, nil
}

func (noCommands) Press(context.Context, command.Request) (command.Reply, error) {
	return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
}

// LimitsOf returns what a profile says about recall; nil is no profile.
func LimitsOf(p *profile.Profile) RecallLimits { return turn.LimitsOf(p) }
