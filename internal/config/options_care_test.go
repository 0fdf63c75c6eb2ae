package config

import (
	"testing"
	"time"
)

func TestRetentionTakesDaysAndRefusesWhatWouldLoseData(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "720h": 30 * 24 * time.Hour, "1d": 24 * time.Hour, "36500d": 36500 * 24 * time.Hour,
		"0": 0, "0d": 0, "-5d": 0, "23h": 0, "30": 0, "d": 0, "30 days": 0, "1.5d": 0, "99999999999999d": 0, "36501d": 0,
	} {
		var c Config
		err := setRetention(&c.Retention.Raw)(text)
		if (err == nil) != (want > 0) || c.Retention.Raw != want {
			t.Errorf("%q = %s, %v; want %s", text, c.Retention.Raw, err, want)
		}
	}
	off := Config{Retention: Retention{Raw: time.Hour}}
	if err := setRetention(&off.Retention.Raw)("off"); err != nil || off.Retention.Raw != 0 {
		t.Errorf("off = %s, %v; want everything kept", off.Retention.Raw, err)
	}
}
