package acp

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/pattern"
)

// maxLimit is the longest limit of an agent that is believed: there are some of a month.
const maxLimit = 32 * 24 * time.Hour

// timeOfDay is 14:20, 2:20 PM or 3pm (Europe/Berlin).
const timeOfDay = `(\d{1,2})(?::(\d\d))?(?::\d\d)? ?(am|pm)?(?: ?\(?([A-Z][a-z]+(?:/[A-Za-z0-9_+-]+)+|UTC|GMT)\)?)?`

// How the texts of agents say when a limit ends. There is no field for it in the protocol.
var (
	endsEpoch = pattern.Lazy(`\|(\d{10})\b`) // Claude Code: "usage limit reached|1767225600"
	endsStamp = pattern.Lazy(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)`)
	endsIn    = pattern.Lazy(`(?i)(?:again|resets?|available|wait|retry)(?: in| for| after)? ((?:\d+(?:\.\d+)? ?(?:days?|d|hours?|hrs?|h|minutes?|mins?|min|m|seconds?|secs?|s)[ ,]*(?:and )?)+)\b`)
	endsPart  = pattern.Lazy(`(?i)(\d+)(?:\.\d+)? ?(d|h|m|s)`)
	endsDay   = pattern.Lazy(`(?i)(?:until|resets?|again|available)(?: at| on)? ([A-Z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?,?(?: at)? ` + timeOfDay) // "resets Oct 7 at 5pm", "again at Oct 20th, 2025 12:18 PM"
	endsClock = pattern.Lazy(`(?i)(?:until|resets?(?: at)?|again at|available at) ` + timeOfDay)
)

// limitEnds returns how long a limit lasts of which a text says when it ends. A time of
// day without a zone is one of now's.
func limitEnds(text string, now time.Time) (time.Duration, bool) {
	if m := endsEpoch.FindStringSubmatch(text); m != nil {
		s, _ := strconv.ParseInt(m[1], 10, 64)
		return lasts(time.Unix(s, 0), now, true)
	}
	if m := endsStamp.FindString(text); m != "" {
		m = strings.Replace(m, " ", "T", 1)
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
			if at, err := time.Parse(layout, m); err == nil {
				return lasts(at, now, true)
			}
		}
	}
	if m := endsIn.FindStringSubmatch(text); m != nil {
		return lasts(now.Add(sum(m[1])), now, true)
	}
	if m := endsDay.FindStringSubmatch(text); m != nil {
		return dayEnds(m[1]+" "+m[2], m[3], m[4:], now)
	}
	if m := endsClock.FindStringSubmatch(text); m != nil {
		at, ok := clock(m[1:], now)
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return lasts(at, now, ok)
	}
	return 0, false
}

func lasts(at, now time.Time, known bool) (time.Duration, bool) {
	d := at.Sub(now)
	return d, known && d > 0 && d <= maxLimit
}

// sum adds up "2 hours 5 min".
func sum(text string) time.Duration {
	var all time.Duration
	for _, m := range endsPart.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > 1_000_000 {
			return maxLimit + 1
		}
		unit := time.Second
		switch strings.ToLower(m[2]) {
		case "d":
			unit = 24 * time.Hour
		case "h":
			unit = time.Hour
		case "m":
			unit = time.Minute
		}
		all = min(all+time.Duration(n)*unit, maxLimit+1)
	}
	return all
}

// dayEnds reads a date and a time of it. Without a year, it is the next one.
func dayEnds(day, year string, m []string, now time.Time) (time.Duration, bool) {
	at, ok := clock(m, now)
	date, err := time.Parse("Jan 2 2006", day+" "+cmp.Or(year, strconv.Itoa(at.Year())))
	if err != nil {
		return 0, false
	}
	at = time.Date(date.Year(), date.Month(), date.Day(), at.Hour(), at.Minute(), 0, 0, at.Location())
	if year == "" && !at.After(now) {
		at = at.AddDate(1, 0, 0)
	}
	return lasts(at, now, ok)
}

// clock reads what timeOfDay found, as a time of today.
func clock(m []string, now time.Time) (at time.Time, ok bool) {
	hour, _ := strconv.Atoi(m[0])
	minute, _ := strconv.Atoi(m[1]) // 0 if there is none
	switch half := strings.ToLower(m[2]); {
	case half == "" && m[1] == "", half != "" && (hour < 1 || hour > 12), hour > 23, minute > 59:
		return now, false // a number, and no time
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	zone := now.Location()
	switch name := m[3]; name {
	case "":
	case "GMT", "UTC":
		zone = time.UTC
	default:
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return now, false
		}
	}
	now = now.In(zone)
	return time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, zone), true
}
