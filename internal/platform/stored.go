package platform

import (
	"context"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// maxReason is how many bytes of an error are kept beside an event that was refused.
const maxReason = 200

// Store makes durable what an event of a platform means: what is to be done, or
// with a reason, the event as it came. Events that the sink refuses as invalid are
// kept like that, for they would be refused again. It returns nil once it is
// durable, or if there is nothing to store, and whether the event was kept. It may
// run again for the same event: what is stored has the same id.
func Store(ctx context.Context, sink Sink, events []messages.Inbound, raw messages.RawEvent) (kept bool, err error) {
	if len(events) > 0 {
		err := sink.Accept(ctx, events...)
		if err == nil {
			failpoint.Hit(failpoint.Stored)
		}
		if !fault.Is(err, fault.Invalid) {
			return false, err
		}
		raw.Reason = Cut("refused: "+err.Error(), maxReason)
		if raw.Event == "" {
			raw.Event = events[0].Event
		}
	}
	if raw.Reason == "" {
		return false, nil
	}
	return true, sink.Keep(ctx, raw)
}

// Cut returns the beginning of a text, at most n bytes of whole characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
