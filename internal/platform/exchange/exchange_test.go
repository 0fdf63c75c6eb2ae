package exchange_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post makes a call as an SDK does: it looks at the status, and reads the body of an
// answer that it takes for good unless ctx says so.
func post(ctx context.Context, client *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("hello"))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("the SDK's own error")
	}
	if ctx.Value(unread{}) != nil {
		return nil
	}
	_, err = io.ReadAll(resp.Body)
	return err
}

// unread makes post leave the body.
type unread struct{}

// server answers with h until the test is over.
func server(t *testing.T, h http.HandlerFunc) (client *http.Client, address string) {
	t.Helper()
	s := httptest.NewServer(h)
	client = exchange.Client(nil)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return client, s.URL
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func TestWhetherACallMayHaveWorked(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(code)
		}
	}
	for name, test := range map[string]struct {
		handler    http.HandlerFunc
		idempotent bool
		refused    bool // before it is sent
		status     int
		uncertain  bool
	}{
		"no answer":            {handler: func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); hangUp(w) }, uncertain: true},
		"no answer, no harm":   {handler: func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); hangUp(w) }, idempotent: true},
		"never sent":           {handler: status(200), refused: true},
		"a gateway":            {handler: status(502), status: 502, uncertain: true},
		"a failure on the way": {handler: status(500), status: 500, uncertain: true},
		"busy":                 {handler: status(503), status: 503},
		"refused":              {handler: status(403), status: 403},
		"elsewhere":            {handler: status(302), status: 302},
		"cut off": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			http.NewResponseController(w).Flush() //nolint:errcheck // the connection ends anyway
			hangUp(w)
		}, status: 200, uncertain: true},
		"too long": {handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("x", 2000)))
		}, status: 200, uncertain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, address := server(t, test.handler)
			call := &exchange.Call{Idempotent: test.idempotent, MaxAnswer: 1000}
			if test.refused {
				call.Admit = func(*http.Request) error { return exchange.Limited(time.Minute) }
			}
			err := post(call.Context(t.Context()), client, address)
			if err == nil {
				t.Fatal("it worked")
			}
			f := call.Failure(t.Context(), "posting", err)
			if f.Uncertain != test.uncertain || call.Status() != test.status {
				t.Errorf("uncertain %v, status %d: %v", f.Uncertain, call.Status(), f)
			}
			want := fault.Unavailable
			if test.refused {
				want = fault.RateLimited
			}
			if f.Kind != want {
				t.Errorf("kind %s, want %s", f.Kind, want)
			}
			if name == "too long" && !errors.Is(err, exchange.ErrTooLong) {
				t.Errorf("too long: %v", err)
			}
		})
	}
}

// A connection that is refused has certainly done nothing, and what a call's
// earlier request has done does not count for the later one.
func TestOnlyTheLastRequestCounts(t *testing.T) {
	t.Parallel()
	client, address := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	call := &exchange.Call{}
	ctx := call.Context(t.Context())
	if err := post(ctx, client, address); err != nil || !call.Wrote() || call.Status() != http.StatusOK {
		t.Fatalf("wrote %v, status %d: %v", call.Wrote(), call.Status(), err)
	}
	err := post(ctx, client, gone.URL)
	if f := call.Failure(ctx, "posting", err); err == nil || f.Uncertain || call.Wrote() || call.Status() != 0 {
		t.Errorf("a refused connection: wrote %v, status %d, %v", call.Wrote(), call.Status(), f)
	}
}

func TestEveryBodyIsReadSoThatConnectionsLive(t *testing.T) {
	t.Parallel()
	var from sync.Map
	client, address := server(t, func(w http.ResponseWriter, r *http.Request) {
		from.Store(r.RemoteAddr, true)
		_, _ = w.Write([]byte(strings.Repeat("x", 100_000)))
	})
	for range 5 {
		ctx := context.WithValue(t.Context(), unread{}, true)
		if err := post((&exchange.Call{}).Context(ctx), client, address); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	from.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections for calls one after the other", n)
	}
}

