package inbox

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// lane says who handles a message: the conversation's worker, in order, or the
// control lane, at once. Unknown commands go there too: the answer is the
// nearest name. But where the conversation has to get its files of the repository first, those
// may have the command. A message that is the word "stop" and nothing else is the command,
// on every platform.
func (i *Inbox) lane(ctx context.Context, tx port.Tx, conv sessions.Conversation, in messages.Inbound) (sessions.Lane, error) {
	if in.Kind == messages.KindAction {
		return sessions.LaneControl, nil
	}
	call, ok := command.Parse(in.Text)
	if !ok && command.IsStop(in.Text) && in.Schedule == 0 {
		return sessions.LaneControl, nil
	}
	if !ok {
		return sessions.LaneTurn, nil
	}
	name := call.Invoked().Name
	if c, ok := i.Commands.Find(call.Name); ok && c.Run != nil {
		if c.Past && in.Begins() {
			return sessions.LaneControl, nil // it says where it can be given
		}
		if c.Lane == command.Ahead && in.Opening != "" && call.Rest != "" {
			return sessions.LaneTurn, nil // what it sets is of the place that opens with it
		}
		if c.Files && i.worksElsewhere(conv) {
			return sessions.LaneTurn, nil
		}
		if c.Lane == command.Job {
			if waits, err := i.Turns.Waiting(ctx, tx, conv.ID, c.Hurries); err != nil || !waits {
				return sessions.LaneTurn, err
			}
		}
		return sessions.LaneControl, nil
	}
	if c, ok := i.Commands.Find(name); ok && c.Prompt != nil {
		return sessions.LaneTurn, nil
	}
	if conv.CodebaseID != "" {
		files, err := tx.Registry().CodebaseCommands(ctx, conv.CodebaseID)
		if _, ok := files[name]; ok || fault.Is(err, fault.Internal) {
			return sessions.LaneTurn, nil // its turn says that they cannot be read: an error here would keep back what comes behind it
		}
		if err != nil {
			return sessions.LaneTurn, err
		}
	}
	if conv.CodebaseID == "" && in.Repository != nil || conv.CodebaseID != "" && conv.InboxSeq == 0 {
		return sessions.LaneTurn, nil
	}
	return sessions.LaneControl, nil
}

// answerLane is the lane of a message where something is under way: a short word, such
// as "no", is an answer to the question that waits there, if one does, and is not left
// behind the turn that asks it.
func (i *Inbox) answerLane(ctx context.Context, tx port.Tx, conv sessions.Conversation, in messages.Inbound) (sessions.Lane, error) {
	if _, _, ok := command.ParseWord(in.Text); !ok || in.Schedule != 0 || len(in.Attachments) > 0 {
		return sessions.LaneTurn, nil
	}
	asked, err := tx.Questions().WaitingApprovals(ctx, conv.ID, 1)
	if err != nil || len(asked) == 0 {
		return sessions.LaneTurn, err
	}
	return sessions.LaneControl, nil
}

// conversation returns the conversation of the entry, locked. One that began
// with a placeholder assistant is put aside as soon as a real one is
// configured: its row keeps its assistant, the chat gets a new row.
func (i *Inbox) conversation(ctx context.Context, tx port.Tx, a *accepted) (sessions.Conversation, error) {
	key := a.entry.In.Conversation
	fallback, err := i.fallback(ctx, tx, a.entry.In)
	if err != nil {
		return sessions.Conversation{}, err
	}
	conv, created, err := tx.Conversations().GetOrCreateConversation(ctx, key, fallback)
	a.empty = created && a.entry.In.Opening == ""
	if err != nil || created || !i.outgrown(conv) || conv.Leased {
		return conv, err
	}
	if seen, err := tx.Inbox().HasEntry(ctx, a.entry.In); err != nil || seen {
		return conv, err // a repeated event changes nothing
	}
	if open, err := tx.Conversations().OpenWork(ctx, conv.ID); err != nil || open.Waiting || open.Deliveries {
		return conv, err
	}
	archived := messages.ConversationKey{
		Platform: key.Platform,
		ID:       fmt.Sprintf("%s~%s~%s", key.ID, conv.Assistant, conv.ID[len(conv.ID)-12:]),
	}
	if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Key: &archived}); err != nil {
		return conv, err
	}
	err = tx.Audit(ctx, sessions.AuditEntry{
		Actor: "system", Action: "conversation.archive", ConversationID: conv.ID, Target: archived.String(),
	})
	if err != nil {
		return conv, err
	}
	next, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, fallback)
	if err != nil {
		return conv, err
	}
	if err := tx.Tasks().TakePlace(ctx, conv, next); err != nil {
		return conv, err
	}
	next.AgentID = conv.AgentID
	return next, outbox.AddNotice(ctx, tx, next.ID, "", fmt.Sprintf(
		"This chat started with the assistant %s. %s answers from now on, in a new conversation; the earlier one is kept.",
		conv.Assistant, fallback))
}

// fallback returns the assistant of a new conversation: that of the repository
// which it is about, if that is known and its assistant is there, else the
// default.
func (i *Inbox) fallback(ctx context.Context, tx port.Tx, in messages.Inbound) (string, error) {
	if in.Repository != nil {
		c, ok, err := tx.Registry().FindCodebase(ctx, strings.TrimSuffix(in.Repository.URL, ".git"))
		if err != nil {
			return "", err
		}
		if name := assistant.Name(c.Assistant); ok && i.Assistants[name] != nil && !i.Placeholder[name] {
			return c.Assistant, nil
		}
	}
	return string(i.Default), nil
}

// outgrown reports whether a conversation belongs to a placeholder assistant
// although a real one is configured.
func (i *Inbox) outgrown(conv sessions.Conversation) bool {
	for name := range i.Placeholder {
		if string(name) == conv.Assistant {
			return name != i.Default
		}
	}
	return false
}
