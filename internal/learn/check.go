package learn

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/memory"
	"remote-agent/internal/pattern"
)

// Limits of what is learned from one message.
const (
	maxFacts    = 3
	maxEpisodes = 1
	maxFact     = 200 // runes
	maxEvent    = 300 // runes

	minQuote = 4 // runes of the part of the message that is named
)

// Check returns a proposed text as it may be stored, or why it may not. own is
// what the person typed, as Own returns it; quote is the part of it that the model
// named.
//
// The part has to be there, and the text may not say more than the message does:
// names, numbers and most other words are in it. It may have no credential, no
// address, and nothing that tells an assistant what it is allowed to do, whoever
// pasted that.
func Check(text, quote, own string, limit int, redact func(string) string) (clean, why string) {
	clean, err := memory.CleanText(visible(text))
	switch {
	case err != nil:
		return "", "empty or too long"
	case utf8.RuneCountInString(clean) > limit:
		return "", "too long"
	case redact(clean) != clean || redact(quote) != quote:
		return "", "a credential"
	case !quotes(quote, own):
		return "", "the message does not say so"
	case commanding(clean) || commanding(quote):
		return "", "an instruction"
	case !supported(clean, own):
		return "", "it says more than the message"
	case denied(clean, quote, own):
		return "", "it says the opposite"
	}
	return clean, ""
}

func folded(text string) string { return strings.Join(words(text), " ") }

// quotes reports whether a part is in a message, but for capitals, spaces and
// punctuation.
func quotes(part, own string) bool {
	part = folded(part)
	if utf8.RuneCountInString(part) < minQuote {
		return false
	}
	if spaceless(part) {
		return strings.Contains(folded(own), part)
	}
	return strings.Contains(" "+folded(own)+" ", " "+part+" ")
}

// denied reports whether a text says the opposite of the part that is named, with the
// two words before it: a model may leave out the one that denies.
func denied(text, part, own string) bool {
	before, _, found := strings.Cut(" "+folded(own)+" ", " "+folded(part)+" ")
	if !found { // a script without spaces
		before = ""
	}
	lead := strings.Fields(before)
	return memory.Relate(strings.Join(append(lead[max(0, len(lead)-2):], part), " "), text) == memory.Opposite
}

// commands are texts that tell an assistant what it may do, or speak of what
// opens doors. A person who means it has /remember, /mode and /allow.
var commands = pattern.Lazy(`(?i)https?://|www\.|\b(ignor\w*|disregard\w*|overrid\w*|bypass\w*|circumvent\w*|jailbreak\w*|` +
	`instruction\w*|system prompt|prompt injection|developer mode|safety|guardrails?|sandbox\w*|` +
	`permissions?|permitted|privileg\w*|authoriz\w*|authoris\w*|authority|approv\w*|allow\w*|grant\w*|trusted|admin\w*|owner|superuser|sudo|root|` +
	`without asking|without confirmation|without review|do(es)? not ask|don'?t ask|never ask|no confirmation|auto mode|` +
	`secrets?|pin (code|number|is)|iban|passwor\w*|passphrases?|passwd|credentials?|tokens?|api keys?|ssh keys?|private keys?|\.env|environment variables?|` +
	`curl|wget|rm -rf|eval|exfiltrat\w*|upload\w*|` +
	`you are (now|an?)|you (must|may|can|shall|have to) (run|execute|send|post|delete|push|merge|read|reveal|share|approve)|` +
	`(assistant|bot|model|ai|agent)s? (must|may|can|should|shall|will|is|has|are|have)|` +
	`ignorier\w*|anweisung\w*|berechtig\w*|erlaub\w*|genehmig\w*|freigeb\w*|passwör\w*|geheim\w*|zugangsdaten|ohne (zu fragen|rückfrage)|` +
	`ignorez|autoris\w*|permis\w*|approuv\w*|mot de passe|mots de passe|sans demander|` +
	`ignora\w*|autoriz\w*|permit\w*|aprob\w*|contraseña\w*|sin preguntar|senha\w*|` +
	`игнорир\w*|разреш\w*|парол\w*)|忽略|授权|批准|密码|权限|无需确认|無視|許可|承認|パスワード`)

func commanding(text string) bool { return commands.MatchString(text) || cyrillic.MatchString(text) }

// cyrillic is what \b does not find: it knows ASCII only.
var cyrillic = pattern.Lazy(`(?i)игнорир|разреш|парол|токен|секрет`)

// supported reports whether a text stays with the words of a message: every name
// and number of it, and at least half of the rest, but for the few words with
// which a note is written.
func supported(text, own string) bool {
	there := make(map[string]bool)
	for _, w := range words(own) {
		there[w] = true
	}
	stems := make(map[string]bool)
	for w := range there {
		stems[stem(w)] = true
	}
	if spaceless(text) {
		return pairsShared(text, own)
	}
	counted, found := 0, 0
	for i, w := range rawWords(text) {
		low := strings.ToLower(strings.Trim(w, ".'’-"))
		known := there[low] || stems[stem(low)]
		if number, name := hard(w, i); (number && !strings.Contains(strings.ToLower(own), low)) || name && !known && !strings.Contains(strings.ToLower(own), low) {
			return false
		}
		if noteWords[low] || len(low) < 3 {
			continue
		}
		counted++
		if known {
			found++
		}
	}
	return counted > 0 && 2*found >= counted
}

func rawWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;:!?()[]{}\"“”„«»", r)
	})
}

// hard reports whether a word is a number or the like, with a digit or a mark
// inside, or a name, with a capital where a sentence has none: a model may not
// make them up. A language that writes nouns with capitals has names of many
// forms.
func hard(w string, at int) (number, name bool) {
	w = strings.Trim(w, ".'’-")
	for i, r := range w {
		switch {
		case unicode.IsDigit(r), strings.ContainsRune("/@_.#\\=+", r):
			number = true
		case unicode.IsUpper(r):
			name = name || i > 0 || at > 0
		}
	}
	return number, name
}

// stem is enough of a word to find its other forms.
func stem(w string) string {
	runes := []rune(w)
	switch n := len(runes); {
	case n <= 4:
		return w
	case n == 5:
		return string(runes[:4])
	}
	return string(runes[:5])
}

// pairsShared is supported for scripts without spaces: half of the pairs of
// characters are in the message.
func pairsShared(text, own string) bool {
	runes := []rune(folded(text))
	own = folded(own)
	shared := 0
	for i := range len(runes) - 1 {
		if strings.Contains(own, string(runes[i:i+2])) {
			shared++
		}
	}
	return len(runes) > 1 && 2*shared >= len(runes)-1
}

// noteWords are the words with which notes are written whatever the message.
var noteWords = set(`prefers prefer likes wants uses use works work has have had is are was were does did the and for with about from who that this
	person user their they them his her its knows can being
	bevorzugt mag möchte will nutzt benutzt arbeitet hat ist sind war mit und der die das ein eine einen von für kann
	préfère aime veut travaille est avec les des une pour
	prefiere quiere usa trabaja tiene con los las una para`)