// What came of an answer that is too long can be read.
func TestTheBeginningOfALongAnswer(t *testing.T) {
	t.Parallel()
	client, address := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") })
	for limit, want := range map[int64]string{9: "012345678", 10: "0123456789"} {
		call := &exchange.Call{MaxAnswer: limit}
		req, err := http.NewRequestWithContext(call.Context(t.Context()), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != want || errors.Is(err, exchange.ErrTooLong) != (limit == 9) {
			t.Errorf("at most %d: %q, %v", limit, got, err)
		}
	}
}

func TestHeadersStayAtHome(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	record := func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + " " + r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/renamed":
			http.Redirect(w, r, "/now", http.StatusTemporaryRedirect)
		case "/found":
			http.Redirect(w, r, "/never", http.StatusFound)
		case "/away":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
		}
	}
	client, address := server(t, record)
	other := httptest.NewServer(http.HandlerFunc(record))
	t.Cleanup(other.Close)
	call := func() *exchange.Call {
		return &exchange.Call{Header: http.Header{"Authorization": {"Bearer secret"}}}
	}
	if err := post(call().Context(t.Context()), client, address+"/renamed"); err != nil {
		t.Error(err)
	}
	if err := post(call().Context(t.Context()), client, address+"/away?to="+url.QueryEscape(other.URL+"/x")); err == nil {
		t.Error("a redirect to elsewhere was followed")
	}
	if err := post(call().Context(t.Context()), client, address+"/found"); err == nil {
		t.Error("reading what a redirect names was taken for posting it")
	}
	// Even one call of an SDK that asks two hosts.
	two := call()
	for _, to := range []string{address + "/first", other.URL + "/second"} {
		if err := post(two.Context(t.Context()), client, to); err != nil {
			t.Error(err)
		}
	}
	other.CloseClientConnections()
	close(seen)
	var got []string
	for s := range seen {
		got = append(got, s)
	}
	want := []string{"/renamed Bearer secret", "/now Bearer secret", "/away Bearer secret", "/found Bearer secret", "/first Bearer secret", "/second "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "soon": 0, "99999999999": 24 * time.Hour,
		"Mon, 01 Jan 1990 00:00:00 GMT": 0, "Fri, 01 Jan 2999 00:00:00 GMT": 24 * time.Hour,
	} {
		client, address := server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		call := &exchange.Call{}
		err := post(call.Context(t.Context()), client, address)
		if f := call.Failure(t.Context(), "posting", err); f.RetryAfter != want {
			t.Errorf("%q: %v, want %v", value, f.RetryAfter, want)
		}
	}
}

func TestWhoEndsACallIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := exchange.Client(&transport{answer: func(req *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(req.Context()).WroteRequest(httptrace.WroteRequestInfo{})
			<-req.Context().Done()
			return nil, req.Context().Err()
		}})
		begin := time.Now()
		call := &exchange.Call{Timeout: 20 * time.Millisecond}
		err := post(call.Context(t.Context()), client, "http://x.example/")
		if f := call.Failure(t.Context(), "posting", err); f.Kind != fault.Unavailable || !f.Uncertain || !errors.Is(f, context.DeadlineExceeded) || time.Since(begin) != call.Timeout {
			t.Errorf("its own timeout: %v after %v, uncertain %v", f, time.Since(begin), f.Uncertain)
		}
		ctx, cancel := context.WithCancel(t.Context())
		call = &exchange.Call{Admit: func(*http.Request) error { cancel(); return nil }}
		err = post(call.Context(ctx), client, "http://x.example/")
		if f := call.Failure(ctx, "posting", err); f.Kind != fault.Canceled {
			t.Errorf("canceled: %v", f)
		}
	})
}

