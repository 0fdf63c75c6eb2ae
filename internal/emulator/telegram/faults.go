package telegram

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// apiError is a refusal as the Bot API words it.
type apiError struct {
	code       int
	text       string
	retryAfter int
	migrateTo  int64
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{code: http.StatusBadRequest, text: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(text string) *apiError {
	return &apiError{code: http.StatusForbidden, text: "Forbidden: " + text}
}

func conflict(text string) *apiError {
	return &apiError{code: http.StatusConflict, text: "Conflict: " + text}
}

func floodWait(d time.Duration) *apiError {
	seconds := int((d + time.Second - 1) / time.Second)
	return &apiError{
		code:       http.StatusTooManyRequests,
		text:       fmt.Sprintf("Too Many Requests: retry after %d", seconds),
		retryAfter: seconds,
	}
}

// AnyMethod injects a fault into every method but getUpdates.
const AnyMethod = "*"

// Fault is something that goes wrong with one call. The zero value lets the
// call pass. For those that refuse there are constructors.
type Fault = platformapi.Fault[apiError]

// Refuse answers with an error and does nothing. The description is sent as it
// is, such as "Bad Request: chat not found".
func Refuse(status int, description string) Fault {
	return Fault{Refuse: &apiError{code: status, text: description}}
}

// FloodWait answers 429 with retry_after, rounded up to seconds.
func FloodWait(retryAfter time.Duration) Fault { return Fault{Refuse: floodWait(retryAfter)} }

// ServerError answers with a 5xx status and does nothing.
func ServerError(status int) Fault { return Refuse(status, http.StatusText(status)) }

// faultsOf returns the queues of faults that are for a call.
func faultsOf(c Call) []string {
	name := strings.ToLower(c.Method)
	if name == "getupdates" {
		return []string{name}
	}
	return []string{name, AnyMethod}
}
