package modelapi

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// The two APIs of OpenAI word their errors and their models alike.

// OrNull returns a text, or nothing for an empty one.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Invalid is an error about a parameter as OpenAI's APIs word it.
func Invalid(param, format string, args ...any) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error",
		Param: param, Message: fmt.Sprintf(format, args...),
	}
}

// WriteOpenAIError answers with an error as OpenAI's APIs do, with null for what
// is empty.
func WriteOpenAIError(w http.ResponseWriter, e *Error) {
	WriteJSON(w, e.Status, OpenAIError(e))
}

// OpenAIError is the object of an error of OpenAI's APIs.
func OpenAIError(e *Error) any {
	return map[string]any{"error": map[string]*string{
		"message": &e.Message, "type": OrNull(e.Type), "param": OrNull(e.Param), "code": OrNull(e.Code),
	}}
}

// NoEndpoint says that there is nothing at a path, as OpenAI's APIs do.
func NoEndpoint(r *http.Request) *Error {
	e := Invalid("", "Invalid URL (%s %s)", r.Method, r.URL.Path)
	e.Status = http.StatusNotFound
	return e
}

// Unauthorized is an error about a key, as OpenAI's APIs word it.
func Unauthorized(code, message string) *Error {
	return &Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: code, Message: message}
}

var wordPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// CheckWord checks the length and the characters of a name or an id as OpenAI's
// APIs do.
func CheckWord(param, word string, limit int) *Error {
	if len(word) > limit {
		return Invalid(param, "Invalid '%s': string too long. Expected a string with maximum length %d, "+
			"but got a string with length %d instead.", param, limit, len(word))
	}
	if !wordPattern.MatchString(word) {
		return Invalid(param, "Invalid '%s': string does not match pattern. Expected a string that matches the "+
			"pattern '^[a-zA-Z0-9_-]+$'.", param)
	}
	return nil
}

// model is a model as OpenAI's APIs describe it.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func describeModel(id string) any { return model{ID: id, Object: "model", OwnedBy: "emulator"} }

func listModels(ids []string) any {
	list := []any{}
	for _, id := range ids {
		list = append(list, describeModel(id))
	}
	return map[string]any{"object": "list", "data": list}
}

// ServerError answers 500, 503 or another 5xx as OpenAI's APIs do.
func ServerError(status int) Response {
	return Fail(status, "server_error", "", "The server had an error while processing your request. Sorry about that!")
}

// WrongKey answers 401 as OpenAI's APIs do.
func WrongKey() Response {
	return Response{Fail: Unauthorized("invalid_api_key", "Incorrect API key provided.")}
}

// RateLimited answers 429 as OpenAI's APIs do. With a whole number of seconds it
// sends Retry-After, else retry-after-ms; with zero neither.
func RateLimited(after time.Duration) Response {
	return Fail(http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached for requests.").WithRetryAfter(after)
}

// QuotaExhausted answers 429, for which waiting does not help, as OpenAI's APIs do.
func QuotaExhausted() Response {
	return Fail(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota",
		"You exceeded your current quota, please check your plan and billing details.")
}
