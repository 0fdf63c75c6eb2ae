package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (h *Handler) retryCommand() command.Command {
	return command.Command{
		Name:    "retry",
		Usage:   "retry [note]",
		Summary: "the last turn again, from where it began",
		Example: "retry use the other library",
		Lane:    command.Job,
		Needs:   command.Repositories,
		Run:     h.runRetry,
	}
}

// runRetry takes the last turn back and runs its request again, with a note if
// there is one.
func (h *Handler) runRetry(ctx context.Context, r command.Request) (command.Reply, error) {
	t, err := h.takeBack(ctx, r)
	if err != nil {
		return command.Reply{}, err
	}
	if t.entry == "" {
		return command.Reply{Text: "There is no turn to run again here."}, nil
	}
	var before sessions.Entry
	err = h.store.InRead(ctx, func(tx *store.Tx) error {
		var err error
		before, err = tx.Entry(ctx, t.entry)
		return err
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last request: %w", err)
	}
	if before.In.Kind != messages.KindMessage {
		return command.Reply{}, fault.New(fault.Unsupported, "The last turn did not begin with a message, so it cannot be run again. Its files and talk are taken back.")
	}
	again := before.In
	if note := strings.TrimSpace(r.Call.Rest); note != "" {
		again.Text += "\n\n" + note
	}
	return command.Reply{Text: "↻ Again, from where it began." + keptText(t.kept), Again: &again}, nil
}
