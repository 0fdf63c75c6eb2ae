// Package transcribe asks an OpenAI-compatible transcription API what is said in a
// recording, through go-openai.
package transcribe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"remote-agent/internal/fault"
)

// OfficialURL is the API that is asked if no other is named.
const OfficialURL = "https://api.openai.com/v1"

const maxAnswer = 1 << 20 // bytes

// Config configures a Client.
type Config struct {
	BaseURL string // with the API's /v1; default OfficialURL
	APIKey  string // empty for a server without keys
	Model   string // required

	Timeout time.Duration // of one recording; default 3 minutes
}

// Client transcribes recordings. It is safe for concurrent use.
type Client struct {
	model   string
	timeout time.Duration
	http    *http.Client
	api     *openai.Client
}

// New returns a Client. It asks nothing yet. fault.Invalid says what is wrong with the
// configuration.
func New(config Config) (*Client, error) {
	config.BaseURL = cmp.Or(config.BaseURL, OfficialURL)
	u, err := url.Parse(config.BaseURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "TRANSCRIBE_BASE_URL is not a valid address; use one like https://api.openai.com/v1.")
	}
	if config.Model == "" {
		return nil, fault.New(fault.Invalid, "TRANSCRIBE_MODEL is empty; name a model that transcribes, such as whisper-1.")
	}
	config.Timeout = cmp.Or(config.Timeout, 3*time.Minute)
	c := &Client{model: config.Model, timeout: config.Timeout, http: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true},
		// The key is for this host and path only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	api := openai.DefaultConfig(config.APIKey)
	api.BaseURL, api.HTTPClient = config.BaseURL, doer{c.http}
	c.api = openai.NewClientWithConfig(api)
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Transcribe returns what is said in a recording. The API goes by the ending of its
// name: ogg, m4a, mp3 or wav. fault.Unavailable and fault.RateLimited may pass; for
// fault.Unauthorized, fault.NotFound and fault.Invalid the text names the option to look
// at.
func (c *Client) Transcribe(ctx context.Context, name string, audio io.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.CreateTranscription(ctx, openai.AudioRequest{Model: c.model, FilePath: name, Reader: audio, Format: openai.AudioResponseFormatJSON})
	if _, classified := errors.AsType[*fault.Error](err); classified {
		return "", err
	}
	if err != nil { // the whole answer was read, so it is its form that is wrong
		return "", &fault.Error{Kind: fault.Invalid, Public: "The transcription API answers with something that is not a transcript; check TRANSCRIBE_BASE_URL.", Err: fmt.Errorf("read a transcript: %w", err)}
	}
	return answer.Text, nil
}

// doer sends requests for go-openai, which neither bounds what it reads nor tells of
// Retry-After: all that is not a whole answer of 200 is a fault here.
type doer struct{ *http.Client }

// Do implements openai.HTTPDoer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.Client.Do(req) //nolint:gosec // to the address that the operator set
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unavailable, Public: "The transcription API is not responding.", Err: fmt.Errorf("reach the transcription API: %w", err)}
	}
	defer res.Body.Close() //nolint:errcheck // read as far as it is wanted
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case res.StatusCode != http.StatusOK:
		return nil, refused(res, raw)
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "read a transcript")
	case len(raw) > maxAnswer:
		return nil, fault.New(fault.Invalid, "The transcription API answers with more than 1 MiB.")
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	return res, nil
}

// refused makes an error of an answer that is not 200, with the first bytes of its text
// for the log.
func refused(res *http.Response, raw []byte) error {
	f := &fault.Error{
		Kind: fault.Unavailable, Public: fmt.Sprintf("The transcription API answers with status %d.", res.StatusCode),
		Err: fmt.Errorf("transcription API: status %d: %.200q", res.StatusCode, raw),
	}
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		f.Kind, f.Public = fault.Unauthorized, "The transcription API rejected the key; an operator needs to check TRANSCRIBE_API_KEY."
	case code == http.StatusTooManyRequests:
		f.Kind, f.Public = fault.RateLimited, "The transcription API is at its rate limit; send it again in a minute."
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
			f.RetryAfter = fault.Asked(float64(seconds), time.Hour)
		}
	case code == http.StatusNotFound:
		f.Kind, f.Public = fault.NotFound, "The transcription API does not know this model or address; an operator needs to check TRANSCRIBE_MODEL and TRANSCRIBE_BASE_URL."
	case code == http.StatusRequestEntityTooLarge:
		f.Kind, f.Public = fault.Invalid, "The recording is too large for the transcription API; send it in parts."
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		f.Kind, f.Public = fault.Invalid, "The transcription API cannot read this recording."
	}
	return f
}
