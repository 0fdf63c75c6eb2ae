package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

const (
	maxErrorText = 400 // bytes of a foreign text that go into ours
	minSecret    = 4   // bytes; a shorter key is a placeholder for a server without keys
)

// classify turns whatever ended a request into a fault. The texts of the API
// and of the HTTP client are kept for the operator, cut and without the key;
// the errors themselves are not, because they may hold it.
func (m *Model) classify(ctx context.Context, x *exchange, err error) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if x.failure != nil && !errors.Is(err, errNotStream) {
		return m.classifyFailure(x)
	}
	cause := errors.New("asking the model: " + m.clean(transportText(err)))
	switch {
	case errors.Is(err, errNotStream):
		return &fault.Error{
			Kind: fault.Invalid, Err: cause,
			Public: "What answers at OPENAI_BASE_URL is not a streaming chat API. An operator has to look at it; the address often ends in /v1.",
		}
	case errors.Is(err, errRedirect):
		return &fault.Error{
			Kind: fault.Invalid, Err: cause,
			Public: "OPENAI_BASE_URL redirects to another address. An operator has to set the address itself.",
		}
	case errors.Is(err, api.ErrReasoningToolsRequireResponses):
		return &fault.Error{
			Kind: fault.Invalid, Err: cause,
			Public: "This model takes tools only in an API that I do not speak (Responses). An operator has to choose another one in OPENAI_MODEL.",
		}
	case errors.Is(err, api.ErrChatCompletionInvalidModel), isValidation(err):
		return &fault.Error{
			Kind: fault.Invalid, Err: cause,
			Public: "The model in OPENAI_MODEL does not support chat in this way. An operator has to choose another one.",
		}
	case errors.Is(err, errIdle), errors.Is(err, context.Canceled):
		// Nobody else cancels: the turn's own context is still alive.
		return &fault.Error{
			Kind: fault.Unavailable, Err: cause,
			Public: fmt.Sprintf("The model went silent for %s, so I stopped waiting.", m.idle),
		}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &fault.Error{
			Kind: fault.Unavailable, Err: cause,
			Public: "The model's answer was cut off before it was complete.",
		}
	case errors.Is(err, errTooLong), isDecoding(err):
		return &fault.Error{
			Kind: fault.Unavailable, Err: cause,
			Public: "The model API sent something that is not an answer.",
		}
	}
	return &fault.Error{Kind: fault.Unavailable, Err: cause, Public: "The model cannot be reached right now."}
}

func canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &fault.Error{Kind: fault.Unavailable, Public: "The model took too long to answer.", Err: cause}
	}
	return &fault.Error{Kind: fault.Canceled, Err: cause}
}

