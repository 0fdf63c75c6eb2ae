package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// methods are the calls that this package makes, with the scopes, between spaces, of
// which they need one. A test holds the table against the code, and the manifest is made
// of it. For messages of a channel the scope depends on the kind of channel, so
// all are needed.
var methods = [][2]string{
	{"agents.sessions.setStatus", "chat:write"},
	{"apps.connections.open", ""}, // the app-level token's connections:write
	{"assistant.threads.setStatus", "assistant:write"},
	{"auth.test", ""},
	{"chat.appendStream", "chat:write"},
	{"chat.delete", "chat:write"},
	{"chat.getPermalink", ""},
	{"chat.postEphemeral", "chat:write"},
	{"chat.postMessage", "chat:write"},
	{"chat.startStream", "chat:write"},
	{"chat.stopStream", "chat:write"},
	{"chat.update", "chat:write"},
	{"conversations.history", "channels:history groups:history im:history mpim:history"},
	{"conversations.replies", "channels:history groups:history im:history mpim:history"},
	{"files.completeUploadExternal", "files:write"},
	{"files.getUploadURLExternal", "files:write"},
	{"files.info", "files:read"},
	{"reactions.add", "reactions:write"},
	{"reactions.remove", "reactions:write"},
	{"users.info", "users:read"},
	{"views.open", ""},
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// request says what a call of the library is.
type request struct {
	method     string
	idempotent bool // doing it again does no harm, so its error is never Uncertain
	app        bool // it goes with the app-level token
	more       any  // takes what the library's answer has no field for; may be nil
}

// sdkCall makes one call of the library with what it is given.
type sdkCall func(ctx context.Context, web *slack.Client) error

// answer is what the round tripper saw of the answer to a call.
type answer struct {
	head reply
	read bool // it is an answer of the Web API
	more any
}

// reply is what all answers of the Web API have in common. The library takes one
// that is not ok and names no error for a success, and has no field for some of
// these, which is why it is read here.
type reply struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Needed   string `json:"needed"`
	Metadata struct {
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
}

type answerKey struct{}

// api makes the calls of the Web API, within its limits, and classifies their errors.
type api struct {
	base    string // the API's URL with a slash at the end
	client  *http.Client
	web     *slack.Client
	scrub   *exchange.Scrubber
	clock   exchange.Clock
	limits  *limiter
	observe func(string)
}

func newAPI(cfg Config) *api {
	a := &api{
		base:    strings.TrimRight(cfg.APIURL, "/") + "/",
		client:  exchange.Client(wire{cfg.Transport, cfg.BotToken}),
		scrub:   exchange.NewScrubber(nil, cfg.BotToken, cfg.AppToken, cfg.SigningSecret),
		limits:  newLimiter(cfg.Limits, exchange.AccountOf(cfg.BotToken)),
		observe: cfg.Observe,
	}
	a.web = slack.New(cfg.BotToken, slack.OptionAPIURL(a.base), slack.OptionAppLevelToken(cfg.AppToken), slack.OptionHTTPClient(a.client))
	return a
}

// call makes one call and classifies its error. What Slack says counts: what the
// library cannot make of the rest of an answer must not make a failure of what has
// worked, unless nothing but reading was to be done.
func (a *api) call(ctx context.Context, r request, do sdkCall) (*exchange.Call, error) {
	c := &exchange.Call{Idempotent: r.idempotent, Timeout: callTimeout, MaxAnswer: maxAnswer, Scrub: a.scrub, Clock: &a.clock}
	seen := &answer{more: r.more}
	err := do(context.WithValue(c.Context(ctx), answerKey{}, seen), a.web)
	return c, a.outcome(ctx, r, c, seen, err)
}

func (a *api) outcome(ctx context.Context, r request, c *exchange.Call, seen *answer, err error) error {
	switch {
	case seen.read && seen.head.OK && (err == nil || !r.idempotent || r.more != nil):
		return nil
	case seen.read && !seen.head.OK:
		return a.refused(r, seen.head, c.RetryAfter())
	case err == nil: // not what an answer of the Web API looks like
		err = errNoAnswer
	}
	return failed(ctx, r, c, err)
}

var errNoAnswer = errors.New("the answer is not one of the Web API")

// limited makes a call when the rate limits allow it and waits out a short 429.
// Scope is what the method's limit counts by: a channel, or nothing.
func (a *api) limited(ctx context.Context, scope string, r request, do sdkCall) error {
	return exchange.Paced(
		func() error { return a.limits.wait(ctx, r.method, scope) },
		func() error { return a.admitted(ctx, scope, r, do) },
	)
}

// shed makes a call that is worth nothing later: at once or not at all. Among
// those who compete for the method's rate, who says whose turn it is.
func (a *api) shed(ctx context.Context, who string, r request, do sdkCall) error {
	if err := a.turn(ctx, r.method, who); err != nil {
		return err
	}
	return a.admitted(ctx, "", r, do)
}

// turn asks for a turn with a method that is shed.
func (a *api) turn(ctx context.Context, method, who string) error {
	err := a.limits.try(ctx, method, who)
	if err != nil {
		a.observe("shed")
	}
	return err
}

// admitted makes a call whose turn it is.
func (a *api) admitted(ctx context.Context, scope string, r request, do sdkCall) error {
	_, err := a.call(ctx, r, do)
	if fault.Is(err, fault.RateLimited) {
		a.observe("rate_limited")
		a.limits.block(r.method, scope, exchange.RetryAfter(err)) //nolint:contextcheck // it is told to the others whoever gives up
	}
	return err
}

// wire is the part of the round tripper that only Slack needs. It moves the bot's
// token from the body, where the library puts it, to a header, so that no body
// holds it, and gives the library answers that it can decode.
type wire struct {
	next  http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if kind, ok := req.Context().Value(downloadKey{}).(string); ok {
		return w.download(req, kind)
	}
	seen, ok := req.Context().Value(answerKey{}).(*answer)
	if !ok {
		return w.next.RoundTrip(req)
	}
	if req.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, err
		}
		form.Del("token")
		body := form.Encode()
		req = req.Clone(req.Context())
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(seen.take(raw)))
	return resp, nil
}

