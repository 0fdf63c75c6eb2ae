package redact_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/redact"
)

// canaries are tokens of every shape. They are put together at run time, so
// that no scanner takes this file for a leak.
func canaries() map[string]string {
	return map[string]string{
		"openai":       "sk-" + strings.Repeat("aB3", 12),
		"openai proj":  "sk-proj-" + strings.Repeat("aB3_", 12),
		"anthropic":    "sk-ant-api03-" + strings.Repeat("aB-", 12),
		"github":       "ghp_" + strings.Repeat("aB3", 12),
		"github oauth": "gho_" + strings.Repeat("aB3", 12),
		"github app":   "ghs_" + strings.Repeat("a.B-", 12),
		"github fine":  "github_pat_" + strings.Repeat("aB_", 12),
		"slack bot":    "xoxb-" + strings.Repeat("123-", 6),
		"slack app":    "xapp-1-" + strings.Repeat("A1-", 6),
		"aws":          "AKIA" + strings.Repeat("A1", 8),
		"jwt":          "eyJ" + strings.Repeat("hb", 8) + ".eyJ" + strings.Repeat("zd", 8) + "." + strings.Repeat("c", 20),
		"telegram":     "123456789:" + strings.Repeat("A", 35),
		"own api":      "rak_" + strings.Repeat("a2", 5) + "_" + strings.Repeat("b7cd", 13),
		"pem":          "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
		"cut pem":      "-----BEGIN PRIVATE KEY-----\nMIIabc",
	}
}

func TestStringRemovesTokensOfEveryShape(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for name, token := range canaries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.String("before " + token)
			if strings.Contains(got, token) || !strings.HasPrefix(got, "before ") || !strings.Contains(got, redact.Mask) {
				t.Errorf("String = %q", got)
			}
			if again := r.String(got); again != got {
				t.Errorf("redacting twice changed %q to %q", got, again)
			}
		})
	}
}

func TestStringKeepsOrdinaryText(t *testing.T) {
	t.Parallel()
	r := redact.New("", "x", "abc")
	for _, text := range []string{
		"",
		"plain words, x and abc",
		"at 12:30 the task-runner sk-1 said eyJ",
		"http://127.0.0.1:3000/healthz",
		"see https://example.com/a:b@c and a@b.example",
		"commit 0123456789abcdef0123456789abcdef01234567",
		"telegram/-1001234567890:12",
	} {
		if got := r.String(text); got != text {
			t.Errorf("String(%q) = %q", text, got)
		}
	}
}

func TestStringMasksPasswordsInAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"postgres://bot:hunter2@db:5432/bot": "postgres://bot:[redacted]@db:5432/bot",
		"postgres://bot:p@ss@db/bot":         "postgres://bot:[redacted]@db/bot",
		"redis://:hunter2@cache/0":           "redis://:[redacted]@cache/0",
		"http://u:p@h and http://h2/x@y":     "http://u:[redacted]@h and http://h2/x@y",
	} {
		if got := redact.New().String(in); got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestStringRemovesTelegramTokenInAnAddress(t *testing.T) {
	t.Parallel()
	token := canaries()["telegram"]
	got := redact.New().String(`Post "https://api.telegram.org/bot` + token + `/getMe": EOF`)
	if strings.Contains(got, token) {
		t.Errorf("String = %q", got)
	}
}

func TestStringRemovesConfiguredSecretsInEveryForm(t *testing.T) {
	t.Parallel()
	const secret = "s3cret&value/with+signs"
	r := redact.New(secret, "another-one")
	for _, form := range []string{
		secret,
		"s3cret%26value%2Fwith%2Bsigns",
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"another-one",
	} {
		if got := r.String("<" + form + ">"); got != "<"+redact.Mask+">" {
			t.Errorf("String(%q) = %q", form, got)
		}
	}
	// Some programs write escapes in small letters, and a blank in a path as no plus.
	r = redact.New("pass word/of&mine")
	for _, form := range []string{
		"pass word/of&mine", "pass+word%2Fof%26mine", "pass+word%2fof%26mine", "pass%20word%2Fof&mine", "pass%20word%2fof&mine",
		"pass word/of&amp;mine", `pass word/of\u0026mine`,
	} {
		if got := r.String("<" + form + ">"); got != "<"+redact.Mask+">" {
			t.Errorf("String(%q) = %q", form, got)
		}
	}
}

// TestASecretGoesWholeWhereARuleTakesItsBeginning: a rule that ends at a quote or a space
// would leave the rest of a password that has one.
func TestASecretGoesWholeWhereARuleTakesItsBeginning(t *testing.T) {
	t.Parallel()
	const first, rest = "S3cr3tP4rt", `"Qu0te and'more9Value`
	r := redact.New(first+rest, "morning dew 42")
	for _, text := range []string{
		"password=%s", `"password": "%s"`, "PGPASSWORD='%s'", "--password %s", "eyJ" + strings.Repeat("hb", 8) + ".eyJ" + strings.Repeat("zd", 8) + ".%s",
	} {
		text = fmt.Sprintf(text, first+rest)
		if got := r.String(text); strings.Contains(got, "more9") || strings.Contains(got, "Qu0te") || !strings.Contains(got, redact.Mask) {
			t.Errorf("String(%q) = %q", text, got)
		}
		for n := range text {
			if got := r.Partial(text[:n]); strings.Contains(got, "P4") || strings.Contains(got, "Qu") {
				t.Errorf("Partial(%q) = %q", text[:n], got)
			}
		}
	}
	if got := r.String("password=morning dew 42 or so"); got != "password="+redact.Mask+" or so" {
		t.Errorf("String = %q", got)
	}
	if got := r.String("password=" + first + `" and more`); got != "password="+redact.Mask+`" and more` {
		t.Errorf("without the rest of it, String = %q", got)
	}
}

func TestNilRedactorKnowsShapes(t *testing.T) {
	t.Parallel()
	var r *redact.Redactor
	if got := r.String(canaries()["github"]); got != redact.Mask {
		t.Errorf("String = %q", got)
	}
}

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.StringValue(v.s) }

