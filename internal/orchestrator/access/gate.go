package access

import (
	"context"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// gatePatience is how long a platform may take to say whether somebody may use
// the bot.
const gatePatience = 15 * time.Second

// gate returns who decides on a platform who may use the bot, or nil.
func (a *Access) gate(p messages.Platform) platform.Gatekeeper {
	g, _ := a.Adapters[p].(platform.Gatekeeper)
	return g
}

// Admitted asks the platform whether the sender of a message may use the bot
// there. It is asked outside of transactions: when a message has arrived, and
// again when it is acted on. No answer is no; then err says why.
func (a *Access) Admitted(ctx context.Context, in messages.Inbound) (bool, error) {
	g := a.gate(in.Conversation.Platform)
	if g == nil || in.Outside() { // who comes from outside has the role of their own platform
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gatePatience)
	defer cancel()
	ok, err := g.Admits(ctx, in)
	if err != nil {
		a.Log.WarnContext(ctx, "could not check access, so it is denied",
			"conversation", in.Conversation, "sender", in.Sender.ID, "err", err)
	}
	return ok && err == nil, err
}

// Gated reports whether a platform decides itself who may use the bot.
func (a *Access) Gated(p messages.Platform) bool { return a.gate(p) != nil }
