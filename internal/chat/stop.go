package chat

import (
	"context"
	"fmt"
	"slices"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// maxOpen is how many waiting turns are looked at; fewer can wait.
const maxOpen = 1000

func (tu *turns) stopCommand() *command.Command {
	return &command.Command{
		Name:    "stop",
		Usage:   "stop",
		Summary: "stop the running turn and drop queued messages",
		Example: "stop",
		Rank:    3,
		Details: "With read-only access you can stop only what you asked for.",
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Past:    true,
		Run:     tu.runStop,
	}
}

func (tu *turns) runStop(ctx context.Context, r command.Request) (command.Reply, error) {
	return tu.stop(ctx, r, r.Entry.Seq)
}

// stop stops what came up to a place in the inbox.
func (tu *turns) stop(ctx context.Context, r command.Request, upTo int64) (command.Reply, error) {
	if r.Role == sessions.Reader {
		if err := tu.onlyOwn(ctx, r, upTo); err != nil {
			return command.Reply{}, err
		}
	}
	stopped, err := tu.engine.Stop(ctx, r.Conv, upTo, r.Actor())
	if err != nil {
		return command.Reply{}, err
	}
	text := map[orchestrator.StopState]string{
		orchestrator.StopNothing: "Nothing is running here.",
		orchestrator.StopAsked:   "⏹ Stopping.",
		orchestrator.StopSlow:    "⏹ Stopping; this may take a moment.",
		orchestrator.StopDone:    "⏹ Stopped. What was said so far is kept.",
	}[stopped.State]
	if n := stopped.Dropped; n > 0 {
		text += fmt.Sprintf(" %s dropped. Resend any you still need.", wording.Count(n, "queued message was", "queued messages were"))
	}
	return command.Reply{Text: text}, nil
}

// onlyOwn refuses to stop turns of other people.
func (tu *turns) onlyOwn(ctx context.Context, r command.Request, upTo int64) error {
	others, err := store.Within(ctx, tu.store.InRead, func(tx *store.Tx) (bool, error) {
		head, ok, err := tx.Inbox().NextEntry(ctx, r.Conv.ID)
		if err != nil || !ok {
			return false, err
		}
		open, err := tx.Inbox().WaitingEntries(ctx, r.Conv.ID, head.Seq, maxOpen)
		return slices.ContainsFunc(append(open, head), func(e sessions.Entry) bool {
			return e.Seq <= upTo && e.In.Actor() != r.Actor()
		}), err
	})
	switch {
	case err != nil:
		return fmt.Errorf("read whose turns would be stopped: %w", err)
	case others:
		return fault.New(fault.Forbidden, "You have read-only access: you cannot stop what other people asked for.")
	}
	return nil
}

// pressedStop answers the button that stops what came up to a place in the inbox.
func (tu *turns) pressedStop(ctx context.Context, r command.Request, upTo int64) (command.Reply, error) {
	if upTo <= 0 || upTo > r.Conv.InboxSeq {
		return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
	}
	reply, err := tu.stop(ctx, r, upTo)
	if _, whispers := tu.platforms[r.Conv.Key.Platform].(platform.Whisperer); whispers && err == nil {
		reply = command.Reply{Note: reply.Text} // the turn itself says that it was stopped
	}
	return reply, err
}
