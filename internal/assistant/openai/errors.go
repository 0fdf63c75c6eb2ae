package openai

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/modelhttp"
	"remote-agent/internal/fault"
	"remote-agent/internal/overflow"
	"remote-agent/internal/pattern"
)

// words are how the errors of this package speak of the API.
var words = modelhttp.API{
	Prefix: "OPENAI", Example: "https://api.example.com/v1", Model: "gpt-5-mini",
	NotStream: "The server at OPENAI_BASE_URL is not a streaming chat API. An operator needs to check the address; it often ends in /v1.",
}

// classify turns whatever ended a request into a fault. The texts of the API
// and of the HTTP client are kept for the operator, cut and without the key;
// the errors themselves are not, because they may hold it.
func (m *Model) classify(ctx context.Context, x *exchange, err error) error {
	if ctx.Err() != nil {
		return modelhttp.Canceled(ctx)
	}
	if x.failure != nil && !errors.Is(err, modelhttp.ErrNotStream) {
		return m.classifyFailure(x.failure)
	}
	cause := errors.New("asking the model: " + m.clean(modelhttp.Describe(err)))
	switch {
	case errors.Is(err, api.ErrReasoningToolsRequireResponses):
		return &fault.Error{
			Kind: fault.Unsupported, Err: cause,
			Public: "This model supports tools only in the Responses API, which the bot does not use. An operator needs to set another model in OPENAI_MODEL.",
		}
	case errors.Is(err, api.ErrChatCompletionInvalidModel):
		return &fault.Error{
			Kind: fault.Unsupported, Err: cause,
			Public: "The model in OPENAI_MODEL does not support this kind of chat. An operator needs to set another one.",
		}
	}
	return words.Fault(err, cause, x.Wait())
}

// clean returns a foreign text without keys, on one line, cut.
func (m *Model) clean(text string) string { return modelhttp.Clean(text, m.key) }

// classifyFailure classifies an error that the API sent.
func (m *Model) classifyFailure(f *apiFailure) error {
	err := errors.New("the model API answered " + m.clean(f.label()+": "+f.message))
	text := f.text()
	if limit, ok := overflows(f, text); ok {
		return assistant.Overflow(limit, err)
	}
	fail := func(kind fault.Kind, public string) error {
		return &fault.Error{Kind: kind, Public: public, Err: err}
	}
	switch status := f.effectiveStatus(); {
	case status == http.StatusBadRequest && modelhttp.RefusesAFile(text):
		return assistant.Unreadable(err)
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests && modelhttp.RefusesFiles(text):
		return assistant.Blind(err)
	case status == http.StatusPaymentRequired, outOfQuota(f, text):
		return fail(fault.Exhausted, "The quota of the model account is used up. An operator needs to check its billing.")
	case status == http.StatusTooManyRequests:
		wait := f.retryAfter
		if wait == 0 {
			wait = waitInText(text)
		}
		return &fault.Error{Kind: fault.RateLimited, Public: "The model's rate limit is reached.", RetryAfter: wait, Err: err}
	case strings.Contains(text, "tool_use_failed"): // Groq, of a call that it cannot read; the model may make another
		return fail(fault.Unavailable, "The model called a tool in a form that cannot be read.")
	case noTools.MatchString(text):
		return fail(fault.Unsupported, "This model, or its server as it is set up, cannot use tools, which the bot needs. An operator needs to set another model in OPENAI_MODEL, or turn tools on there.")
	case filtered.MatchString(text) && status < http.StatusInternalServerError:
		return fail(fault.Invalid, "The model provider's content filter refused this message.")
	case status == http.StatusUnauthorized, status == http.StatusForbidden, badKey.MatchString(text):
		return fail(fault.Unauthorized, "The model key was rejected. An operator needs to check OPENAI_API_KEY.")
	case status == http.StatusNotFound, noModel.MatchString(text) && status < http.StatusInternalServerError:
		return fail(fault.Unsupported, "The model API does not know this model or address. An operator needs to check OPENAI_MODEL and OPENAI_BASE_URL.")
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status >= http.StatusInternalServerError:
		return &fault.Error{Kind: fault.Unavailable, Public: modelhttp.Down(status), RetryAfter: f.retryAfter, Err: err}
	}
	return fail(fault.Invalid, "The model API refused the request. The reason is in the log.")
}

// wanted returns the form that the API wants a request in which it refused with err.
func (c *completion) wanted(err error) (f form) {
	if !fault.Is(err, fault.Invalid) || c.exchange == nil || c.exchange.failure == nil {
		return 0
	}
	text := c.exchange.failure.text()
	for bit, says := range asksFor {
		if strings.Contains(text, says) {
			f |= 1 << bit
		}
	}
	return f
}

// asksFor is what an API says, in lower case, that wants another form, by its bit. The usage is
// refused by Mistral and by older versions of Azure's API.
var asksFor = [...]string{"reasoning_content", "with a length of 9", "stream_options", "'user' after role 'tool'"}

// text returns all that the API said, in lower case.
func (f *apiFailure) text() string { return strings.ToLower(f.code + " " + f.kind + " " + f.message) }

var (
	badKey   = pattern.Lazy(`invalid_api_key|incorrect api key|api key not valid|authentication_error|invalid_authentication`)
	noModel  = pattern.Lazy(`model_not_found|model .{0,80}(does not exist|not found)|unknown model|no such model`)
	noTools  = pattern.Lazy(`(?:not|n't|that) support (?:tools|tool use|tool call|function call)|tool choice requires|tools param requires|(?:tools|(?:tool|function) calling)` + "`?" + ` (?:is|are) not (?:supported|enabled)`)
	filtered = pattern.Lazy(`content_filter|content_policy|responsibleai|content management policy|input was flagged|moderation`)
	noQuota  = pattern.Lazy(`insufficient_quota|enforced_spend_limit|billing_hard_limit|billing_not_active|insufficient (balance|credits|funds)|credit balance`)
	quota    = pattern.Lazy(`exceeded your (current|monthly) quota`)
	tryAgain = pattern.Lazy(`(?:try|retry)(?: again)? (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)`)
)

// outOfQuota reports whether waiting will not help. A quota text with a time to
// wait is an ordinary rate limit.
func outOfQuota(f *apiFailure, text string) bool {
	switch f.effectiveStatus() {
	case http.StatusTooManyRequests, http.StatusForbidden, http.StatusBadRequest:
	default:
		return false
	}
	return noQuota.MatchString(text) || quota.MatchString(text) && f.retryAfter == 0 && waitInText(text) == 0
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
	return fault.Asked(d.Seconds(), modelhttp.MaxWait)
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
	switch text := f.text(); {
	case overflow.LimitsRate(text), noQuota.MatchString(text):
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
		if extra != "" && len(extra) < 60 && !strings.ContainsFunc(extra, modelhttp.NotHeaderRune) {
			s += " " + extra
		}
	}
	return s
}
