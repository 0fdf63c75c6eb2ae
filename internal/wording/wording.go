// Package wording writes figures and short texts as people read them in a chat.
package wording

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Count writes "1 thing" or "3 things".
//
//go:noinline // it would be copied into many callers
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Clock writes a duration: 12 s, 4:05, 1:02:03. A negative one, as after a clock was set
// back, is 0 s.
func Clock(d time.Duration) string {
	s := max(int(d.Round(time.Second)/time.Second), 0)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	default:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
}

// Moment writes a time in UTC: 2026-01-31 15:04 UTC.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Head returns the beginning of a text, at most n runes.
func Head(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// Cut returns at most n runes of a text, and says so if it goes on.
func Cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// Ago writes how long a time is past, roughly: 3 hours ago.
func Ago(then, now time.Time) string {
	d := now.Sub(then)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return Count(int(d.Minutes()), "minute", "minutes") + " ago"
	case d < 24*time.Hour:
		return Count(int(d.Hours()), "hour", "hours") + " ago"
	case d < 60*24*time.Hour:
		return Count(int(d.Hours()/24), "day", "days") + " ago"
	}
	return Count(int(d.Hours()/24/30), "month", "months") + " ago"
}

// OneLine puts a text on one line, with single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

const (
	maxName  = 60 // characters of a name that are shown
	nameless = "someone without a name"
)

// Name shows how somebody calls themselves, in a code span, so that nothing in it is
// taken for markup, a mention or a line of its own, and no character that is not seen
// changes what stands beside it.
func Name(name string) string {
	clean := OneLine(strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "")))
	if clean == "" {
		return nameless
	}
	return "`" + Head(clean, maxName) + "`"
}

// Who names somebody in a text: as they call themselves, or by their account where that
// is not known. A name that could be markup stands in a code span.
func Who(name, account string) string {
	clean := Name(name)
	plain := strings.Trim(clean, "`")
	switch {
	case strings.TrimSpace(name) == "" || clean == nameless:
		return account
	case strings.ContainsFunc(plain, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != ' ' && r != '-' && r != '\''
	}):
		return clean
	}
	return plain
}

// Literal returns a text of one line as it is, or in a code span where a mark in it could
// change how it is shown: "src/__init__.py" would be read without its underscores.
func Literal(text string) string {
	before := ' '
	for _, r := range text {
		if strings.ContainsRune("*`[<\\~", r) || r == '_' && !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			return "`" + strings.ReplaceAll(text, "`", "'") + "`"
		}
		before = r
	}
	return text
}

// Because puts a reason behind a statement; none is left out.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Fenced puts a text into a code block that it cannot end by itself.
func Fenced(info, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + info + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
