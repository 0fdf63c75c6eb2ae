package telegram_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/telegram"
)

const secretHeader = "X-Telegram-Bot-Api-Secret-Token"

func webhookBundle(t *testing.T) bundle {
	t.Helper()
	return open(t, func(c *telegram.Config) {
		c.Webhook, c.WebhookSecret, c.PublicURL = true, secret, "https://bot.example.com/"
	})
}

func (b bundle) call(method, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/webhooks/telegram", strings.NewReader(body))
	if header != nil {
		r.Header = header
	}
	w := httptest.NewRecorder()
	b.Webhook(b.sink).ServeHTTP(w, r)
	return w
}

const update = `{"update_id":7,"message":{"message_id":5,"date":1,"from":{"id":42},"chat":{"id":42,"type":"private"},"text":"hi"}}`

func withSecret(values ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for _, v := range values {
		h.Add(secretHeader, v)
	}
	return h
}

func TestWebhookVerifies(t *testing.T) {
	t.Parallel()
	b := webhookBundle(t)
	bad := map[string]http.Header{
		"None": {}, "Empty": withSecret(""), "Wrong": withSecret("x"), "Prefix": withSecret(secret[:10]), "Longer": withSecret(secret + "x"),
		"Case": withSecret(strings.ToUpper(secret)), "Space": withSecret(secret + " "), "Twice": withSecret(secret, secret), "WrongFirst": withSecret("x", secret),
		"Token": withSecret(token), "OtherHeader": {"Authorization": {secret}}, "Joined": withSecret(secret + "\n" + secret), "NUL": withSecret(secret + "\x00"),
	}
	for name, h := range bad {
		if w := b.call(http.MethodPost, update, h); w.Code != http.StatusUnauthorized || w.Body.Len() != 0 {
			t.Errorf("%s: %d %q", name, w.Code, w.Body)
		}
	}
	if n := b.sink.Calls(); n != 0 {
		t.Errorf("%d calls of Accept", n)
	}
	if w := b.call(http.MethodPost, update, withSecret(secret)); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("right secret: %d %q", w.Code, w.Body)
	}
	if n := len(b.sink.Events()); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	big := `{"update_id":7,"x":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, tt := range map[string]struct {
		method, body string
		sink         error
		want         int
		kept         int
	}{
		"Get":       {http.MethodGet, update, nil, http.StatusMethodNotAllowed, 0},
		"Put":       {http.MethodPut, update, nil, http.StatusMethodNotAllowed, 0},
		"Big":       {http.MethodPost, big, nil, http.StatusRequestEntityTooLarge, 0},
		"SinkFails": {http.MethodPost, update, fault.New(fault.Unavailable, "no"), http.StatusServiceUnavailable, 0},
		"Malformed": {http.MethodPost, `{"update_id":7,"message":[]}`, nil, http.StatusOK, 1},
		"NotJSON":   {http.MethodPost, `hello`, nil, http.StatusOK, 1},
		"Empty":     {http.MethodPost, ``, nil, http.StatusOK, 1},
		"Deep":      {http.MethodPost, strings.Repeat("[", 100000), nil, http.StatusOK, 1},
		"Unknown":   {http.MethodPost, `{"update_id":7,"poll":{}}`, nil, http.StatusOK, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := webhookBundle(t)
			b.sink.BeforeAccept = func([]messages.Inbound) error { return tt.sink }
			w := b.call(tt.method, tt.body, withSecret(secret))
			if w.Code != tt.want || w.Body.Len() != 0 {
				t.Errorf("%d %q, want %d", w.Code, w.Body, tt.want)
			}
			if kept := b.sink.Kept(); len(kept) != tt.kept {
				t.Errorf("kept %+v", kept)
			}
		})
	}
}

func TestWebhookOfAPollingAdapterIsClosed(t *testing.T) {
	t.Parallel()
	b := open(t)
	if w := b.call(http.MethodPost, update, withSecret("")); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

func TestSetWebhook(t *testing.T) {
	t.Parallel()
	b := webhookBundle(t)
	b.run(t)
	if err := b.server.WaitFor(t.Context(), func() bool { return b.server.Count("setWebhook") == 1 }); err != nil {
		t.Fatal(err)
	}
	p := b.server.Calls("setWebhook")[0].Params
	if p["url"] != "https://bot.example.com/webhooks/telegram" || p["secret_token"] != secret || p["allowed_updates"] == "" || p["drop_pending_updates"] != "" {
		t.Errorf("setWebhook with %v", p)
	}
}

// Finding 10: any path below the webhook's and any content type were taken.
func TestFinding10OtherPathsAndContentTypesAreRefused(t *testing.T) {
	t.Parallel()
	b := webhookBundle(t)
	for path, want := range map[string]int{"/webhooks/telegram": 200, "/webhooks/telegram/x": 404, "/webhooks/telegram/": 404, "/webhooks/telegram/../telegram": 404} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(update))
		r.URL.Path, r.Header = path, withSecret(secret)
		w := httptest.NewRecorder()
		b.Webhook(b.sink).ServeHTTP(w, r)
		if w.Code != want || w.Body.Len() > 0 {
			t.Errorf("%s: %d %q, want %d", path, w.Code, w.Body, want)
		}
	}
	for _, kinds := range [][]string{nil, {""}, {"text/plain"}, {"application/x-www-form-urlencoded"}, {"application/json", "application/json"}, {"application/jsonx"}} {
		h := withSecret(secret)
		h["Content-Type"] = kinds
		if w := b.call(http.MethodPost, update, h); w.Code != http.StatusUnsupportedMediaType || w.Body.Len() > 0 {
			t.Errorf("content type %q: %d %q", kinds, w.Code, w.Body)
		}
	}
}

// TestWhatWasReadIsStoredWithoutItsSender has a sender that has gone when its event is
// read, as one does that has waited too long.
func TestWhatWasReadIsStoredWithoutItsSender(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	b := webhookBundle(t)
	r := httptest.NewRequest(http.MethodPost, "/webhooks/telegram", strings.NewReader(update)).WithContext(gone)
	r.Header = withSecret(secret)
	w := httptest.NewRecorder()
	b.Webhook(b.sink).ServeHTTP(w, r)
	if n := len(b.sink.Events()); w.Code != http.StatusOK || n != 1 {
		t.Errorf("answered %d, %d events are stored, want 200 and 1", w.Code, n)
	}
}
