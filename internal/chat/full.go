package chat

import (
	"context"
	"fmt"
	"math"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

func (h *Handler) fullCommand() command.Command {
	return command.Command{
		Name:    "full",
		Usage:   "full",
		Summary: "all of the last answer as text, where only its beginning and end were shown",
		Example: "full",
		Lane:    command.Job, // behind what is being answered, and in as many messages as it takes
		Reading: command.ReadingAnywhere,
		Run:     h.runFull,
	}
}

// lookBack is how many messages are read at a time to find the last answer.
const lookBack = 50

// runFull shows the last answer again, all of it.
func (h *Handler) runFull(ctx context.Context, r command.Request) (command.Reply, error) {
	text := ""
	err := h.store.InRead(ctx, func(tx *store.Tx) error {
		session, ok, err := tx.ActiveSession(ctx, r.Conv.ID)
		if err != nil || !ok {
			return err
		}
		text, err = lastAnswer(ctx, tx, session.ID)
		return err
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last answer: %w", err)
	}
	if text == "" {
		return command.Reply{Text: "There is no answer in this session yet."}, nil
	}
	return command.Reply{Text: text, Whole: true}, nil
}

// lastAnswer returns the text of the newest message of the assistant that says
// something; empty if there is none.
func lastAnswer(ctx context.Context, tx *store.Tx, session string) (string, error) {
	for before := int64(math.MaxInt64); ; {
		page, err := tx.MessagesBefore(ctx, session, before, lookBack)
		if err != nil || len(page) == 0 {
			return "", err
		}
		for _, m := range page { // newest first
			if text := m.PlainText(); m.Role == messages.RoleAssistant && text != "" {
				return text, nil
			}
		}
		before = page[len(page)-1].Seq
	}
}
