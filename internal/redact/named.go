package redact

import (
	"slices"
	"strings"
)

// family is what a name says of its value.
type family int

const (
	noSecret  family = iota
	password         // chosen by people: short, perhaps a word
	random_          // made by a machine: token, secret, key
	cookieJar        // several values in one line
	header           // a scheme and a value
)

// maxName and maxValue bound what is looked at around "=" and ":", in bytes.
const (
	maxName  = 64
	maxValue = 1024
)

var (
	identByte = setOf("A-Za-z0-9_.-")
	quoteByte = setOf("\"'`")
	bareByte  = bytesBut(" \t\r\n\"'`\\<>{}[]()|")
	lineByte  = bytesBut("\r\n\"'`\\")
)

// named returns the rules for values that a name calls a secret, such as
// password=..., "api_key": "..." or <token>...</token>.
func named() []rule {
	return []rule{
		{anchor: "=", find: assigned},
		{anchor: ":", find: assigned},
		{anchor: ">", find: element},
		{anchor: "IDENTIFIED BY ", find: sqlPassword},
		{anchor: "identified by ", find: sqlPassword},
		{anchor: "PASSWORD ", find: sqlPassword},
		{anchor: "password ", find: sqlPassword},
	}
}

// assigned finds the value behind "=", ":", ":=" or "=>".
func assigned(s string, at int, whole bool) match {
	name, quoted := nameBefore(s, at)
	kind := familyOf(name)
	if kind == noSecret || s[at] == ':' && name == "PASS" || s[at] == '=' && kind == header { // what go test says of a test; code
		return match{}
	}
	from := at + 1
	from += min(1, run(s[from:], arrowByte))
	tight := from == at+1 && s[at] == '=' && at > 0 && identByte[s[at-1]]
	blanks := run(s[from:], blankByte)
	from += blanks
	tight = tight && blanks == 0
	v := value{kind: kind, tight: tight, whole: whole, inQuotes: quoted}
	return v.find(s, from)
}

// nameBefore returns the name that ends before s[at:], without blanks and a quote
// between. opened means that a quote opens before the name and does not close
// behind it: the value belongs to the same text.
func nameBefore(s string, at int) (name string, opened bool) {
	end := at - runBack(s[:at], blankByte, 3)
	closed := end > 0 && quoteByte[s[end-1]]
	if closed {
		end--
		if end > 0 && s[end-1] == '\\' {
			end--
		}
		if end > 0 && s[end-1] == ']' { // config["password"] = ... is not
			return "", false
		}
	} else if end > 1 && s[end-1] == ']' && quoteByte[s[end-2]] { // config["password"] =
		end -= 2
		closed = true
	}
	start := end - runBack(s[:end], identByte, maxName)
	if start == end || len(s[start:end]) == maxName {
		return "", false
	}
	return s[start:end], !closed && start > 0 && quoteByte[s[start-1]]
}

// familyOf says what a name calls its value. The last part of the name decides:
// token_count and password_file are none.
func familyOf(name string) family {
	if len(name) < 3 {
		return noSecret
	}
	switch name[len(name)-1] | 0x20 { // most names end here
	case 'd', 't', 'n', 'y', 'e', 's', 'l', 'h', 'g':
	default:
		return noSecret
	}
	lower := strings.ToLower(name)
	for _, suffix := range []string{"password", "passwd", "passphrase", "passcode"} {
		if strings.HasSuffix(lower, suffix) {
			return password
		}
	}
	for _, suffix := range []string{"secret", "token", "apikey", "secretkey", "accesskey", "credential"} {
		if strings.HasSuffix(lower, suffix) && !strings.HasSuffix(lower, "csrf"+suffix) {
			return random_
		}
	}
	before, last := lastPart(strings.TrimLeft(name, "_-."))
	switch last {
	case "pass", "pwd", "pw":
		return password
	case "auth", "credentials", "sig", "signature", "jwt":
		return random_
	case "cookie":
		return cookieJar
	case "authorization":
		return header
	case "key":
		if secretKeys(before) {
			return random_
		}
	}
	return noSecret
}

