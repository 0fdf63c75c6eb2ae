package spend

import (
	"context"
	"time"
)

// Store keeps what turns used, as a part of a transaction.
type Store interface {
	// SumUsage returns the sum of the records that f chooses.
	SumUsage(ctx context.Context, f Filter) (Sum, error)
}

// UsedUp returns CheckDay for what a person and all have used on the day of now; err says
// why that could not be read.
func (b Budget) UsedUp(ctx context.Context, from Store, actor string, now time.Time) (used, err error) {
	if b.DayMicros+b.PersonMicros+b.DayTokens+b.PersonTokens == 0 {
		return nil, nil
	}
	today := Today(now)
	person, err := from.SumUsage(ctx, Filter{Actor: actor, Since: today})
	if err != nil {
		return nil, err
	}
	all, err := from.SumUsage(ctx, Filter{Since: today})
	if err != nil {
		return nil, err
	}
	return b.CheckDay(person, all), nil
}
