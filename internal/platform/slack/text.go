package slack

import (
	"regexp"
	"strings"
)

// control is what Slack writes in angle brackets: a mention, a link, a date.
// Angle brackets that people type are escaped.
var control = regexp.MustCompile(`<([^<>\n]+)>`)

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// plain returns a person's text as they see it: mentions as names, links as
// addresses, entities as characters. Names tells those of people by their id.
func plain(text string, names func(id string) string) string {
	text = control.ReplaceAllStringFunc(text, func(m string) string {
		return readable(m[1:len(m)-1], names)
	})
	return strings.TrimSpace(unescaper.Replace(text))
}

// readable returns what stands for the content of angle brackets.
func readable(inner string, names func(id string) string) string {
	target, label, _ := strings.Cut(inner, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		if label == "" && names != nil {
			label = names(target[1:])
		}
		if label == "" {
			label = target[1:]
		}
		return "@" + strings.TrimPrefix(label, "@")
	case strings.HasPrefix(target, "#"):
		if label == "" {
			label = target[1:]
		}
		return "#" + strings.TrimPrefix(label, "#")
	case strings.HasPrefix(target, "!subteam^"), strings.HasPrefix(target, "!date^"):
		if label == "" {
			label = target[1:]
		}
		return label
	case strings.HasPrefix(target, "!"):
		return "@" + target[1:]
	}
	address := strings.TrimPrefix(target, "mailto:")
	if label == "" || label == address || label == target || strings.HasSuffix(target, "://"+label) {
		if label != "" && strings.HasSuffix(target, "://"+label) {
			return label // a name like main.go that Slack took for a link
		}
		return address
	}
	return label + " (" + address + ")"
}

// mentions reports whether text mentions the user, in Slack's form.
func mentions(text, user string) bool {
	return user != "" && (strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|"))
}

// withoutMention takes the mentions of the user out of text.
func withoutMention(text, user string) string {
	if user == "" {
		return text
	}
	re := regexp.MustCompile(`[ \t]*<@` + regexp.QuoteMeta(user) + `(\|[^<>]*)?>[ \t]*[,:]?[ \t]*`)
	parts := re.Split(text, -1)
	kept := parts[:0]
	for _, p := range parts {
		if strings.TrimSpace(p) != "" {
			kept = append(kept, p)
		}
	}
	return strings.TrimSpace(strings.Join(kept, " "))
}

// words are the messages that are commands although nothing stands before
// them: Slack takes a slash at the start of a message for one of its own
// commands, and knows none in threads.
var words = map[string]bool{"stop": true, "status": true, "help": true, "diff": true, "undo": true, "new": true}

// commanded turns a message that is one of the words into a command.
func commanded(text string) string {
	if w := strings.ToLower(text); words[w] {
		return "/" + w
	}
	return text
}