func TestErrorsHoldNoCredentials(t *testing.T) {
	t.Parallel()
	scrub := exchange.NewScrubber(regexp.MustCompile(`gh[a-z]_[A-Za-z0-9]{16,}`), "123:se/cret+token", "short", "")
	err := scrub.Error(&url.Error{Op: "Post", URL: "https://x/bot123:se/cret+token/sendMessage", Err: context.DeadlineExceeded})
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "https") {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]string{
		"at /bot123:se/cret+token/x":                 "at /bot***/x",
		"at " + url.QueryEscape("123:se/cret+token"): "at ***",
		"at " + url.PathEscape("123:se/cret+token"):  "at ***",
		"with ghs_0123456789abcdef01":                "with ***",
		"short":                                      "short",
	} {
		if got := scrub.Text(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := (*exchange.Scrubber)(nil).Text(strings.Repeat("ä", 400)); len(got) != 500 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestRequestsWithoutACallPassUnchanged(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	client, address := server(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-more
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	one := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, one); err != nil || string(one) != "x" {
		t.Errorf("%q, %v", one, err)
	}
	close(more)
}

func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &exchange.Budget{Platform: "X", MaxQueue: 20 * time.Second}
		chat := exchange.Share{Bucket: "chat", Every: time.Second, Burst: 10, Keep: 4}
		all := exchange.Share{Bucket: "all", Every: time.Second / 10, Burst: 100, Take: 5, Keep: 40}
		dropped := 0
		for b.Try(t.Context(), "a", chat, all) == nil {
			dropped++
		}
		if b.Try(t.Context(), "a", exchange.Share{Bucket: "kept", Every: time.Second, Burst: 10, Keep: 10}) == nil {
			t.Error("took what was to be kept")
		}
		if dropped != 6 {
			t.Errorf("%d of 10 without waiting, and 4 are reserved", dropped)
		}
		begin := time.Now()
		for range 24 { // four at once, then twenty that wait a second each
			if err := b.Wait(t.Context(), "a", chat, all); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < 20*time.Second-time.Millisecond || took > 21*time.Second {
			t.Errorf("took %v", took)
		}
		if err := b.Wait(t.Context(), "a", exchange.Share{Bucket: "none"}); err != nil {
			t.Errorf("without a limit: %v", err)
		}
	})
}

func TestBudgetTakesNothingForWhatIsNotDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &exchange.Budget{Platform: "X", MaxQueue: 20 * time.Second}
		slow := exchange.Share{Bucket: "slow", Every: time.Minute, Burst: 1}
		fast := exchange.Share{Bucket: "fast", Every: time.Second, Burst: 1}
		if err := b.Wait(t.Context(), "a", fast, slow); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for range 3 { // the queue is too long each time, and does not grow
			err := b.Wait(t.Context(), "a", fast, slow)
			if after := exchange.RetryAfter(err); !fault.Is(err, fault.RateLimited) || after != 50*time.Second {
				t.Errorf("%v, after %v", err, after)
			}
		}
		if err := b.Try(t.Context(), "a", fast); err != nil {
			t.Errorf("what was given back: %v", err)
		}
		// A caller that will not be there for its turn hears of it at once.
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if err := b.Wait(ctx, "a", fast); !fault.Is(err, fault.RateLimited) || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// Who gives up while it waits leaves its turn to others.
func TestBudgetGivesBackWhatWasWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &exchange.Budget{Platform: "X"}
		slow := exchange.Share{Bucket: "slow", Every: time.Minute, Burst: 1}
		if err := b.Wait(t.Context(), "a", slow); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		if err := b.Wait(ctx, "a", slow); !fault.Is(err, fault.Canceled) || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := b.Wait(t.Context(), "a", slow); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("the next one: %v after %v, want a minute", err, time.Since(begin))
		}
	})
}

func TestBudgetObeysRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &exchange.Budget{Platform: "X"}
		for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			if got := b.Refused("a", 0); got != want {
				t.Errorf("silent for %v, want %v", got, want)
			}
		}
		b.Calm("a")
		if got := b.Refused("a", 0); got != time.Minute {
			t.Errorf("after a success silent for %v", got)
		}
		if err := b.Wait(t.Context(), "b"); err != nil {
			t.Errorf("somebody else: %v", err)
		}
		if err := b.Wait(t.Context(), "a"); exchange.RetryAfter(err) != 4*time.Minute {
			t.Errorf("Wait: %v", err)
		}
		time.Sleep(4*time.Minute - time.Second)
		if err := b.Try(t.Context(), "a"); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Try: %v", err)
		}
		begin := time.Now()
		if err := b.Wait(t.Context(), "a"); err != nil || time.Since(begin) != time.Second {
			t.Errorf("a short silence: %v after %v", err, time.Since(begin))
		}
		if got := b.Refused("a", 7*time.Second); got != 7*time.Second {
			t.Errorf("the platform said 7 s, silent for %v", got)
		}
	})
}

