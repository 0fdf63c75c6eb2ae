package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform/exchange"
)

// message returns what GitHub says about a call that it refused.
func message(err error) string {
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		return e.Message
	}
	e, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok {
		return ""
	}
	parts := []string{e.Message}
	for _, detail := range e.Errors {
		parts = append(parts, strings.TrimSpace(detail.Field+" "+detail.Code+" "+detail.Message))
	}
	return strings.Join(parts, "; ")
}

// refusal is what GitHub said when it refused a call.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return fmt.Sprintf("HTTP status %d: %s", e.status, e.text) }

// refusedWith reports whether GitHub refused a call with a status and words.
func refusedWith(err error, status int, words string) bool {
	e, ok := errors.AsType[*refusal](err)
	return ok && e.status == status && strings.Contains(strings.ToLower(e.text), words)
}

// classify turns the error of a call into a fault. It is where foreign errors
// enter the program.
func (c *client) classify(ctx context.Context, who caller, o op, err error, seen *exchange.Call) error {
	text := c.scrub.Text(message(err))
	status := seen.Status()
	f := &fault.Error{Err: fmt.Errorf("%s: %w", o.name, &refusal{status, text})}
	if after, limited := c.refusedByLimit(who, err, seen, text); limited { //nolint:contextcheck // it is told to the others whoever gives up
		f.Kind, f.RetryAfter = fault.RateLimited, after
		return f
	}
	switch {
	case status == http.StatusNotModified:
		return errNotModified
	case status == http.StatusUnauthorized:
		c.observe("unauthorized")
		f.Kind, f.Public = fault.Unauthorized, "GitHub refused the bot's credentials. Check GITHUB_TOKEN."
		if c.appID != "" {
			f.Public = "GitHub refused the App's credentials. Check GITHUB_APP_ID, its private key, and this machine's clock."
		}
	case status == http.StatusForbidden:
		f.Kind, f.Public = fault.Forbidden, forbidden(seen.Answered(), text)
	case status == http.StatusNotFound:
		f.Kind = fault.NotFound
	case status == http.StatusGone:
		f.Kind = fault.Gone
	case status == http.StatusUnavailableForLegalReasons:
		f.Kind, f.Public = fault.Gone, "GitHub has blocked the repository."
	case status == http.StatusConflict:
		f.Kind = fault.Conflict
	case status == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(text), "could not resolve to a node"):
		f.Kind = fault.Unavailable // it is too new: GitHub finds it in a moment
	case status >= 300 && status < 500:
		f.Kind = fault.Invalid
		if strings.Contains(text, "too long") {
			f.Public = "The text is longer than GitHub allows."
		}
	default:
		return seen.Failure(ctx, o.name, err)
	}
	return f
}

// errNotModified says that an answer is as it was.
var errNotModified = errors.New("not modified")

const lockedText = "The conversation is locked, so comments are not possible."

// forbidden tells what is missing.
func forbidden(h http.Header, text string) string {
	lower := strings.ToLower(text)
	switch needs := h.Get("X-Accepted-Github-Permissions"); {
	case strings.Contains(lower, "locked"):
		return lockedText
	case strings.Contains(lower, "archived"):
		return "The repository is archived; nothing can be written in it."
	case strings.Contains(lower, "suspended"):
		return "The installation of the GitHub App is suspended."
	case strings.Contains(lower, "saml"):
		return "The organization requires single sign-on: authorize the bot's token for it on GitHub."
	case strings.Contains(lower, "ip allow list"):
		return "The organization's IP allow list does not have the address of the bot."
	case needs != "" && regexp.MustCompile(`^[a-z_=;, ]{1,200}$`).MatchString(needs):
		return "GitHub does not allow that: the bot needs the permission " + needs + "."
	}
	return "GitHub does not allow that here: a permission is missing."
}

// refusedByLimit reports whether a call was refused because of a rate limit, and
// for how long. GitHub says so with 403, 429 or 422, and how long in one of several
// ways (contract C6); the library refuses by itself where an answer said that it was the
// last for now.
func (c *client) refusedByLimit(who caller, err error, seen *exchange.Call, text string) (time.Duration, bool) {
	var after time.Duration
	status, h, theirs := seen.Status(), seen.Answered(), c.clock.At(time.Now())
	lower := strings.ToLower(text)
	known := status == http.StatusTooManyRequests
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		known, after = true, e.Rate.Reset.Sub(theirs)
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		known, after = true, e.GetRetryAfter()
	}
	if status == http.StatusForbidden {
		known = known || strings.Contains(lower, "secondary rate limit") || strings.Contains(lower, "abuse detection") || seen.RetryAfter() > 0
	}
	if !known && !tooQuick(err) {
		return 0, false
	}
	if s := seen.RetryAfter(); s > 0 {
		after = s
	} else if reset, bad := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); bad == nil && h.Get("X-Ratelimit-Remaining") == "0" {
		after = max(after, time.Unix(reset, 0).Sub(theirs))
	}
	// The library remembers when its limit ends, without a bound. It is the budget that
	// keeps silent.
	c.clients.Delete(who)
	return c.limits.Refused(who.key(), fault.Asked(after.Seconds(), longestLimit)), true
}

// tooQuick reports whether something was not made because too much was: for a few calls
// GitHub says so with 422, as of a mistake.
func tooQuick(err error) bool {
	e, _ := errors.AsType[*github.ErrorResponse](err)
	return e != nil && slices.ContainsFunc(e.Errors, func(detail github.Error) bool {
		return detail.Code == "abuse" || strings.Contains(detail.Message, "submitted too quickly")
	})
}

// longestLimit is how long a limit of GitHub holds at most: it begins anew each hour
// (contract C6).
const longestLimit = time.Hour

// unsure returns err as one that leaves open whether the comment is there.
func unsure(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: err}
}

// secretForm is what GitHub's tokens look like, old and new (contract C8), and
// an App's assertion.
var secretForm = pattern.Lazy(`gh[a-z]_[A-Za-z0-9._-]{16,}|github_pat_[A-Za-z0-9_]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]{16,}`)
