package exchange

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

// UntilDone does something again and again, with growing pauses and those that the
// platform asks for, until it succeeds or ctx ends, and then returns nil. It
// returns an error of one of the final kinds at once: those are for an operator.
func UntilDone(ctx context.Context, log *slog.Logger, trouble string, do func(context.Context) error, final ...fault.Kind) error {
	wait := platform.NewBackoff(200*time.Millisecond, 30*time.Second)
	for ctx.Err() == nil {
		err := do(ctx)
		if err == nil || slices.ContainsFunc(final, func(k fault.Kind) bool { return fault.Is(err, k) }) {
			return err
		}
		if ctx.Err() == nil {
			log.WarnContext(ctx, "the platform is not responding as it should, trying again", "trouble", trouble, "err", err)
			_ = wait.Sleep(ctx, RetryAfter(err))
		}
	}
	return nil
}
