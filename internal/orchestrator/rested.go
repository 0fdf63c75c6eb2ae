package orchestrator

import (
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// maxRested is how many standing tasks are looked at when the budget has changed.
const maxRested = 10_000

// startDue begins the standing tasks that are due. Those that rest until the next day because
// a budget was used up are due if it is not any more: at a start, or once it was changed.
func (o *Orchestrator) startDue(ctx context.Context) {
	budget := o.live().Budget
	if seen := o.rested.Load(); seen == nil || *seen != budget {
		if err := o.wakeRested(ctx, budget); err != nil {
			o.config.Log.WarnContext(ctx, "could not look for standing tasks that rest; the next sweep tries again", "err", err)
		} else {
			o.rested.Store(&budget)
		}
	}
	o.inbox.StartDue()
}

// wakeRested moves what rests to now.
func (o *Orchestrator) wakeRested(ctx context.Context, budget spend.Budget) error {
	now := time.Now()
	tomorrow := spend.Today(now).AddDate(0, 0, 1)
	var ready []sessions.Schedule
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		ready = nil
		tasks, err := tx.Tasks().DueSchedules(ctx, tomorrow, maxRested)
		if err != nil {
			return err
		}
		for _, s := range tasks {
			if !s.NextAt.Equal(tomorrow) || s.EntryID == "" {
				continue // it does not rest
			}
			last, err := tx.Inbox().Entry(ctx, s.EntryID)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
			if last.State != sessions.EntryFailed {
				continue // it rested before, and has run at midnight since
			}
			used, err := budget.UsedUp(ctx, tx.Spending(), s.CreatedBy, now)
			if err != nil {
				return err
			}
			if used == nil {
				ready = append(ready, s)
			}
		}
		return nil
	})
	if err != nil || len(ready) == 0 {
		return err
	}
	return o.config.Storage.InTx(ctx, func(tx Tx) error {
		for _, s := range ready {
			if _, err := tx.Tasks().AdvanceSchedule(ctx, s, now, now, ""); err != nil {
				return err
			}
		}
		return nil
	})
}
