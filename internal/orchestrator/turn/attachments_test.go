package turn

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// fetcher has one file, if its content is not nil.
type fetcher struct {
	platform.Adapter

	content []byte
}

func (f fetcher) Fetch(context.Context, messages.Attachment) (io.ReadCloser, error) {
	if f.content == nil {
		return nil, fault.New(fault.NotFound, "It is gone.")
	}
	return io.NopCloser(bytes.NewReader(f.content)), nil
}

func TestTextFilesAreReadAsFarAsTheyAreShown(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("a", maxReadFile)
	for name, tt := range map[string]struct {
		content []byte
		text    string
		note    string
	}{
		"Short":            {[]byte("hello"), "hello", ""},
		"Empty":            {[]byte{}, "", "the file is empty"},
		"Full":             {[]byte(full), full, ""},
		"Longer":           {[]byte(full + "b"), full, fmt.Sprintf("only the first %d bytes of 999999", maxReadFile)},
		"CutInACharacter":  {[]byte(full[2:] + "🦊🦊"), full[2:], fmt.Sprintf("only the first %d bytes of 999999", maxReadFile-2)},
		"CutAtACharacter":  {[]byte(full[4:] + "🦊🦊"), full[4:] + "🦊", fmt.Sprintf("only the first %d bytes of 999999", maxReadFile)},
		"CutAtAnUnknown":   {[]byte(full[3:] + "\uFFFDb"), full[3:] + "\uFFFD", fmt.Sprintf("only the first %d bytes of 999999", maxReadFile)},
		"Binary":           {[]byte("PK\xff\xfe"), "", "not a text file"},
		"BinaryAndLong":    {[]byte("\xff" + full), "", "not a text file"},
		"CannotBeFetched":  {nil, "", "the file could not be read: It is gone"},
		"NothingButAFox":   {[]byte("🦊"), "🦊", ""},
		"HalfACharacter":   {[]byte("🦊"[:2]), "", "not a text file"},
		"LongAndTwoByte":   {[]byte(full[1:] + "éé"), full[1:], fmt.Sprintf("only the first %d bytes of 999999", maxReadFile-1)},
		"LongAndThreeByte": {[]byte(full[1:] + "€€"), full[1:], fmt.Sprintf("only the first %d bytes of 999999", maxReadFile-1)},
	} {
		pr := preparation{&worker{o: &Turns{config: Config{Log: slog.New(slog.DiscardHandler)}}}}
		got := pr.readTextFile(t.Context(), sessions.Entry{}, fetcher{content: tt.content}, messages.Attachment{Name: "a.txt", Source: "s", Size: 999_999})
		if got.Text != tt.text || got.Note != tt.note || !utf8.ValidString(got.Text) {
			t.Errorf("%s: %d bytes and the note %q, want %d and %q", name, len(got.Text), got.Note, len(tt.text), tt.note)
		}
	}
}

// shaky is a platform that has failures before it hands out what fetcher has.
type shaky struct {
	fetcher

	failures *[]error // where one is nil, the content is cut off on its way
}

func (s shaky) Fetch(ctx context.Context, a messages.Attachment) (io.ReadCloser, error) {
	if len(*s.failures) == 0 {
		return s.fetcher.Fetch(ctx, a)
	}
	err := (*s.failures)[0]
	*s.failures = (*s.failures)[1:]
	if err == nil {
		return io.NopCloser(io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(io.ErrUnexpectedEOF))), nil
	}
	return nil, err
}

func TestAFileIsFetchedAgainAfterAPassingFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pr := preparation{&worker{o: &Turns{config: Config{Log: slog.New(slog.DiscardHandler)}}}}
		start := time.Now()
		failures := []error{&fault.Error{Kind: fault.RateLimited, RetryAfter: 3 * time.Second}, nil}
		got := pr.readTextFile(t.Context(), sessions.Entry{}, shaky{fetcher{content: []byte("hello")}, &failures}, messages.Attachment{Name: "a.txt", Source: "s"})
		if took := time.Since(start); got.Text != "hello" || got.Note != "" || took != 5*time.Second {
			t.Errorf("%q with the note %q after %s", got.Text, got.Note, took)
		}
	})
}

func TestWhatIsATextFile(t *testing.T) {
	t.Parallel()
	for want, list := range map[bool][]messages.Attachment{
		true: {
			{Name: "a", MediaType: "text/plain; charset=utf-8"}, {Name: "a.bin", MediaType: "text/csv"}, {Name: "a", MediaType: "application/json"},
			{Name: "a", MediaType: "application/xml"}, {Name: "a", MediaType: "application/x-yaml"}, {Name: "a", MediaType: "application/x-sh"},
			{Name: "a", MediaType: "application/toml"}, {Name: "main.go"}, {Name: "a.ts", MediaType: "video/mp2t"}, {Name: "MAIN.GO", MediaType: "application/octet-stream"}, {Name: "a.json"},
		},
		false: {
			{Name: "a.txt", MediaType: "image/png"}, {Name: "a.zip", MediaType: "application/zip"}, {Name: "a"}, {Name: "a.exe"}, {Name: "go"},
			{Name: "a.txt", Text: "read"}, {Name: "a.txt", Note: "too large"},
		},
	} {
		for _, a := range list {
			a.Source = "s"
			if got := isTextFile(a); got != want {
				t.Errorf("%+v: %v", a, got)
			}
		}
	}
	if isTextFile(messages.Attachment{Name: "a.txt"}) {
		t.Error("there is nothing to fetch")
	}
}

func TestHowMuchIsQuotedOfARecording(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("a", maxHeard)
	for text, want := range map[string]string{
		"yes":                      "🎤 1:05\n> yes",
		whole:                      "🎤 1:05\n> " + whole,
		whole + "b":                "🎤 1:05\n> " + whole + "…",
		whole[1:] + "é" + "and on": "🎤 1:05\n> " + whole[1:] + "…",
	} {
		if got := strings.TrimRight(heard(messages.Attachment{Text: text, Seconds: 65}), "\n"); got != want {
			t.Errorf("%d bytes are quoted as %d, want %d: %.30q", len(text), len(got), len(want), got)
		}
	}
}
