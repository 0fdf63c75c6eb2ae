package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
)

// allowedUpdates are the kinds of updates that we want. It is sent with every
// request: without it the setting of an earlier program would persist.
func allowedUpdates() []string {
	return []string{"message", "edited_message", "my_chat_member", "callback_query"}
}

// poll asks for updates until ctx is done. It returns an error only for refused
// credentials.
//
// An update is confirmed by asking for the ones after it, so the next request
// is made only when the sink has stored the batch. Doing a batch twice is safe:
// the sink knows the events by their update id.
func (a *Adapter) poll(ctx context.Context, sink platform.Sink) error {
	var offset int64    // the next update to ask for; 0 is the oldest there is
	var confirmed int64 // the offset that Telegram has seen last
	failed := platform.NewBackoff(200*time.Millisecond, 30*time.Second)
	conflict := platform.NewBackoff(leastConflict, time.Minute)
	a.log.InfoContext(ctx, "polling telegram for messages", "account", a.account)

	var garbage garbled
	for ctx.Err() == nil {
		started := time.Now()
		updates, asked, err := a.getUpdates(ctx, offset, garbage.limit(), pollTimeout)
		if asked {
			confirmed = offset
		}
		if id, ok := garbage.seen(err); ok {
			if a.keep(ctx, sink, garbage.body, errGarbled) == nil {
				offset = id + 1
				continue
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				a.hearing.Note(err)
			}
			if fault.Is(err, fault.Unauthorized) {
				return err
			}
			a.pollFailed(ctx, err, failed, conflict)
			continue
		}
		a.hearing.Note(nil)
		conflict.Reset()
		if len(updates) == 0 {
			failed.Reset()
			if time.Since(started) < 100*time.Millisecond {
				// A server without long polling: do not ask in a tight loop.
				_ = platform.Sleep(ctx, 100*time.Millisecond)
			}
			continue
		}
		next, ok := a.takeBatch(ctx, sink, updates, failed)
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
	a.hearing.Note(nil) // another process may receive from now on
	a.confirm(ctx, offset, confirmed)
	return nil
}

// Receiving implements platform.Receiving.
func (a *Adapter) Receiving() error { return a.hearing.Trouble() }

// takeBatch is take for the poll loop: it reports failure to the log and waits.
func (a *Adapter) takeBatch(ctx context.Context, sink platform.Sink, updates []json.RawMessage, failed *platform.Backoff) (next int64, ok bool) {
	next, err := a.take(ctx, sink, updates)
	if err == nil {
		return next, true
	}
	if ctx.Err() == nil {
		a.observe("sink_error")
		a.log.ErrorContext(ctx, "messages from telegram could not be stored; they stay there", "err", err, "updates", len(updates))
		_ = failed.Sleep(ctx, 0)
	}
	return 0, false
}

// confirm tells Telegram on the way out what was stored, so that the next start
// does not get it again. It is best effort: what is not confirmed comes again
// and changes nothing.
func (a *Adapter) confirm(ctx context.Context, offset, confirmed int64) {
	if offset == confirmed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastConfirm)
	defer cancel()
	if _, _, err := a.getUpdates(ctx, offset, 1, 0); err != nil {
		a.log.WarnContext(ctx, "the last messages could not be confirmed to telegram", "err", err)
	}
}

// pollFailed waits as long as the error demands and says what is wrong.
func (a *Adapter) pollFailed(ctx context.Context, err error, failed, conflict *platform.Backoff) {
	switch {
	case ctx.Err() != nil:
	case fault.Is(err, fault.Conflict) && strings.Contains(err.Error(), "webhook"):
		a.observe("conflict")
		a.log.WarnContext(ctx, "a webhook is set for this bot; taking it down to poll instead")
		if err := a.deleteWebhook(ctx); err != nil {
			a.log.ErrorContext(ctx, "the webhook could not be taken down", "err", err)
		}
		_ = conflict.Sleep(ctx, leastConflict)
	case fault.Is(err, fault.Conflict):
		a.observe("conflict")
		a.log.ErrorContext(ctx, "another process is polling with this TELEGRAM_BOT_TOKEN; only one can get the messages", "err", err)
		_ = conflict.Sleep(ctx, leastConflict)
	case fault.Is(err, fault.RateLimited):
		a.observe("rate_limited")
		a.log.WarnContext(ctx, "telegram asks to poll less", "retry_after", exchange.RetryAfter(err))
		_ = platform.Sleep(ctx, max(exchange.RetryAfter(err), time.Second))
	default:
		a.observe("poll_error")
		a.log.WarnContext(ctx, "polling telegram failed, trying again", "err", err)
		_ = failed.Sleep(ctx, exchange.RetryAfter(err))
	}
}

