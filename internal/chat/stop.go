package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/wording"
)

func (h *Handler) stopCommand() command.Command {
	return command.Command{
		Name:    "stop",
		Usage:   "stop",
		Summary: "stop the running turn and drop queued messages",
		Example: "stop",
		Rank:    3,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Run:     h.runStop,
	}
}

func (h *Handler) runStop(ctx context.Context, r command.Request) (command.Reply, error) {
	return h.stop(ctx, r, r.Entry.Seq)
}

// stop stops what came up to a place in the inbox.
func (h *Handler) stop(ctx context.Context, r command.Request, upTo int64) (command.Reply, error) {
	stopped, err := h.engine.Stop(ctx, r.Conv, upTo, r.Actor())
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

// pressedStop answers the button that stops what came up to a place in the inbox.
func (h *Handler) pressedStop(ctx context.Context, r command.Request, upTo int64) (command.Reply, error) {
	if upTo <= 0 || upTo > r.Conv.InboxSeq {
		return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
	}
	reply, err := h.stop(ctx, r, upTo)
	if _, whispers := h.adapters[r.Conv.Key.Platform].(platform.Whisperer); whispers && err == nil {
		reply = command.Reply{Note: reply.Text} // the turn itself says that it was stopped
	}
	return reply, err
}
