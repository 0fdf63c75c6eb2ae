package github

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// Fault is something that goes wrong with one call. The zero value lets the call
// pass. For those that refuse there are constructors.
type Fault = platformapi.Fault[apiError]

// Refuse answers with a status and a message and does nothing.
func Refuse(status int, message string) Fault { return Fault{Refuse: refuse(status, message)} }

// NotAccessible answers 403 "Resource not accessible by integration".
func NotAccessible() Fault { return Fault{Refuse: notAccessible(nil)} }

// SecondaryLimit answers 403 or 429 with the words of the secondary limit, and
// with Retry-After unless that is zero. Calls before it is over are recorded as
// violations.
func SecondaryLimit(status int, retryAfter time.Duration) Fault {
	return Fault{Refuse: secondaryLimit(status, retryAfter)}
}

// TooQuick answers 422 with the code or the message by which GitHub, in a few calls that make
// something, says that there were too many of them.
func TooQuick(code, message string) Fault {
	return Fault{Refuse: invalid("PullRequestReview", "base", code, message)}
}

// NotYet answers 422 to a comment on an issue that is too new for GitHub to find it.
func NotYet() Fault {
	return Fault{Refuse: invalid("IssueComment", "data", "unprocessable", "Could not resolve to a node with the global id of 'I_kwDO'.")}
}

// PrimaryLimit answers 403 with no calls left until a time.
func PrimaryLimit(reset time.Time) Fault {
	e := primaryLimit("installation")
	e.header = map[string]string{
		"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(reset.Unix(), 10),
	}
	return Fault{Refuse: e}
}

// ServerError answers with a 5xx status and an HTML page and does nothing.
func ServerError(status int) Fault { return Fault{Refuse: &apiError{status: status, html: true}} }

// ServerErrorAfter does what was asked and answers with a 5xx status.
func ServerErrorAfter(status int) Fault {
	return Fault{Instead: &apiError{status: status, html: true}}
}

// answer carries out one call with the fault that is due.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, call Call, do func(*Call) (*reply, *apiError, rate)) {
	w.Header().Set("X-Github-Request-Id", strings.ToUpper(letters(16)))
	w.Header().Set("X-Github-Media-Type", "github.v3; format=json")
	carriedOut := false
	s.Answer(r.Context(), w, call, platformapi.Exchange[apiError]{
		Do: func() (*platformapi.Reply, *apiError) {
			carriedOut = true
			answer, refused, limit := do(&call)
			limit.write(w.Header())
			if refused != nil {
				return nil, refused
			}
			call.Status = cmp.Or(answer.status, http.StatusOK)
			var body []byte
			if answer.status != http.StatusNoContent {
				body = platformapi.MustJSON(answer.body)
			}
			if answer.tag(w, r, body) {
				call.Status = http.StatusNotModified
				s.pace.uncount(call.As)
			}
			return &platformapi.Reply{Status: call.Status, Body: body}, nil
		},
		Log: func(refused *apiError, _, dropped bool) {
			switch {
			case dropped:
				call.Error = "dropped"
			case refused != nil:
				call.Status, call.Error = refused.status, refused.message
			}
			if refused != nil && !carriedOut {
				s.pace.obey(refused)
			}
			s.Log(call)
		},
		Refuse: writeError,
	})
}

// write sets the headers of the primary limit, if there is one and the call was counted.
func (r rate) write(h http.Header) {
	if r.limit == 0 || r.limit == unlimited {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(r.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(r.limit-r.used))
	h.Set("X-RateLimit-Used", strconv.Itoa(r.used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(r.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
}

// tag sets the headers of an answer, with an ETag of its body for a reading call, and
// reports whether the caller has that version already.
func (a *reply) tag(w http.ResponseWriter, r *http.Request, body []byte) bool {
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || a.status != 0 {
		return false
	}
	tag := fmt.Sprintf("W/\"%x\"", sha256.Sum256(body))
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, max-age=60, s-maxage=60")
	return strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/") == tag[2:]
}
