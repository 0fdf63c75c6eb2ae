package terminal

import (
	"strings"
	"testing"
)

func TestTextsFitTheTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"short":      {"  1. Copy the token.\n", "  1. Copy the token.\n"},
		"a step":     {"  3. Copy the token from the answer: digits, letters.\n", "  3. Copy the token from the\n     answer: digits, letters.\n"},
		"a column":   {"  6 - address  none; webhooks are not possible\n", "  6 - address  none; webhooks\n               are not\n               possible\n"},
		"a prompt":   {"Which one? Name or number, Enter for model: ", "Which one? Name or number,\nEnter for model: "},
		"a sign":     {"✖ That is not the token of a bot at all.\n", "✖ That is not the token of a\n  bot at all.\n"},
		"a link":     {"  https://example.com/a/long/link/that/stays/whole\n", "  https://example.com/a/long/link/that/stays/whole\n"},
		"some lines": {"one\n\ntwo\n", "one\n\ntwo\n"},
	} {
		if got := fold(c.text, 30); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if text := strings.Repeat("word ", 50); fold(text, 0) != text || fold(text, 10) != text {
		t.Error("what is no terminal, or too narrow, is folded")
	}
}

// Nothing but spaces and ends of lines changes.
func FuzzFold(f *testing.F) {
	f.Add("  1. ✔ a  b c\n", 20)
	f.Add("\xff   \n\n x", 80)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		got := fold(text, columns%500)
		if a, b := strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(text), " "); a != b {
			t.Errorf("%q became %q", text, got)
		}
	})
}
