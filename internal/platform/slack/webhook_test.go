package slack_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
)

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestBadSignatures(t *testing.T) {
	t.Parallel()
	const sig, ts = "X-Slack-Signature", "X-Slack-Request-Timestamp"
	body := wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1"}`)
	good := func(r *http.Request) string { return r.Header.Get(sig) }
	old := func(d time.Duration) func(*http.Request) {
		return func(r *http.Request) {
			*r = *signed("events", "application/json", body, time.Now().Add(d))
		}
	}
	for name, spoil := range map[string]func(r *http.Request){
		"no signature":     func(r *http.Request) { r.Header.Del(sig) },
		"no timestamp":     func(r *http.Request) { r.Header.Del(ts) },
		"neither":          func(r *http.Request) { r.Header.Del(ts); r.Header.Del(sig) },
		"empty":            func(r *http.Request) { r.Header.Set(sig, "") },
		"only the version": func(r *http.Request) { r.Header.Set(sig, "v0=") },
		"no version":       func(r *http.Request) { r.Header.Set(sig, strings.TrimPrefix(good(r), "v0=")) },
		"another version":  func(r *http.Request) { r.Header.Set(sig, "v1="+strings.TrimPrefix(good(r), "v0=")) },
		"truncated":        func(r *http.Request) { r.Header.Set(sig, good(r)[:60]) },
		"too long":         func(r *http.Request) { r.Header.Set(sig, good(r)+"0") },
		"a digit is wrong": func(r *http.Request) { r.Header.Set(sig, good(r)[:66]+flip(good(r)[66:])) },
		"not hexadecimal":  func(r *http.Request) { r.Header.Set(sig, "v0="+strings.Repeat("z", 64)) },
		"another secret": func(r *http.Request) {
			r.Header.Set(sig, emulator.Signature("another-secret-of-some-length", r.Header.Get(ts), []byte(body)))
		},
		"an empty secret": func(r *http.Request) { r.Header.Set(sig, emulator.Signature("", r.Header.Get(ts), []byte(body))) },
		"of another body": func(r *http.Request) {
			r.Header.Set(sig, emulator.Signature(secret, r.Header.Get(ts), []byte(body+" ")))
		},
		"of another time":      func(r *http.Request) { r.Header.Set(ts, strconv.FormatInt(time.Now().Unix()-1, 10)) },
		"SHA-1":                func(r *http.Request) { r.Header.Set(sig, "v0="+sha1Of(r.Header.Get(ts), body)) },
		"doubled":              func(r *http.Request) { r.Header.Add(sig, good(r)) },
		"doubled, one wrong":   func(r *http.Request) { r.Header.Add(sig, "v0="+strings.Repeat("0", 64)) },
		"doubled timestamp":    func(r *http.Request) { r.Header.Add(ts, r.Header.Get(ts)) },
		"joined by a comma":    func(r *http.Request) { r.Header.Set(sig, good(r)+","+good(r)) },
		"spaces around":        func(r *http.Request) { r.Header.Set(sig, " "+good(r)) },
		"old":                  old(-301 * time.Second),
		"in the future":        old(302 * time.Second),
		"far in the future":    func(r *http.Request) { r.Header.Set(ts, "99999999999") },
		"overflowing":          func(r *http.Request) { r.Header.Set(ts, "9223372036854775807") },
		"negative":             func(r *http.Request) { r.Header.Set(ts, "-1") },
		"not a number":         func(r *http.Request) { r.Header.Set(ts, "now") },
		"a number with a sign": func(r *http.Request) { r.Header.Set(ts, "+"+r.Header.Get(ts)) },
		"body was changed":     func(r *http.Request) { r.Body = http.NoBody },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, path := range []string{"events", "commands", "interactions"} {
				r := signed("events", "application/json", body, time.Now())
				spoil(r)
				r.URL.Path = "/webhooks/slack/" + path
				if w := serve(b.hook, r); w.Code != http.StatusUnauthorized || w.Body.Len() != 0 {
					t.Errorf("%s: answered %d %q", path, w.Code, w.Body)
				}
			}
			if len(b.sink.Events())+len(b.sink.Kept()) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func flip(digit string) string {
	if digit == "0" {
		return "1"
	}
	return "0"
}

func sha1Of(ts, body string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte("v0:" + ts + ":" + body))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestWithinTheWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1"}`)
	for _, d := range []time.Duration{-298 * time.Second, 0, 298 * time.Second, 0} {
		if w := serve(b.hook, signed("events", "application/json", body, time.Now().Add(d))); w.Code != http.StatusOK {
			t.Errorf("%v: answered %d", d, w.Code)
		}
	}
	b.one(t) // a replay changes nothing
}

func TestWebhookRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1"}`)
	large := strings.Repeat("x", 1<<20+1)
	for name, tc := range map[string]struct {
		r    *http.Request
		want int
	}{
		"another path":         {signed("other", "application/json", body, time.Now()), http.StatusNotFound},
		"the root":             {signed("", "application/json", body, time.Now()), http.StatusNotFound},
		"another method":       {httptest.NewRequest(http.MethodGet, "/webhooks/slack/events", nil), http.StatusMethodNotAllowed},
		"another content type": {signed("events", "text/plain", body, time.Now()), http.StatusUnsupportedMediaType},
		"JSON for a form":      {signed("commands", "application/json", body, time.Now()), http.StatusUnsupportedMediaType},
		"too large":            {signed("events", "application/json", large, time.Now()), http.StatusRequestEntityTooLarge},
	} {
		if w := serve(b.hook, tc.r); w.Code != tc.want || w.Body.Len() != 0 {
			t.Errorf("%s: answered %d %q, want %d", name, w.Code, w.Body, tc.want)
		}
	}
	if len(b.sink.Events())+len(b.sink.Kept()) != 0 {
		t.Error("something was stored")
	}
}

func TestChallengeIsEchoedOnlyIfSigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"token":"x","challenge":"<b>abc</b>","type":"url_verification"}`
	w := b.deliver("events", "application/json", body)
	if w.Code != http.StatusOK || w.Body.String() != "<b>abc</b>" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("answered %d %q as %s", w.Code, w.Body, w.Header().Get("Content-Type"))
	}
	r := signed("events", "application/json", body, time.Now())
	r.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64))
	if w := serve(b.hook, r); w.Code != http.StatusUnauthorized || w.Body.Len() != 0 {
		t.Errorf("unsigned: answered %d %q", w.Code, w.Body)
	}
}

func TestWebhookIsOffInSocketMode(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *slack.Config) { c.AppToken = appToken })
	if w := b.event(`{"type":"message"}`); w.Code != http.StatusNotFound {
		t.Errorf("answered %d", w.Code)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  slack.Config
		want string // empty: fine
	}{
		"socket mode":     {slack.Config{BotToken: botToken, AppToken: appToken}, ""},
		"over HTTP":       {slack.Config{BotToken: botToken, SigningSecret: secret}, ""},
		"no token":        {slack.Config{SigningSecret: secret}, "SLACK_BOT_TOKEN"},
		"app token twice": {slack.Config{BotToken: appToken, AppToken: appToken}, "SLACK_BOT_TOKEN"},
		"bot token twice": {slack.Config{BotToken: botToken, AppToken: botToken}, "SLACK_APP_TOKEN"},
		"no secret":       {slack.Config{BotToken: botToken}, "SLACK_SIGNING_SECRET"},
		"a short secret":  {slack.Config{BotToken: botToken, SigningSecret: "short"}, "SLACK_SIGNING_SECRET"},
		"a strange URL":   {slack.Config{BotToken: botToken, SigningSecret: secret, APIURL: "ftp://x"}, "SLACK_API_URL"},
	} {
		_, err := slack.New(tc.cfg)
		if tc.want == "" && err != nil || tc.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: the error contains a credential", name)
		}
	}
}

// BenchmarkWebhook measures what acknowledging costs besides the sink.
func BenchmarkWebhook(b *testing.B) {
	a, err := slack.New(slack.Config{BotToken: botToken, SigningSecret: secret, APIURL: "http://127.0.0.1:1/api"})
	if err != nil {
		b.Fatal(err)
	}
	hook := a.Webhook(&platformtest.Sink{})
	body := wrapped(`{"type":"message","channel":"C1","user":"U1","text":"not for the bot","ts":"10.1","blocks":[` + strings.Repeat(`{"type":"rich_text","elements":[]},`, 20) + `{}]}`)
	for b.Loop() {
		if w := serve(hook, signed("events", "application/json", body, time.Now())); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
