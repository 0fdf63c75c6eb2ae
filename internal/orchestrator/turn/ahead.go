package turn

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// nextAhead returns the oldest command that has not run yet and that an entry with a
// sequence number waits for.
func (o *Turns) nextAhead(ctx context.Context, tx port.Tx, conversationID string, seq int64) (sessions.Entry, bool, error) {
	waiting, err := tx.Inbox().ControlBefore(ctx, conversationID, seq)
	for _, e := range waiting {
		if call, ok := command.Parse(e.In.Text); ok && e.In.Kind == messages.KindMessage && o.laneOf(call.Name) == command.Ahead {
			return e, true, err
		}
	}
	return sessions.Entry{}, false, err
}

// laneOf returns the lane of a command; AtOnce for a name that none has.
func (o *Turns) laneOf(name string) command.Lane {
	c, _ := o.config.Commands.Find(name)
	return c.Lane
}