func isValidation(err error) bool {
	for _, known := range []error{
		api.ErrReasoningModelMaxTokensDeprecated, api.ErrReasoningModelLimitationsLogprobs,
		api.ErrReasoningModelLimitationsOther, api.ErrReasoningEffortUnsupported,
		api.ErrReasoningSamplingUnsupported,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func isDecoding(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// transportText describes err without the URL of the request.
func transportText(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return op.Op + " " + op.Addr.String() + ": " + op.Err.Error()
	}
	return err.Error()
}

var keyPattern = regexp.MustCompile(`\b(sk|gsk|xai|AIza|pk|key)[-_A-Za-z0-9*.]{12,}`)

// clean returns a foreign text without keys, on one line, cut.
func (m *Model) clean(text string) string {
	if len(m.key) >= minSecret {
		text = strings.ReplaceAll(text, m.key, "[key]")
	}
	text = keyPattern.ReplaceAllString(text, "[key]")
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// classifyFailure classifies an error that the API sent.
func (m *Model) classifyFailure(x *exchange) error {
	f := x.failure
	err := errors.New("the model API answered " + m.clean(f.label()+": "+f.message))
	text := strings.ToLower(f.code + " " + f.kind + " " + f.message)
	if limit, ok := overflows(f, text); ok {
		return overflow(limit, err)
	}
	fail := func(kind fault.Kind, public string) error {
		return &fault.Error{Kind: kind, Public: public, Err: err}
	}
	switch status := f.effectiveStatus(); {
	case status == http.StatusPaymentRequired, outOfQuota(f, text, x.retryAfter):
		return fail(fault.Exhausted, "The quota of the model account is used up. An operator has to look at its billing.")
	case status == http.StatusTooManyRequests:
		wait := x.retryAfter
		if wait == 0 {
			wait = waitInText(text)
		}
		return &fault.Error{Kind: fault.RateLimited, Public: "The model's rate limit is reached.", RetryAfter: wait, Err: err}
	case filtered.MatchString(text) && status < http.StatusInternalServerError:
		return fail(fault.Invalid, "The model provider's content filter refused this message. Please put it another way.")
	case status == http.StatusUnauthorized, status == http.StatusForbidden, badKey.MatchString(text):
		return fail(fault.Unauthorized, "The model API refused the key (OPENAI_API_KEY). An operator has to look at it.")
	case status == http.StatusNotFound, noModel.MatchString(text) && status < http.StatusInternalServerError:
		return fail(fault.Invalid, "The model API does not know this model or address. An operator has to check OPENAI_MODEL and OPENAI_BASE_URL.")
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status >= http.StatusInternalServerError:
		return &fault.Error{Kind: fault.Unavailable, Public: "The model is overloaded or down right now.", RetryAfter: x.retryAfter, Err: err}
	}
	return fail(fault.Invalid, "The model API refused the request. The reason is in the log.")
}

var (
	badKey   = regexp.MustCompile(`invalid_api_key|incorrect api key|api key not valid|authentication_error|invalid_authentication`)
	noModel  = regexp.MustCompile(`model_not_found|model .{0,80}(does not exist|not found)|unknown model|no such model`)
	filtered = regexp.MustCompile(`content_filter|content_policy|responsibleai|content management policy|input was flagged|moderation`)
	noQuota  = regexp.MustCompile(`insufficient_quota|enforced_spend_limit|billing_hard_limit|billing_not_active|insufficient (balance|credits|funds)|credit balance`)
	quota    = regexp.MustCompile(`exceeded your (current|monthly) quota`)
	tryAgain = regexp.MustCompile(`(?:try|retry)(?: again)? (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)`)
)

// outOfQuota reports whether waiting will not help. A quota text with a time to
// wait is an ordinary rate limit.
func outOfQuota(f *apiFailure, text string, wait time.Duration) bool {
	switch f.effectiveStatus() {
	case http.StatusTooManyRequests, http.StatusForbidden, http.StatusBadRequest:
	default:
		return false
	}
	return noQuota.MatchString(text) || quota.MatchString(text) && wait == 0 && waitInText(text) == 0
}

func waitInText(text string) time.Duration {
	m := tryAgain.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(m[1])
	if err != nil {
		return 0
	}
	return min(max(d, 0), maxWait)
}

// effectiveStatus returns the HTTP status, or for an error inside a stream the
// one that its code or type stands for.
func (f *apiFailure) effectiveStatus() int {
	if f.status != http.StatusOK {
		return f.status
	}
	if n, err := strconv.Atoi(f.code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	switch text := strings.ToLower(f.code + " " + f.kind + " " + f.message); {
	case rateLimit.MatchString(text), noQuota.MatchString(text):
		return http.StatusTooManyRequests
	case badKey.MatchString(text):
		return http.StatusUnauthorized
	case noModel.MatchString(text):
		return http.StatusNotFound
	case strings.Contains(text, "invalid_request"), filtered.MatchString(text):
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

func (f *apiFailure) label() string {
	s := strconv.Itoa(f.status)
	if f.status == http.StatusOK {
		s = "an error in the stream"
	}
	for _, extra := range []string{f.code, f.kind} {
		if extra != "" && len(extra) < 60 && !strings.ContainsFunc(extra, notHeaderRune) {
			s += " " + extra
		}
	}
	return s
}

// overflow returns the error for an array that does not fit the model.
func overflow(limit int, err error) error {
	return &fault.Error{
		Kind: fault.Exhausted, Public: "This conversation is too long for the model.",
		Err: &assistant.OverflowError{Limit: limit, Err: err},
	}
}
