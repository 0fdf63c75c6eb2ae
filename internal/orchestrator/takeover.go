package orchestrator

import (
	"cmp"
	"context"

	"remote-agent/internal/orchestrator/background"
)

// TakeOver looks at once for what dead processes have left, whose leases are void. What
// this process has no slot for, or may not begin because it stops, is offered to all.
func (o *Orchestrator) TakeOver(ctx context.Context) {
	defer background.Recover(ctx, o.config.Log, "take over", nil)
	if err := o.firstSweep(ctx); err != nil && ctx.Err() == nil {
		o.config.Log.WarnContext(ctx, "could not take over at once; the next sweep does", "err", err)
	}
}

// Offered works on conversations that another process offers to this one. What it has no
// slot for, or may not begin because it stops, is offered to all.
func (o *Orchestrator) Offered(ctx context.Context, conversationIDs []string) {
	defer background.Recover(ctx, o.config.Log, "take an offer", nil)
	o.rush.Wait(ctx)
	left, err := o.RingAll(ctx, conversationIDs)
	if len(left) > 0 {
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		err = cmp.Or(o.ringLater(later, left), err)
	}
	if err != nil && ctx.Err() == nil {
		o.config.Log.WarnContext(ctx, "could not take what another replica offers; the next sweep does", "err", err)
	}
}
