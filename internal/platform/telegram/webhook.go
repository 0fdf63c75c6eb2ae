package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	maxWebhookBody = 1 << 20
	secretHeader   = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // a header's name
	webhookPath    = "/webhooks/telegram"

	// ackTimeout is how long storing an update may take.
	ackTimeout = 20 * time.Second

	// watchEvery is how often it is asked whether Telegram still delivers here. failing is
	// how long it is between two tries of a delivery at most, and a bit.
	watchEvery = time.Minute
	failing    = 3 * time.Minute
)

// runWebhook tells Telegram where to deliver and sees to it that it does until ctx is done.
func (r *receiver) runWebhook(ctx context.Context) error {
	err := exchange.UntilDone(ctx, r.log, "the webhook could not be set", func(ctx context.Context) error {
		err := r.setWebhook(ctx)
		r.hearing.Note(err)
		return err
	}, fault.Unauthorized, fault.Invalid)
	switch {
	case fault.Is(err, fault.Invalid):
		return &fault.Error{Kind: fault.Invalid, Public: "Telegram does not accept PUBLIC_URL as a webhook address.", Err: err}
	case err != nil:
		return err
	case ctx.Err() == nil:
		r.log.InfoContext(ctx, "telegram delivers to the webhook", "account", r.me.id)
		r.watchWebhook(ctx)
	}
	r.hearing.Note(nil)
	return nil
}

// watchWebhook looks where Telegram delivers to until ctx is done: another program with the
// same token takes the webhook down, and may have ended since.
func (r *receiver) watchWebhook(ctx context.Context) {
	for platform.Sleep(ctx, watchEvery) == nil {
		info, err := r.me.webhookInfo(ctx)
		switch {
		case err != nil: // Check tells of that
		case r.me.deliversHere(info):
			r.hearing.Note(undelivered(info))
		default:
			r.observe("conflict")
			r.log.ErrorContext(ctx, "another program has taken the webhook of this TELEGRAM_BOT_TOKEN; setting it again")
			if err := r.setWebhook(ctx); err != nil && ctx.Err() == nil {
				r.log.ErrorContext(ctx, "the webhook could not be set", "err", err)
			}
			r.hearing.Note(fault.New(fault.Conflict,
				"Another program has taken the webhook of this TELEGRAM_BOT_TOKEN. Stop it, or give this one a token of its own."))
		}
	}
}

// undelivered returns that Telegram has something that it cannot deliver, or nil. It may
// have given up trying what failed long ago.
func undelivered(info *models.WebhookInfo) error {
	if info.PendingUpdateCount == 0 || info.LastErrorMessage == "" || time.Since(time.Unix(int64(info.LastErrorDate), 0)) > failing {
		return nil
	}
	return fault.New(fault.Unavailable, "Telegram cannot deliver messages to PUBLIC_URL. `bot doctor` says why.")
}

// setWebhook leaves undelivered updates in place.
func (r *receiver) setWebhook(ctx context.Context) error {
	_, err := ask(ctx, r.client, "setWebhook", (*bot.Bot).SetWebhook, &bot.SetWebhookParams{URL: r.hook, SecretToken: r.secret, AllowedUpdates: allowedUpdates()})
	if isInvalid(err, "failed to resolve host") { // whose name may be new, or not to be had for a moment
		return &fault.Error{Kind: fault.Unavailable, Public: "Telegram does not find the host of PUBLIC_URL.", Err: err}
	}
	return err
}

// deleteWebhook leaves undelivered updates in place.
func (r *receiver) deleteWebhook(ctx context.Context) error {
	_, err := ask(ctx, r.client, "deleteWebhook", (*bot.Bot).DeleteWebhook, &bot.DeleteWebhookParams{})
	return err
}

// Webhook implements platform.WebhookReceiver. Every answer has an empty body:
// Telegram would execute a body that names a method.
func (r *receiver) Webhook(sink platform.Sink) http.Handler {
	want := sha256.Sum256([]byte(r.secret))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.serve(w, req, sink, want[:]) })
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request, sink platform.Sink, want []byte) {
	if r.hook == "" || req.URL.Path != webhookPath {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	given := req.Header.Values(secretHeader)
	got := sha256.Sum256([]byte(strings.Join(given, "\n")))
	if len(given) != 1 || subtle.ConstantTimeCompare(got[:], want) != 1 {
		r.observe("webhook_refused")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || len(req.Header.Values("Content-Type")) != 1 {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, status := platform.ReadBody(w, req, maxWebhookBody)
	if status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	// What has been read is stored also if the sender has gone meanwhile: the copy that
	// it sends again is a duplicate then, and a flood ends instead of growing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), ackTimeout)
	defer cancel()
	w.WriteHeader(r.receive(ctx, sink, body))
}

// receive stores one delivered update and returns the HTTP status: 200 when it
// is durable, 503 when Telegram has to deliver it again. Something malformed is
// durable once it is kept; refusing it would block the chat behind it.
func (r *receiver) receive(ctx context.Context, sink platform.Sink, body []byte) int {
	_, err := r.take(ctx, sink, []json.RawMessage{body})
	if err != nil {
		r.observe("sink_error")
		r.log.ErrorContext(ctx, "an update from telegram could not be stored; it will come again", "err", err)
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}
