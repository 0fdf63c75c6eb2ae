package spend

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// By says what sums are made for.
type By string

// What usage can be summed by.
const (
	ByPerson       By = "person"
	ByCodebase     By = "codebase"
	ByModel        By = "model"
	ByDay          By = "day" // in UTC
	ByConversation By = "conversation"
)

// ParseBy reads what somebody wants sums by; a codebase may be called a repository.
// Anything else is fault.Invalid.
func ParseBy(text string) (By, error) {
	all := []string{string(ByPerson), "repository", string(ByModel), string(ByDay), string(ByConversation)}
	switch by := strings.ToLower(text); {
	case by == "repository" || by == "repo":
		return ByCodebase, nil
	case by == string(ByCodebase) || slices.Contains(all, by):
		return By(by), nil
	}
	return "", fault.Newf(fault.Invalid, "Costs cannot be grouped by %q; use %s.", head(text), strings.Join(all, ", "))
}

// Group is the sum of one person, codebase, model, day or conversation.
type Group struct {
	Key  string // "telegram/42", the id of a codebase, a model, a day as 2026-11-21; empty for what had none
	Name string // for people; empty where the key says it
	Sum
}

// maxSpan is the longest time that can be asked for, in days.
const maxSpan = 36_500

// ParseSince reads from when on sums are wanted: "7d" and "2w" are as many days,
// today among them, from their beginning on; "12h" are hours until now; a date as
// 2026-11-01 is its beginning; today, yesterday, week (7d), month (30d) and all
// are words for that. Days are UTC. The zero time is from the beginning on.
// Anything else, and what is in the future, is fault.Invalid.
func ParseSince(text string, now time.Time) (time.Time, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	switch word {
	case "all", "":
		return time.Time{}, nil
	case "today":
		word = "1d"
	case "week":
		word = "7d"
	case "month":
		word = "30d"
	}
	today := Today(now)
	if n, unit, ok := span(word); ok {
		switch unit {
		case 'h':
			return now.UTC().Add(-time.Duration(n) * time.Hour), nil
		case 'w':
			n *= 7
		}
		return today.AddDate(0, 0, 1-n), nil
	}
	at, ok := date(word, today)
	if !ok {
		return at, fault.Newf(fault.Invalid, "%q is not a time: use 7d, 2w, 12h, today, yesterday, week, month, all, or a date such as 2026-11-01.", head(text))
	}
	if at.After(now) {
		return at, fault.Newf(fault.Invalid, "%s is in the future.", head(text))
	}
	return at, nil
}

// ParseUntil reads until when sums are wanted: the end of a date, of today or of
// yesterday, in UTC. The zero time, of an empty text, is until now. Anything else
// is fault.Invalid.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	if word == "" {
		return time.Time{}, nil
	}
	today := Today(now)
	at, ok := date(word, today)
	if word == "today" {
		at, ok = today, true
	}
	if !ok {
		return at, fault.Newf(fault.Invalid, "%q is not a day: use today, yesterday, or a date such as 2026-11-30.", head(text))
	}
	return at.AddDate(0, 0, 1), nil
}

// span reads a number with a unit.
func span(word string) (n int, unit byte, ok bool) {
	if len(word) < 2 || len(word) > 6 {
		return 0, 0, false
	}
	unit = word[len(word)-1]
	n, err := strconv.Atoi(word[:len(word)-1])
	days := n
	switch unit {
	case 'h', 'd':
	case 'w':
		days *= 7
	default:
		days = 0
	}
	return n, unit, err == nil && days > 0 && days <= maxSpan
}

func date(word string, today time.Time) (time.Time, bool) {
	if word == "yesterday" {
		return today.AddDate(0, 0, -1), true
	}
	at, err := time.Parse(time.DateOnly, word)
	return at, err == nil && at.Year() >= 1970
}

// head is the beginning of what somebody typed.
func head(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
