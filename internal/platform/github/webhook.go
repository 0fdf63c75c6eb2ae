package github

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	webhookPath = "/webhooks/github"

	// maxBody is the largest payload that GitHub delivers.
	maxBody = 25 << 20

	// ackTimeout is how long storing an event may take: GitHub waits ten seconds
	// for the answer (contract C2).
	ackTimeout = 8 * time.Second

	// closingWaits is until how long after it a closing is held back: the webhook of the
	// comment that somebody closes something with may come behind it.
	closingWaits = 3 * time.Second
)

var (
	deliveryForm = pattern.Lazy(`^[A-Za-z0-9._-]{1,64}$`)
	eventForm    = pattern.Lazy(`^[a-z0-9_]{1,64}$`)
)

// webhook receives over HTTP.
type webhook struct {
	translator *translator
	secret     string
	off        bool // where the bot polls
	log        *slog.Logger
	observe    func(string)
}

// Webhook implements platform.WebhookReceiver. It makes no call to GitHub.
func (h *webhook) Webhook(sink platform.Sink) http.Handler {
	return large{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, sink) })}
}

// large is a handler that limits by itself what it reads. The server in front of it
// takes less of those that do not say so.
type large struct{ http.Handler }

// MaxBody is how much the handler reads, in bytes.
func (large) MaxBody() int64 { return maxBody }

func (h *webhook) serve(w http.ResponseWriter, r *http.Request, sink platform.Sink) {
	body, status := h.verified(w, r)
	if status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	event, guid := r.Header.Values(eventHeader), r.Header.Values(deliveryHeader)
	if len(event) != 1 || len(guid) != 1 || !eventForm.MatchString(event[0]) || !deliveryForm.MatchString(guid[0]) {
		h.observe("webhook_refused")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	// What has been read is stored also if the sender has gone meanwhile: the copy that
	// it sends again is a duplicate then, and a flood ends instead of growing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ackTimeout)
	defer cancel()
	failpoint.Hit(failpoint.Received)
	meaning := h.translator.translate(ctx, event[0], messages.EventID(guid[0]), body)
	if len(meaning.Events) > 0 && meaning.Events[0].Kind == messages.KindClosed {
		closed := meaning.Events[0].SentAt
		_ = platform.Sleep(ctx, min(closed.Add(closingWaits).Sub(h.translator.client.clock.At(time.Now())), closingWaits))
	}
	if err := h.translator.store(ctx, sink, meaning); err != nil {
		h.observe("sink_error")
		h.log.ErrorContext(ctx, "an event from github could not be stored; it will be asked for again", "event", event[0], "delivery", guid[0], "err", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// verified returns the payload of a request that GitHub has signed, or another
// status than OK. The signature is that of the body as it came, before it is
// taken out of a form.
func (h *webhook) verified(w http.ResponseWriter, r *http.Request) ([]byte, int) {
	if h.off || r.URL.Path != webhookPath {
		return nil, http.StatusNotFound
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed
	}
	signature, plausible := claimOf(r.Header)
	if !plausible {
		h.observe("webhook_refused")
		return nil, http.StatusUnauthorized
	}
	if r.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	body, status := platform.ReadBody(w, r, maxBody)
	if status != http.StatusOK {
		return nil, status
	}
	if !signed(h.secret, signature, body) {
		h.observe("webhook_refused")
		return nil, http.StatusUnauthorized
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || len(r.Header.Values("Content-Type")) != 1:
		return nil, http.StatusUnsupportedMediaType
	case kind == "application/json":
		return body, http.StatusOK
	case kind == "application/x-www-form-urlencoded":
		form, _ := url.ParseQuery(string(body)) // what can be read of it
		return []byte(form.Get("payload")), http.StatusOK
	}
	return nil, http.StatusUnsupportedMediaType
}

const (
	signatureHeader = "X-Hub-Signature-256"
	eventHeader     = "X-GitHub-Event"
	deliveryHeader  = "X-GitHub-Delivery"

	signaturePrefix = "sha256="
)

// claimOf returns the signature of a request. It reports false for what cannot
// be one, without looking at the body. There must be exactly one: what stands
// between could read another one than we. The SHA-1 signature, which GitHub
// still sends too, counts for nothing.
func claimOf(h http.Header) (string, bool) {
	values := h.Values(signatureHeader)
	if len(values) != 1 || len(values[0]) != len(signaturePrefix)+hex.EncodedLen(sha256.Size) || !strings.HasPrefix(values[0], signaturePrefix) {
		return "", false
	}
	return values[0], true
}

// signed reports whether body was signed with secret, which is not empty.
func signed(secret, signature string, body []byte) bool {
	return secret != "" && hmac.Equal([]byte(signature), []byte(sign(secret, body)))
}

// sign returns the signature of a body (docs.github.com, Validating webhook
// deliveries).
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil))
}
