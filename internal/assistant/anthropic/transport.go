package anthropic

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"remote-agent/internal/assistant/modelhttp"
)

// settleTimeout is how long the end of a stream is waited for after the answer is
// complete.
const settleTimeout = 250 * time.Millisecond

// exchange is one request and the error that the API answered with.
type exchange struct {
	*modelhttp.Exchange

	requestID string      // by which the provider finds the request again; may be empty
	failure   *apiFailure // nil while nothing failed
}

func newExchange(first, idle time.Duration) *exchange {
	x := &exchange{}
	x.Exchange = modelhttp.NewExchange(first, idle, x)
	return x
}

// Refused implements modelhttp.Receiver.
func (x *exchange) Refused(status int, header http.Header, body []byte) bool {
	f := parseFailure(status, body)
	if status == http.StatusOK && f.kind == "" {
		return false
	}
	f.retryAfter = x.RetryAfter
	f.hopeless = header.Get("X-Should-Retry") == "false"
	x.failure = f
	return true
}

// Stream implements modelhttp.Receiver.
func (x *exchange) Stream(body io.ReadCloser) io.ReadCloser { return body }

// apiFailure is an error that the API sent.
type apiFailure struct {
	status     int           // HTTP status; 200 for an error inside a stream
	kind       string        // error.type
	message    string        // error.message, or the body if there is none
	retryAfter time.Duration // zero if the API did not say
	hopeless   bool          // the API says that another try is of no use
	requestID  string        // may be empty
}

// Error says what the API sent, for classify: it may hold the key.
func (f *apiFailure) Error() string { return f.label() + ": " + f.message }

// parseFailure reads {"type":"error","error":{"type":...,"message":...}}, and what
// proxies in between answer instead: another JSON form, or plain text.
func parseFailure(status int, body []byte) *apiFailure {
	f := &apiFailure{status: status}
	var outer struct {
		Error     json.RawMessage `json:"error"`
		Message   string          `json:"message"`
		RequestID string          `json:"request_id"`
	}
	if json.Unmarshal(body, &outer) != nil {
		if status != http.StatusOK {
			f.message = string(body)
		}
		return f
	}
	f.message, f.requestID = outer.Message, outer.RequestID
	var inner struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	}
	if len(outer.Error) == 0 || string(outer.Error) == "null" {
		return f
	}
	if json.Unmarshal(outer.Error, &inner) != nil {
		f.kind, f.message = "error", string(outer.Error)
		return f
	}
	f.kind, f.message = inner.Type, inner.Message
	if len(inner.Details) > 0 && string(inner.Details) != "null" {
		f.message += " " + string(inner.Details)
	}
	f.kind = cmp.Or(f.kind, "error")
	return f
}
