package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (ns *newSessions) handoffCommand() *command.Command {
	return &command.Command{
		Name:    "handoff",
		Usage:   "handoff <assistant>",
		Summary: "continue with another assistant, keeping the history",
		Example: "handoff claude",
		Run:     ns.runHandoff,
	}
}

// runHandoff lets another assistant go on with a conversation. A row's assistant
// never changes (seed 002): the row is archived with all that belongs to it, and
// the chat gets a new one, whose first session carries the transcript over. The
// files come along: the worktree is that of the codebase and the new row begins
// from what the old one left there.
func (ns *newSessions) runHandoff(ctx context.Context, r command.Request) (command.Reply, error) {
	if strings.HasPrefix(r.Conv.Key.ID, r.Entry.In.Conversation.ID+"~") {
		return command.Reply{}, nil // done before a crash: the row is archived already
	}
	to, err := ns.handoffTarget(r)
	if err != nil {
		return command.Reply{}, err
	}
	var next sessions.Conversation
	err = whenIdle(ctx, ns.store, func(tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if open, err := tx.Conversations().OpenWork(ctx, conv.ID); err != nil || !open.IsNone() {
			if err == nil {
				err = busy(ns.prefix(r.Conv.Key), "hand over")
			}
			return err
		}
		next, err = ns.handOver(ctx, tx, r, conv, to)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	if a, is := ns.assistants[assistant.Name(r.Conv.Assistant)].(assistant.Agent); is {
		a.Release(r.Conv.ID) // what it keeps running
	}
	ns.engine.Wake(next.ID) // brings the notice
	return command.Reply{}, nil
}

func (ns *newSessions) handoffTarget(r command.Request) (string, error) {
	others := others(ns.assistants, ns.placeholder, r.Conv.Assistant)
	const none = "No other assistant is configured. An operator can add one."
	if len(r.Call.Args) != 1 {
		if len(others) == 0 {
			return "", fault.New(fault.Invalid, none)
		}
		return "", fault.Newf(fault.Invalid, "Specify an assistant: `/handoff %s`.", strings.Join(others, "|"))
	}
	to := strings.ToLower(r.Call.Args[0])
	if slices.Contains(others, to) {
		if c, ok := ns.assistants[assistant.Name(to)].(assistant.Checker); ok {
			return to, c.Check()
		}
		return to, nil
	}
	if how, ok := ns.missing[assistant.Name(to)]; ok {
		return "", fault.New(fault.Unsupported, how)
	}
	if to == r.Conv.Assistant {
		return "", fault.Newf(fault.Invalid, "%s is already in use here.", to)
	}
	text := fmt.Sprintf("There is no assistant %q here.", wording.Head(to, 40))
	if ns.placeholder[assistant.Name(to)] {
		text = fmt.Sprintf("%s is only a scripted stand-in and cannot take over.", to)
	}
	if len(others) == 0 {
		return "", fault.New(fault.Invalid, text+" "+none)
	}
	return "", fault.Newf(fault.Invalid, "%s Available: %s.", text, strings.Join(others, ", "))
}

// handOver does it, in one transaction, with the old row locked.
func (ns *newSessions) handOver(ctx context.Context, tx *store.Tx, r command.Request, conv sessions.Conversation, to string) (next sessions.Conversation, err error) {
	old, active, err := tx.Sessions().ActiveSession(ctx, conv.ID)
	if err != nil {
		return next, err
	}
	if active {
		if err := tx.Sessions().DeactivateSession(ctx, old.ID, "handoff"); err != nil {
			return next, err
		}
	}
	key := conv.Key
	archived := messages.ConversationKey{Platform: key.Platform, ID: fmt.Sprintf("%s~%s~%s", key.ID, conv.Assistant, conv.ID[len(conv.ID)-12:])}
	if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Key: &archived}); err != nil {
		return next, err
	}
	if next, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, to); err != nil {
		return next, err
	}
	settings := conv.Settings
	settings.Model, settings.Worktree = "", conv.WorkID() // the files stay, the other assistant's model does not
	update := sessions.ConversationUpdate{Settings: &settings, CodebaseID: &conv.CodebaseID, Cwd: &conv.Cwd}
	if err := tx.Conversations().UpdateConversation(ctx, next.ID, update); err != nil {
		return next, err
	}
	if err := tx.Tasks().TakePlace(ctx, conv, next); err != nil {
		return next, err
	}
	carried := 0
	if active {
		if carried, err = ns.carryOver(ctx, tx, old, next, to); err != nil {
			return next, err
		}
	}
	if err := addNotice(ctx, tx, next.ID, "", handedOver(conv.Assistant, to, carried)); err != nil {
		return next, err
	}
	return next, tx.Audit(ctx, sessions.AuditEntry{
		Actor: r.Actor(), Action: "conversation.handoff", ConversationID: conv.ID, Target: next.ID,
		Detail: fmt.Sprintf(`{"from":%q,"to":%q,"messages":%d}`, conv.Assistant, to, carried),
	})
}

func handedOver(from, to string, carried int) string {
	text := fmt.Sprintf("🔁 **%s** now answers here instead of %s.", to, from)
	if carried > 0 {
		text += fmt.Sprintf(" It has the history: %s.", wording.Count(carried, "message", "messages"))
	}
	return text
}

// carryOver copies the message array of a session into the first one of the new
// conversation.
func (ns *newSessions) carryOver(ctx context.Context, tx *store.Tx, old sessions.Session, next sessions.Conversation, to string) (int, error) {
	model := ""
	if a := ns.assistants[assistant.Name(to)]; a != nil {
		model = a.Model()
	}
	s, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{
		ConversationID: next.ID, CodebaseID: next.CodebaseID, ParentID: old.ID, Assistant: to, AgentName: old.AgentName, AgentID: old.AgentID,
		Model: model, SystemPrompt: old.SystemPrompt, UserPrompt: old.UserPrompt,
	})
	if err != nil {
		return 0, err
	}
	return tx.Messages().CopyMessages(ctx, old.ID, s.ID)
}

// addNotice stores a notice that comes before whatever is answered next.
func addNotice(ctx context.Context, tx *store.Tx, conversationID, entryID, text string) error {
	return tx.Deliveries().AddDelivery(ctx, &messages.Delivery{
		ConversationID: conversationID, EventID: entryID, Text: text, Final: true,
	})
}
