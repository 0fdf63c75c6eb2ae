package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

var errBadPath = errors.New("the server named a file path that is not below its file root")

func statusError(code int) error { return fmt.Errorf("HTTP status %d", code) }

// client makes the calls of the Bot API and classifies their errors.
type client struct {
	api     *bot.Bot
	base    string // Config.APIURL without a slash at the end
	token   string
	http    *http.Client // Run closes what it leaves idle
	scrub   *exchange.Scrubber
	limits  *limiter
	observe func(string)
}

// apiCall makes one call of the library with what it is given.
type apiCall func(ctx context.Context, api *bot.Bot) error

// call runs one API call and classifies its error. An idempotent call is never
// Uncertain: doing it again does no harm.
func (c *client) call(ctx context.Context, method string, idempotent bool, fn apiCall) error {
	return c.callWithin(ctx, callTimeout, method, idempotent, fn)
}

func (c *client) callWithin(ctx context.Context, timeout time.Duration, method string, idempotent bool, fn apiCall) error {
	seen := &exchange.Call{Idempotent: idempotent, Timeout: timeout, Scrub: c.scrub}
	err := fn(seen.Context(ctx), c.api)
	if err == nil {
		return nil
	}
	return classify(ctx, method, err, seen)
}

// ask makes a call of the library that does no harm twice, and returns its answer.
func ask[P, T any](ctx context.Context, c *client, method string, do func(*bot.Bot, context.Context, P) (T, error), params P) (out T, err error) {
	err = c.call(ctx, method, true, func(ctx context.Context, api *bot.Bot) (err error) {
		out, err = do(api, ctx, params)
		return err
	})
	return out, err
}

// classify turns an error of the library into a fault, following the table
// "Error -> action" of the platform contracts. It is the only place where
// foreign errors of calls enter the program.
func classify(ctx context.Context, method string, err error, seen *exchange.Call) error {
	f := seen.Failure(ctx, method, err) // for what Telegram did not refuse in its own words
	status := seen.Status()
	uncertain := f.Uncertain && (status < 300 || status == http.StatusBadGateway || status == http.StatusGatewayTimeout)
	f.Uncertain = false
	if tooMany, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		f.Kind = fault.RateLimited
		f.RetryAfter = max(fault.Asked(float64(tooMany.RetryAfter), exchange.LongestWait), f.RetryAfter, time.Second)
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
	case errors.Is(err, bot.ErrorConflict):
		f.Kind = fault.Conflict
	case errors.Is(err, bot.ErrorBadRequest), errors.Is(err, bot.ErrorForbidden):
		f.Kind = badRequestKind(err.Error())
		if errors.Is(err, bot.ErrorForbidden) && f.Kind != fault.Forbidden {
			f.Kind = fault.Gone
		}
		f.Public = publicRefusals[f.Kind]
	case status == http.StatusTooManyRequests:
		f.Kind, f.RetryAfter = fault.RateLimited, max(f.RetryAfter, time.Second)
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
		f.Uncertain = uncertain
	}
	return f
}

// publicRefusals is what people read of a chat that takes no messages of the bot.
var publicRefusals = map[fault.Kind]string{
	fault.Forbidden: "The bot may not write in that chat. An administrator of the group can allow it.",
	fault.Gone:      "The bot is not in that chat any more.",
}

const publicUnauthorized = "Telegram refused the bot's token. Check TELEGRAM_BOT_TOKEN."

// badRequestKind classifies a 400, or a 403, by its description, which is all there is to
// tell them apart (tdlib/telegram-bot-api, Client.cpp).
func badRequestKind(description string) fault.Kind {
	d := strings.ToLower(description)
	switch {
	case containsAny(d, "message to edit not found", "message to react not found", "message can't be edited", "message_id_invalid", "message identifier is not specified", "file is temporarily unavailable", "wrong file_id", "invalid file_id", topicClosed):
		return fault.NotFound
	case containsAny(d, "chat not found", "user is deactivated", "bot was blocked", "bot was kicked", "group chat was deactivated", "peer_id_invalid", "not a member", "can't initiate", "chat_id is empty"):
		return fault.Gone
	case containsAny(d, "not enough rights", "have no rights", "no write access", "_forbidden", "chat_restricted", "chat_admin_required", "user_banned_in_channel"):
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
	return isInvalid(err, "message thread not found", "topic_deleted", "topic_id_invalid") ||
		fault.Is(err, fault.NotFound) && containsAny(strings.ToLower(err.Error()), topicClosed)
}

// topicClosed is how a topic answers that only administrators may write in. A message that
// cannot be changed there is sent anew, as one that is gone.
const topicClosed = "topic_closed"

func isInvalid(err error, texts ...string) bool {
	return fault.Is(err, fault.Invalid) && containsAny(strings.ToLower(err.Error()), texts...)
}

func containsAny(s string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(s, t) })
}

// scrubber returns what takes the token out of texts. The part behind its colon is
// the secret one.
func (c Config) scrubber() *exchange.Scrubber {
	_, secret, _ := strings.Cut(c.Token, ":")
	return exchange.NewScrubber(nil, c.Token, secret, c.WebhookSecret)
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
