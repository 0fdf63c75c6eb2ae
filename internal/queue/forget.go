package queue

import (
	"context"

	"remote-agent/internal/fault"
)

// Forget drops what a dead process has left in River's tables on SQLite, where
// one process works at a time: its leadership, whose end the periodic jobs would
// otherwise wait for, and the jobs that it was running. The sweep at the start
// finds their work. On PostgreSQL it does nothing.
func (r *River) Forget(ctx context.Context) error {
	if r.pools.SQLite == nil {
		return nil
	}
	for _, statement := range []string{`DELETE FROM river_leader`, `DELETE FROM river_job WHERE state = 'running'`} {
		if _, err := r.pools.SQLite.ExecContext(ctx, statement); err != nil {
			return fault.Wrap(err, fault.Unavailable, "forget a dead process's jobs")
		}
	}
	return nil
}
