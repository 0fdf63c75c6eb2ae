package telegram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
	"remote-agent/internal/platform/platformtest"
)

// theHook is how Telegram writes the address of the webhook, whatever the case of the host was.
const theHook = "https://bot.example.com/webhooks/telegram"

// hookAPI is a Bot API that knows where it delivers to.
type hookAPI struct {
	mu      sync.Mutex // guards all below
	url     string
	failure string // of the last delivery
	since   time.Time
	refuses int // how many calls of setWebhook fail for want of the host's address
	set     int
}

// RoundTrip implements http.RoundTripper.
func (h *hookAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	status, body := http.StatusOK, `{"ok":true,"result":true}`
	switch path.Base(r.URL.Path) {
	case "getMe":
		body = `{"ok":true,"result":{"id":4711,"is_bot":true,"first_name":"A","username":"acme_bot"}}`
	case "setWebhook":
		h.set++
		if h.set <= h.refuses {
			status, body = http.StatusBadRequest, `{"ok":false,"error_code":400,"description":"Bad Request: bad webhook: Failed to resolve host: Temporary failure in name resolution"}`
			break
		}
		h.url = theHook
	case "getWebhookInfo":
		body = fmt.Sprintf(`{"ok":true,"result":{"url":%q,"has_custom_certificate":false,"pending_update_count":0}}`, h.url)
		if h.failure != "" {
			body = fmt.Sprintf(`{"ok":true,"result":{"url":%q,"has_custom_certificate":false,"pending_update_count":3,"last_error_date":%d,"last_error_message":%q}}`,
				h.url, h.since.Unix(), h.failure)
		}
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (h *hookAPI) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func hooked(t *testing.T, api *hookAPI, test func(a *Adapter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Config{
			Token: "4711:AAHsecretsecretsecret", Webhook: true, WebhookSecret: "secretsecretsecret",
			Surroundings: platform.Surroundings{PublicURL: "https://Bot.Example.com"},
		})
		if err != nil {
			t.Fatal(err)
		}
		a.client.http.Transport = exchange.Client(api).Transport
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx, &platformtest.Sink{}) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		test(a)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A program that polls with the same token takes the webhook down, and leaves a bot behind
// that hears nothing. It is told as long as that goes on.
func TestAWebhookThatIsTakenAwayIsSetAgain(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]string{"Down": "", "Elsewhere": "https://other.example/hook"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &hookAPI{}
			hooked(t, api, func(a *Adapter) {
				if err := a.Receiving(); err != nil || api.set != 1 {
					t.Errorf("it is heard: %v, set %d times", err, api.set)
				}
				for range 4 {
					api.do(func() { api.url = elsewhere })
					time.Sleep(watchEvery)
					synctest.Wait()
					if err := a.Receiving(); !fault.Is(err, fault.Conflict) || api.url != theHook {
						t.Errorf("it delivers to %q, and what is told is %v", api.url, err)
					}
				}
				time.Sleep(watchEvery)
				synctest.Wait()
				if err := a.Receiving(); err != nil || api.set != 5 {
					t.Errorf("it is heard again: %v, set %d times", err, api.set)
				}
			})
		})
	}
}

// What Telegram cannot deliver is told, as long as it tries.
func TestDeliveriesThatFailAreTold(t *testing.T) {
	t.Parallel()
	api := &hookAPI{}
	hooked(t, api, func(a *Adapter) {
		api.do(func() { api.failure, api.since = "Wrong response from the webhook: 502 Bad Gateway", time.Now() })
		time.Sleep(watchEvery)
		synctest.Wait()
		if err := a.Receiving(); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err), "`bot doctor`") {
			t.Errorf("what is told is %v", err)
		}
		time.Sleep(5 * watchEvery)
		synctest.Wait()
		if err := a.Receiving(); err != nil {
			t.Errorf("what has failed before is told: %v", err)
		}
	})
}

// The address of a host may be unknown to Telegram for a moment.
func TestAHostThatIsNotFoundIsTriedAgain(t *testing.T) {
	t.Parallel()
	api := &hookAPI{refuses: 3}
	hooked(t, api, func(*Adapter) {
		if api.url == "" || api.set != 4 {
			t.Errorf("it delivers to %q after %d tries", api.url, api.set)
		}
	})
}
