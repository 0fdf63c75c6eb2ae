package transcribe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator/transcription"
	"remote-agent/internal/fault"
	"remote-agent/internal/transcribe"
)

func newClient(t *testing.T, config transcribe.Config) *transcribe.Client {
	t.Helper()
	c, err := transcribe.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTranscribe(t *testing.T) {
	t.Parallel()
	s := transcription.New("key")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Says("Guten Tag.")
	c := newClient(t, transcribe.Config{BaseURL: s.URL(), APIKey: "key", Model: "whisper-1"})
	text, err := c.Transcribe(t.Context(), "voice.ogg", strings.NewReader("sound"))
	if err != nil || text != "Guten Tag." {
		t.Errorf("Transcribe = %q, %v", text, err)
	}
	got := s.Recordings()
	if len(got) != 1 || got[0].Name != "voice.ogg" || got[0].Model != "whisper-1" || string(got[0].Data) != "sound" {
		t.Errorf("sent %+v", got)
	}
	other := newClient(t, transcribe.Config{BaseURL: s.URL(), APIKey: "another", Model: "whisper-1"})
	if _, err := other.Transcribe(t.Context(), "voice.ogg", strings.NewReader("sound")); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("with a wrong key: %v", err)
	}
}

// TestTranscribeRefused has an API answer with everything but a transcript.
func TestTranscribeRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		after  string

		kind   fault.Kind
		retry  time.Duration
		public string
	}{
		"key":           {status: 401, kind: fault.Unauthorized, public: "TRANSCRIBE_API_KEY"},
		"forbidden":     {status: 403, kind: fault.Unauthorized, public: "TRANSCRIBE_API_KEY"},
		"model":         {status: 404, kind: fault.NotFound, public: "TRANSCRIBE_MODEL"},
		"large":         {status: 413, kind: fault.Invalid, public: "send it in parts"},
		"unreadable":    {status: 400, kind: fault.Invalid, public: "cannot read this recording"},
		"limit":         {status: 429, after: "7", kind: fault.RateLimited, retry: 7 * time.Second, public: "rate limit"},
		"longest limit": {status: 429, after: "999999", kind: fault.RateLimited, retry: time.Hour, public: "rate limit"},
		"no time":       {status: 429, after: "soon", kind: fault.RateLimited, public: "rate limit"},
		"broken":        {status: 500, body: strings.Repeat("x", 1000), kind: fault.Unavailable, public: "status 500"},
		"elsewhere":     {status: 302, kind: fault.Unavailable, public: "status 302"},
		"a page":        {status: 200, body: "<html>", kind: fault.Invalid, public: "TRANSCRIBE_BASE_URL"},
		"endless":       {status: 200, body: `{"text":"` + strings.Repeat("x", 1<<20), kind: fault.Invalid, public: "more than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Location", "/elsewhere")
				if test.after != "" {
					w.Header().Set("Retry-After", test.after)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			t.Cleanup(api.Close)
			c := newClient(t, transcribe.Config{BaseURL: api.URL, APIKey: "key", Model: "m"})
			_, err := c.Transcribe(t.Context(), "voice.ogg", strings.NewReader("sound"))
			if retry, _ := fault.Retry(err); !fault.Is(err, test.kind) || retry != test.retry || !strings.Contains(fault.Public(err), test.public) {
				t.Errorf("%v (%q), again after %v; want %v, %v and a text with %q", err, fault.Public(err), retry, test.kind, test.retry, test.public)
			}
			if asked != 1 || len(err.Error()) > 500 {
				t.Errorf("asked %d times; the error has %d bytes", asked, len(err.Error()))
			}
		})
	}
}

// TestTranscribeTakesTooLong gives up after the time of one recording.
func TestTranscribeTakesTooLong(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-done
	}))
	t.Cleanup(api.Close)
	t.Cleanup(func() { close(done) })
	c := newClient(t, transcribe.Config{BaseURL: api.URL, Model: "m", Timeout: time.Millisecond})
	if _, err := c.Transcribe(t.Context(), "voice.ogg", strings.NewReader("sound")); !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an API that does not answer: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config transcribe.Config
		public string
	}{
		"no model":  {transcribe.Config{}, "TRANSCRIBE_MODEL"},
		"no scheme": {transcribe.Config{BaseURL: "api.example.com/v1", Model: "m"}, "TRANSCRIBE_BASE_URL"},
		"no host":   {transcribe.Config{BaseURL: "https://:443/v1", Model: "m"}, "TRANSCRIBE_BASE_URL"},
		"ftp":       {transcribe.Config{BaseURL: "ftp://example.com/v1", Model: "m"}, "TRANSCRIBE_BASE_URL"},
		"fine":      {transcribe.Config{Model: "m"}, ""},
	} {
		c, err := transcribe.New(test.config)
		if test.public == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			c.Close()
			continue
		}
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), test.public) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
