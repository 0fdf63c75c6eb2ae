package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// How long a command that needs a conversation at rest waits for that: people see an
// answer a moment before it is on record.
const (
	restFor   = 2 * time.Second
	restEvery = 50 * time.Millisecond
)

// busy is the fault.Conflict of a command that needs a conversation at rest; then says
// what it would have done.
func busy(prefix, then string) error {
	return &fault.Error{Kind: fault.Conflict, Err: sessions.ErrBusy, Public: fmt.Sprintf(
		"Something is still running or queued here. Send `%sstop`, or wait for it, and then %s.", prefix, then)}
}

// whenIdle runs fn in a transaction, and again for a moment while the conversation is
// busy.
func whenIdle(ctx context.Context, storage Storage, fn func(tx *store.Tx) error) error {
	over := time.Now().Add(restFor)
	for {
		err := storage.InTx(ctx, fn)
		if !errors.Is(err, sessions.ErrBusy) || !time.Now().Before(over) {
			return err
		}
		pause := time.NewTimer(restEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}
