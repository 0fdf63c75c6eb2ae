package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (tu *turns) retryCommand() *command.Command {
	return &command.Command{
		Name:    "retry",
		Usage:   "retry [note]",
		Summary: "run the last turn again from its start",
		Example: "retry use the other library",
		Details: "A turn that waits to retry, or for a provider's limit to end, continues immediately.",
		Lane:    command.Job,
		Hurries: true,
		Past:    true,
		Run:     tu.runRetry,
	}
}

// runRetry takes the last turn back and runs its request again, with a note if
// there is one.
func (tu *turns) runRetry(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Entry.Lane == sessions.LaneControl {
		return tu.retryNow(ctx, r, 0)
	}
	t, err := tu.takeBack(ctx, r, true)
	if err != nil {
		return command.Reply{}, err
	}
	if t.entry == "" {
		return command.Reply{Text: "There is nothing to retry here."}, nil
	}
	before, err := store.Within(ctx, tu.store.InRead, func(tx *store.Tx) (sessions.Entry, error) { return tx.Inbox().Entry(ctx, t.entry) })
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last request: %w", err)
	}
	if before.In.Kind != messages.KindMessage {
		return command.Reply{}, fault.New(fault.Unsupported, "The last turn did not start with a message, so it cannot be retried. It was undone.")
	}
	again := before.In
	if note := strings.TrimSpace(r.Call.Rest); note != "" {
		again.Text += "\n\n" + note
	}
	return command.Reply{Text: "↻ Retrying from the start of the last turn." + keptText(t.kept), Again: &again}, nil
}

// retryNow has the turn that waits for its next try run now; seq is the number of its
// entry, 0 is any.
func (tu *turns) retryNow(ctx context.Context, r command.Request, seq int64) (command.Reply, error) {
	waited, err := tu.engine.RetryNow(ctx, r.Conv, seq)
	switch {
	case err != nil:
		return command.Reply{}, err
	case !waited:
		return command.Reply{}, fault.New(fault.NotFound, "No turn is waiting to retry here.")
	}
	return command.Reply{Text: "↻ Trying again now."}, nil
}

// pressedTurn answers the buttons of a turn that failed, or whose answer was abridged.
func (tu *turns) pressedTurn(ctx context.Context, r command.Request, seq int64, what command.TurnAction) (command.Reply, error) {
	if seq <= 0 || seq > r.Conv.InboxSeq {
		return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
	}
	switch what {
	case command.RetryNow:
		reply, err := tu.retryNow(ctx, r, seq)
		if _, whispers := tu.platforms[r.Conv.Key.Platform].(platform.Whisperer); whispers && err == nil {
			reply = command.Reply{Note: reply.Text} // the turn shows itself
		}
		return reply, err
	case command.OtherModel:
		return command.Reply{Text: tu.listModels(ctx, r) + fmt.Sprintf(" Then `%sretry` retries with it immediately.", tu.prefix(r.Conv.Key))}, nil
	case command.Retry:
		return tu.pressedRetry(ctx, r, seq)
	case command.Full:
		return command.Reply{
			Then: fmt.Sprintf("/full %d", seq), Once: fmt.Sprintf("full-%s-%d", r.Conv.ID, seq),
			Twice: "The whole answer was already requested; see below.",
		}, nil
	}
	return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
}

// pressedRetry runs a turn again that failed, if it is the last one and nothing else is
// under way.
func (tu *turns) pressedRetry(ctx context.Context, r command.Request, seq int64) (command.Reply, error) {
	last, ok, err := tu.lastTurn(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	var failed sessions.Entry
	busy := false
	err = tu.store.InRead(ctx, func(tx *store.Tx) error {
		if !ok {
			return nil
		}
		if failed, err = tx.Inbox().Entry(ctx, last.EntryID); err != nil {
			return err
		}
		_, busy, err = tx.Inbox().NextEntry(ctx, r.Conv.ID)
		return err
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case failed.Seq != seq || failed.State != sessions.EntryFailed:
		return command.Reply{}, fault.New(fault.NotFound, "This is no longer the last turn, so nothing was done.")
	case busy:
		return command.Reply{}, fault.New(fault.Conflict, "Something else is running or queued here. Press again afterwards.")
	}
	return command.Reply{Then: "/retry", Once: "retry-" + failed.ID}, nil
}
