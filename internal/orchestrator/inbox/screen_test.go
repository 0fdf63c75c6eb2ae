package inbox

import (
	"testing"
	"time"
)

// TestFloodIsLoggedNowAndThen, with all that came since.
func TestFloodIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	s, begin := newStrangers(), time.Now()
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Second, 0}, {dropsEvery - 1, 0}, {dropsEvery, 3}, {dropsEvery + 1, 0}, {2 * dropsEvery, 2}} {
		if got := s.drop(begin.Add(tt.after)); got != tt.want {
			t.Errorf("after %v, %d are logged, want %d", tt.after, got, tt.want)
		}
	}
}
