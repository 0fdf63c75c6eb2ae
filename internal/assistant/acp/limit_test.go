package acp

import (
	"testing"
	"time"
)

func TestLimitEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"Claude AI usage limit reached|1772632800":                      2 * time.Hour, // 14:00
		"usage limit until 14:20":                                       2*time.Hour + 20*time.Minute,
		"You've hit your usage limit. Try again at 2:20 PM.":            2*time.Hour + 20*time.Minute,
		"5-hour limit reached ∙ resets 3pm":                             3 * time.Hour,
		"limit reached, resets at 11am":                                 23 * time.Hour,
		"limit reached, resets at 12am (UTC)":                           12 * time.Hour,
		"resets 3pm (Europe/Berlin)":                                    2 * time.Hour, // 14:00 UTC
		"resets 11am (America/Argentina/Buenos_Aires)":                  2 * time.Hour,
		"Your limit will reset at 9am (Etc/GMT+5)":                      2 * time.Hour,
		"resets 2pm (GMT)":                                              2 * time.Hour,
		"resets 9am (America/Port-au-Prince)":                           2 * time.Hour,
		"You've hit your usage limit. Try again in 3 hours 12 minutes.": 3*time.Hour + 12*time.Minute,
		"usage limit ... or try again at Mar 5th, 2026 2:20 AM.":        14*time.Hour + 20*time.Minute,
		"usage limit ... or try again at Mar 4, 2026, 2:20 PM":          2*time.Hour + 20*time.Minute,
		"try again at Mar 40th, 2026 2:20 AM.":                          0,
		"Try again in 5 days 2 hours":                                   5*24*time.Hour + 2*time.Hour,
		"You've hit your weekly limit · resets Mar 7 at 5pm (UTC)":      3*24*time.Hour + 5*time.Hour,
		"weekly limit reached ∙ resets Mar 6, 9:30pm (Asia/Tokyo)":      2*24*time.Hour + 30*time.Minute,
		"resets on March 5 at 17:00":                                    29 * time.Hour,
		"resets Mar 4 at 11pm (America/New_York)":                       16 * time.Hour,
		"resets Mar 30, 2026, 9am":                                      26*24*time.Hour - 3*time.Hour,
		"resets Mar 4 at 11am":                                          0, // over; in a year is no limit
		"resets Dec 24 at 5pm":                                          0, // no limit lasts for so long
		"resets Mar 40 at 5pm":                                          0,
		"resets Mar 7 2026":                                             0,
		"resets Foo 7 at 5pm":                                           0,
		"Your quota will reset after 2h3m4s.":                           2*time.Hour + 3*time.Minute + 4*time.Second, // Gemini CLI
		"You exceeded your current quota. Please retry in 34.074125s.":  34 * time.Second,
		"Try again in 5 months":                                         0,
		"rate limit: wait 90s":                                          90 * time.Second,
		"usage limit, resets 2026-03-04T13:30:00Z":                      90 * time.Minute,
		"usage limit, resets 2026-03-04 13:30+00:00":                    90 * time.Minute,
		"usage limit reached":                                           0,
		"usage limit until 3":                                           0,
		"usage limit until 25:00":                                       0,
		"resets at 14pm":                                                0,
		"usage limit reached|1772600000":                                0, // it is over
		"Try again in 99999999999999999999 hours":                       0,
		"resets 3pm (Nowhere/Land)":                                     0,
	} {
		got, ok := limitEnds(text, now)
		if got = max(got, 0); !ok {
			got = 0
		}
		if got != want || ok != (want > 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
}

func FuzzLimitEnds(f *testing.F) {
	f.Add("usage limit until 14:20")
	f.Add("Try again in 3 hours 12 minutes")
	f.Fuzz(func(t *testing.T, text string) {
		if d, ok := limitEnds(text, time.Now()); ok && (d <= 0 || d > maxLimit) {
			t.Errorf("%q: %v", text, d)
		}
	})
}
