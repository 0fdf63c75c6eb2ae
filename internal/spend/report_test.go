package spend_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/spend"
)

var noon = time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)

func TestPeriods(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1d": "2026-11-21T00:00:00Z", "today": "2026-11-21T00:00:00Z", "7d": "2026-11-15T00:00:00Z", "Week": "2026-11-15T00:00:00Z",
		"2w": "2026-11-08T00:00:00Z", "12h": "2026-11-21T00:30:00Z", "yesterday": "2026-11-20T00:00:00Z", "month": "2026-10-23T00:00:00Z",
		"2026-11-01": "2026-11-01T00:00:00Z", "\n2026-11-21\t": "2026-11-21T00:00:00Z", "all": "0001-01-01T00:00:00Z", "": "0001-01-01T00:00:00Z",
		"36500d": "1926-12-17T00:00:00Z", "1970-01-01": "1970-01-01T00:00:00Z",
	} {
		got, err := spend.ParseSince(text, noon)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("since %q = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, wrong := range []string{"0d", "-1d", "7", "d", "7 d", "99999d", "9999w", "2026-13-01", "2026-11-22", "1969-12-31", "tomorrow", "1e3d", "٧d", "7d7d", "36501d", "5x", "2635249153387078803w"} {
		if got, err := spend.ParseSince(wrong, noon); !fault.Is(err, fault.Invalid) {
			t.Errorf("since %q = %s, %v, want fault.Invalid", wrong, got, err)
		}
	}
	for text, want := range map[string]string{
		"today": "2026-11-22T00:00:00Z", "yesterday": "2026-11-21T00:00:00Z", "2026-11-30": "2026-12-01T00:00:00Z", "": "0001-01-01T00:00:00Z",
	} {
		got, err := spend.ParseUntil(text, noon)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("until %q = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, wrong := range []string{"7d", "now", "2026-11"} {
		if got, err := spend.ParseUntil(wrong, noon); !fault.Is(err, fault.Invalid) {
			t.Errorf("until %q = %s, %v, want fault.Invalid", wrong, got, err)
		}
	}
	if by, err := spend.ParseBy("Person"); by != spend.ByPerson || err != nil {
		t.Errorf("by Person = %s, %v", by, err)
	}
	for _, word := range []string{"codebase", "Repository", "repo"} {
		if by, err := spend.ParseBy(word); by != spend.ByCodebase || err != nil {
			t.Errorf("by %s = %s, %v", word, by, err)
		}
	}
	if _, err := spend.ParseBy("actor; DROP TABLE"); !fault.Is(err, fault.Invalid) {
		t.Errorf("by nonsense: %v", err)
	}
}

// TestALongWordIsCut: what somebody typed is quoted up to 40 characters.
func TestALongWordIsCut(t *testing.T) {
	t.Parallel()
	for text, quoted := range map[string]string{
		strings.Repeat("ä", 40): `"` + strings.Repeat("ä", 40) + `"`,
		strings.Repeat("ä", 41): `"` + strings.Repeat("ä", 40) + `…"`,
	} {
		if _, err := spend.ParseSince(text, noon); err == nil || !strings.Contains(fault.Public(err), quoted) {
			t.Errorf("%v, want %s in it", err, quoted)
		}
	}
}

func FuzzParseSince(f *testing.F) {
	f.Add("7d")
	f.Add("2026-11-01")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := spend.ParseSince(text, noon)
		if err == nil && (at.After(noon) || !at.IsZero() && at.Year() < 1900) {
			t.Errorf("since %q = %s", text, at)
		}
		if until, err := spend.ParseUntil(text, noon); err == nil && !until.IsZero() && until.Year() < 1970 {
			t.Errorf("until %q = %s", text, until)
		}
	})
}
