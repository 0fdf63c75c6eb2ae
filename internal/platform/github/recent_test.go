package github

import (
	"strconv"
	"testing"
	"time"
)

// Deliveries come again and sweeps see old comments: a request that is seen
// twice, even with others between, is one request.
func TestTheLoopGuardCountsARequestOnce(t *testing.T) {
	t.Parallel()
	guard, now := newLoopGuard(), time.Now()
	guard.spoke("acme/web#1", now)
	for range 20 {
		for id := range maxQuick {
			if !guard.admits("acme/web#1", "7", strconv.Itoa(id), now) {
				t.Fatalf("request %d is taken for one too many", id)
			}
		}
	}
	for range 2 {
		if guard.admits("acme/web#1", "7", "one too many", now) {
			t.Error("a ping-pong goes on")
		}
		if !guard.admits("acme/web#1", "7", "0", now) {
			t.Error("a request that was served is refused when it comes again")
		}
	}
	if !guard.admits("acme/web#1", "7", "later", now.Add(2*quickly)) {
		t.Error("a request after a pause is refused")
	}
}
