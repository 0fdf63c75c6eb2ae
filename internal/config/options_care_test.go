package config

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/option"
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

// A third model API is named as people list three things.
func TestTheExampleListsTheModelsThatAnswer(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := WriteExample(&out, answering("openai"), answering("anthropic"), answering("parrot")); err != nil {
		t.Fatal(err)
	}
	if want := " Not set: openai, anthropic or parrot if its key or base URL is set, otherwise demo."; !strings.Contains(strings.ReplaceAll(out.String(), "\n# ", " "), want) {
		t.Errorf("no line %q", want)
	}
}

// answering is the section of an assistant without options.
type answering string

func (answering) Options() []option.Option                      { return nil }
func (answering) Check(*option.Check)                           {}
func (a answering) WithLive(next option.Section) option.Section { return a }
func (a answering) Assistant() string                           { return string(a) }
func (answering) Configured() bool                              { return false }
