package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

var errBadPath = errors.New("the server named a file path that is not below its file root")

func statusError(code int) error { return fmt.Errorf("HTTP status %d", code) }

// outcome is what was seen of one HTTP exchange, for telling a call that
// certainly did nothing from one that may have worked.
type outcome struct {
	wrote  atomic.Bool  // the whole request was written to the connection
	status atomic.Int64 // of the response, 0 if there was none
	after  atomic.Int64 // seconds of the Retry-After header
}

type outcomeKey struct{}

// trace returns a context whose HTTP exchange is noted in o.
func (o *outcome) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, outcomeKey{}, o), &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				o.wrote.Store(true)
			}
		},
	})
}

// observed is the HTTP client that the library calls. It notes the outcome in
// the request's context.
type observed struct{ client *http.Client }

// Do implements bot.HttpClient.
func (o observed) Do(req *http.Request) (*http.Response, error) {
	resp, err := o.client.Do(req) //nolint:gosec // the library made the URL from the configured one
	if out, ok := req.Context().Value(outcomeKey{}).(*outcome); ok && err == nil {
		out.status.Store(int64(resp.StatusCode))
		if s, convErr := strconv.Atoi(resp.Header.Get("Retry-After")); convErr == nil {
			out.after.Store(int64(s))
		}
	}
	return resp, err
}

// call runs one API call and classifies its error. An idempotent call is never
// Uncertain: doing it again does no harm.
func (a *Adapter) call(ctx context.Context, method string, idempotent bool, fn func(context.Context) error) error {
	return a.callWithin(ctx, callTimeout, method, idempotent, fn)
}

func (a *Adapter) callWithin(ctx context.Context, timeout time.Duration, method string, idempotent bool, fn func(context.Context) error) error {
	out := &outcome{}
	inner, cancel := context.WithTimeout(out.trace(ctx), timeout)
	defer cancel()
	err := fn(inner)
	if err == nil {
		return nil
	}
	return a.classify(ctx, method, err, out, idempotent)
}

// classify turns an error of the library into a fault, following the table
// "Error -> action" of the platform contracts. It is the only place where
// foreign errors of calls enter the program.
func (a *Adapter) classify(ctx context.Context, method string, err error, out *outcome, idempotent bool) error {
	f := &fault.Error{Err: fmt.Errorf("%s: %w", method, a.scrub(err))}
	status := int(out.status.Load())
	if tooMany, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		f.Kind = fault.RateLimited
		f.RetryAfter = time.Duration(max(int64(tooMany.RetryAfter), out.after.Load(), 1)) * time.Second
		return f
	}
	if moved, ok := errors.AsType[*bot.MigrateError](err); ok {
		f.Kind = fault.Conflict
		f.Err = fmt.Errorf("%s: %w", method, &platform.MovedError{To: strconv.FormatInt(int64(moved.MigrateToChatID), 10)})
		return f
	}
	switch {
	case errors.Is(err, bot.ErrorUnauthorized), errors.Is(err, bot.ErrorNotFound):
		f.Kind, f.Public = fault.Unauthorized, publicUnauthorized
	case errors.Is(err, bot.ErrorForbidden):
		f.Kind = fault.Gone
	case errors.Is(err, bot.ErrorConflict):
		f.Kind = fault.Conflict
	case errors.Is(err, bot.ErrorBadRequest):
		f.Kind = badRequestKind(err.Error())
	case status == http.StatusTooManyRequests:
		f.Kind, f.RetryAfter = fault.RateLimited, time.Duration(max(out.after.Load(), 1))*time.Second
	case status == http.StatusUnauthorized || status == http.StatusNotFound:
		f.Kind, f.Public = fault.Unauthorized, publicUnauthorized
	case status == http.StatusRequestEntityTooLarge:
		f.Kind = fault.Invalid
	case strings.HasPrefix(err.Error(), "error response from telegram"):
		// An answer of the API itself: the request was refused.
		f.Kind = fault.Unavailable
	case status >= 300 && status < 500:
		f.Kind = fault.Invalid
	default:
		f.Kind = networkKind(ctx)
		f.Uncertain = !idempotent && out.wrote.Load() && ambiguous(status)
	}
	return f
}

// ambiguous reports whether a request that was written may have had its effect:
// there was no answer, or one cut off, or a gateway answered for the server.
func ambiguous(status int) bool {
	return status < 300 || status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

const publicUnauthorized = "Telegram refused the bot's token. Check TELEGRAM_BOT_TOKEN."

func networkKind(ctx context.Context) fault.Kind {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.Canceled
	}
	return fault.Unavailable
}

// badRequestKind classifies a 400 by its description, which is all there is to
// tell them apart (tdlib/telegram-bot-api, Client.cpp).
func badRequestKind(description string) fault.Kind {
	d := strings.ToLower(description)
	switch {
	case containsAny(d, "message to edit not found", "message can't be edited", "message_id_invalid", "message identifier is not specified", "file is temporarily unavailable", "wrong file_id", "invalid file_id"):
		return fault.NotFound
	case containsAny(d, "chat not found", "user is deactivated", "bot was blocked", "bot was kicked", "group chat was deactivated", "peer_id_invalid", "not a member", "can't initiate", "chat_id is empty"):
		return fault.Gone
	case containsAny(d, "not enough rights", "have no rights", "chat_write_forbidden", "topic_closed"):
		return fault.Forbidden
	default:
		return fault.Invalid
	}
}

// The answers to which the same message can be sent in another form.
func isNotModified(err error) bool { return isInvalid(err, "message is not modified") }

func isEntityError(err error) bool {
	return isInvalid(err, "can't parse entities", "can't parse entity", "entity_", "entities_too_long", "url_invalid", "wrong http url", "invalid url")
}

func isThreadGone(err error) bool {
	return isInvalid(err, "message thread not found", "topic_deleted", "topic_id_invalid")
}

func isInvalid(err error, texts ...string) bool {
	return fault.Is(err, fault.Invalid) && containsAny(strings.ToLower(err.Error()), texts...)
}

func containsAny(s string, texts ...string) bool {
	for _, t := range texts {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// retryAfter returns how long the platform asked to wait, or zero.
func retryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.RetryAfter
	}
	return 0
}

// scrubbed is a foreign error reduced to text without credentials. Only the
// context errors can be told apart below it.
type scrubbed struct {
	text string
	is   error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.is }

// scrub takes the token out of err's text, in every form that URLs give it,
// and forgets err itself, which may still hold it.
func (a *Adapter) scrub(err error) error {
	s := &scrubbed{text: a.redact(err.Error())}
	for _, sentinel := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, sentinel) {
			s.is = sentinel
		}
	}
	return s
}

func (a *Adapter) redact(text string) string {
	_, secret, _ := strings.Cut(a.cfg.Token, ":")
	pairs := []string{a.cfg.Token, "***", url.QueryEscape(a.cfg.Token), "***", url.PathEscape(a.cfg.Token), "***"}
	if len(secret) >= 8 { // shorter ones, of tests, are parts of ordinary words
		pairs = append(pairs, secret, "***")
	}
	if len(a.cfg.WebhookSecret) > 0 {
		pairs = append(pairs, a.cfg.WebhookSecret, "***")
	}
	return cutRunes(strings.NewReplacer(pairs...).Replace(text), 500)
}

func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
