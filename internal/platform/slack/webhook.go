package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/platform"
)

const (
	maxBody = 1 << 20

	// ackTimeout is how long storing an event may take: Slack waits three
	// seconds for the answer (contract B1.1).
	ackTimeout = 2500 * time.Millisecond

	pathEvents       = "/webhooks/slack/events"
	pathCommands     = "/webhooks/slack/commands"
	pathInteractions = "/webhooks/slack/interactions"
)

// webhook receives over HTTP.
type webhook struct {
	translator *translator
	secret     string
	off        bool        // in Socket Mode
	refused    atomic.Bool // Slack refuses the bot's token: nothing could be answered
	log        *slog.Logger
	observe    func(string)
}

// Webhook implements platform.WebhookReceiver. That a request is a retry says
// nothing: it can be the first copy that arrives (contract B1.2).
func (h *webhook) Webhook(sink platform.Sink) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, sink) })
}

func (h *webhook) serve(w http.ResponseWriter, r *http.Request, sink platform.Sink) {
	body, status := h.verified(w, r)
	if status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	// What has been read is stored also if the sender has gone meanwhile: the copy that
	// it sends again is a duplicate then, and a flood ends instead of growing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ackTimeout)
	defer cancel()
	if r.URL.Path == pathEvents {
		if challenge, ok := challengeOf(body); ok {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = io.WriteString(w, challenge)
			return
		}
	}
	if h.refused.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if err := h.translator.receive(ctx, sink, kindOfPath(r.URL.Path), fromForm(r.URL.Path, body)); err != nil {
		h.observe("sink_error")
		h.log.ErrorContext(ctx, "an event from slack could not be stored; events come again", "path", r.URL.Path, "err", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// verified returns the body of a request that Slack has signed, or another
// status than OK.
func (h *webhook) verified(w http.ResponseWriter, r *http.Request) ([]byte, int) {
	if h.off {
		return nil, http.StatusNotFound
	}
	want := "application/x-www-form-urlencoded"
	switch r.URL.Path {
	case pathEvents:
		want = "application/json"
	case pathCommands, pathInteractions:
	default:
		return nil, http.StatusNotFound
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed
	}
	signature, err := verifierOf(r.Header, h.secret)
	if err != nil {
		h.observe("webhook_refused")
		return nil, http.StatusUnauthorized
	}
	body, status := platform.ReadBody(w, r, maxBody)
	if status != http.StatusOK {
		return nil, status
	}
	if _, err := signature.Write(body); err != nil || signature.Ensure() != nil {
		h.observe("webhook_refused")
		return nil, http.StatusUnauthorized
	}
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != want {
		return nil, http.StatusUnsupportedMediaType
	}
	return body, http.StatusOK
}

var errManySignatures = errors.New("a header of the signature is missing or doubled")

// verifierOf returns what judges the body of a request, or an error for what
// cannot be a signature of the last or next five minutes, without looking at the
// body. Of each header there must be exactly one, which the library does not
// check: what stands between could read another one than we.
func verifierOf(h http.Header, secret string) (slack.SecretsVerifier, error) {
	if len(h.Values("X-Slack-Request-Timestamp")) != 1 || len(h.Values("X-Slack-Signature")) != 1 {
		return slack.SecretsVerifier{}, errManySignatures
	}
	return slack.NewSecretsVerifier(h, secret)
}

// challengeOf returns what Slack wants to hear back when the address is set up.
func challengeOf(body []byte) (string, bool) {
	if !bytes.Contains(body, []byte("url_verification")) {
		return "", false // spares large events a reading
	}
	var v envelope
	if platform.Lenient(body, &v) != nil || v.Type != "url_verification" || v.Challenge == "" || len(v.Challenge) > 1024 {
		return "", false
	}
	return v.Challenge, true
}

func kindOfPath(path string) payloadKind {
	switch path {
	case pathCommands:
		return kindCommand
	case pathInteractions:
		return kindInteraction
	default:
		return kindEvent
	}
}

// fromForm returns the JSON of a request, in the form in which Socket Mode
// delivers it.
func fromForm(path string, body []byte) []byte {
	if path == pathEvents {
		return body
	}
	form, _ := url.ParseQuery(string(body)) // what can be read of it
	if path == pathInteractions && form.Has("payload") {
		return []byte(form.Get("payload"))
	}
	fields := make(map[string]string, len(form))
	for k, v := range form {
		fields[k] = v[0]
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return body
	}
	return raw
}
