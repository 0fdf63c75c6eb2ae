package queue_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/queue"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestIdleZZ(t *testing.T) {
	for name, open := range map[string]func(testing.TB) func(testing.TB) *store.Store{"sqlite": storetest.SQLite, "pg": storetest.Postgres} {
		s := open(t)(t)
		q, _ := queue.OpenRiver(t.Context(), s.Pools(), queue.Options{Log: storetest.Log(t)})
		b := bundle{s, q}
		stop := b.run(t, map[queue.Kind]queue.Handler{queue.KindSweep: func(ctx context.Context, _ queue.Job) error {
			return s.InRead(ctx, func(tx *store.Tx) error { _, err := tx.ConversationsWithWork(ctx, 100); return err })
		}})
		time.Sleep(8 * time.Second)
		var a, z syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &a)
		time.Sleep(15 * time.Second)
		syscall.Getrusage(syscall.RUSAGE_SELF, &z)
		d := time.Duration(z.Utime.Nano()-a.Utime.Nano()) + time.Duration(z.Stime.Nano()-a.Stime.Nano())
		t.Logf("%s: %v CPU in 15s, stop...", name, d)
		begin := time.Now()
		stop()
		t.Logf("%s: stopped in %v", name, time.Since(begin))
	}
}