type panicky struct{ p *string }

func (p *panicky) Error() string { return *p.p }

func TestHandlerRedactsEverything(t *testing.T) {
	t.Parallel()
	const secret = "configured-secret"
	var buf bytes.Buffer
	log := slog.New(redact.Handler(slog.NewJSONHandler(&buf, nil), redact.New(secret)))

	log = log.With("with", secret).WithGroup("g").With(slog.Group("inner", "k", secret))
	log.Info("message "+secret,
		"string", secret,
		"error", fmt.Errorf("doing: %w", errors.New(secret)),
		"bytes", []byte(secret),
		"valuer", valuer{secret},
		"struct", struct{ A, B string }{"a", secret},
		"pointer", &struct{ C *string }{new(secret)},
		"map", map[string]any{"k": []string{secret}},
		"number", 42,
		"nil_error", (*panicky)(nil),
	)
	out := buf.String()
	if strings.Contains(out, secret) {
		t.Errorf("the secret is in the log: %s", out)
	}
	for _, want := range []string{`"number":42`, `"with":"[redacted]"`, `"inner":{"k":"[redacted]"}`, "PANIC"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// Bytes are text to one handler and base64 to another; a token in them is in neither.
func TestHandlerReadsBytes(t *testing.T) {
	t.Parallel()
	token := canaries()["github"]
	for name, next := range map[string]func(w io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		var buf bytes.Buffer
		slog.New(redact.Handler(next(&buf), redact.New())).Info("answered", "body", []byte("token "+token+" is good"))
		if out := buf.String(); strings.Contains(out, token) || !strings.Contains(out, "token [redacted] is good") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, c := range canaries() {
		f.Add(c)
	}
	f.Add("postgres://a:b@c://d:e@f")
	f.Add("Bearer Bearer abcdefghij")
	r := redact.New("configured-secret")
	f.Fuzz(func(t *testing.T, s string) {
		got := r.String(s + "configured-secret")
		if strings.Contains(got, "configured-secret") {
			t.Errorf("String(%q) = %q", s, got)
		}
	})
}

// TestWhatIsLearned is known besides what was, also while others ask.
func TestWhatIsLearned(t *testing.T) {
	t.Parallel()
	r := redact.New("drizzle-umbrella")
	const text = "drizzle-umbrella and river-boat"
	if got := r.String(text); got != "[redacted] and river-boat" {
		t.Errorf("before: %q", got)
	}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			r.Learn("river-boat", "")
			if got := r.String(text); got != "[redacted] and [redacted]" {
				t.Errorf("after: %q", got)
			}
		})
	}
	asking.Wait()
}