// take makes a batch durable and returns the offset that confirms it, or 0 if
// no update of it had an id. On error nothing may be confirmed.
func (a *Adapter) take(ctx context.Context, sink platform.Sink, updates []json.RawMessage) (int64, error) {
	me, err := a.whoami(ctx)
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
		in, ok, err := a.translate(me, raw)
		if err != nil {
			if err := a.keep(ctx, sink, raw, err); err != nil {
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
			a.observe("ignored")
		}
	}
	for range a.presses.expect(pressed) {
		a.observe("press_unanswered")
	}
	if err := a.accept(ctx, sink, events); err != nil {
		a.presses.forget(pressed)
		return 0, err
	}
	a.presses.schedule(pressed)
	failpoint.Hit(failpoint.Stored)
	return next, nil
}

// accept passes a batch on. If the batch as a whole is refused as invalid, its
// events are passed one by one and those that are to blame are kept raw: one
// bad event must not stop the account.
func (a *Adapter) accept(ctx context.Context, sink platform.Sink, events []messages.Inbound) error {
	if len(events) == 0 {
		return nil
	}
	a.observe("received")
	err := sink.Accept(ctx, events...)
	if !fault.Is(err, fault.Invalid) {
		return err
	}
	for _, e := range events {
		err := sink.Accept(ctx, e)
		if fault.Is(err, fault.Invalid) {
			err = a.keep(ctx, sink, e.Raw, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep stores an update that was not understood.
func (a *Adapter) keep(ctx context.Context, sink platform.Sink, raw []byte, cause error) error {
	a.observe("malformed")
	event := messages.RawEvent{Platform: Name, Account: a.account, Raw: raw, Reason: a.scrub.Text(cause.Error())}
	if id, ok := updateID(raw); ok {
		event.Event = eventID(id)
	}
	a.log.WarnContext(ctx, "an update from telegram was not understood and is kept", "event", event.Event, "reason", event.Reason)
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
func (a *Adapter) getUpdates(ctx context.Context, offset int64, limit int, timeout time.Duration) (updates []json.RawMessage, asked bool, err error) {
	params := map[string]any{"timeout": int(timeout / time.Second), "limit": limit, "allowed_updates": allowedUpdates()}
	if offset > 0 { // a negative one would make Telegram forget messages
		params["offset"] = offset
	}
	seen := &exchange.Call{Idempotent: true, Timeout: timeout + pollSlack, MaxAnswer: maxBatchSize, Scrub: a.scrub}
	status, body, err := a.post(seen.Context(ctx), "getUpdates", params)
	if err != nil && !errors.Is(err, exchange.ErrTooLong) {
		return nil, seen.Wrote(), seen.Failure(ctx, "getUpdates", err)
	}
	var resp apiResponse
	if err := json.Unmarshal(body, &resp); err != nil {
		if status == http.StatusOK {
			return nil, true, fault.Wrap(&garbledError{body}, fault.Unavailable, "getUpdates")
		}
		resp = apiResponse{ErrorCode: status, Description: "the answer is not the Bot API's: " + a.scrub.Text(err.Error())}
	}
	if resp.OK {
		return resp.Result, true, nil
	}
	return nil, false, a.updatesError(resp.ErrorCode, resp)
}

func (a *Adapter) updatesError(code int, resp apiResponse) error {
	f := &fault.Error{Err: fmt.Errorf("getUpdates: %d %s", code, a.scrub.Text(resp.Description))}
	switch code {
	case http.StatusUnauthorized, http.StatusNotFound:
		f.Kind, f.Public = fault.Unauthorized, publicUnauthorized
	case http.StatusConflict:
		f.Kind, f.Public = fault.Conflict, "Another process gets the messages of this TELEGRAM_BOT_TOKEN. Stop it, or give this one a token of its own."
	case http.StatusTooManyRequests:
		f.Kind, f.RetryAfter = fault.RateLimited, time.Duration(resp.Parameters.RetryAfter)*time.Second
	default:
		f.Kind = fault.Unavailable
	}
	return f
}

// post makes one call without the library and returns the answer's body.
func (a *Adapter) post(ctx context.Context, method string, params any) (int, []byte, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/bot"+a.cfg.Token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
