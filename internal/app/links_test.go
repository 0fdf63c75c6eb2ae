package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/metrics"
	"remote-agent/internal/web"
)

type hook struct{ http.Handler }

func (hook) MaxBody() int64 { return 7 }

func TestLinksKnowWhatCameAndWhatFailed(t *testing.T) {
	t.Parallel()
	var l links
	counted := metrics.New("")
	answers := func(status int) {
		h := l.watch("github", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }), counted)
		out := httptest.NewRecorder()
		h.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
		if out.Code != status {
			t.Errorf("the answer is %d, want %d", out.Code, status)
		}
	}
	for range maxHooks {
		answers(http.StatusAccepted)
	}
	answers(http.StatusUnauthorized)
	now := time.Now()
	l.connected("github", now)
	l.failed("github", fault.New(fault.Unavailable, "GitHub does not answer."), now)
	c := l.of("github")
	if c.Taken != maxHooks || c.Refused != 1 || len(c.Hooks) != maxHooks || c.Hooks[0].Status != http.StatusUnauthorized || c.Hooks[1].Status != http.StatusAccepted {
		t.Errorf("the calls: %+v", c)
	}
	page := httptest.NewRecorder()
	counted.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	if got := page.Body.String(); !strings.Contains(got, `bot_webhook_rejected_total{platform="github",reason="unauthorized"} 1`) || strings.Contains(got, `reason="accepted"`) {
		t.Errorf("the metrics: %s", got)
	}
	if !c.Since.Equal(now) || c.Error != "GitHub does not answer." || !c.ErrorAt.Equal(now) {
		t.Errorf("the connection: %+v", c)
	}
	c.Hooks[0].Status = 1 // is the caller's own
	if l.of("github").Hooks[0].Status == 1 || l.of("slack").Taken != 0 {
		t.Error("what is known was changed from outside")
	}
	for want, h := range map[int64]http.Handler{web.DefaultMaxBody: http.NotFoundHandler(), 7: hook{http.NotFoundHandler()}} {
		if got := l.watch("x", h, nil).(interface{ MaxBody() int64 }).MaxBody(); got != want { //nolint:forcetypeassert // it is what is tested
			t.Errorf("a body may have %d bytes, want %d", got, want)
		}
	}
}
