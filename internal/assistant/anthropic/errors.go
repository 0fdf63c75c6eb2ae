package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/modelhttp"
	"remote-agent/internal/fault"
	"remote-agent/internal/overflow"
	"remote-agent/internal/pattern"
)

// words are how the errors of this package speak of the API.
var words = modelhttp.API{
	Prefix: "ANTHROPIC", Example: "https://api.example.com", Model: "claude-sonnet-4-5",
	NotStream: "The server at ANTHROPIC_BASE_URL is not a streaming Messages API. An operator needs to check the address.",
}

// What of a request the API does not take, in the chain of the error that says so.
var (
	errReplay   = errors.New("the thinking in the array was refused")
	errThinking = errors.New("the thinking that is set was refused")
	errEffort   = errors.New("the effort that is set was refused")
)

// classify turns whatever ended a request into a fault. The texts of the API and
// of the HTTP client are kept for the operator, cut and without the key; the
// errors themselves are not, because they may hold it.
func (m *Model) classify(ctx context.Context, x *exchange, err error) error {
	if ctx.Err() != nil {
		return modelhttp.Canceled(ctx)
	}
	if f, ok := errors.AsType[*apiFailure](err); ok {
		f.requestID = cmp.Or(f.requestID, x.requestID)
		return m.classifyFailure(f)
	}
	cause := errors.New("asking the model: " + m.clean(modelhttp.Describe(err)+request(x.requestID)))
	switch {
	case errors.Is(err, errCut):
		return modelhttp.CutOff(cause)
	case errors.Is(err, errMalformed):
		return modelhttp.Garbled(cause)
	}
	return words.Fault(err, cause, x.Wait())
}

// request names a request for the log, if it has an id.
func request(id string) string {
	if id == "" || len(id) > 100 {
		return ""
	}
	return " (request " + id + ")"
}

// clean returns a foreign text without keys, on one line, cut.
func (m *Model) clean(text string) string { return modelhttp.Clean(text, m.key) }

var (
	noCredit    = pattern.Lazy(`enforced_spend_limit|spend(?:ing)? limit|credit balance|billing_error|specified api usage limits|insufficient (?:credits|funds|quota)`)
	filtered    = pattern.Lazy(`content filtering policy|content_filter|usage policy`)
	thinkingBad = pattern.Lazy("^invalid_request_error messages\\..*thinking|invalid `(?:signature|data)` in|`?thinking`? or `?redacted_thinking")
	optionOff   = pattern.Lazy(`thinking|\beffort\b|output_config`) // the first is what is refused; another one may be recommended
	maxTokens   = pattern.Lazy(`max_tokens: \d+ >|max_tokens.{0,60}(?:maximum|must be)`)
	badModel    = pattern.Lazy(`^not_found_error model|model_not_found|unknown model|no such model`)
)

// classifyFailure classifies an error that the API sent.
func (m *Model) classifyFailure(f *apiFailure) error {
	err := errors.New("the model API answered " + m.clean(f.label()+request(f.requestID)+": "+f.message))
	text := strings.ToLower(f.kind + " " + f.message)
	status := f.effectiveStatus()
	limit, tooLong := 0, status == http.StatusRequestEntityTooLarge
	if status == http.StatusBadRequest {
		limit, tooLong = overflow.Reported(text)
	}
	if tooLong {
		return assistant.Overflow(limit, err)
	}
	fail := func(kind fault.Kind, public string) error {
		return &fault.Error{Kind: kind, Public: public, Err: err}
	}
	switch {
	case status == http.StatusBadRequest && modelhttp.RefusesAFile(text):
		return assistant.Unreadable(err)
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests && modelhttp.RefusesFiles(text):
		return assistant.Blind(err)
	case status == http.StatusPaymentRequired, status < http.StatusInternalServerError && noCredit.MatchString(text),
		status == http.StatusTooManyRequests && f.hopeless && f.retryAfter == 0:
		return fail(fault.Exhausted, "The quota of the model account is used up. An operator needs to check its billing.")
	case status == http.StatusTooManyRequests:
		return &fault.Error{Kind: fault.RateLimited, Public: "The model's rate limit is reached.", RetryAfter: f.retryAfter, Err: err}
	case filtered.MatchString(text) && status < http.StatusInternalServerError:
		return fail(fault.Invalid, "The model provider's content filter refused this message.")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fail(fault.Unauthorized, "The model key was rejected. An operator needs to check ANTHROPIC_API_KEY.")
	case status == http.StatusNotFound, badModel.MatchString(text):
		return fail(fault.Unsupported, "The model API does not know this model or address. An operator needs to check ANTHROPIC_MODEL and ANTHROPIC_BASE_URL.")
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status >= http.StatusInternalServerError:
		return &fault.Error{Kind: fault.Unavailable, Public: modelhttp.Down(status), RetryAfter: f.retryAfter, Err: err}
	case thinkingBad.MatchString(text):
		err = errors.Join(err, errReplay)
	case optionOff.FindString(text) == "thinking":
		err = errors.Join(err, errThinking)
		return fail(fault.Unsupported, "The model does not support this ANTHROPIC_THINKING_TOKENS. An operator needs to change it: 0 is off, -1 lets the model decide.")
	case optionOff.MatchString(text):
		err = errors.Join(err, errEffort)
		return fail(fault.Unsupported, "The model does not support this ANTHROPIC_EFFORT. An operator needs to change it or leave it empty.")
	case maxTokens.MatchString(text):
		return fail(fault.Unsupported, "The model does not support this ANTHROPIC_MAX_TOKENS. An operator needs to lower it.")
	}
	return fail(fault.Invalid, "The model API refused the request. The reason is in the log.")
}

// effectiveStatus returns the HTTP status, or for an error inside a stream the
// one that its type stands for.
func (f *apiFailure) effectiveStatus() int {
	if f.status != http.StatusOK {
		return f.status
	}
	switch f.kind {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error", "enforced_spend_limit_reached":
		return http.StatusTooManyRequests
	case "overloaded_error":
		return 529
	}
	// api_error, timeout_error, and what is not known yet.
	return http.StatusServiceUnavailable
}

func (f *apiFailure) label() string {
	s := strconv.Itoa(f.status)
	if f.status == http.StatusOK {
		s = "an error in the stream"
	}
	if f.kind != "" && len(f.kind) < 60 && !strings.ContainsFunc(f.kind, modelhttp.NotHeaderRune) {
		s += " " + f.kind
	}
	return s
}
