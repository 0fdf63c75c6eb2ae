package chat

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

func (tu *turns) fullCommand() *command.Command {
	return &command.Command{
		Name:    "full",
		Usage:   "full",
		Summary: "show all of the last answer where only its beginning and end were posted",
		Example: "full",
		Lane:    command.Job, // behind what is being answered, and in as many messages as it takes
		Reading: command.ReadingAnywhere,
		Past:    true,
		Run:     tu.runFull,
	}
}

// lookBack is how many messages are read at a time to find the last answer.
const lookBack = 50

// runFull shows the last answer again, all of it; or, for the button under one, the
// answer to the entry with a number of the inbox.
func (tu *turns) runFull(ctx context.Context, r command.Request) (command.Reply, error) {
	seq, err := answerNumber(r.Call.Args)
	if err != nil {
		return command.Reply{}, err
	}
	text, err := store.Within(ctx, tu.store.InRead, func(tx *store.Tx) (string, error) {
		if seq > 0 {
			return answerTo(ctx, tx, r.Conv.ID, seq)
		}
		session, ok, err := tx.Sessions().ActiveSession(ctx, r.Conv.ID)
		if err != nil || !ok {
			return "", err
		}
		return lastAnswer(ctx, tx, session.ID)
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last answer: %w", err)
	}
	switch {
	case text == "" && seq > 0:
		return command.Reply{Text: "That answer is no longer kept."}, nil
	case text == "":
		return command.Reply{Text: "There is no answer in this session yet."}, nil
	}
	return command.Reply{Text: text, Whole: true}, nil
}

// answerNumber returns the number that a button has put behind the command; 0 for none.
func answerNumber(args []string) (int64, error) {
	if len(args) == 0 {
		return 0, nil
	}
	seq, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || seq <= 0 || len(args) > 1 {
		return 0, fault.New(fault.Invalid, "This command takes no arguments; it shows all of the last answer.")
	}
	return seq, nil
}

// answerTo returns the text of what the assistant answered to an entry last; empty if
// nothing of it is kept.
func answerTo(ctx context.Context, tx *store.Tx, conversationID string, seq int64) (string, error) {
	entry, err := tx.Inbox().EntryNumbered(ctx, conversationID, seq)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	said, err := tx.Messages().RunMessages(ctx, entry.ID)
	if err != nil {
		return "", err
	}
	for _, m := range slices.Backward(said) {
		if text := m.PlainText(); m.Role == messages.RoleAssistant && text != "" {
			return text, nil
		}
	}
	return "", nil
}

// lastAnswer returns the text of the newest message of the assistant that says
// something; empty if there is none.
func lastAnswer(ctx context.Context, tx *store.Tx, session string) (string, error) {
	for before := int64(math.MaxInt64); ; {
		page, err := tx.Messages().MessagesBefore(ctx, session, before, lookBack)
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
