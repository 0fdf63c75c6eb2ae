package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	pollTimeout  = 50 * time.Second // the longest that Telegram grants
	pollSlack    = 15 * time.Second // what the client waits beyond it
	maxBatchSize = 64 << 20         // bytes of one getUpdates answer
	// lastConfirm bounds confirming at shutdown. A server that was asked for the
	// same just before holds the request back for up to 3 s; that it was sent is
	// enough.
	lastConfirm = 500 * time.Millisecond

	// leastConflict is the shortest pause where somebody else polls (contract A1.9).
	leastConflict = 3 * time.Second

	// longestDeaf is how long Telegram is believed not to want to be asked for messages. Its
	// limit there is one of seconds.
	longestDeaf = time.Hour

	// patience is how long an update is tried that is refused for a fault of ours while others
	// are not. It may be mended, or pass.
	patience = 5 * time.Minute
)

// allowedUpdates are the kinds of updates that we want. It is sent with every
// request: without it the setting of an earlier program would persist.
func allowedUpdates() []string {
	return []string{"message", "edited_message", "my_chat_member", "callback_query"}
}

// receiver receives updates, by polling or over HTTP.
type receiver struct {
	client  *client
	me      *account
	hook    string // where Telegram delivers to; empty: it polls
	secret  string // of the webhook
	presses *presses
	hearing platform.Hearing
	log     *slog.Logger
	observe func(string)

	refused *platform.Recent[messages.EventID, time.Time] // since when, for a fault of ours
	passed  atomic.Int64                                  // when another one was not, in Unix seconds
}

// poll asks for updates until ctx is done. It returns an error only for refused
// credentials: a proxy or a server that starts refuses one request, a revoked token
// is refused by getMe, too.
//
// An update is confirmed by asking for the ones after it, so the next request
// is made only when the sink has stored the batch. Doing a batch twice is safe:
// the sink knows the events by their update id.
func (r *receiver) poll(ctx context.Context, sink platform.Sink) error {
	var offset int64    // the next update to ask for; 0 is the oldest there is
	var confirmed int64 // the offset that Telegram has seen last
	failed := platform.NewBackoff(200*time.Millisecond, 30*time.Second)
	conflict := platform.NewBackoff(leastConflict, time.Minute)
	r.log.InfoContext(ctx, "polling telegram for messages", "account", r.me.id)

	var garbage garbled
	for ctx.Err() == nil {
		started := time.Now()
		updates, asked, err := r.getUpdates(ctx, offset, garbage.limit(), pollTimeout)
		if asked {
			confirmed = offset
		}
		if id, ok := garbage.seen(err); ok {
			if r.keep(ctx, sink, garbage.body, errGarbled) == nil {
				offset = id + 1
				continue
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				r.hearing.Note(err)
			}
			if fault.Is(err, fault.Unauthorized) && r.me.refused(ctx) {
				return err
			}
			r.pollFailed(ctx, err, failed, conflict)
			continue
		}
		r.hearing.Note(nil)
		conflict.Reset()
		if len(updates) == 0 {
			failed.Reset()
			if time.Since(started) < 100*time.Millisecond {
				// A server without long polling: do not ask in a tight loop.
				_ = platform.Sleep(ctx, 100*time.Millisecond)
			}
			continue
		}
		next, ok := r.takeBatch(ctx, sink, updates, failed)
		switch {
		case !ok:
			continue
		case next == 0 || next <= offset && offset != 0:
			// Nothing that could be confirmed, or confirmed updates once more
			// (after a week of silence ids start anew): go on, but not in a
			// tight loop.
			_ = failed.Sleep(ctx, 0)
		default:
			failed.Reset()
		}
		if next != 0 {
			offset = next
		}
	}
	r.hearing.Note(nil) // another process may receive from now on
	r.confirm(ctx, offset, confirmed)
	return nil
}

// Receiving implements platform.Receiving.
func (r *receiver) Receiving() error { return r.hearing.Trouble() }

// takeBatch is take for the poll loop: it reports failure to the log and waits.
func (r *receiver) takeBatch(ctx context.Context, sink platform.Sink, updates []json.RawMessage, failed *platform.Backoff) (next int64, ok bool) {
	next, err := r.take(ctx, sink, updates)
	if err == nil {
		return next, true
	}
	if ctx.Err() == nil {
		r.observe("sink_error")
		r.log.ErrorContext(ctx, "messages from telegram could not be stored; they stay there", "err", err, "updates", len(updates))
		_ = failed.Sleep(ctx, 0)
	}
	return 0, false
}

