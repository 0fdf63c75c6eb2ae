package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"remote-agent/internal/apikey"
	"remote-agent/internal/fault"
)

// The codes of problems. They do not change.
const (
	codeKeyMissing    = "key_missing"
	codeKeyInvalid    = "key_invalid"
	codeKeyExpired    = "key_expired"
	codeKeyRevoked    = "key_revoked"
	codeScope         = "scope_missing"
	codeParameter     = "parameter_invalid"
	codeRequest       = "request_invalid"
	codeNotFound      = "not_found"
	codeMethod        = "method_not_allowed"
	codeNotAcceptable = "not_acceptable"
	codeConflict      = "conflict"
	codeTooLarge      = "too_large"
	codeRateLimited   = "rate_limited"
	codeInternal      = "internal"
	codeUnavailable   = "unavailable"
)

const mediaProblem = "application/problem+json"

// problem is an error as RFC 9457 wants it. Its texts are for everybody who has
// a key; none of them comes from an error inside.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail,omitempty"`
	Parameter string `json:"parameter,omitempty"` // that has to be changed
	Scope     string `json:"scope,omitempty"`     // that the key lacks

	header map[string]string
}

// Error implements error.
func (p *problem) Error() string { return p.Code + ": " + p.Detail }

func (p *problem) write(w http.ResponseWriter) {
	p.Type = "urn:remote-agent:problem:" + p.Code
	p.Title = http.StatusText(p.Status)
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	content, err := json.Marshal(p)
	if err != nil { // it has strings and a number only
		content = nil
	}
	send(w, p.Status, mediaProblem, append(content, '\n'))
}

func badParameter(name, detail string) *problem {
	return &problem{Status: http.StatusBadRequest, Code: codeParameter, Parameter: name, Detail: detail}
}

func scopeMissing(s apikey.Scope) *problem {
	return &problem{
		Status: http.StatusForbidden, Code: codeScope, Scope: string(s), Detail: "The key lacks the scope " + string(s) + ".",
		header: map[string]string{"WWW-Authenticate": `Bearer realm="` + realm + `", error="insufficient_scope", scope="` + string(s) + `"`},
	}
}

func rateLimited(wait time.Duration) *problem {
	return &problem{
		Status: http.StatusTooManyRequests, Code: codeRateLimited, Detail: "Too many requests; Retry-After says how many seconds to wait.",
		header: map[string]string{"Retry-After": seconds(wait)},
	}
}

// seconds is a wait for Retry-After, at least one second.
func seconds(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}

// problemOf makes a problem of an error.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	detail := fault.Public(err)
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Unsupported:
		return &problem{Status: http.StatusBadRequest, Code: codeRequest, Detail: detail}
	case fault.NotFound, fault.Gone:
		return &problem{Status: http.StatusNotFound, Code: codeNotFound, Detail: detail}
	case fault.Conflict:
		return &problem{Status: http.StatusConflict, Code: codeConflict, Detail: detail}
	case fault.RateLimited, fault.Exhausted:
		return rateLimited(waitOf(err))
	case fault.Unavailable, fault.Canceled:
		return &problem{
			Status: http.StatusServiceUnavailable, Code: codeUnavailable, Detail: "The database is not responding; try again.",
			header: map[string]string{"Retry-After": seconds(waitOf(err))},
		}
	case fault.Descriptors, fault.Memory, fault.Disk:
		return &problem{
			Status: http.StatusServiceUnavailable, Code: codeUnavailable, Detail: detail,
			header: map[string]string{"Retry-After": seconds(waitOf(err))},
		}
	case fault.Internal, fault.Unauthorized, fault.Forbidden, fault.Damaged: // none of them is the client's to mend
	}
	return &problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: "Internal error; see the bot's log."}
}

func waitOf(err error) time.Duration {
	if f, ok := errors.AsType[*fault.Error](err); ok && !errors.Is(err, context.Canceled) {
		return f.RetryAfter
	}
	return 0
}
