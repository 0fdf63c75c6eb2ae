package profile

import "context"

// Store reads profiles, as a part of a transaction.
type Store interface {
	// Agent returns a profile by its id; fault.NotFound if there is none.
	Agent(ctx context.Context, id string) (Profile, error)
}