// confirm tells Telegram on the way out what was stored, so that the next start
// does not get it again. It is best effort: what is not confirmed comes again
// and changes nothing.
func (r *receiver) confirm(ctx context.Context, offset, confirmed int64) {
	if offset == confirmed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastConfirm)
	defer cancel()
	if _, _, err := r.getUpdates(ctx, offset, 1, 0); err != nil {
		r.log.WarnContext(ctx, "the last messages could not be confirmed to telegram", "err", err)
	}
}

// pollFailed waits as long as the error demands and says what is wrong.
func (r *receiver) pollFailed(ctx context.Context, err error, failed, conflict *platform.Backoff) {
	switch {
	case ctx.Err() != nil:
	case fault.Is(err, fault.Conflict) && strings.Contains(err.Error(), "webhook"):
		r.observe("conflict")
		r.log.WarnContext(ctx, "a webhook is set for this bot; taking it down to poll instead")
		if err := r.deleteWebhook(ctx); err != nil {
			r.log.ErrorContext(ctx, "the webhook could not be taken down", "err", err)
		}
		_ = conflict.Sleep(ctx, leastConflict)
	case fault.Is(err, fault.Conflict):
		r.observe("conflict")
		r.log.ErrorContext(ctx, "another process is polling with this TELEGRAM_BOT_TOKEN; only one can get the messages", "err", err)
		_ = conflict.Sleep(ctx, leastConflict)
	case fault.Is(err, fault.RateLimited):
		r.observe("rate_limited")
		r.log.WarnContext(ctx, "telegram asks to poll less", "retry_after", exchange.RetryAfter(err))
		_ = platform.Sleep(ctx, max(exchange.RetryAfter(err), time.Second))
	default:
		r.observe("poll_error")
		r.log.WarnContext(ctx, "polling telegram failed, trying again", "err", err)
		_ = failed.Sleep(ctx, exchange.RetryAfter(err))
	}
}

// take makes a batch durable and returns the offset that confirms it, or 0 if
// no update of it had an id. On error nothing may be confirmed.
func (r *receiver) take(ctx context.Context, sink platform.Sink, updates []json.RawMessage) (int64, error) {
	me, err := r.me.whoami(ctx)
	if err != nil {
		return 0, err
	}
	failpoint.Hit(failpoint.Received)
	var next int64
	var events []messages.Inbound
	var pressed []string
	for _, raw := range updates {
		id, known := updateID(raw)
		if known {
			next = max(next, id+1)
		}
		in, ok, err := r.translate(me, raw)
		if err != nil {
			if err := r.keep(ctx, sink, raw, err); err != nil {
				return 0, err
			}
			continue
		}
		if in.Trigger != "" { // ignored ones have a client that waits as well
			pressed = append(pressed, in.Trigger)
		}
		if ok {
			events = append(events, in)
		} else {
			r.observe("ignored")
		}
	}
	for range r.presses.expect(pressed) {
		r.observe("press_unanswered")
	}
	if err := r.accept(ctx, sink, events); err != nil {
		r.presses.forget(pressed)
		return 0, err
	}
	r.presses.schedule(pressed)
	failpoint.Hit(failpoint.Stored)
	return next, nil
}

// accept passes a batch on. If the batch as a whole is refused, as invalid or for a fault
// of ours, its events are passed one by one and those that are invalid are kept raw: one
// bad event must not stop the account.
func (r *receiver) accept(ctx context.Context, sink platform.Sink, events []messages.Inbound) error {
	if len(events) == 0 {
		return nil
	}
	err := sink.Accept(ctx, events...)
	if err == nil {
		r.passed.Store(time.Now().Unix())
	}
	if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Internal) {
		return err
	}
	var failed error
	stuck := make(map[messages.ConversationKey]bool) // what follows there stays behind what is refused
	for _, e := range events {
		if stuck[e.Conversation] {
			continue
		}
		err := sink.Accept(ctx, e)
		if err == nil {
			r.passed.Store(time.Now().Unix())
		} else if fault.Is(err, fault.Invalid) || fault.Is(err, fault.Internal) && r.hopeless(e.Event) {
			err = r.keep(ctx, sink, e.Raw, err)
		}
		switch {
		case fault.Is(err, fault.Internal):
			stuck[e.Conversation], failed = true, err
		case err != nil:
			return err
		}
	}
	return failed // which confirms nothing, but Telegram gives a hundred updates at a time
}

// hopeless reports whether an event is refused for long for a fault of ours, while others
// pass.
func (r *receiver) hopeless(event messages.EventID) bool {
	since := r.refused.First(event, time.Now())
	return time.Since(since) >= patience && time.Since(time.Unix(r.passed.Load(), 0)) < patience
}

