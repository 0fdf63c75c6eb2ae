package transcript_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"remote-agent/internal/transcript"
)

func TestLinesAreShortAndHarmless(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"two\n\n lines\tand more":       "two lines and more",
		"\x1b[2Jgone\x07\u009b31m":      "[2Jgone31m",
		"right \u202eto left":           "right to left",
		strings.Repeat("é", 30):         strings.Repeat("é", 19) + "…",
		strings.Repeat("日本", 10):        strings.Repeat("日本", 10),
		"broken \xff bytes":             "broken bytes",
		"👩‍💻 stays":                     "👩‍💻 stays",
		strings.Repeat("x", 159) + "éé": strings.Repeat("x", 19) + "…",
	} {
		if got := transcript.Line(text, 20); got != want {
			t.Errorf("Line(%q) = %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("before ", 50) + "the NEEDLE is here " + strings.Repeat("after ", 50)
	got := transcript.Around(long, strings.Index(long, "NEEDLE"), 40)
	if !strings.Contains(got, "NEEDLE") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") {
		t.Errorf("Around = %q", got)
	}
}

func FuzzAround(f *testing.F) {
	f.Add("İstanbul needle", 11, 20)
	f.Add("\xff\xfe", 1, 3)
	f.Fuzz(func(t *testing.T, text string, at, width int) {
		at, width = min(max(0, at), len(text)), 3+max(0, width)%200
		got := transcript.Around(text, at, width)
		if n := utf8.RuneCountInString(got); n > width || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("Around(%q, %d, %d) = %q, %d letters", text, at, width, got, n)
		}
	})
}
