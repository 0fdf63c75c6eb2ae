package orchestrator_test

import (
	"context"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// room is the key of a conversation.
func room(id string) messages.ConversationKey {
	return messages.ConversationKey{Platform: ot.PlatformName, ID: id}
}

var errUnavailable = fault.New(fault.Unavailable, "The other side is away.")

// gateFor has the platform say who may give orders; nobody is named besides.
func gateFor(w *ot.World, admits func(in messages.Inbound) (bool, error)) {
	w.Chat.Admits = func(_ context.Context, in messages.Inbound) (bool, error) { return admits(in) }
	access(w, orchestrator.AccessRule{})
}

// during returns how long after begin each of the calls was made that fit.
func during(w *ot.World, begin time.Time, fits func(a ot.Asked) bool) []time.Duration {
	var out []time.Duration
	for _, a := range w.Chat.Calls() {
		if fits(a) {
			out = append(out, a.At.Sub(begin))
		}
	}
	return out
}

// forkPoints are where a fork into a place of its own can be interrupted.
var forkPoints = []failpoint.Point{failpoint.ForkStored, failpoint.ForkOpened, failpoint.ForkPlaced}

// remove takes somebody's access away, as an operator does.
func remove(w *ot.World, who messages.UserID) {
	w.T.Helper()
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		return tx.People().SetRole(ctx, sessions.Identity{Platform: ot.PlatformName, UserID: who, Role: sessions.Stranger}, sessions.GrantedByCLI, true)
	})
}
