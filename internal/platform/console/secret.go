package console

import (
	"strings"

	"remote-agent/internal/redact"
)

// Keeps returns what tells texts that may be kept for the next start from those with a
// secret in them: one-time codes, and what the redactor of logs would take out.
func Keeps(clean *redact.Redactor) func(text string) bool {
	return func(text string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(text, " \t\n/"), " ")
		switch strings.ToLower(name) {
		case "start", "link": // followed by a code
			return false
		}
		return clean.String(text) == text
	}
}
