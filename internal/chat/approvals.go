package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (de *decisions) approvalsCommand() *command.Command {
	return &command.Command{
		Name:    "approvals",
		Usage:   "approvals",
		Summary: "list pending approvals",
		Example: "approvals",
		Reading: command.ReadingAnywhere,
		Run:     de.runApprovals,
	}
}

// runApprovals lists what waits for a decision: here, and everywhere for owners where
// nobody else reads it.
func (de *decisions) runApprovals(ctx context.Context, r command.Request) (command.Reply, error) {
	where, hint := r.Conv.ID, ""
	switch {
	case r.Role != sessions.Owner:
	case private(r.Entry.In):
		where = ""
	default:
		hint = " A private chat shows those of other conversations."
	}
	var list []approval.Approval
	var names []string
	err := de.store.InRead(ctx, func(tx *store.Tx) (err error) {
		names = nil
		if list, err = tx.Questions().WaitingApprovals(ctx, where, 50); err != nil {
			return err
		}
		for _, a := range list {
			name, err := askedBy(ctx, tx, a)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(list) == 0 {
		return command.Reply{Text: "No pending approvals." + hint}, nil
	}
	var b strings.Builder
	b.WriteString("Pending approvals:\n\n")
	for i, a := range list {
		elsewhere := ""
		if a.ConversationID != r.Conv.ID {
			elsewhere = ", in another conversation"
		}
		fmt.Fprintf(&b, "- **%s** %s (for %s%s)\n", a.Name(), a.Question(), names[i], elsewhere)
	}
	prefix := de.prefix(r.Conv.Key)
	fmt.Fprintf(&b, "\n`%sapprove %s` or `%sdeny %s` decides.%s", prefix, list[0].Name(), prefix, list[0].Name(), hint)
	return command.Reply{Text: b.String()}, nil
}
