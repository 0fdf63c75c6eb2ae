package modelhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

const (
	maxErrorText = 400 // bytes of a foreign text that go into ours
	minSecret    = 4   // bytes; a shorter key is a placeholder for a server without keys
)

// API is how the faults of an API speak of it.
type API struct {
	Prefix    string // of the options, such as OPENAI for OPENAI_BASE_URL and OPENAI_API_KEY
	Example   string // of an address
	Model     string // an example of one
	NotStream string // what a person reads after ErrNotStream
}

// Address returns an address of the API that an operator set, without spaces
// around it and slashes at its end, or fault.Invalid.
func (a API) Address(raw string) (string, error) {
	raw = strings.TrimRight(strings.TrimSpace(raw), "/")
	if raw == "" {
		return "", nil
	}
	u, err := url.Parse(raw)
	switch {
	// The value may hold a password, so the text does not repeat it.
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", fault.Newf(fault.Invalid, "%s_BASE_URL is not a URL like %s.", a.Prefix, a.Example)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fault.Newf(fault.Invalid, "%s_BASE_URL must not contain a user name, a query or a fragment. Put the key in %s_API_KEY.", a.Prefix, a.Prefix)
	}
	return raw, nil
}

// Check returns fault.Invalid if a header cannot hold the key, or if one of what an
// operator has to set is missing; a key is, where no address is set.
func (a API) Check(key, address, model string) error {
	switch {
	case strings.ContainsFunc(key, NotHeaderRune):
		return fault.Newf(fault.Invalid, "%s_API_KEY contains a space, a line break or another character that a key cannot have.", a.Prefix)
	case key == "" && address == "":
		return fault.Newf(fault.Invalid, "%s_API_KEY is not set. Set it, or %s_BASE_URL for an API that needs no key.", a.Prefix, a.Prefix)
	case strings.TrimSpace(model) == "":
		return fault.Newf(fault.Invalid, "%s_MODEL is empty. Set it to a model of the API, such as %s.", a.Prefix, a.Model)
	}
	return nil
}

// NotHeaderRune reports whether a word in a header cannot have the character.
func NotHeaderRune(c rune) bool { return c <= ' ' || c > '~' }

// Fault returns the fault of an exchange that ended with err and without an error
// of the API, while the turn's own context is alive. silence is how long it may have lasted.
// cause takes the place of err in it: a foreign error may hold the key.
func (a API) Fault(err, cause error, silence time.Duration) error {
	if kind, own := fault.Resource(err); own { // the API was not even asked
		return &fault.Error{Kind: kind, Err: cause}
	}
	switch {
	case errors.Is(err, ErrNotStream):
		return &fault.Error{Kind: fault.Unsupported, Public: a.NotStream, Err: cause}
	case errors.Is(err, ErrRedirect):
		return &fault.Error{
			Kind: fault.Unsupported, Err: cause,
			Public: a.Prefix + "_BASE_URL redirects to another address. An operator needs to set that address.",
		}
	case errors.Is(err, ErrIdle), errors.Is(err, context.Canceled):
		// Nobody else cancels: the turn's own context is still alive.
		return &fault.Error{
			Kind: fault.Unavailable, Err: cause,
			Public: fmt.Sprintf("The model sent nothing for %s, so the request was canceled.", silence),
		}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return CutOff(cause)
	case errors.Is(err, ErrTooLong), isDecoding(err):
		return Garbled(cause)
	}
	return &fault.Error{Kind: fault.Unavailable, Err: cause, Public: "The model cannot be reached right now."}
}

// Canceled returns the fault of a turn whose context has ended.
func Canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &fault.Error{Kind: fault.Unavailable, Public: "The model took too long to answer.", Err: cause}
	}
	return &fault.Error{Kind: fault.Canceled, Err: cause}
}

// CutOff returns the fault of an answer that is not complete.
func CutOff(cause error) error {
	return &fault.Error{Kind: fault.Unavailable, Public: "The model's answer was cut off before it was complete.", Err: cause}
}

// Garbled returns the fault of an answer that cannot be read.
func Garbled(cause error) error {
	return &fault.Error{Kind: fault.Unavailable, Public: "The model API sent something that is not an answer.", Err: cause}
}

func isDecoding(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// Describe says what err is without the address of the request.
func Describe(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return op.Op + " " + op.Addr.String() + ": " + op.Err.Error()
	}
	return err.Error()
}

var keyPattern = pattern.Lazy(`\b(sk|gsk|xai|AIza|pk|key)[-_A-Za-z0-9*.]{12,}`)

// Clean returns a foreign text for the log: without key and what looks like
// one, on one line, cut at 400 bytes.
func Clean(text, key string) string {
	if len(key) >= minSecret {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = keyPattern.ReplaceAllString(text, "[key]")
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}
