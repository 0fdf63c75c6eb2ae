package github_test

import (
	"fmt"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/platform/platformtest"
)

// TestLookupWithAnotherClock finds what arrived although GitHub's clock is not ours.
func TestLookupWithAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			r := rig(t, newWorld(t, setting{pat: true, server: func(o *emulator.Options) {
				o.Now = func() time.Time { return time.Now().Add(ahead) }
			}}))
			platformtest.AgainPostsOnce(t, r, platformtest.DeliveryMadeAt(time.Now()))
		})
	}
}
