package orchestrator

import "time"

// The longest pauses between tries. An answer waits as long as its platform is
// away, so its deliveries have no last try.
const (
	turnPause     = time.Minute
	deliveryPause = 5 * time.Minute
)

// backoff is the pause after the n-th failure: 1, 2, 4, ... seconds, at most most.
func backoff(n int, most time.Duration) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 20), most)
}
