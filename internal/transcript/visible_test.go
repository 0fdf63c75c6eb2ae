package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"remote-agent/internal/transcript"
)

// Finding 10: bot sessions show printed stored escape bytes to the terminal.
func TestFinding10NoControlBytesReachTheTerminal(t *testing.T) {
	t.Parallel()
	const text = "a\x1b]0;title\x07b\x1b[2J\r\n\tc\u009bd\u202egpj.exe\u2066\x7f é日本 👩\u200d💻 \xff"
	const want = "a␛]0;title␇b␛[2J␍\n\tc<U+009B>d<U+202E>gpj.exe<U+2066><U+007F> é日本 👩\u200d💻 \ufffd"
	for step := 1; step <= len(text); step++ { // a writer may divide a character
		var b strings.Builder
		w := transcript.Visible(&b)
		for at := 0; at < len(text); at += step {
			part := text[at:min(at+step, len(text))]
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := b.String(); got != want {
			t.Errorf("in steps of %d: %q, want %q", step, got, want)
		}
	}
}

func TestFinding10JSONStaysTheSameValue(t *testing.T) {
	t.Parallel()
	const value = "a\x1b\u202e\u009b\x7f é"
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := transcript.VisibleJSON(&b).Write(data); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got != value || strings.ContainsAny(b.String(), "\u202e\x7f\u009b") {
		t.Errorf("%s is %q, %v", b.String(), got, err)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		var b strings.Builder
		if _, err := transcript.Visible(&b).Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%q has %U", b.String(), r)
			}
		}
	})
}