// download passes a file on, and nothing else.
func (w wire) download(req *http.Request, kind string) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := downloadable(resp, kind); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (w wire) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// take reads an answer and returns it as the library gets it: without what it
// would decode for nobody, where one malformed block fails the whole answer after
// the call has worked, and with messages that it can decode.
func (s *answer) take(raw []byte) []byte {
	var top map[string]json.RawMessage
	if platform.Lenient(raw, &s.head) != nil || json.Unmarshal(raw, &top) != nil {
		return raw
	}
	s.read = true
	if s.more != nil {
		_ = platform.Lenient(raw, s.more)
	}
	for _, unread := range []string{"message", "view", "errors"} {
		delete(top, unread)
	}
	if list, ok := top["messages"]; ok {
		top["messages"] = decodable(list)
	}
	lean, err := json.Marshal(top)
	if err != nil {
		return raw
	}
	return lean
}

// decodable returns a list of messages without those that are no objects. Of one
// that the library refuses for some field, what a lookup reads is left.
func decodable(list json.RawMessage) json.RawMessage {
	var out []any
	for _, raw := range elements(list) {
		if json.Unmarshal(raw, new(slack.Message)) == nil {
			out = append(out, raw)
			continue
		}
		var known struct {
			TS       string              `json:"ts"`
			User     string              `json:"user"`
			BotID    string              `json:"bot_id"`
			Subtype  string              `json:"subtype"`
			Text     string              `json:"text"`
			Metadata slack.SlackMetadata `json:"metadata"`
		}
		if platform.Lenient(raw, &known) == nil {
			out = append(out, known)
		}
	}
	lean, err := json.Marshal(out)
	if err != nil {
		return list
	}
	return lean
}

// ownHost reports whether the token may be sent to an address.
func (a *api) ownHost(u *url.URL) bool {
	if u.Scheme == "https" && u.Host == "files.slack.com" {
		return true
	}
	api, err := url.Parse(a.base)
	return err == nil && a.base != defaultAPIURL && u.Scheme == api.Scheme && u.Host == api.Host
}

// respond posts a message through the address that came with a command or a
// press. It is a credential and works five times within half an hour.
func (a *api) respond(ctx context.Context, address string, c content) error {
	u, err := url.Parse(address)
	api, _ := url.Parse(a.base)
	if err != nil || u.Host == "" || u.Host != api.Host && (u.Host != "hooks.slack.com" || u.Scheme != "https") {
		return fault.New(fault.Invalid, "The address for answers is not one of Slack's.")
	}
	call := &exchange.Call{Timeout: callTimeout, MaxAnswer: maxAnswer, Scrub: a.scrub}
	err = slack.PostWebhookCustomHTTPContext(call.Context(ctx), address, a.client, &slack.WebhookMessage{
		ResponseType: slack.ResponseTypeEphemeral, Text: c.text, Blocks: &slack.Blocks{BlockSet: c.blocks},
	})
	if err != nil {
		return call.Failure(ctx, "answering a command", err)
	}
	return nil
}
