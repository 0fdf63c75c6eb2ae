package orchestrator

import (
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/sessions"
)

// What the commands of this package use of the outbox.

const (
	controlHold   = outbox.Hold
	deliveryPause = 5 * time.Minute
)

func backoff(n int, most time.Duration) time.Duration { return fault.Policy{Longest: most}.Pause(n) }

func addNotice(ctx context.Context, tx Tx, conversationID, entryID, text string) error {
	return outbox.AddNotice(ctx, tx, conversationID, entryID, text)
}

func (o *Orchestrator) unmark(entry sessions.Entry) { o.outbox.Unmark(entry) }

func (o *Orchestrator) bringControl(ctx context.Context, key messages.ConversationKey, open []messages.Delivery) error {
	return o.outbox.SendHeld(ctx, key, open)
}
