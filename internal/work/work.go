// Package work is what people do with plans by chat: approve, reject, edit, run.
//
// It gives the orchestrator its commands. It names no platform; buttons and
// dialogs are asked for by capability.
package work

import (
	"log/slog"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
)

// Config configures a Shop.
type Config struct {
	Storage  orchestrator.Storage
	Adapters []platform.Adapter
	Log      *slog.Logger
}

// Shop holds the commands. It is safe for concurrent use.
type Shop struct {
	storage  orchestrator.Storage
	adapters map[messages.Platform]platform.Adapter
	core     *orchestrator.Orchestrator // shows plans; set by Bind
	log      *slog.Logger
}

// New returns a Shop.
func New(config Config) *Shop {
	s := &Shop{storage: config.Storage, adapters: make(map[messages.Platform]platform.Adapter), log: config.Log}
	for _, a := range config.Adapters {
		s.adapters[a.Platform()] = a
	}
	return s
}

// Bind tells the Shop the orchestrator that its commands run in. It is called
// once, before anything runs.
func (s *Shop) Bind(core *orchestrator.Orchestrator) { s.core = core }

// Commands returns the commands, in the order in which people read them.
func (s *Shop) Commands() []orchestrator.Command {
	return []orchestrator.Command{
		{Name: "approve", Usage: "approve [plan] [note]", Summary: "approve a plan", Menu: true, Run: s.runApprove},
		{Name: "reject", Usage: "reject [plan] [reason]", Summary: "reject a plan", Run: s.runReject},
		{Name: "edit", Usage: "edit [plan] <text>", Summary: "replace a plan by your own text", Run: s.runEdit},
	}
}
