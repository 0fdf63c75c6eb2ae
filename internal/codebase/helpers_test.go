package codebase_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"remote-agent/internal/waittest"
)

// noise returns text that does not compress well, the same for the same n.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte('!' + r.IntN(90))
	}
	return string(out)
}

// waitFor waits until a condition holds that another process or goroutine makes
// true without telling.
func waitFor(tb testing.TB, condition func() bool) {
	tb.Helper()
	deadline := waittest.Late(tb)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatal("the condition did not come true")
		}
	}
}
