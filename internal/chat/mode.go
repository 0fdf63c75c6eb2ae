package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

func (pf *preferences) modeCommand() *command.Command {
	return &command.Command{
		Name:    "mode",
		Usage:   "mode [ask|edit|auto]",
		Summary: "show or change the permission mode",
		Example: "mode ask",
		Lane:    command.Ahead,
		Takes:   command.OneWord,
		Run:     pf.runMode,
	}
}

// modeText says what a mode means.
func modeText(m approval.Mode) string {
	switch m {
	case approval.ModeAsk:
		return "read-only; nothing is changed or run"
	case approval.ModeAuto:
		return "no approvals for owners; like edit for everyone else"
	default:
		return "files in the worktree can be changed; everything else needs approval"
	}
}

func (pf *preferences) runMode(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) == 0 {
		mode := modeOf(r.Conv, pf.mode)
		return command.Reply{Text: fmt.Sprintf("Mode **%s**: %s. Change it with `%smode ask|edit|auto`.", mode, modeText(mode), pf.prefix(r.Conv.Key))}, nil
	}
	mode, err := approval.ParseMode(r.Call.Args[0])
	if err != nil {
		return command.Reply{}, err
	}
	if mode == approval.ModeAuto && r.Role != sessions.Owner {
		return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can switch to auto.")
	}
	err = choose(ctx, pf.store, r, "mode", string(mode), func(s *sessions.Settings) { s.Mode = string(mode) })
	return command.Reply{Text: fmt.Sprintf("Mode is now **%s**: %s.", mode, modeText(mode))}, err
}

// modeOf returns the mode of a conversation: its own, or that of those which chose none.
func modeOf(conv sessions.Conversation, unchosen approval.Mode) approval.Mode {
	mode, err := approval.ParseMode(conv.Settings.Mode)
	if err != nil {
		return unchosen
	}
	return mode
}
