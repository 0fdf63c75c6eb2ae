package console

import (
	"strings"

	"remote-agent/internal/redact"
)

// Keeps returns what tells texts that may be kept for the next start from those with a
// secret in them: one-time codes, and what the redactor of logs would take out.
func Keeps(clean *redact.Redactor) func(text string) bool {
	return func(text string) bool {
		return !hasCode(text) && clean.String(text) == text
	}
}

// hasCode reports whether a text is one of the commands with a one-time code, which may
// be written "/link@bot CODE", or "start CODE".
func hasCode(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 {
		return false
	}
	name, slash := strings.CutPrefix(words[0], "/")
	name, _, _ = strings.Cut(strings.ToLower(name), "@")
	return (name == "start" || name == "link") && (slash || len(words) <= 2)
}
