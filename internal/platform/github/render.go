package github

import (
	"fmt"
	"net/url"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/markup"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	// maxText is how much one comment holds of an answer, and maxComment what
	// GitHub takes (contract C5). Buttons and the mark need room.
	maxText    = 60_000
	maxComment = 65_536

	maxButtons = 25
	maxLabel   = 80
	maxMail    = 320 // bytes of a mail address
)

// Marks that the program writes into its comments. They are not shown. Whoever
// copies one gains nothing but that the bot does not listen to them.
const markPrefix = "<!-- bot:"

var (
	anyMark      = pattern.Lazy(`<!-- bot:[a-z][A-Za-z0-9=_-]* -->\s*$`)
	deliveryMark = pattern.Lazy(`<!-- bot:delivery=([A-Za-z0-9_-]{1,100}) -->\s*$`)
	buttonLine   = pattern.Lazy(`^- \[([ xX])\] .* <!-- bot:button=([A-Za-z0-9_-]{1,40}) -->$`)
	deliveryID   = pattern.Lazy(`^[A-Za-z0-9_-]{1,100}$`)
)

// marked reports whether a text ends with a mark of this program.
func marked(body string) bool { return anyMark.MatchString(body) }

// renderer writes the bot's comments.
type renderer struct {
	web   *url.URL
	links map[string]bool // hosts that answers may lead to, besides GitHub's
	own   string          // the host of the bot's own pages, or empty
}

// compose writes the body of a comment: the text, its buttons as a list of tasks,
// and the mark of its delivery.
func (r *renderer) compose(text string, buttons []messages.Button, delivery string) (string, error) {
	var b strings.Builder
	b.WriteString(strings.TrimRight(r.defused(text), " \n"))
	for i, button := range buttons[:min(len(buttons), maxButtons)] {
		if i == 0 {
			b.WriteString("\n\n<!-- bot:buttons -->\n")
		}
		fmt.Fprintf(&b, "- [ ] %s <!-- bot:button=%s -->\n", plainLabel(button.Label), button.ID)
	}
	if delivery != "" {
		b.WriteString("\n\n" + markPrefix + "delivery=" + delivery + " -->")
	}
	if n := platform.UTF16Len(b.String()); n > maxComment {
		return "", fault.Newf(fault.Invalid, "The message is longer than the %d characters that GitHub allows.", maxComment)
	}
	return b.String(), nil
}

