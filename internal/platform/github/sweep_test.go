package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/platform/platformtest"
)

// TestWhatIsTooYoungIsLookedAtLater: where there are webhooks a sweep leaves alone what may
// be on its way, and looks again although the list has not changed since.
func TestWhatIsTooYoungIsLookedAtLater(t *testing.T) {
	t.Parallel()
	opened := time.Now().UTC().Truncate(time.Second)
	now := opened
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		w.Header().Set("Etag", `"as it is"`)
		switch {
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		case strings.HasSuffix(r.URL.Path, "/web/issues"):
			at := opened.Format(time.RFC3339)
			_, _ = fmt.Fprintf(w, `[{"number":1,"state":"open","body":"@remote-agent hi","user":{"id":7,"login":"ann","type":"User"},"created_at":%q,"updated_at":%q}]`, at, at)
		default:
			_, _ = fmt.Fprint(w, "[]")
		}
	}))
	t.Cleanup(server.Close)
	a, err := New(Config{Token: "ghp_0123456789abcdef", WebhookSecret: strings.Repeat("x", minSecret), APIURL: server.URL, Repositories: []string{"acme/web"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	a.poller.grace = 10 * time.Second
	sink := &platformtest.Sink{}
	for _, tt := range []struct {
		age  time.Duration
		want int
	}{{0, 0}, {5 * time.Second, 0}, {20 * time.Second, 1}, {40 * time.Second, 1}} {
		now = opened.Add(tt.age)
		if err := a.poller.sweep(t.Context(), sink); err != nil {
			t.Fatal(err)
		}
		if n := len(sink.Events()); n != tt.want {
			t.Errorf("%d events after %v, want %d", n, tt.age, tt.want)
		}
	}
}
