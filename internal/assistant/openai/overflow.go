package openai

import (
	"net/http"
	"strconv"

	"remote-agent/internal/overflow"
	"remote-agent/internal/pattern"
)

// tooLargeForRate is a request that alone is above the tokens per minute of the
// account: no wait makes it fit, a smaller window does.
var tooLargeForRate = pattern.Lazy(`request too large for .*limit:? (\d+)`)

// overflows reports whether f means that the array does not fit the model, and
// the limit in tokens if it says so. text is the error in lower case.
func overflows(f *apiFailure, text string) (limit int, ok bool) {
	if m := tooLargeForRate.FindStringSubmatch(text); m != nil {
		limit, _ = strconv.Atoi(m[1]) // it is digits, or too large to matter
		return limit, true
	}
	if f.status == http.StatusRequestEntityTooLarge || f.status == http.StatusBadRequest && !f.body {
		// Cerebras sends nothing more than the status.
		return 0, true
	}
	if f.status == http.StatusTooManyRequests || f.status == http.StatusUnauthorized {
		return 0, false
	}
	return overflow.Reported(text)
}
