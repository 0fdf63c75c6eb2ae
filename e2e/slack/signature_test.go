package slack_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emulated "remote-agent/internal/emulator/slack"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
)

// The example of docs.slack.dev, "Verifying requests from Slack": a slash command
// of 2018.
const (
	publishedSecret    = "8f742231b10e8888abcd99yyyzzz85a5"
	publishedTime      = 1531420618
	publishedTimestamp = "1531420618"
	publishedSignature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	publishedBody      = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
		"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
		"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
		"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

func TestPublishedSignature(t *testing.T) {
	t.Parallel()
	if got := emulated.Signature(publishedSecret, publishedTimestamp, []byte(publishedBody)); got != publishedSignature {
		t.Errorf("the emulator signs with %s", got)
	}
	for name, test := range map[string]struct {
		after                   time.Duration // it was signed
		secret, body, signature string
		refused                 bool
	}{
		"as published":      {0, publishedSecret, publishedBody, publishedSignature, false},
		"a little later":    {4 * time.Minute, publishedSecret, publishedBody, publishedSignature, false},
		"too late":          {6 * time.Minute, publishedSecret, publishedBody, publishedSignature, true},
		"from the future":   {-6 * time.Minute, publishedSecret, publishedBody, publishedSignature, true},
		"other body":        {0, publishedSecret, publishedBody + "&text=x", publishedSignature, true},
		"other secret":      {0, publishedSecret + "x", publishedBody, publishedSignature, true},
		"another signature": {0, publishedSecret, publishedBody, strings.Replace(publishedSignature, "a21", "a20", 1), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			// The clock of a bubble begins in 2000 and nobody has to wait for it.
			<-time.After(time.Until(time.Unix(publishedTime, 0).Add(test.after)))
			a, err := slack.New(slack.Config{BotToken: "xoxb-1-published", SigningSecret: test.secret})
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/slack/commands", strings.NewReader(test.body))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("X-Slack-Request-Timestamp", publishedTimestamp)
			req.Header.Set("X-Slack-Signature", test.signature)
			rec := httptest.NewRecorder()
			a.Webhook(&platformtest.Sink{}).ServeHTTP(rec, req)
			if refused := rec.Code == http.StatusUnauthorized; refused != test.refused {
				t.Errorf("%s: answered %d", name, rec.Code)
			}
		})
	}
}
