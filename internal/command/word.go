package command

import (
	"slices"
	"strings"
	"unicode"
)

// Word is what people write to an open question in place of a command.
type Word string

// The words.
const (
	WordNo   Word = "no"
	WordYes  Word = "yes"
	WordStop Word = "stop"
	WordWhy  Word = "why"
)

// maxWhy is how long a text can be that begins with "why" and asks about the open
// question, in bytes: a longer one has something to tell.
const maxWhy = 120

var words = [...]struct {
	word  Word
	texts []string
}{
	{WordNo, []string{"no", "nope", "no thanks", "no thank you", "no please", "please no", "don't", "dont", "do not", "don't do it", "do not do it", "deny", "not now", "better not"}},
	{WordYes, []string{"yes", "y", "yep", "yeah", "ok", "okay", "sure", "go", "go on", "go ahead", "do it", "yes please", "approve", "approved", "run it", "allow", "allow it", "lgtm"}},
	{WordStop, []string{"stop", "stop it", "stop that", "please stop", "cancel", "cancel it", "abort", "halt"}},
	{WordWhy, []string{"why", "what", "what for", "what is this", "what's this", "what is that", "what's that", "explain", "what do you want", "what are you waiting for"}},
}

// ParseWord reads text as such a word, whatever its case and the punctuation around
// it: "No!", "Why do you need that?". Behind a "no" with a comma or the like there may
// be a reason, which is returned. ok is false for everything else, "no problem, ..." too.
func ParseWord(text string) (w Word, rest string, ok bool) {
	plain := bare(text)
	for _, known := range words {
		if slices.Contains(known.texts, plain) {
			return known.word, "", true
		}
	}
	if head, rest, found := strings.Cut(text, ","); found && bare(head) == "no" {
		return WordNo, strings.TrimSpace(rest), true
	}
	for _, end := range []string{".", "!", ":", ";", "\n"} {
		if head, rest, found := strings.Cut(text, end); found && bare(head) == "no" && strings.TrimSpace(rest) != "" {
			return WordNo, strings.TrimSpace(rest), true
		}
	}
	if strings.HasPrefix(plain, "why ") && len(plain) <= maxWhy {
		return WordWhy, "", true
	}
	return "", "", false
}

// IsStop reports whether text is the word "stop" and nothing else, which means the
// command wherever it is said.
func IsStop(text string) bool {
	return bare(text) == "stop" && !strings.HasPrefix(strings.TrimSpace(text), "/")
}

// bare returns text in lower case without the punctuation around it.
func bare(text string) string {
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	return strings.TrimFunc(strings.Join(strings.Fields(text), " "), func(r rune) bool {
		return unicode.IsPunct(r) || unicode.IsSpace(r) || unicode.IsSymbol(r)
	})
}
