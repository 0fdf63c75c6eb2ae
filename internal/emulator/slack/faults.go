package slack

import (
	"net/http"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// apiError is a refusal as the Web API words it.
type apiError struct {
	code       string
	status     int // HTTP; 0 is 200
	retryAfter int // seconds
	messages   []string
	extra      map[string]any
}

func refuse(code string, messages ...string) *apiError {
	return &apiError{code: code, messages: messages}
}

func rateLimited(d time.Duration) *apiError {
	return &apiError{
		code: "ratelimited", status: http.StatusTooManyRequests,
		retryAfter: max(1, int((d+time.Second-1)/time.Second)),
	}
}

// Names for Inject besides the methods of the Web API.
const (
	AnyMethod   = "*"            // every method
	ResponseURL = "response_url" // posts to response URLs
	Upload      = "upload"       // uploads of files
	Download    = "download"     // downloads of files
)

// Fault is something that goes wrong with one call. The zero value lets the call
// pass. For those that refuse there are constructors.
type Fault = platformapi.Fault[apiError]

// Refuse answers {"ok":false} with an error code and does nothing.
func Refuse(code string) Fault { return Fault{Refuse: refuse(code)} }

// RateLimited answers 429 with Retry-After, rounded up to seconds. Calls of the
// same method before it is over are recorded as violations.
func RateLimited(retryAfter time.Duration) Fault { return Fault{Refuse: rateLimited(retryAfter)} }

// ServerError answers with a 5xx status and an HTML page and does nothing.
func ServerError(status int) Fault { return Fault{Refuse: &apiError{status: status}} }

// FailAfter does what was asked and answers with an error code, as
// "internal_error" and "fatal_error" may do.
func FailAfter(code string) Fault { return Fault{Instead: refuse(code)} }

// ServerErrorAfter does what was asked and answers with a 5xx status.
func ServerErrorAfter(status int) Fault { return Fault{Instead: &apiError{status: status}} }
