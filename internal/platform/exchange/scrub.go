package exchange

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

const (
	maxErrorText = 500 // bytes of a foreign text that go into an error

	// minSecret is the shortest secret that is looked for; shorter ones, of tests,
	// are parts of ordinary words.
	minSecret = 8
)

// Scrubber takes credentials out of foreign texts. A nil one only shortens them. It
// is safe for concurrent use.
type Scrubber struct {
	known *strings.Replacer
	form  *regexp.Regexp
}

// NewScrubber returns one that finds secrets as they are and as they stand in
// addresses, and whatever form matches, which may be nil. Secrets of less than eight
// bytes are not looked for.
func NewScrubber(form *regexp.Regexp, secrets ...string) *Scrubber {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		for _, written := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			pairs = append(pairs, written, "***")
		}
	}
	return &Scrubber{known: strings.NewReplacer(pairs...), form: form}
}

// Text returns a foreign text without credentials, at most 500 bytes of it.
func (s *Scrubber) Text(text string) string {
	if s != nil {
		text = s.known.Replace(text)
		if s.form != nil {
			text = s.form.ReplaceAllString(text, "***")
		}
	}
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "")
	}
	return text
}

// scrubbed is a foreign error reduced to text. Only the context errors can be told
// apart below it.
type scrubbed struct {
	text string
	is   error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.is }

// Error returns an error with the text of err, without credentials and without the
// address of a request, and forgets err itself, which may still hold them. Of what
// err wraps only the context errors are kept.
func (s *Scrubber) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		text = u.Op + ": " + u.Err.Error()
	}
	out := &scrubbed{text: s.Text(text)}
	for _, sentinel := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, sentinel) {
			out.is = sentinel
		}
	}
	return out
}
