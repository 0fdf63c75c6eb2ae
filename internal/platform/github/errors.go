package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
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
func (a *Adapter) classify(ctx context.Context, who caller, r request, err error, seen *outcome) error {
	if _, ours := errors.AsType[*fault.Error](err); ours {
		return err
	}
	text := a.redact(message(err))
	status := seen.status
	if after, limited := a.refusedByLimit(who, err, status, seen.header, text); limited {
		return &fault.Error{Kind: fault.RateLimited, RetryAfter: after, Err: fmt.Errorf("%s: %w", r.route, &refusal{status, text})}
	}
	f := &fault.Error{Err: fmt.Errorf("%s: %w", r.route, &refusal{status, text})}
	switch {
	case status == http.StatusNotModified:
		return errNotModified
	case status == http.StatusUnauthorized:
		a.observe("unauthorized")
		f.Kind, f.Public = fault.Unauthorized, "GitHub refused the bot's credentials. Check GITHUB_TOKEN."
		if a.cfg.AppID != "" {
			f.Public = "GitHub refused the App's credentials. Check GITHUB_APP_ID, its private key, and this machine's clock."
		}
	case status == http.StatusForbidden:
		f.Kind, f.Public = fault.Forbidden, forbidden(seen.header, text)
	case status == http.StatusNotFound:
		f.Kind = fault.NotFound
	case status == http.StatusGone:
		f.Kind = fault.Gone
	case status == http.StatusUnavailableForLegalReasons:
		f.Kind, f.Public = fault.Gone, "GitHub has blocked the repository."
	case status == http.StatusConflict:
		f.Kind = fault.Conflict
	case status >= 300 && status < 500:
		f.Kind = fault.Invalid
		if strings.Contains(text, "too long") {
			f.Public = "The text is longer than GitHub takes."
		}
	default:
		f.Kind = networkKind(ctx)
		f.RetryAfter = seconds(seen.header)
		f.Uncertain = !r.idempotent && seen.wrote.Load() && ambiguous(status)
		f.Err = fmt.Errorf("%s: %w", r.route, a.scrub(err, status))
	}
	return f
}

// errNotModified says that an answer is as it was.
var errNotModified = errors.New("not modified")

// forbidden tells what is missing.
func forbidden(h http.Header, text string) string {
	lower := strings.ToLower(text)
	switch needs := h.Get("X-Accepted-Github-Permissions"); {
	case strings.Contains(lower, "locked"):
		return "The conversation is locked; I may not write in it."
	case strings.Contains(lower, "archived"):
		return "The repository is archived; nothing can be written in it."
	case strings.Contains(lower, "suspended"):
		return "The installation of the GitHub App is suspended."
	case needs != "" && regexp.MustCompile(`^[a-z_=;, ]{1,200}$`).MatchString(needs):
		return "GitHub does not let me do that: I need the permission " + needs + "."
	}
	return "GitHub does not let me do that here: a permission is missing."
}

// refusedByLimit reports whether a call was refused because of a rate limit, and
// for how long. GitHub says so with 403 or 429, and how long in one of several
// ways (contract C6); the client refuses by itself while it knows of a limit.
func (a *Adapter) refusedByLimit(who caller, err error, status int, h http.Header, text string) (time.Duration, bool) {
	var after time.Duration
	known := false
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		known, after = true, time.Until(e.Rate.Reset.Time)
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		known, after = true, e.GetRetryAfter()
	}
	if !known && status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return 0, false
	}
	lower := strings.ToLower(text)
	known = known || status == http.StatusTooManyRequests || strings.Contains(lower, "secondary rate limit") || strings.Contains(lower, "abuse detection")
	switch s := seconds(h); {
	case s > 0:
		known, after = true, s
	case h.Get("X-Ratelimit-Remaining") == "0" && known:
		if reset, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			after = max(after, time.Until(time.Unix(reset, 0)))
		}
	}
	if !known {
		return 0, false
	}
	return a.limits.refused(who, after), true
}

// seconds returns what a Retry-After header says, or zero.
func seconds(h http.Header) time.Duration {
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(min(s, 24*3600)) * time.Second
	}
	return 0
}

// ambiguous reports whether a request that was written may have had its effect:
// there was no answer, or one cut off, or something failed on the way.
func ambiguous(status int) bool {
	return status < 300 || status >= 500 && status != http.StatusServiceUnavailable
}

func networkKind(ctx context.Context) fault.Kind {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.Canceled
	}
	return fault.Unavailable
}

// retryAfter returns how long the platform asked to wait, or zero.
func retryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.RetryAfter
	}
	return 0
}

// unsure returns err as one that leaves open whether the comment is there.
func unsure(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: err}
}

// scrubbed is a foreign error reduced to text without credentials. Only the
// context errors can be told apart below it.
type scrubbed struct {
	text string
	is   error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.is }

// scrub takes the credentials out of err's text, and forgets err itself, which
// may still hold them.
func (a *Adapter) scrub(err error, status int) error {
	text := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		text = u.Op + ": " + u.Err.Error()
	}
	if status != 0 {
		text = fmt.Sprintf("HTTP status %d: %s", status, text)
	}
	s := &scrubbed{text: a.redact(text)}
	for _, sentinel := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, sentinel) {
			s.is = sentinel
		}
	}
	return s
}

// secretForm is what GitHub's tokens look like, old and new (contract C8), and
// an App's assertion.
var secretForm = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9._-]{16,}|github_pat_[A-Za-z0-9_]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]{16,}`)

func (a *Adapter) redact(text string) string {
	var pairs []string
	for _, secret := range []string{a.cfg.Token, a.cfg.WebhookSecret} {
		if secret != "" {
			pairs = append(pairs, secret, "***")
		}
	}
	return cut(secretForm.ReplaceAllString(strings.NewReplacer(pairs...).Replace(text), "***"), 500)
}
