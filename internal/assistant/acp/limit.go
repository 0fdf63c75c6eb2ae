package acp

import (
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/pattern"
)

// maxLimit is the longest limit of an agent that is believed.
const maxLimit = 24 * time.Hour

// How the texts of agents say when a limit ends. There is no field for it in the protocol.
var (
	endsEpoch = pattern.Lazy(`\|(\d{10})\b`) // Claude Code: "usage limit reached|1767225600"
	endsStamp = pattern.Lazy(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)`)
	endsIn    = pattern.Lazy(`(?i)(?:again|resets?|available|wait)(?: in| for)? ((?:\d+ ?(?:days?|d|hours?|hrs?|h|minutes?|mins?|min|m|seconds?|secs?|s)\b[ ,]*(?:and )?)+)`)
	endsPart  = pattern.Lazy(`(?i)(\d+) ?(d|h|m|s)`)
	endsDay   = pattern.Lazy(`(?i)again at ([A-Z]{3} \d{1,2})(?:st|nd|rd|th)?, (\d{4}),? (\d{1,2}:\d\d [AP]M)`) // Codex: "try again at Oct 20th, 2025 12:18 PM"
	endsClock = pattern.Lazy(`(?i)(?:until|resets?(?: at)?|again at|available at) (\d{1,2})(?::(\d\d))?(?::\d\d)? ?(am|pm)?(?: ?\(?([A-Z][a-z]+(?:/[A-Za-z0-9_+-]+)+|UTC|GMT)\)?)?`)
)

// limitEnds returns how long a limit lasts of which a text says when it ends, at most
// maxLimit. A time of day without a zone is one of now's.
func limitEnds(text string, now time.Time) (time.Duration, bool) {
	if m := endsEpoch.FindStringSubmatch(text); m != nil {
		s, _ := strconv.ParseInt(m[1], 10, 64)
		return lasts(time.Unix(s, 0), now)
	}
	if m := endsStamp.FindString(text); m != "" {
		m = strings.Replace(m, " ", "T", 1)
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
			if at, err := time.Parse(layout, m); err == nil {
				return lasts(at, now)
			}
		}
	}
	if m := endsIn.FindStringSubmatch(text); m != nil {
		return lasts(now.Add(sum(m[1])), now)
	}
	if m := endsDay.FindStringSubmatch(text); m != nil {
		at, err := time.ParseInLocation("Jan 2 2006 3:04 PM", m[1]+" "+m[2]+" "+strings.ToUpper(m[3]), now.Location())
		if err != nil {
			return 0, false
		}
		return lasts(at, now)
	}
	if m := endsClock.FindStringSubmatch(text); m != nil {
		return clockEnds(m, now)
	}
	return 0, false
}

func lasts(at, now time.Time) (time.Duration, bool) {
	d := at.Sub(now)
	return min(d, maxLimit), d > 0
}

// sum adds up "2 hours 5 min".
func sum(text string) time.Duration {
	units := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	var all time.Duration
	for _, m := range endsPart.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > 1_000_000 {
			return maxLimit
		}
		all = min(all+time.Duration(n)*units[strings.ToLower(m[2])], maxLimit)
	}
	return all
}

// clockEnds reads a time of day: the next one.
func clockEnds(m []string, now time.Time) (time.Duration, bool) {
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2]) // 0 if there is none
	switch half := strings.ToLower(m[3]); {
	case half == "" && m[2] == "", half != "" && (hour < 1 || hour > 12), hour > 23, minute > 59:
		return 0, false // a number, and no time
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	if m[4] == "GMT" {
		m[4] = "UTC"
	}
	if m[4] != "" {
		zone, err := time.LoadLocation(m[4])
		if err != nil {
			return 0, false
		}
		now = now.In(zone)
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return lasts(at, now)
}
