package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"remote-agent/internal/fault"
)

// methods are the calls that this package makes, with the scopes of which they
// need one. A test holds the table against the code, and the manifest is made
// of it. For messages of a channel the scope depends on the kind of channel, so
// all are needed.
var methods = map[string][]string{
	"agents.sessions.setStatus":    {"chat:write"},
	"apps.connections.open":        nil, // the app-level token's connections:write
	"assistant.threads.setStatus":  {"assistant:write"},
	"auth.test":                    nil,
	"chat.appendStream":            {"chat:write"},
	"chat.postEphemeral":           {"chat:write"},
	"chat.postMessage":             {"chat:write"},
	"chat.startStream":             {"chat:write"},
	"chat.stopStream":              {"chat:write"},
	"chat.update":                  {"chat:write"},
	"conversations.history":        {"channels:history", "groups:history", "im:history", "mpim:history"},
	"conversations.replies":        {"channels:history", "groups:history", "im:history", "mpim:history"},
	"files.completeUploadExternal": {"files:write"},
	"files.getUploadURLExternal":   {"files:write"},
	"files.info":                   {"files:read"},
	"reactions.add":                {"reactions:write"},
	"reactions.remove":             {"reactions:write"},
	"users.info":                   {"users:read"},
	"views.open":                   nil,
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// request is one call.
type request struct {
	method     string
	token      string // the bot's if empty
	params     url.Values
	idempotent bool // doing it again does no harm, so its error is never Uncertain
}

// reply is what all answers of the Web API have in common.
type reply struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Needed   string `json:"needed"`
	Metadata struct {
		Cursor   string   `json:"next_cursor"`
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
}

// outcome is what was seen of one HTTP exchange, for telling a call that
// certainly did nothing from one that may have worked.
type outcome struct {
	wrote  atomic.Bool // the whole request was written to the connection
	status int         // of the response, 0 if there was none
	after  time.Duration
}

// call makes one call, decodes its answer into out, which may be nil, and
// classifies its error. Arguments go as a form, which every method takes, and
// the token in a header, so that no body holds it.
func (a *Adapter) call(ctx context.Context, r request, out any) (http.Header, error) {
	inner, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	seen := &outcome{}
	traced := httptrace.WithClientTrace(inner, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				seen.wrote.Store(true)
			}
		},
	})
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(err, networkKind(ctx), r.method)
	}
	req, err := http.NewRequestWithContext(traced, http.MethodPost, a.base+r.method, strings.NewReader(r.params.Encode()))
	if err != nil {
		return nil, fault.Wrap(a.scrub(err), fault.Internal, r.method)
	}
	token := r.token
	if token == "" {
		token = a.cfg.BotToken
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, header, err := a.exchange(req, seen)
	if err == nil {
		var head reply
		head, err = decode(body, out)
		if err == nil && !head.OK {
			return header, a.refused(r, head, seen)
		}
	}
	if err != nil {
		return header, a.failed(ctx, r, err, seen)
	}
	return header, nil
}

// exchange sends req and reads the whole answer.
func (a *Adapter) exchange(req *http.Request, seen *outcome) ([]byte, http.Header, error) {
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	seen.status = resp.StatusCode
	if s, convErr := strconv.Atoi(resp.Header.Get("Retry-After")); convErr == nil && s > 0 {
		seen.after = time.Duration(s) * time.Second
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, resp.Header, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, resp.Header, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	return body, resp.Header, nil
}

// decode reads an answer. A field of an unexpected type is left empty: it must
// not make a failure of what has worked.
func decode(body []byte, out any) (reply, error) {
	var head reply
	if err := lenient(body, &head); err != nil {
		return head, err
	}
	if out == nil || !head.OK {
		return head, nil
	}
	return head, lenient(body, out)
}

// lenient decodes JSON and overlooks fields of another type than expected.
func lenient(body []byte, out any) error {
	err := json.Unmarshal(body, out)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType {
		if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
			return nil
		}
	}
	return err
}

// jsonArg writes v as an argument of a call.
func jsonArg(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // only for types that JSON does not have
		return "null"
	}
	return string(raw)
}

// limited makes a call when the rate limits allow it and waits out a short 429.
// Scope is what the method's limit counts by: a channel, or nothing.
func (a *Adapter) limited(ctx context.Context, scope string, r request, out any) error {
	deadline := time.Now().Add(shortWait)
	for {
		if err := a.limits.wait(ctx, r.method, scope); err != nil {
			return err
		}
		_, err := a.call(ctx, r, out)
		if !fault.Is(err, fault.RateLimited) {
			return err
		}
		a.observe("rate_limited")
		after := retryAfter(err)
		a.limits.block(r.method, scope, after)
		if time.Now().Add(after).After(deadline) {
			return err
		}
	}
}

// shed makes a call that is worth nothing later: at once or not at all. Among
// those who compete for the method's rate, who says whose turn it is.
func (a *Adapter) shed(ctx context.Context, who string, r request, out any) error {
	if err := a.turn(r.method, who); err != nil {
		return err
	}
	return a.admitted(ctx, r, out)
}

// turn asks for a turn with a method that is shed.
func (a *Adapter) turn(method, who string) error {
	err := a.limits.try(method, who)
	if err != nil {
		a.observe("shed")
	}
	return err
}

// admitted makes a call whose turn it is.
func (a *Adapter) admitted(ctx context.Context, r request, out any) error {
	_, err := a.call(ctx, r, out)
	if fault.Is(err, fault.RateLimited) {
		a.observe("rate_limited")
		a.limits.block(r.method, "", retryAfter(err))
	}
	return err
}

// postJSON posts to an address that is a credential by itself.
func (a *Adapter) postJSON(ctx context.Context, address string, body io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	if err != nil {
		return fault.Wrap(errBadAddress, fault.Invalid, "answering a command")
	}
	req.Header.Set("Content-Type", "application/json")
	if _, _, err := a.exchange(req, &outcome{}); err != nil {
		return fault.Wrap(a.scrub(err), networkKind(ctx), "answering a command")
	}
	return nil
}

var errBadAddress = errors.New("the address for answers cannot be used")