// keep stores an update that was not understood.
func (r *receiver) keep(ctx context.Context, sink platform.Sink, raw []byte, cause error) error {
	r.observe("malformed")
	event := messages.RawEvent{Platform: Name, Account: r.me.id, Raw: raw, Reason: r.client.scrub.Text(cause.Error())}
	if id, ok := updateID(raw); ok {
		event.Event = eventID(id)
	}
	r.log.WarnContext(ctx, "an update from telegram was not understood and is kept", "event", event.Event, "reason", event.Reason)
	return sink.Keep(ctx, event)
}

var (
	errGarbled = errors.New("the answer with this update is not JSON")
	updateMark = pattern.Lazy(`"update_id"\s*:\s*([0-9]{1,18})\b`)
)

// garbledError is an answer of getUpdates that is not JSON.
type garbledError struct{ body []byte }

func (e *garbledError) Error() string { return fmt.Sprintf("%d bytes that are not JSON", len(e.body)) }

// garbled finds the one update that makes the answers of getUpdates unreadable:
// after a first such answer it asks for one update at a time, and after three
// that are the same it gives up on that update. An answer that was cut off on
// its way is a different one the next time, or whole.
type garbled struct {
	body  []byte
	times int
}

func (g *garbled) limit() int {
	if g.times > 0 {
		return 1
	}
	return 100
}

// seen notes the outcome of a request. It returns the id of the update to skip.
func (g *garbled) seen(err error) (id int64, skip bool) {
	e, ok := errors.AsType[*garbledError](err)
	switch {
	case err == nil:
		*g = garbled{}
		return 0, false
	case !ok:
		return 0, false
	case !bytes.Equal(e.body, g.body):
		g.body, g.times = e.body, 0
	}
	g.times++
	marks := updateMark.FindAllSubmatch(e.body, 2)
	if g.times < 3 || len(marks) != 1 {
		return 0, false
	}
	return parseUpdateID(marks[0][1])
}

// apiResponse is the envelope of every answer.
type apiResponse struct {
	OK          bool              `json:"ok"`
	Result      []json.RawMessage `json:"result"`
	ErrorCode   int               `json:"error_code"`
	Description string            `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"`
	} `json:"parameters"`
}

// getUpdates asks for the updates from offset on. Each is returned as it came,
// so that one that cannot be decoded does not spoil the others. asked reports
// whether the request was sent, which confirms what is before offset even if
// the answer is not waited for.
func (r *receiver) getUpdates(ctx context.Context, offset int64, limit int, timeout time.Duration) (updates []json.RawMessage, asked bool, err error) {
	params := map[string]any{"timeout": int(timeout / time.Second), "limit": limit, "allowed_updates": allowedUpdates()}
	if offset > 0 { // a negative one would make Telegram forget messages
		params["offset"] = offset
	}
	seen := &exchange.Call{Idempotent: true, Timeout: timeout + pollSlack, MaxAnswer: maxBatchSize, Scrub: r.client.scrub}
	status, body, err := r.client.post(seen.Context(ctx), "getUpdates", params)
	if err != nil && !errors.Is(err, exchange.ErrTooLong) {
		return nil, seen.Wrote(), seen.Failure(ctx, "getUpdates", err)
	}
	var resp apiResponse
	if err := json.Unmarshal(body, &resp); err != nil {
		if status == http.StatusOK {
			return nil, true, fault.Wrap(&garbledError{body}, fault.Unavailable, "getUpdates")
		}
		resp = apiResponse{ErrorCode: status, Description: "the answer is not the Bot API's: " + r.client.scrub.Text(err.Error())}
	}
	if resp.OK {
		return resp.Result, true, nil
	}
	return nil, false, r.client.updatesError(resp.ErrorCode, resp)
}

func (c *client) updatesError(code int, resp apiResponse) error {
	f := &fault.Error{Err: fmt.Errorf("getUpdates: %d %s", code, c.scrub.Text(resp.Description))}
	switch code {
	case http.StatusUnauthorized, http.StatusNotFound:
		f.Kind, f.Public = fault.Unauthorized, publicUnauthorized
	case http.StatusConflict:
		f.Kind, f.Public = fault.Conflict, "Another process gets the messages of this TELEGRAM_BOT_TOKEN. Stop it, or give this one a token of its own."
	case http.StatusTooManyRequests:
		f.Kind, f.RetryAfter = fault.RateLimited, fault.Asked(float64(resp.Parameters.RetryAfter), longestDeaf)
	default:
		f.Kind = fault.Unavailable
	}
	return f
}

// post makes one call without the library and returns the answer's body.
func (c *client) post(ctx context.Context, method string, params any) (int, []byte, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/bot"+c.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