// secretKeys reports whether a key of this kind is a secret.
func secretKeys(kind string) bool {
	_, last := lastPart(kind)
	return slices.Contains([]string{
		"api", "app", "application", "access", "secret", "private", "signing", "encryption", "encrypt", "auth", "account", "shared",
		"master", "service", "deploy", "license", "webhook", "storage", "consumer", "subscription", "session", "admin", "integration", "ingest", "write",
	}, last)
}

// lastPart divides a name before its last part: after "_", "-" or ".", or at a
// change from a small letter to a capital one. The part is in small letters.
func lastPart(name string) (before, last string) {
	for i := len(name) - 1; i > 0; i-- {
		switch {
		case name[i] == '_' || name[i] == '-' || name[i] == '.':
			return name[:i], strings.ToLower(name[i+1:])
		case upperByte[name[i]] && lowerByte[name[i-1]]:
			return name[:i], strings.ToLower(name[i:])
		}
	}
	return "", strings.ToLower(name)
}

// value is what stands behind a name.
type value struct {
	kind     family
	tight    bool // name=value without blanks, as in a shell or a query
	inQuotes bool // name and value are in the same quotes
	whole    bool
}

func (v value) find(s string, from int) match {
	open := match{span: span{start: from}, open: true}
	if from >= len(s) {
		open.open = !v.whole
		return open
	}
	switch v.kind {
	case cookieJar:
		return v.line(s, from)
	case header:
		return v.scheme(s, from)
	case noSecret, password, random_:
	}
	escaped := s[from] == '\\'
	if at := from + btoi(escaped); at < len(s) && quoteByte[s[at]] && !v.inQuotes {
		return v.quoted(s, at+1, s[at], escaped)
	} else if escaped && at == len(s) {
		open.open = !v.whole
		return open
	}
	n := run(s[from:min(len(s), from+maxValue)], bareByte)
	end := from + n
	if !v.whole && end == len(s) {
		return open
	}
	if end < len(s) && (s[end] == '(' || s[end] == '[' || s[end] == '{') {
		return match{} // code
	}
	text := cutAtNext(s[from:end])
	if strings.Contains(s[from:end], "...") || strings.HasPrefix(s[end:], "…") || !v.secret(text) {
		return match{}
	}
	return match{span: span{from, from + len(text)}}
}

// cutAtNext cuts an unquoted value where the next name begins, as in a query or a
// connection string, and at punctuation at its end.
func cutAtNext(text string) string {
	for i := range len(text) {
		if text[i] != '&' && text[i] != ';' && text[i] != ',' {
			continue
		}
		n := run(text[i+1:], identByte)
		if i+1+n == len(text) && n == 0 || i+1+n < len(text) && n > 0 && (text[i+1+n] == '=' || text[i+1+n] == ':') {
			text = text[:i]
			break
		}
	}
	return strings.TrimRight(text, ".,;:!?*")
}

