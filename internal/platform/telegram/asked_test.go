package telegram

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// What Telegram asks to wait is believed for a day at most, and where it is asked for
// messages, for an hour: nobody writes meanwhile to somebody who hears nothing.
func TestAnAbsurdWaitIsNotBelieved(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]time.Duration{-5: 0, 0: 0, 30: 30 * time.Second, 20_000: 20_000 * time.Second, 999_999_999: 24 * time.Hour, math.MaxInt: 24 * time.Hour} {
		err := classify(t.Context(), "sendMessage", &bot.TooManyRequestsError{Message: "x", RetryAfter: seconds}, &exchange.Call{})
		if got := exchange.RetryAfter(err); !fault.Is(err, fault.RateLimited) || got != max(want, time.Second) {
			t.Errorf("sending, %d seconds: %v, want %v", seconds, got, want)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = fmt.Fprintf(w, `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":%d}}`, seconds)
		}))
		t.Cleanup(server.Close)
		a, err := New(Config{Token: "1000:" + strings.Repeat("x", 35), APIURL: server.URL, Surroundings: platform.Surroundings{Observe: func(string) {}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.CloseIdle)
		r := &receiver{client: a.client}
		_, _, err = r.getUpdates(context.Background(), 0, 1, time.Second)
		if got := exchange.RetryAfter(err); !fault.Is(err, fault.RateLimited) || got != min(want, time.Hour) {
			t.Errorf("polling, %d seconds: %v, want %v: %v", seconds, got, min(want, time.Hour), err)
		}
	}
}
