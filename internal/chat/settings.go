package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// nameOf names an actor for people: by name if the database has one.
func nameOf(ctx context.Context, tx *store.Tx, actor string) (string, error) {
	platform, id, _ := strings.Cut(actor, "/")
	who, _, err := tx.People().Identity(ctx, messages.Platform(platform), messages.UserID(id))
	return wording.Who(who.Name, actor), err
}

// askedBy names the person whose turn asks for an approval.
func askedBy(ctx context.Context, tx *store.Tx, a approval.Approval) (string, error) {
	if a.EntryID != "" {
		e, err := tx.Inbox().Entry(ctx, a.EntryID)
		if err == nil && e.In.Actor() == a.Requester {
			return wording.Who(e.In.Sender.Name, a.Requester), nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	return nameOf(ctx, tx, a.Requester)
}

// choose changes the settings of a conversation and audits it.
func choose(ctx context.Context, storage Storage, r command.Request, what, value string, change func(s *sessions.Settings)) error {
	return storage.InTx(ctx, func(tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		next := conv.Settings
		change(&next)
		if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Settings: &next}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "settings." + what, ConversationID: conv.ID, Target: value,
		})
	})
}

func (pf *preferences) modeCommand() command.Command {
	return command.Command{
		Name:    "mode",
		Usage:   "mode [ask|edit|auto]",
		Summary: "show or change the permission mode",
		Example: "mode ask",
		Lane:    command.Ahead,
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

func (pf *preferences) verboseCommand() command.Command {
	return command.Command{
		Name:    "verbose",
		Usage:   "verbose 0|1|2",
		Summary: "set how much detail to show during work",
		Example: "verbose 2",
		Reading: command.ReadingAside,
		Run:     pf.runVerbose,
	}
}

func (pf *preferences) runVerbose(ctx context.Context, r command.Request) (command.Reply, error) {
	const usage = "Use `/verbose 0` (result only), `1` (a line per step) or `2` (every call with its output)."
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, usage)
	}
	level, err := strconv.Atoi(r.Call.Args[0])
	if err != nil || level < 0 || level > 2 {
		return command.Reply{}, fault.New(fault.Invalid, usage)
	}
	err = choose(ctx, pf.store, r, "verbose", r.Call.Args[0], func(s *sessions.Settings) { s.Verbose = &level })
	return command.Reply{Text: fmt.Sprintf("Verbosity is %d from the next turn on.", level)}, err
}
