package control

import (
	"context"
	"log/slog"
	"testing"

	"remote-agent/internal/command"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// settled is a database in which a command is done.
type settled struct {
	port.Storage
	port.Tx
	sessions.InboxStore
}

func (s settled) InTx(_ context.Context, fn func(tx port.Tx) error) error { return fn(s) }
func (s settled) Inbox() sessions.InboxStore                              { return s }
func (settled) Entry(context.Context, string) (sessions.Entry, error) {
	return sessions.Entry{State: sessions.EntryDone}, nil
}

// noCommands fails the test if one is run.
type noCommands struct {
	Commands
	t *testing.T
}

func (n noCommands) Find(string) (command.Command, bool) {
	n.t.Error("it was run")
	return command.Command{}, false
}

// TestCommandThatIsDoneIsNotRun: whoever found it waiting a moment ago was overtaken.
func TestCommandThatIsDoneIsNotRun(t *testing.T) {
	t.Parallel()
	c := New(Config{Storage: settled{}, Commands: noCommands{t: t}, Log: slog.New(slog.DiscardHandler)})
	if err := c.RunNow(t.Context(), sessions.Entry{ID: "e", State: sessions.EntryWaiting}); err != nil {
		t.Error(err)
	}
}
