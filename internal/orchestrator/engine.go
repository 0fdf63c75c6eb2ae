//nolint:revive // names of types that the rooms document
package orchestrator

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator/control"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/orchestrator/turn"
	"remote-agent/internal/profile"
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
