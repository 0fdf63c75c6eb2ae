package platform

import (
	"strings"

	"remote-agent/internal/pattern"
)

// closes finds words that close an issue once a commit or a pull request with them is merged,
// in each form that GitHub takes: #9, GH-9, owner/repo#9 and an address.
var closes = pattern.Lazy(`(?i)\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?\s+)(?:https?://[^\s/]+/)?([\w.-]+/[\w.-]+)?(?:#|gh-|/(?:issues|pull)/)(\d)`)

// ClosingNothing returns the title of a commit or pull request in which words such as
// "fixes #9" close no issue: "fixes no. 9".
func ClosingNothing(title string) string {
	return closes.Regexp().ReplaceAllStringFunc(title, func(found string) string {
		m := closes.FindStringSubmatch(found)
		return m[1] + m[2] + strings.TrimLeft(m[3]+" no. ", " ") + m[4]
	})
}
