package turn

import (
	"testing"
	"time"
)

// TestWithin: what was found out never, in the future, or just as long ago as the limit, is
// not trusted.
func TestWithin(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		at   time.Time
		want bool
	}{
		"Never":    {time.Time{}, false},
		"Now":      {now, true},
		"Before":   {now.Add(-time.Minute + time.Millisecond), true},
		"AtLimit":  {now.Add(-time.Minute), false},
		"InFuture": {now.Add(time.Millisecond), false},
	} {
		if got := within(tt.at, now, time.Minute); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
