package spend

import "context"

// Store keeps what turns used, as a part of a transaction.
type Store interface {
	// AddUsage records what a turn, or a part of one, used.
	AddUsage(ctx context.Context, r Record) error

	// SumUsage returns the sum of the records that f chooses.
	SumUsage(ctx context.Context, f Filter) (Sum, error)
}
