package learn

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/command"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
)

const (
	// maxOwn is how long a message may be, in runes, to be read by the learner.
	// People who write more have pasted it.
	maxOwn = 1500

	// maxLine is the same for a line. What is longer is left out.
	maxLine = 500

	// minWords and minRunes are what a message has at least that says something of
	// its author. The second is for scripts without spaces.
	minWords = 3
	minRunes = 6

	// maxSpoken is how many words somebody may put between quotation marks before
	// it is taken for the words of somebody else.
	maxSpoken = 3
)

// Own returns what the sender of a message typed themself, or nothing if it is
// not worth a request: a command, a word or two, a pasted text, nothing about
// themself. Quotations, code, logs, lines that name another speaker and lines
// that redact changes are left out, and so is everything that came with the
// message: what it replies to, forwards, or has attached. Of messages about an
// issue or a pull request nothing is taken: they are full of templates and of
// what others wrote. Nor is anything of a standing task, whose text is its
// profile's.
//
// It only looks at the text, so it errs: what it lets pass is asked about, with
// the text as data, and judged again by Check.
func Own(in messages.Inbound, redact func(string) string) string {
	if in.Kind != messages.KindMessage || in.Sender.Bot || in.Sender.ID == "" || in.Repository != nil || in.Schedule != 0 || len(in.Text) > 8*maxOwn {
		return ""
	}
	if _, ok := command.Parse(in.Text); ok {
		return ""
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(in.Text, "\x00", ""), "")
	for _, cited := range in.Cited {
		if !strings.Contains(text, cited) { // changed since, so what is left of it cannot be told
			return ""
		}
		text = strings.ReplaceAll(text, cited, "\n")
	}
	if redact(text) != text {
		// A credential may go over several lines, so what the lines are without it
		// cannot be told from the lines alone.
		text = redactLines(text, redact)
	}
	text = visible(comment.ReplaceAllString(text, "\n"))
	lines := ownLines(text)
	own := strings.Join(lines, "\n")
	own = strings.TrimSpace(cutSpoken(own))
	if utf8.RuneCountInString(own) > maxOwn || !substantial(own) || !personal(own) {
		return ""
	}
	return own
}

// redactLines leaves out the lines that have a credential, and everything if it
// is more than a line.
func redactLines(text string, redact func(string) string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if redact(line) == line {
			kept = append(kept, line)
		}
	}
	text = strings.Join(kept, "")
	if redact(text) != text {
		return ""
	}
	return text
}

// visible takes out what people do not see: it was not typed.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cc, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, text)
}

var (
	comment = pattern.Lazy(`(?s)<!--.*?(?:-->|$)`)
	fence   = pattern.Lazy("^\\s*(```|~~~)")

	// rest begins what somebody else wrote, to the end of the message.
	rest = pattern.Lazy(`(?i)^\s*(-{2,}\s*(original message|forwarded message|ursprüngliche nachricht)|begin forwarded message|(on|am|le|el) .{4,120}(wrote|schrieb|a écrit|escribió)\s*:\s*$)`)

	// foreign is a line that is not the sender's own: a quotation, a log line, a
	// stack, a diff, a prompt of a shell, a header, a table, a line with its speaker.
	foreign = pattern.Lazy(`^(\s*[>|│»]|\t| {4}|[+@-]{3} |diff --git |\s*at [\w.$]+\(|\s*File "|Traceback |goroutine \d|panic: |` +
		`\s*[\[(]?\d{1,4}[-:/.]\d{1,2}([-:/.]\d{1,4})?[\])T ,]|\s*[\[(](INFO|WARN|ERROR|DEBUG|FATAL|TRACE)|(INFO|WARN|WARNING|ERROR|DEBUG|FATAL|TRACE)\b|` +
		`[$%#] ?\S|\w+@[\w.-]+:.*[$#] |[\[{<]|"|\s*(?:[\p{Lu}@][\p{L}\p{N}_.-]*)(?: [\p{Lu}][\p{L}.-]*){0,2} ?(?:\([^)]{0,40}\) ?)?:(?:\s|$))`)
)

// ownLines returns the lines that are the sender's own.
func ownLines(text string) (own []string) {
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case fence.MatchString(line):
			fenced = !fenced
			continue
		case fenced:
			continue
		case rest.MatchString(line):
			return own
		case foreign.MatchString(line), utf8.RuneCountInString(line) > maxLine:
			continue
		}
		own = append(own, line)
	}
	return own
}

// spoken are quotation marks with what stands between them.
var spoken = pattern.Lazy("(?s)\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|»[^«]*«|「[^」]*」|『[^』]*』|‘[^’]*’|`[^`]*`")

// cutSpoken takes out longer quotations inside of a line.
func cutSpoken(text string) string {
	return spoken.ReplaceAllStringFunc(text, func(s string) string {
		if len(strings.Fields(s)) > maxSpoken || utf8.RuneCountInString(s) > 40 {
			return " "
		}
		return s
	})
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '’'
	})
}

// spaceless reports whether a text is in a script that puts no spaces between
// words.
func spaceless(text string) bool { return strings.ContainsFunc(text, unspaced) }

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func substantial(text string) bool {
	if spaceless(text) {
		return utf8.RuneCountInString(text) >= minRunes
	}
	return len(words(text)) >= minWords
}

// personal reports whether a text may say something of its author. Of languages
// that it knows, it asks for a word that means oneself, a lasting wish or how to
// be answered; of
// others it knows nothing, and lets the model decide.
func personal(text string) bool {
	if spaceless(text) { // whatever English words are between
		return true
	}
	known := false
	for _, w := range words(text) {
		w, _, _ = strings.Cut(strings.ReplaceAll(w, "’", "'"), "'")
		if aboutMe[w] {
			return true
		}
		known = known || common[w]
	}
	return !known
}

var (
	aboutMe = lists.Words(`i im ive my mine me myself we our ours us prefer prefers always never usually remember answer answers reply respond
		ich mein meine meinen meinem meiner mir mich wir unser unsere uns immer nie niemals bevorzuge lieber duze merk antworte antworten
		je j mon ma mes moi nous notre nos toujours jamais préfère tutoie réponds répondez
		yo mi mis me nosotros nuestro nuestra siempre nunca prefiero responde
		io mio mia miei mie noi nostro nostra sempre mai preferisco
		eu meu minha nós nosso nossa sempre nunca prefiro
		ik mijn wij onze altijd nooit liever
		ja mój moja moje mnie my nasz nasza zawsze nigdy wolę
		я мой моя мои мне меня мы наш наша всегда никогда предпочитаю`)

	// common are words by which a text of those languages is recognized.
	common = lists.Words(`the a an is are was does do can could why what how when where which this that it and or of to in for with on not
		fix add run show make write test
		der die das ein eine ist sind war kann warum was wie wann wo und oder nicht mit auf für von zu
		le la les un une est sont était peut pourquoi que quoi comment quand où et ou pas avec pour dans
		el los las una es son era puede qué cómo cuándo dónde y o no con para en
		il lo gli è sono può perché che cosa come quando dove e non per
		o os as um uma é são pode porque como não com para em
		de het een kan waarom wat hoe wanneer en niet met voor
		jest są dlaczego co jak kiedy gdzie i nie dla
		это почему что как когда где и или не с для`)
)
