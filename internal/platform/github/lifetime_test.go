package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTokensAreReplacedBeforeTheirEnd: what git is given is good for some minutes more, by
// GitHub's clock.
func TestTokensAreReplacedBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ ahead, life, kept time.Duration }{
		"an hour":                     {0, time.Hour, 55 * time.Minute},
		"little":                      {0, 8 * time.Minute, 4 * time.Minute},
		"GitHub's clock is ahead":     {time.Hour, time.Hour, 55 * time.Minute},
		"GitHub's clock is far back":  {-3 * time.Hour, time.Hour, 55 * time.Minute},
		"it has ended when it begins": {0, -time.Minute, -30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				theirs := time.Now().Add(tt.ahead).UTC()
				w.Header().Set("Date", theirs.Format(http.TimeFormat))
				w.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(w, `{"token":"ghs_0123456789abcdef","expires_at":%q}`, theirs.Add(tt.life).Format(time.RFC3339))
			}))
			t.Cleanup(server.Close)
			c := newClient(Config{AppID: "4711", APIURL: server.URL, Observe: func(string) {}})
			t.Cleanup(c.http.CloseIdleConnections)
			c.assertion.value, c.assertion.until = "x.y.z", time.Now().Add(time.Hour)
			_, until, err := c.mint(t.Context(), 5, nil)
			if kept := time.Until(until); err != nil || (kept-tt.kept).Abs() > 20*time.Second {
				t.Errorf("kept for %v, want %v: %v", kept, tt.kept, err)
			}
		})
	}
}

// TestAYesIsRememberedForAMinuteAtMost, however long it was configured: what somebody may do
// can be taken away.
func TestAYesIsRememberedForAMinuteAtMost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"permission":"write","user":{"id":7}}`)
	}))
	t.Cleanup(server.Close)
	a, err := New(Config{Token: "ghp_0123456789abcdef", WebhookSecret: strings.Repeat("x", minSecret), APIURL: server.URL, PermissionTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	if ok, err := a.mayWrite(t.Context(), "acme/web", 7, "ann"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	until, ok := a.admits.Get(memoryOf("acme/web", "7"))
	if left := time.Until(until); !ok || left <= 0 || left > time.Minute {
		t.Errorf("remembered for %v", left)
	}
}
