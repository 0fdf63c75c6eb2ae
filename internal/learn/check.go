package learn

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/lists"
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
	case asked(quote, own) || strings.ContainsAny(clean, questionMarks):
		return "", "a question"
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

const questionMarks = "?？؟"

// asked reports whether a part of a message is asked there and not said: a question
// mark ends it, or the clause that it is in.
func asked(part, own string) bool {
	part = folded(part)
	for at, r := range own {
		if !strings.ContainsRune(questionMarks+",.;:!\n，。；：！、", r) || !quotes(part, own[:at]) {
			continue
		}
		return strings.ContainsRune(questionMarks, r)
	}
	return false
}

// A part of this length at most is denied as a whole by a word such as "not".
const (
	maxDeniedWords = 5
	maxDeniedRunes = 24 // in scripts without spaces
)

// denied reports whether a text says the opposite of the part that is named, with
// what stands around it: a model may leave out the word that denies. Where words
// change their endings much, Relate does not know them again, so a short part decides.
func denied(text, part, own string) bool {
	part = inContext(part, own)
	if memory.Relate(part, text) == memory.Opposite {
		return true
	}
	if spaceless(part) && utf8.RuneCountInString(part) > maxDeniedRunes || !spaceless(part) && len(words(part)) > maxDeniedWords {
		return false
	}
	return memory.Denies(part) != memory.Denies(text) && restates(text, part)
}

// inContext returns a part of a message with what may deny it: the two words before
// it, or its whole clause in a script without spaces, where that may follow as well.
func inContext(part, own string) string {
	if spaceless(part) {
		before, after, _ := strings.Cut(folded(own), folded(part))
		rest, _, _ := strings.Cut(after, " ")
		return before[strings.LastIndexByte(before, ' ')+1:] + part + rest
	}
	before, _, _ := strings.Cut(" "+folded(own)+" ", " "+folded(part)+" ")
	lead := strings.Fields(before)
	return strings.Join(append(lead[max(0, len(lead)-2):], part), " ")
}

// restates reports whether a text is about the same as a part of a message: most of
// its words begin as one of that does.
func restates(text, part string) bool {
	if spaceless(text) {
		return pairsShared(text, part)
	}
	there := make(map[string]bool)
	for _, w := range words(part) {
		there[beginning(w)] = true
	}
	counted, found := 0, 0
	for _, w := range words(text) {
		start := beginning(w)
		if noteWords[w] || start == "" {
			continue
		}
		counted++
		if there[start] {
			found++
		}
	}
	return 2*found > counted
}

// beginning is what the forms of a word have in common: three letters, or two in Korean,
// where one is a syllable. It is empty for a shorter word.
func beginning(w string) string {
	runes := []rune(w)
	n := 3
	if len(runes) > 0 && unicode.Is(unicode.Hangul, runes[0]) {
		n = 2
	}
	if len(runes) < n {
		return ""
	}
	return string(runes[:n])
}

// commands are texts that tell an assistant what it may do, or speak of what
// opens doors. A person who means it has /remember, /mode and /allow.
var commands = pattern.Lazy(`(?i)https?://|www\.|\b(ignor\w*|disregard\w*|overrid\w*|bypass\w*|circumvent\w*|jailbreak\w*|` +
	`instruction\w*|system prompt|prompt injection|developer mode|safety|guardrails?|sandbox\w*|` +
	`permissions?|permitted|privileg\w*|authoriz\w*|authoris\w*|authority|approv\w*|allow\w*|grant\w*|trusted|admin\w*|owner|superuser|sudo|root|` +
	`without asking|without confirmation|without review|do(es)? not ask|don'?t ask|never ask|no confirmation|auto mode|` +
	`secrets?|pin (code|number|is)|iban|passwor\w*|passphrases?|passwd|passcodes?|credentials?|tokens?|api keys?|ssh keys?|private keys?|\.env|environment variables?|` +
	`curl|wget|rm -rf|eval|exfiltrat\w*|upload\w*|` +
	`you are (now|an?)|you (must|may|can|shall|have to) (run|execute|send|post|delete|push|merge|read|reveal|share|approve)|` +
	`(assistant|bot|model|ai|agent)s? (must|may|can|should|shall|will|is|has|are|have)|` +
	`ignorier\w*|anweisung\w*|berechtig\w*|erlaub\w*|genehmig\w*|freigeb\w*|passwör\w*|geheim\w*|zugangsdaten|ohne (zu fragen|rückfrage)|` +
	`ignorez|autoris\w*|permis\w*|approuv\w*|mot de passe|mots de passe|sans demander|` +
	`ignora\w*|autoriz\w*|permit\w*|aprob\w*|contraseña\w*|sin preguntar|senha\w*|` +
	`kennw[oö]rt\w*|clés? secrètes?|codes? (secret|pin|confident\w*)|clave|parola d'ordine|chave secreta|` +
	`has[lł]\w{1,2}|wachtwoord\w*|l[oö]senord\w*|adgangskode\w*|passord\w*|heslo|jelsz\w*|salasana\w*|kata sandi)|` +
	`игнорир|разреш|парол|токен|секрет|忽略|授权|批准|密码|密碼|口令|密钥|密鑰|权限|无需确认|無視|許可|承認|パスワード|パスコード|暗証番号|秘密鍵|合言葉|` +
	`비밀번호|비번|암호|รหัสผ่าน|mật khẩu|şifre|كلمة (السر|المرور)|पासवर्ड|סיסמ|κωδικό`)

func commanding(text string) bool { return commands.MatchString(text) }

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
		return namesThere(text, own) && pairsShared(text, own)
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

// pairsShared reports whether half of the pairs of characters of a text are in a
// message, for scripts without spaces.
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

// namesThere reports whether a message has what may be a name or a number in a text
// without spaces, where neither can be told from other words: everything in Latin
// letters and digits, and all characters but those with which a note is written.
func namesThere(text, own string) bool {
	own = strings.ToLower(own)
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unspaced(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !strings.Contains(own, w) {
			return false
		}
	}
	for _, r := range text {
		if unicode.In(r, unicode.Han, unicode.Katakana) && !strings.ContainsRune(noteRunes, r) && !strings.ContainsRune(own, r) {
			return false
		}
	}
	return true
}

// noteRunes are what noteWords are in Chinese and Japanese.
const noteRunes = "的了是在有会會想要用使喜欢歡好爱愛偏希望不没沒他她它们們这這那个個和与與对對人户戶者"

// noteWords are the words with which notes are written whatever the message.
var noteWords = lists.Words(`prefers prefer likes wants uses use works work has have had is are was were does did the and for with about from who that this
	person user their they them his her its knows can being
	bevorzugt mag möchte will nutzt benutzt arbeitet hat ist sind war mit und der die das ein eine einen von für kann
	préfère aime veut travaille est avec les des une pour
	prefiere quiere usa trabaja tiene con los las una para`)
