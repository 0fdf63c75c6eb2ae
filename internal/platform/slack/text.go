package slack

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

// control is what Slack writes in angle brackets: a mention, a link, a date.
// Angle brackets that people type are escaped.
var control = pattern.Lazy(`<([^<>\n]+)>`)

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
		return "@" + strings.TrimPrefix(cmp.Or(label, target[1:]), "@")
	case strings.HasPrefix(target, "#"):
		return "#" + strings.TrimPrefix(cmp.Or(label, target[1:]), "#")
	case strings.HasPrefix(target, "!subteam^"), strings.HasPrefix(target, "!date^"):
		return cmp.Or(label, target[1:])
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

// withoutMention takes the mentions of the user out of text, with the spaces around them
// and a comma or colon behind.
func withoutMention(text, user string) string {
	if user == "" {
		return text
	}
	var kept []string
	for more := true; more; {
		var part string
		if part, text, more = cutMention(text, "<@"+user); strings.TrimSpace(part) != "" {
			kept = append(kept, part)
		}
	}
	return strings.TrimSpace(strings.Join(kept, " "))
}

// cutMention returns what stands before and behind the first mention that begins so:
// <@U1>, or with a name <@U1|ann>. Without one it returns all of text.
func cutMention(text, mention string) (before, behind string, found bool) {
	for from := 0; ; from += len(mention) {
		at := strings.Index(text[from:], mention)
		if at < 0 {
			return text, "", false
		}
		from += at
		end := text[from+len(mention):]
		if strings.HasPrefix(end, "|") {
			end = end[max(0, strings.IndexAny(end, "<>")):]
		}
		if !strings.HasPrefix(end, ">") {
			continue
		}
		const blank = " \t"
		end = strings.TrimLeft(end[1:], blank)
		if strings.HasPrefix(end, ",") || strings.HasPrefix(end, ":") {
			end = strings.TrimLeft(end[1:], blank)
		}
		return strings.TrimRight(text[:from], blank), end, true
	}
}

// begins reports whether a text begins with a mention of the user.
func begins(text, user string) bool {
	text = strings.TrimSpace(text)
	return user != "" && (strings.HasPrefix(text, "<@"+user+">") || strings.HasPrefix(text, "<@"+user+"|"))
}

// vocabulary returns the names of the commands; nil if they are not known.
type vocabulary func() []string

// words are the messages that are commands although nothing stands before
// them: Slack takes a slash at the start of a message for one of its own
// commands, and knows none in threads.
var words = []string{"stop", "status", "help", "diff", "retry", "undo", "new", "cost"}

// brief are commands that take one word at most. With more behind them they are
// how people begin a sentence: "help me with this", "new tests, please".
var brief = []string{"start", "reset", "whoami", "commands", "repos", "agent", "schedule"}

// has reports whether a name is that of a command. If the commands are not
// known, the words are.
func (v vocabulary) has(name string) bool {
	if v == nil {
		return slices.Contains(words, name)
	}
	same := strings.ReplaceAll(name, "-", "_")
	return slices.ContainsFunc(v(), func(c string) bool { return strings.ReplaceAll(c, "-", "_") == same })
}

// called returns what is said to the bot alone, after its name or after /agent,
// and whether it is a command: one that begins with a slash, or with the name of
// a command.
func (v vocabulary) called(said string) (text string, command bool) {
	name, rest := said, ""
	if i := strings.IndexFunc(said, unicode.IsSpace); i >= 0 {
		name, rest = said[:i], said[i:]
	}
	if name = strings.ToLower(name); rest == "" {
		name = strings.TrimRight(name, ".!")
	}
	if strings.HasPrefix(name, "/") {
		return name + rest, true // if unknown, the nearest name is the answer
	}
	if !v.has(name) || (slices.Contains(words, name) || slices.Contains(brief, name)) && len(strings.Fields(rest)) > 1 {
		return said, false
	}
	return "/" + name + rest, true
}

// commanded returns what a message says to the bot. One that begins with its name
// is for it alone; of others only a word that is the whole message is a command.
func (v vocabulary) commanded(text string, named bool) string {
	if named && !strings.HasPrefix(text, "/") {
		text, _ = v.called(text)
		return text
	}
	if w := strings.ToLower(text); slices.Contains(words, w) && v.has(w) {
		return "/" + w
	}
	return text
}

// subcommand returns what stands behind /agent as a message, and whether it is
// a command. What is nearly the name of one is meant as one: its answer is the nearest
// name, and nobody else sees it.
func (v vocabulary) subcommand(said string) (text string, command bool) {
	if said == "" {
		return "/help", true
	}
	if text, command = v.called(said); !command && v.mistyped(said) {
		return "/" + said, true
	}
	return text, command
}

// mistyped reports whether something is one slip away from the name of a command, alone
// or with the name of a plan or a question behind it.
func (v vocabulary) mistyped(said string) bool {
	fields := strings.Fields(strings.ToLower(said))
	if v == nil || len(fields) == 0 || len(fields) > 2 || len(fields[0]) < 3 || len(fields) == 2 && !named(fields[1]) ||
		strings.Trim(fields[0], "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" { // as in "help?", which asks
		return false
	}
	return slices.ContainsFunc(v(), func(name string) bool {
		return platform.OneSlip(fields[0], strings.ReplaceAll(name, "_", "-"))
	})
}

// named reports whether a word is a name such as p-3 or a-7.
func named(word string) bool {
	kind, number, ok := strings.Cut(word, "-")
	return ok && (kind == "p" || kind == "a") && isDigits(number, 9)
}