// quoted finds the value between quotes, of which the first is before from.
func (v value) quoted(s string, from int, quote byte, escaped bool) match {
	rest := s[from:min(len(s), from+maxValue)]
	for i := range len(rest) {
		switch {
		case rest[i] == '\n' && quote != '`':
			return v.unclosed(from, rest[:i])
		case rest[i] != quote:
			continue
		case !escaped && i > 0 && rest[i-1] == '\\' && (i < 2 || rest[i-2] != '\\'):
			continue // it belongs to the value
		}
		text := strings.TrimSuffix(rest[:i], `\`)
		v.tight = true
		if !v.secret(text) || strings.Contains(text, " ") && (v.kind != password || !mixed(text) || text != strings.TrimSpace(text)) {
			return match{}
		}
		return match{span: span{from, from + len(text)}}
	}
	switch {
	case len(rest) == maxValue:
		return match{}
	case !v.whole:
		return match{span: span{start: from}, open: true}
	}
	return v.unclosed(from, rest)
}

// unclosed finds a value whose quote does not close in its line: the text is cut
// off.
func (v value) unclosed(from int, text string) match {
	v.tight = true
	if strings.Contains(text, " ") || !v.secret(text) {
		return match{}
	}
	return match{span: span{from, from + len(text)}}
}

// line finds a value that is the rest of its line.
func (v value) line(s string, from int) match {
	n := run(s[from:min(len(s), from+4*maxValue)], lineByte)
	if !v.whole && from+n == len(s) {
		return match{span: span{start: from}, open: true}
	}
	if text := s[from : from+n]; len(text) < 12 || !strings.Contains(text, "=") || !mixed(text) || code(text) {
		return match{}
	}
	return match{span: span{from, from + n}}
}

// scheme finds the value of an Authorization header.
func (v value) scheme(s string, from int) match {
	from += btoi(s[from] == '\\')
	from += min(1, run(s[from:], quoteByte))
	n := run(s[from:min(len(s), from+4*maxValue)], lineByte)
	if !v.whole && from+n == len(s) {
		return match{span: span{start: from}, open: true}
	}
	name, rest, two := strings.Cut(s[from:from+n], " ")
	at := from
	if two {
		at += len(name) + 1
		name = rest
	}
	secret, _, _ := strings.Cut(strings.TrimSpace(name), " ")
	secret = strings.TrimRight(secret, ",;.")
	if placeholder(secret) || code(secret) || strings.ContainsAny(secret, "{}") || len(secret) < 8 || !has(secret, digitByte) && (len(secret) < 16 || entropy(secret) < 3.5) {
		return match{}
	}
	at += strings.Index(s[at:], secret)
	return match{span: span{at, at + len(secret)}}
}

// secret decides whether the value of a name is one: a password may be anything
// but a placeholder or a piece of a program, what a machine made is as mixed as
// random text.
func (v value) secret(text string) bool {
	if len(text) < 4 || placeholder(text) || code(text) {
		return false
	}
	if v.kind == password {
		switch {
		case v.tight:
			return !plainName(text) || has(text, digitByte) || len(text) >= 6 && !strings.ContainsAny(text, "._")
		default:
			return len(text) >= 6 && (mixed(text) || strings.ContainsAny(text, "!@#$%^&*+=~?"))
		}
	}
	switch {
	case len(text) < 8 || spelled(text):
		return false
	case mixed(text):
		return entropy(text) >= 2.5 && (v.tight || len(text) >= 12)
	default:
		return v.tight && len(text) >= 16 && entropy(text) >= 3.5 && !strings.ContainsAny(text, "_-./: ") && has(text, upperByte) && has(text, lowerByte)
	}
}

// spelled reports whether a text is made of words and numbers with signs between,
// such as X-Hub-Signature-256.
func spelled(text string) bool {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-_./: ", r) })
	for _, p := range parts {
		if run(p, digitByte) != len(p) && !isWord(p) || run(p, digitByte) > 5 {
			return false
		}
	}
	return len(parts) > 1
}

// isWord reports whether a text is letters as in a word: token, Token, TOKEN.
func isWord(text string) bool {
	small := text[min(1, run(text, upperByte)):]
	return run(small, lowerByte) == len(small) || run(text, upperByte) == len(text)
}

// isPath reports whether a text is the path of a file, two names at least, which are words
// with numbers behind them: /srv/www2/app-v1.22.
func isPath(text string) bool {
	names, ok := strings.CutPrefix(strings.TrimPrefix(text, "~"), "/")
	if !ok || !strings.Contains(names, "/") && text[0] != '~' {
		return false
	}
	for name := range strings.SplitSeq(names, "/") {
		if name == "" {
			return false
		}
		for _, p := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_.", r) }) {
			if word := strings.TrimRight(p, "0123456789"); len(p)-len(word) > 5 || !isWord(word) {
				return false
			}
		}
	}
	return true
}

// plainName reports whether text could be the name of something.
func plainName(text string) bool { return run(text, dottedByte) == len(text) }

// code reports whether a value is a piece of a program and not a value:
// cfg.Password, os.environ, %s.
func code(text string) bool {
	if strings.ContainsAny(text, "()") || strings.Contains(text, "://") {
		return true
	}
	parts := strings.Split(text, ".")
	if len(parts) < 2 {
		return false
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return p == "" || digitByte[p[0]] || run(p, nameByte) != len(p) || len(p) > 24 })
}

// fillers are values that stand for others.
var fillers = []string{
	"true", "false", "null", "none", "nil", "string", "undefined", "required", "optional", "redacted", "masked", "hidden", "example", "placeholder",
	"password", "passwd", "secret", "token", "value", "text", "bool", "bytes", "empty", "unset", "default", "changeme", "disabled", "enabled", "your-password",
}

// placeholder reports whether a value stands for another: ${NAME}, <token>, ****.
func placeholder(text string) bool {
	if text == "" || reference(text) {
		return true
	}
	if strings.ContainsAny(text[:1], "/~") && !has(text, digitByte) || isPath(text) { // PWD=/home/somebody
		return true
	}
	lower := strings.ToLower(text)
	if slices.Contains(fillers, lower) || strings.Trim(lower, lower[:1]) == "" || strings.HasPrefix(lower, "...") || strings.HasPrefix(lower, "…") {
		return true
	}
	return strings.Contains(lower, "your_") || strings.Contains(lower, "your-") || strings.Contains(lower, "xxxx") || strings.Contains(lower, "****")
}

// reference reports whether a text names what holds the value: ${NAME}, $NAME,
// {{ name }}, <name>, %NAME%, or the mask.
func reference(text string) bool {
	switch text[0] {
	case '<', '{', '[', '*':
		return true
	case '$':
		return strings.HasPrefix(text, "${") || strings.HasPrefix(text, "$(") || run(text[1:], nameByte) == len(text)-1 && !mixed(text)
	case '%':
		return len(text) < 4 || text[len(text)-1] == '%'
	}
	return false
}

// element finds the text of an element of XML such as <password>.
func element(s string, at int, whole bool) match {
	n := runBack(s[:at], identByte, maxName)
	if n == 0 || n == maxName || at-n == 0 || s[at-n-1] != '<' {
		return match{}
	}
	kind := familyOf(s[at-n : at])
	if kind != password && kind != random_ {
		return match{}
	}
	from := at + 1
	end := strings.IndexAny(s[from:min(len(s), from+maxValue)], "<\n")
	if end < 0 || !whole && from+end+1 == len(s) {
		return match{span: span{start: from}, open: !whole && len(s)-from < maxValue}
	}
	v := value{kind: kind, tight: true}
	if !strings.HasPrefix(s[from+end:], "</") || !v.secret(s[from:from+end]) {
		return match{}
	}
	return match{span: span{from, from + end}}
}

// sqlPassword finds the text behind PASSWORD or IDENTIFIED BY, and the password of
// a line of .netrc.
func sqlPassword(s string, at int, whole bool) match {
	if !begins(s, at) {
		return match{}
	}
	from := at + strings.LastIndexByte(s[at:min(len(s), at+len("IDENTIFIED BY "))], ' ') + 1
	if i := strings.IndexByte(s[at:], ' '); s[at]|0x20 == 'p' {
		from = at + i + 1
	}
	if from >= len(s) {
		return match{span: span{start: from}, open: !whole}
	}
	v := value{kind: password, tight: true, whole: whole}
	if s[from] == '\'' || s[from] == '"' {
		return v.quoted(s, from+1, s[from], false)
	}
	before := s[max(0, at-200):at]
	if !strings.Contains(before, "machine ") || !strings.Contains(before, "login ") {
		return match{}
	}
	return v.find(s, from)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