// plainLabel returns a label in one line in which nothing is markup.
func plainLabel(label string) string {
	runes := []rune(strings.Join(strings.Fields(visible(normal(label))), " "))
	if len(runes) > maxLabel {
		runes = append(runes[:maxLabel-1], '…')
	}
	var b strings.Builder
	for _, r := range runes {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|@&~:", r) {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// measure returns at least the length that a text has once it is defused.
func measure(markdown string) int {
	lower := strings.ToLower(markdown)
	wrap := 2*fenceLength(markdown, nil) + 3
	n := platform.UTF16Len(markdown)
	n += max(len("<code></code>"), wrap) * (strings.Count(lower, "@") + strings.Count(lower, "&") + len(closing.FindAllStringIndex(markdown, -1)))
	n += 3*strings.Count(lower, "<") + strings.Count(lower, "[") + strings.Count(lower, "]:") + strings.Count(lower, "\n") + strings.Count(lower, `\`)
	n += wrap * (strings.Count(lower, "://") + strings.Count(lower, "www."))
	return n
}

var (
	// harmless are tags that change how a text looks and nothing else.
	harmless = pattern.Lazy(`(?i)^</?(?:details|summary|br|sub|sup|kbd|b|i|em|strong)(?: open)?\s*/?>`)

	bareURL   = pattern.Lazy("(?i)^(?:https?://|ftp://|www\\.)[^\\s<>`|]+")
	codedURL  = pattern.Lazy("(?i)(?:https?://|ftp://|www\\.)[^\\s<`]*`")
	angleURL  = pattern.Lazy(`<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>`)
	atName    = pattern.Lazy(`^@[A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9._-]+)?`)
	closing   = pattern.Lazy(`(?i)(?:\b|_)(?:close|fix|resolve)`)
	closingAt = pattern.Lazy(`(?i)^(close[sd]?|fix(?:e[sd])?|resolve[sd]?)\\?:?[\s*_~()\[\]<>\\]+(?:#\d|GH-\d|[\w.-]+/[\w.-]+#\d|https?://)`)
)

// defused returns a text of the model in which nothing notifies anybody, closes
// an issue, loads an image or leads out of GitHub (contract S32, S33). Names
// after @ and the words that close issues are set as code, where GitHub does not
// act on them. Characters without width would come along when somebody copies,
// and a character reference is resolved before GitHub looks. Addresses that are not allowed are set as code, with the
// markup of their link shown. HTML that does more than layout is shown as text.
func (r *renderer) defused(markdown string) string {
	s := markup.Bounded(normal(markdown))
	for range maxRounds {
		next := markup.Bounded(r.flattened(s))
		if next == s {
			return r.quieted(s)
		}
		s = next
	}
	return r.quieted(strings.NewReplacer("<", "&lt;", "[", "(").Replace(s)) // somebody tries hard
}

// flattened makes text of HTML that could do something, of links and images that
// lead out, and of addresses that are defined elsewhere than where they are used.
// What is behind one in brackets then belongs to those around it, so this has to be
// done again until nothing changes. A diagram with an address is shown as it is written,
// as its parts could be links. Words that are written with character references
// are spelled out, so that they can be seen.
func (r *renderer) flattened(s string) string {
	if !strings.ContainsAny(s, "<&[`~") {
		return s
	}
	p := read(s)
	var es edits
	for i := range len(s) {
		if s[i] == '<' && p.is(i, isHTML) && !harmless.MatchString(s[i:min(len(s), i+40)]) {
			es.put(i, i+1, "&lt;")
		}
	}
	for _, m := range codedURL.FindAllStringIndex(s, -1) {
		if !p.is(m[0], isCode) { // GitHub takes a mark of code for a part of the address before it
			es.put(m[1]-1, m[1]-1, " ")
		}
	}
	for _, m := range angleURL.FindAllStringIndex(s, -1) {
		if !p.is(m[0], isCode) && !r.mayLink(s[m[0]+1:m[1]-1]) {
			es.put(m[0], m[0]+1, "&lt;")
		}
	}
	for _, m := range entity.FindAllStringIndex(s, -1) {
		if p.is(m[0], isCode) {
			continue
		}
		if text, ok := decoded(s[m[0]:m[1]], "@#/:.-"); ok {
			es.put(m[0], m[1], text)
		}
	}
	for _, d := range p.refs {
		if r.mayLink(d.destination) {
			continue
		}
		if at := strings.Index(s[d.from:d.to], "]:"); at >= 0 {
			es.put(d.from+at+1, d.from+at+1, `\`)
		}
	}
	for _, i := range p.infos {
		block, _, _ := strings.Cut(s[i.to:], "\n```")
		if strings.EqualFold(languageOf(s[i.from:i.to]), "mermaid") && strings.Contains(block, "//") {
			es.put(i.from, i.to, "")
		}
	}
	for _, l := range p.links {
		at, may := l.at, r.mayLink
		if l.image {
			at, may = l.at+1, r.mayShow
		}
		if !may(l.destination) {
			es.put(at, at, `\`)
		}
	}
	return es.apply(s)
}

// quieted sets as code what GitHub would act on.
func (r *renderer) quieted(s string) string {
	if !strings.ContainsAny(s, "@:.") && !closing.MatchString(s) {
		return s
	}
	q := &quieter{page: read(s), r: r}
	q.fence = strings.Repeat("`", fenceLength(s, q.spans))
	for q.at < len(s) {
		q.step()
	}
	return q.out.String()
}

// quieter writes a page anew.
type quieter struct {
	page
	r     *renderer
	out   strings.Builder
	at    int
	fence string
	coded int // where what was set as code last ended
}

func (q *quieter) copy(n int) {
	q.out.WriteString(q.source[q.at : q.at+n])
	q.at += n
}

// escaped reports whether what comes next has a backslash before it.
func (q *quieter) escaped() bool {
	n := 0
	for i := q.at - 1; i >= 0 && q.source[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

func (q *quieter) step() {
	rest := q.source[q.at:]
	switch c := rest[0]; {
	case q.is(q.at, isCode):
		q.copy(1)
	case c == '@' && (!q.inWord() || q.inMail()):
		q.mention(rest)
	case !q.inWord() && isLoginByte(c) && c != '-':
		q.word(rest)
	default:
		q.copy(1)
	}
}

// inWord reports whether what comes next continues a word. What was set as code
// ends one.
func (q *quieter) inWord() bool {
	return q.at > q.coded && isLoginByte(q.source[q.at-1]) && q.source[q.at-1] != '-'
}

// inMail reports whether what comes next stands behind an @ in one word: where GitHub
// makes a link of a mail address, a name may begin behind it.
func (q *quieter) inMail() bool {
	before := q.source[max(q.at-maxMail, 0):q.at]
	return strings.LastIndexByte(before, '@') > strings.LastIndexAny(before, " \n")
}

func (q *quieter) mention(rest string) {
	name := atName.FindString(rest)
	if name == "" {
		q.copy(1)
		return
	}
	name = strings.TrimRight(name, ".") // the end of a sentence
	q.code(name)
}

// word writes an address or a word.
func (q *quieter) word(rest string) {
	if u := trimURL(bareURL.FindString(rest)); u != "" {
		if q.r.mayLink(u) || q.is(q.at, isBlock) {
			q.copy(len(u))
			return
		}
		q.code(u)
		return
	}
	if m := closingAt.FindStringSubmatch(rest); m != nil {
		q.code(m[1])
		return
	}
	n := 1
	for n < len(rest) && isLoginByte(rest[n]) && rest[n] != '-' && !q.is(q.at+n, isCode) {
		n++
	}
	q.copy(n)
}

// code sets what comes next as code, apart from marks of code beside it. The fence has a
// length of which nothing else in the text is a mark that could pair with it.
func (q *quieter) code(text string) {
	block := q.is(q.at, isBlock)
	if !block && q.escaped() {
		q.out.WriteByte('\\') // which would take the fence's meaning
	}
	if !block && strings.TrimRight(q.out.String(), "`)]") != q.out.String() { // or an address would go on
		q.out.WriteByte(' ')
	}
	q.at += len(text)
	q.coded = q.at
	if block {
		q.out.WriteString("<code>" + text + "</code>")
		return
	}
	q.out.WriteString(q.fence + text + q.fence)
	if q.at < len(q.source) && strings.IndexByte("`>", q.source[q.at]) >= 0 {
		q.out.WriteByte(' ')
	}
}

// fenceLength returns the least number of backticks that do not stand in a row
// in s, apart from where code spans begin and end.
func fenceLength(s string, spans map[int]bool) int {
	runs := make(map[int]bool)
	run := 0
	for i := range len(s) + 1 {
		if i < len(s) && s[i] == '`' {
			run++
			continue
		}
		if at := i - run; run > 0 && !spans[at] {
			runs[run] = true
			runs[run-1] = runs[run-1] || at > 0 && s[at-1] == '\\' // the first one may be a character
		}
		run = 0
	}
	n := 1
	for runs[n] {
		n++
	}
	return n
}

// trimURL takes off what ends a link or a sentence and not an address.
func trimURL(u string) string {
	depth := 0
	for i, c := range u {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		if depth < 0 {
			u = u[:i]
			break
		}
	}
	return strings.TrimRight(u, "?!.,:;*_~'\"\\")
}

// mayLink reports whether a link may lead to an address: one of GitHub itself, of
// the bot's own pages, or of Config.LinkHosts.
func (r *renderer) mayLink(address string) bool {
	if strings.HasPrefix(strings.ToLower(address), "www.") {
		address = "https://" + address
	}
	u, err := url.Parse(strings.TrimSpace(address))
	switch {
	case err != nil || strings.ContainsAny(address, "\\\t\n"):
		return false
	case u.Scheme == "" && u.Host == "":
		return !strings.HasPrefix(address, "//")
	case u.Scheme == "mailto":
		return true
	case u.Scheme != "https" && u.Scheme != "http" || u.User != nil:
		return false
	}
	host := strings.ToLower(u.Host)
	return host == strings.ToLower(r.web.Host) || host != "" && host == r.own || r.links[host] || r.links["*"]
}

// mayShow reports whether an image may be loaded. GitHub's own hosts do not
// count: what is fetched through them can tell who reads.
func (r *renderer) mayShow(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err == nil && u.Scheme == "https" && u.User == nil && r.links[strings.ToLower(u.Host)]
}

var closesLine = pattern.Lazy(`(?im)^[ \t]*(?:closes|fixes|resolves):? #(\d+)\.?[ \t]*$`)

// pullBody writes the description of a pull request: quieted but for the line
// that closes the conversation's own issue, and marked so that it does not call
// the bot.
func (r *renderer) pullBody(body string, number int) string {
	own := fmt.Sprint(number)
	closes := false
	body = closesLine.ReplaceAllStringFunc(normal(body), func(line string) string {
		if number == 0 || closesLine.FindStringSubmatch(line)[1] != own {
			return line
		}
		closes = true
		return ""
	})
	body = strings.TrimSpace(r.defused(body))
	if closes {
		body = strings.TrimSpace(body + "\n\nCloses #" + own)
	}
	return strings.TrimSpace(body + "\n\n" + markPrefix + "pull -->")
}