// sdkForm posts a form as SDKs do: parts written into a pipe, so of unknown length.
func sdkForm(ctx context.Context, client *http.Client, address string, parts ...string) error {
	r, w := io.Pipe()
	go func() {
		for _, p := range parts {
			if _, err := io.WriteString(w, p); err != nil {
				return // the call is over
			}
		}
		_ = w.Close()
	}()
	defer r.Close() //nolint:errcheck // a pipe
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, r)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func TestSmallFormsAreSentWithTheirLengthAndLongOnesAsAStream(t *testing.T) {
	t.Parallel()
	type body struct {
		length int64
		text   string
	}
	for name, test := range map[string]struct {
		parts  []string
		length int64
	}{
		"nothing":       {nil, 0},
		"a small form":  {[]string{"one ", "two ", "three"}, 13},
		"the longest":   {[]string{strings.Repeat("x", 32<<10)}, 32 << 10},
		"one byte more": {[]string{strings.Repeat("x", 32<<10), "y"}, -1},
		"a file":        {[]string{"head", strings.Repeat("x", 100_000), "end"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan body, 1)
			client, address := server(t, func(_ http.ResponseWriter, r *http.Request) {
				all, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got <- body{length: r.ContentLength, text: string(all)}
			})
			if err := sdkForm((&exchange.Call{}).Context(t.Context()), client, address, test.parts...); err != nil {
				t.Fatal(err)
			}
			if g, want := <-got, (body{test.length, strings.Join(test.parts, "")}); g != want {
				t.Errorf("%d bytes came with the length %d, want %d bytes and %d", len(g.text), g.length, len(want.text), want.length)
			}
		})
	}
}

func TestABodyThatFailsIsNotSent(t *testing.T) {
	t.Parallel()
	client, address := server(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	r, w := io.Pipe()
	broken := errors.New("no form can be made of this")
	go func() {
		_, _ = io.WriteString(w, "half")
		_ = w.CloseWithError(broken)
	}()
	call := &exchange.Call{}
	req, err := http.NewRequestWithContext(call.Context(t.Context()), http.MethodPost, address, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.Do(req); !errors.Is(err, broken) || call.Wrote() { //nolint:bodyclose // there is none
		t.Errorf("got %v, and written is %v", err, call.Wrote())
	}
}

// TestABodyThatNeverEndsEndsWithItsCall: whoever writes it into the pipe has stopped.
func TestABodyThatNeverEndsEndsWithItsCall(t *testing.T) {
	t.Parallel()
	client, address := server(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	r, w := io.Pipe()
	defer w.Close() //nolint:errcheck // a pipe
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(w, "half")
		cancel()
	}()
	req, err := http.NewRequestWithContext((&exchange.Call{}).Context(ctx), http.MethodPost, address, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.Do(req); !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is none
		t.Errorf("got %v, want that it was canceled", err)
	}
	if _, err := io.WriteString(w, "more"); err == nil {
		t.Error("somebody reads on")
	}
}

func TestBudgetSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &exchange.Budget{Platform: "X"}
		if h := b.Headroom(); h.Left != 1 || h.Silent != 0 || !h.Until.IsZero() {
			t.Errorf("at the start: %+v", h)
		}
		half, full := exchange.Share{Bucket: "a", Every: time.Hour, Burst: 4, Take: 2}, exchange.Share{Bucket: "b", Every: time.Hour, Burst: 10}
		if err := b.Wait(t.Context(), "chat", half, full); err != nil {
			t.Fatal(err)
		}
		b.Refused("chat", time.Minute)
		b.Refused("other", time.Hour)
		until := time.Now().Add(time.Hour)
		if h := b.Headroom(); h.Left != 0.5 || h.Silent != 2 || !h.Until.Equal(until) {
			t.Errorf("after a call and two refusals: %+v", h)
		}
		time.Sleep(2 * time.Minute)
		if h := b.Headroom(); h.Silent != 1 || !h.Until.Equal(until) {
			t.Errorf("two minutes later: %+v", h)
		}
		time.Sleep(24 * time.Hour)
		if h := b.Headroom(); h.Left != 1 || h.Silent != 0 || !h.Until.IsZero() {
			t.Errorf("a day later: %+v", h)
		}
	})
}
