package command

import (
	"strings"
)

// InPlace returns a text that this program wrote with its commands as people give them
// in a conversation: "`/execute p-1`" becomes "`@bot execute p-1`" where the prefix is
// "@bot ". Only what stands first in an inline code span and is a command, by known,
// is changed; what has the prefix already is left.
func InPlace(text, prefix string, known func(name string) bool) string {
	if prefix == "/" {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "`/")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexAny(rest, " `\n")
		name := ""
		if end >= 0 {
			name, _ = Canonical(rest[:end])
		}
		if name == "" || strings.HasPrefix("`/"+rest, "`"+prefix) || !known(name) {
			b.WriteString("`/")
		} else {
			b.WriteString("`" + prefix)
		}
		text = rest
	}
}
