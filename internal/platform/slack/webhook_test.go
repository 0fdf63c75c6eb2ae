package slack_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator/forged"
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

// What the emulator knows of bad signatures, the times that are just outside of the
// window, and a body that was changed on the way: nobody hears why it is refused.
func TestBadSignatures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1"}`)
	refused := func(name string, header http.Header, body string) {
		for _, path := range []string{"events", "commands", "interactions"} {
			r := httptest.NewRequest(http.MethodPost, "/webhooks/slack/"+path, strings.NewReader(body))
			r.Header = header.Clone()
			r.Header.Set("Content-Type", "application/json")
			if w := serve(b.hook, r); w.Code != http.StatusUnauthorized || w.Body.Len() != 0 {
				t.Errorf("%s: %s: answered %d %q", name, path, w.Code, w.Body)
			}
		}
	}
	now := time.Now()
	good := emulator.Sign(secret, now, []byte(body))
	for name, header := range forged.Slack(secret, now, []byte(body)) {
		refused(name, header, body)
	}
	refused("just too old", emulator.Sign(secret, now.Add(-301*time.Second), []byte(body)), body)
	refused("just too early", emulator.Sign(secret, now.Add(302*time.Second), []byte(body)), body)
	refused("another body", good, body+" ")
	refused("no body", good, "")
	if len(b.sink.Events())+len(b.sink.Kept()) != 0 {
		t.Error("something was stored")
	}
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
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options is %q", got)
	}
	for name, other := range map[string][3]string{
		"another type": {"events", "application/json", `{"challenge":"abc","type":"event_callback","text":"url_verification"}`},
		"too long":     {"events", "application/json", strings.Replace(body, "abc", strings.Repeat("abc", 400), 1)},
		"elsewhere":    {"commands", "application/x-www-form-urlencoded", body},
	} {
		if w := b.deliver(other[0], other[1], other[2]); strings.Contains(w.Body.String(), "abc") {
			t.Errorf("%s: answered %d %q", name, w.Code, w.Body)
		}
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
		"a URL of nobody": {slack.Config{BotToken: botToken, SigningSecret: secret, APIURL: "https://:443/api"}, "SLACK_API_URL"},
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
