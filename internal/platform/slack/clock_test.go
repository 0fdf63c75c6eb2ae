package slack_test

import (
	"fmt"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
)

// TestLookupWithAnotherClock finds what arrived although Slack's clock is not ours.
func TestLookupWithAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			r := rig(t, newWorld(t, overSocket, func(o *emulator.Options, _ *slack.Config) {
				o.Now = func() time.Time { return time.Now().Add(ahead) }
			}))
			platformtest.AgainPostsOnce(t, r, platformtest.DeliveryMadeAt(time.Now()))
		})
	}
}
