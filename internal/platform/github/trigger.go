package github

import (
	"slices"
	"strings"
	"unicode"

	"remote-agent/internal/markup"
	"remote-agent/internal/pattern"
)

// agentWord begins a line that is for the bot without a mention.
var agentWord = pattern.Lazy(`(?im)^ {0,3}(/agent)(?:[ \t]+(.*))?$`)

// addressStart begins a word that is an address, which pages show as a link (GitHub
// Flavored Markdown, Autolinks).
var addressStart = pattern.Lazy(`(?i)^[*_~(]{0,3}(?:https?://|ftp://|www\.)`)

// order returns what a text asks the bot to do, and whether it is for the bot at
// all: it mentions it, or has a line that begins with /agent, outside of code,
// quotes, links and HTML. A command comes first, on a line of its own; what else
// was written follows as its body. The mention is taken out. What only a browser
// would not show is taken out too, so that what counts is what a person saw.
func (t *translator) order(body string) (string, bool) {
	body = markup.Bounded(normal(body))
	lower := strings.ToLower(body)
	if !strings.Contains(lower, "/agent") && !strings.Contains(lower, "@") {
		return "", false // most comments
	}
	p := read(body)
	found := p.mentions(t.names())
	lines := agentWord.FindAllStringSubmatchIndex(body, -1)
	lines = slices.DeleteFunc(lines, func(m []int) bool { return !p.words(m[2], m[3]) })
	if len(lines) > 0 {
		command := func(m []int) string { return t.commanded(strings.TrimSpace(body[m[3]:m[1]])) }
		first, from, to := command(lines[0]), lines[0][0], lines[0][1]
		if len(lines) > 1 { // what the others say is part of the rest
			var es edits
			for _, m := range lines[1:] {
				es.put(m[0], m[1], command(m))
			}
			body = es.apply(body)
			found = read(body).mentions(t.names())
		}
		return finish(first, without(body, found, from, to)), true
	}
	if len(found) == 0 {
		return "", false
	}
	for _, m := range found {
		if rest, from, to, ok := commandAfter(body, m); ok {
			return finish(rest, without(body, found, from, to)), true
		}
	}
	return finish("", without(body, found, 0, 0)), true
}

// names are those that people call the bot by, in lower case.
func (t *translator) names() []string {
	names := []string{t.mention}
	if me := t.me.self.Load(); me != nil && me.slug != "" && !strings.EqualFold(me.slug, t.mention) {
		names = append(names, strings.ToLower(me.slug))
	}
	return names
}

// words reports whether all of source[from:to] are words that a person wrote to
// be read.
func (p page) words(from, to int) bool {
	for i := from; i < to; i++ {
		if !p.is(i, isText) || p.is(i, isCode|isQuote|isHTML|isLink|isMute) {
			return false
		}
	}
	return true
}

// span is a part of a text.
type span struct{ from, to int }

// mentions returns where the page mentions one of names.
func (p page) mentions(names []string) []span {
	var found []span
	word := 0 // where it begins
	for i := 0; i < len(p.source); i++ {
		if strings.IndexByte(" \t\n<", p.source[i]) >= 0 {
			word = i + 1
		}
		if p.source[i] != '@' {
			continue
		}
		for _, name := range names {
			end := i + 1 + len(name)
			if end > len(p.source) || !strings.EqualFold(p.source[i+1:end], name) || !p.words(i, end) {
				continue
			}
			if bot := end + len("[bot]"); bot <= len(p.source) && strings.EqualFold(p.source[end:bot], "[bot]") {
				end = bot
			}
			if p.beginsWord(i) && p.endsName(end) && !addressStart.MatchString(p.source[word:i]) {
				found = append(found, span{i, end})
				i = end - 1
				break
			}
		}
	}
	return found
}

// beginsWord reports whether what is at i does not continue a word, an address
// or something escaped.
func (p page) beginsWord(i int) bool {
	if i == 0 || p.source[i-1] == '_' && !p.is(i-1, isText) {
		return true // a mark of emphasis is not shown
	}
	c := p.source[i-1]
	return !isLoginByte(c) && strings.IndexByte(`_/\@.`, c) < 0
}

// endsName reports whether what is at i does not continue the name of an
// account, or make that of a team.
func (p page) endsName(i int) bool {
	if i == len(p.source) || p.source[i] == '_' && !p.is(i, isText) {
		return true
	}
	switch c := p.source[i]; {
	case isLoginByte(c) && c != '-', c == '_', c == '/':
		return false
	case c == '-':
		return i+1 == len(p.source) || !isLoginByte(p.source[i+1])
	}
	return true
}

func isLoginByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

// commandAfter returns the command that a line consists of which begins with the
// mention m, and where that line is.
func commandAfter(body string, m span) (command string, from, to int, ok bool) {
	from = strings.LastIndexByte(body[:m.from], '\n') + 1
	to = len(body)
	if n := strings.IndexByte(body[m.to:], '\n'); n >= 0 {
		to = m.to + n
	}
	command = strings.TrimSpace(strings.TrimLeft(body[m.to:to], " \t,:;"))
	ok = strings.TrimSpace(body[from:m.from]) == "" && len(command) > 1 && command[0] == '/' && isLoginByte(command[1])
	return command, from, to, ok
}

// brief are commands that take one word at most. With more behind them they are
// how people begin a sentence: "help me with this", "schedule a call with Ann". A stop
// is one whatever follows.
var brief = []string{"agent", "schedule", "help", "status", "diff", "retry", "undo", "new", "cost", "start", "reset", "whoami", "commands", "repos"}

// commanded turns what follows "/agent" into a command if it is one.
func (t *translator) commanded(rest string) string {
	if rest == "" {
		return "/help"
	}
	if rest[0] == '/' || t.commands == nil {
		return rest
	}
	word, args, _ := strings.Cut(rest, " ")
	same := func(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }
	if slices.Contains(brief, same(word)) && len(strings.Fields(args)) > 1 {
		return rest
	}
	for _, name := range t.commands() {
		if same(name) == same(word) {
			return strings.TrimSpace("/" + word + " " + args)
		}
	}
	return rest
}

// without returns body without the mentions in found and without what is between
// from and to. A mention that begins a line takes the comma behind it along.
func without(body string, found []span, from, to int) string {
	var es edits
	if to > from {
		es.put(from, to, "")
	}
	for _, m := range found {
		if m.from >= from && m.from < to {
			continue
		}
		line := strings.TrimSpace(body[strings.LastIndexByte(body[:m.from], '\n')+1 : m.from])
		end := m.to
		if line == "" {
			for end < len(body) && strings.IndexByte(" \t,:;", body[end]) >= 0 {
				end++
			}
		} else if end < len(body) && body[end] == ' ' && body[m.from-1] == ' ' {
			end++
		}
		es.put(m.from, end, "")
	}
	return strings.TrimSpace(es.apply(body))
}

// finish joins a command and its body. Nothing but punctuation is nothing.
func finish(command, body string) string {
	body = strings.TrimSpace(Sanitize(body))
	if !strings.ContainsFunc(body, isWord) {
		body = ""
	}
	command = strings.TrimSpace(Sanitize(command))
	switch {
	case command == "":
		return body
	case body == "":
		return command
	}
	return command + "\n" + body
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
