package modelhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver takes every document for an error that the API words, or none.
type receiver struct {
	worded  bool
	refused []int
}

func (r *receiver) Refused(status int, _ http.Header, _ []byte) bool {
	r.refused = append(r.refused, status)
	return r.worded
}

func (r *receiver) Stream(body io.ReadCloser) io.ReadCloser { return body }

// answering answers every request in the same way.
type answering struct {
	status int
	kind   string
	body   io.Reader
}

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {a.kind}, "Retry-After": {"7"}, "Location": {"/elsewhere"}}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(a.body), Request: req}, nil
}

// ask sends a request in an exchange and reads its answer.
func ask(t *testing.T, r *receiver, a answering) (*Exchange, error) {
	t.Helper()
	x := NewExchange(time.Minute, time.Minute, r)
	ctx := x.Start(t.Context())
	defer x.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Client(&http.Client{Transport: a}).Do(req)
	if err != nil {
		return x, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return x, err
}

func TestClientTellsStreamsFromErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answer  answering
		worded  bool
		refused bool
		err     error
	}{
		{"a stream", answering{200, "text/event-stream", strings.NewReader("data: x")}, false, false, nil},
		{"a stream without a type", answering{200, "", strings.NewReader("data: x")}, false, false, nil},
		{"an error", answering{429, "application/json", strings.NewReader("{}")}, false, true, nil},
		{"an error with status 200", answering{200, "application/json; charset=utf-8", strings.NewReader("{}")}, true, true, nil},
		{"a page", answering{200, "text/html", strings.NewReader("<p>")}, false, true, ErrNotStream},
		{"a redirect", answering{302, "text/html", strings.NewReader("")}, false, false, ErrRedirect},
		{"an endless stream", answering{200, "text/event-stream", endless{}}, false, false, ErrTooLong},
		{"a broken error", answering{500, "text/plain", iotest.ErrReader(io.ErrUnexpectedEOF)}, false, false, io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{worded: c.worded}
			x, err := ask(t, r, c.answer)
			if !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if refused := len(r.refused) > 0; refused != c.refused {
				t.Errorf("refused %v, want %v", r.refused, c.refused)
			}
			if x.RetryAfter != 7*time.Second {
				t.Errorf("RetryAfter %v", x.RetryAfter)
			}
		})
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestExchangeEndsASilentRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		use  func(x *Exchange)
		want time.Duration // until the request ends
	}{
		{"silence", func(x *Exchange) { x.Alive() }, time.Minute},
		{"silence before the first byte", func(*Exchange) {}, 5 * time.Minute},
		{"alive", func(x *Exchange) { time.Sleep(50 * time.Second); x.Alive() }, 110 * time.Second},
		{"pause", func(x *Exchange) { x.Pause(); time.Sleep(time.Hour); x.Alive() }, time.Hour + time.Minute},
		{"a shorter timeout", func(x *Exchange) { x.SetIdle(time.Second); x.Alive() }, time.Second},
		{"the same timeout", func(x *Exchange) { x.Alive(); time.Sleep(time.Second); x.SetIdle(time.Minute) }, time.Minute},
		{"settled", func(x *Exchange) { x.Settle(time.Second); time.Sleep(time.Second / 2); x.Alive() }, time.Second},
		{"settled, but not later than the timeout", func(x *Exchange) { x.Settle(time.Hour) }, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x, start := NewExchange(5*time.Minute, time.Minute, &receiver{}), time.Now()
				ctx := x.Start(t.Context())
				defer x.Stop()
				c.use(x)
				<-ctx.Done()
				if got := time.Since(start); got != c.want || !errors.Is(context.Cause(ctx), ErrIdle) {
					t.Errorf("ended after %v by %v, want %v", got, context.Cause(ctx), c.want)
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After", " 2.5 ", 2500 * time.Millisecond},
		{"Retry-After", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"Retry-After", now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"Retry-After", "1e300", MaxWait},
		{"Retry-After", "-1", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
		{"X-Other", "5", 0},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%s: %s: %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestResetAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		headers map[string]string
		want    time.Duration
	}{
		"Nothing":  {nil, 0},
		"OpenAI":   {map[string]string{"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-requests": "5"}, 6 * time.Minute},
		"Date":     {map[string]string{"anthropic-ratelimit-tokens-reset": now.Add(3 * time.Hour).Format(time.RFC3339), "anthropic-ratelimit-tokens-remaining": "0"}, 3 * time.Hour},
		"Longest":  {map[string]string{"anthropic-ratelimit-tokens-reset": now.Add(time.Hour).Format(time.RFC3339), "anthropic-ratelimit-requests-reset": now.Add(2 * time.Hour).Format(time.RFC3339)}, 2 * time.Hour},
		"Unified":  {map[string]string{"anthropic-ratelimit-unified-reset": strconv.FormatInt(now.Add(4*time.Hour).Unix(), 10)}, 4 * time.Hour},
		"Millis":   {map[string]string{"x-ratelimit-reset": strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10), "x-ratelimit-remaining": "0"}, time.Minute},
		"Seconds":  {map[string]string{"ratelimit-reset": "30"}, 30 * time.Second},
		"Over":     {map[string]string{"ratelimit-reset": "-30"}, 0},
		"TooLong":  {map[string]string{"x-ratelimit-reset": "9e99"}, MaxWait},
		"Nonsense": {map[string]string{"x-ratelimit-reset": "soon"}, 0},
	} {
		h := http.Header{}
		for k, v := range c.headers {
			h.Set(k, v)
		}
		if got := resetAfter(h, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAddressNamesTheOption(t *testing.T) {
	t.Parallel()
	api := API{Prefix: "SOME", Example: "https://api.example.com"}
	if got, err := api.Address(" https://host/v1// "); got != "https://host/v1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"host", "ftp://host", "https://", "https://:443/v1", "https://u:secret@host", "https://host?a=b", "https://host#x", "://secret"} {
		_, err := api.Address(bad)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "SOME_BASE_URL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := api.Check("a b", "", ""); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "SOME_API_KEY") {
		t.Error(err)
	}
}
