package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"remote-agent/internal/redact"
)

// Finding 6, the other half: who masks everything misses nothing either. Fewer
// than 1 in 10,000 words of ordinary text may be masked.
func TestFinding6OrdinaryTextStays(t *testing.T) {
	t.Parallel()
	r := redact.New(configured)
	random := rand.NewChaCha8([32]byte{13})
	data := func(n int) []byte {
		b := make([]byte, n)
		_, _ = random.Read(b)
		return b
	}
	var hashes, ids, images strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&hashes, "commit %s\nAuthor: A <a@example.com>\n\n    change %d\n\n", hex.EncodeToString(data(20)), i)
		b := data(16)
		fmt.Fprintf(&ids, "request %x-%x-%x-%x-%x done in 12ms, session_id=%x sha256:%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:], data(8), data(32))
	}
	for range 200 {
		encoded := base64.StdEncoding.EncodeToString(data(6000))
		fmt.Fprintf(&images, "<img src=\"data:image/png;base64,%s\">\n", encoded)
		for ; len(encoded) > 76; encoded = encoded[76:] {
			images.WriteString(encoded[:76] + "\n")
		}
	}
	for name, text := range map[string]string{
		"documents and sources": ordinary(t), "commits": hashes.String(), "ids": ids.String(), "images in base64": images.String(),
	} {
		words := len(strings.Fields(text))
		masked := len(strings.Fields(strings.ReplaceAll(text, redact.Mask, "")))
		got := r.String(text)
		masked -= len(strings.Fields(strings.ReplaceAll(got, redact.Mask, "")))
		marks := strings.Count(got, redact.Mask) - strings.Count(text, redact.Mask)
		if most := words / 10_000; max(masked, marks) > most {
			t.Errorf("%s: %d places and %d of %d words are masked, more than %d; the first: %s", name, marks, masked, words, most, firstMasked(text, got))
		}
		t.Logf("%s: %d places in %d words", name, marks, words)
	}
}

func firstMasked(text, got string) string {
	for i := range min(len(text), len(got)) {
		if text[i] != got[i] {
			return text[max(0, i-60):min(len(text), i+60)]
		}
	}
	return ""
}

// What a person or a program says about credentials is no credential.
func TestFinding6TalkOfCredentialsStays(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for _, text := range []string{
		"password: at least 8 characters", "The password is required.", "Enter your password: ", "password=${DB_PASSWORD}", "password=$PASSWORD", "PASSWORD=<your password>",
		"token := next()", "token = tokens[i]", "Password: cfg.Password,", "secret: config.Secret(s)", "if password == nil {", `os.Getenv("API_KEY")`, "api_key: string", "token_count=12345678",
		"max_tokens: 4096", "password_file=/run/secrets/db1", "Authorization: Bearer <token>", "Bearer authentication is used", "Basic authentication", "see Basic c2VlIGFib3ZlLi4u",
		"-----BEGIN PRIVATE KEY----- is the first line", "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----", "-----BEGIN PGP PUBLIC KEY BLOCK-----\nmQEN\n-----END PGP PUBLIC KEY BLOCK-----",
		"--- PASS: TestOpen/with_key2 (0.00s)", "http://127.0.0.1:8080/metrics?a=b@c", "https://example.com:8443?user=a@b.example", "write postgres://user:password@host:5432/name",
		"h1:Aq3n4b5c6d7e8f90123456789abcdefghijklmnopqr=", "primary_key: user_id", "the sk-container-id-1 class", "PWD=/home/ann", "PWD=/home/ann2", "OLDPWD=/srv/www2/app-v1.22/x86_64", "password=~/keys/db1.txt", "API_TOKEN=/run/secrets/token_2026", "PWD=/Users/Ann2/Work", "secret_name: db-credentials", `{"type": "password", "token": "access_token"}`,
		"cookie: yes", "signature = \"X-Hub-Signature-256\"", "ghp_ is the prefix", "key-value pairs", "👩\u200d💻 says می\u200cخواهم",
	} {
		if got := r.String(text); got != text {
			t.Errorf("String(%q) = %q", text, got)
		}
	}
}

// What begins as a path is one only if its names are words with numbers.
func TestSecretsThatBeginAsAPathAreMasked(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for _, secret := range []string{"/hunter22", "~hunter22", "/Xk29fLq0/Zp31vTy8Wq", "/home/ann/Xk29fLq0Zp31", "/a1//b2", "/srv/a1!b2", "/data/81734621098"} {
		if got := r.String("password=" + secret); got != "password="+redact.Mask {
			t.Errorf("%s: %s", secret, got)
		}
	}
}

// Partial never takes back, and never shows what String would not.
func TestFinding6PartialIsAPrefix(t *testing.T) {
	t.Parallel()
	r := redact.New(configured)
	all := corpus()
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			b.WriteString(rapid.OneOf(
				rapid.Custom(func(t *rapid.T) string {
					text := all[rapid.IntRange(0, len(all)-1).Draw(t, "example")].text
					return text[rapid.IntRange(0, len(text)/2).Draw(t, "from"):]
				}),
				rapid.SampledFrom([]string{" ", "\n", "password=", "token: \"", "https://a:", "-----BEGIN ", "sk-", "12345678:", "Bearer ", "é", "\u200b", "://", "\\n", "eyJ"}),
				rapid.StringN(0, 12, -1),
			).Draw(t, "part"))
		}
		text := b.String()
		whole, before := r.String(text), ""
		for n := range len(text) + 1 {
			got := r.Partial(text[:n])
			if !strings.HasPrefix(whole, settled(got)) || !strings.HasPrefix(got, settled(before)) {
				t.Fatalf("after %d bytes of %q: %q, before that %q, at last %q", n, text, got, before, whole)
			}
			before = got
		}
	})
}

// What nobody sees in front of a space stays when the space could begin a credential.
func TestPartialKeepsWhatNobodySees(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for _, option := range []string{" -u", " --user ", " -u ann"} {
		for n := range len(option) {
			if got := r.Partial("curl\u200b" + option[:n+1]); !strings.HasPrefix(got, "curl\u200b ") {
				t.Errorf("after %q: %q", option[:n+1], got)
			}
		}
	}
}

// A stream that pauses shows the words that it has.
func TestFinding6PartialShowsOrdinaryWords(t *testing.T) {
	t.Parallel()
	r := redact.New(configured)
	for _, text := range []string{
		"a leaf that the wind carried in", "Half an answer", "Done.", "Step 1", "approximately", "see main.go", "OK", "It costs 5 EUR", "日本語", "PENDING", "a well-known", "email me@a.b",
	} {
		if got := r.Partial(text); got != text && !strings.HasPrefix(text, "see") && !strings.HasPrefix(text, "a well") && !strings.HasPrefix(text, "email") {
			t.Errorf("Partial(%q) = %q", text, got)
		}
	}
}

func FuzzPartial(f *testing.F) {
	for _, e := range corpus() {
		f.Add(e.text, len(e.text)/2)
	}
	r := redact.New(configured)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 0 || n > len(s) {
			return
		}
		if whole, got := r.String(s), r.Partial(s[:n]); !strings.HasPrefix(whole, settled(got)) {
			t.Errorf("after %d bytes of %q: %q, at last %q", n, s, got, whole)
		}
	})
}
