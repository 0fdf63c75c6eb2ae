package platform

import (
	"context"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// maxReason is how many bytes of an error are kept beside an event that was refused.
const maxReason = 200

// Meaning is what a payload of a platform means: events to accept, or, if it was not
// understood, the reason to keep it as it is. Neither: nothing for the bot.
type Meaning struct {
	Events []messages.Inbound
	Reason string
	Event  messages.EventID // of what is kept, if it could be read
	Raw    []byte           // the payload without credentials
}

// Malformed is the reason why something was not understood.
type Malformed string

// Error implements error.
func (m Malformed) Error() string { return string(m) }

// Store makes durable what a payload means that an account of a platform received.
// Events that the sink refuses as invalid are kept as if they had not been understood,
// for they would be refused again. It returns nil once it is durable, or if there is
// nothing to store, and whether the payload was kept. It may run again for the same
// payload: what is stored has the same id.
func Store(ctx context.Context, sink Sink, of messages.Platform, account string, m Meaning) (kept bool, err error) {
	if len(m.Events) > 0 {
		err := sink.Accept(ctx, m.Events...)
		if err == nil {
			failpoint.Hit(failpoint.Stored)
		}
		if !fault.Is(err, fault.Invalid) {
			return false, err
		}
		m.Reason = Cut("refused: "+err.Error(), maxReason)
		if m.Event == "" {
			m.Event = m.Events[0].Event
		}
	}
	if m.Reason == "" {
		return false, nil
	}
	return true, sink.Keep(ctx, messages.RawEvent{Platform: of, Account: account, Event: m.Event, Raw: m.Raw, Reason: m.Reason})
}
