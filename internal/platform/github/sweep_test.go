package github

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
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
		case strings.HasSuffix(r.URL.Path, "/web"):
			_, _ = fmt.Fprint(w, "{}")
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

// TestALongListIsReadAgain: that its first page is as it was tells nothing of the others.
func TestALongListIsReadAgain(t *testing.T) {
	t.Parallel()
	begun := time.Now().UTC().Truncate(time.Second)
	now, issues := begun, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		if strings.HasSuffix(r.URL.Path, "/web") {
			_, _ = fmt.Fprint(w, "{}")
			return
		}
		var all []string
		for n := 1; strings.HasSuffix(r.URL.Path, "/web/issues") && n <= issues; n++ {
			at := begun.Add(time.Minute) // opened together
			if n > 150 {
				at = begun.Add(time.Hour)
			}
			if text := at.Format(time.RFC3339); text >= r.URL.Query().Get("since") {
				all = append(all, fmt.Sprintf(`{"number":%d,"state":"open","body":"@remote-agent hi","user":{"id":7,"login":"ann","type":"User"},"created_at":%q,"updated_at":%q}`, n, text, text))
			}
		}
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		all = all[min(len(all), (page-1)*pageSize):min(len(all), page*pageSize)]
		body := "[" + strings.Join(all, ",") + "]"
		etag := fmt.Sprintf("W/%q", fmt.Sprintf("%x", sha256.Sum256([]byte(body))))
		if w.Header().Set("Etag", etag); r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	a, err := New(Config{Token: "ghp_0123456789abcdef", Poll: true, APIURL: server.URL, Repositories: []string{"acme/web"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	sink := &platformtest.Sink{}
	for _, tt := range []struct {
		after  time.Duration
		issues int
	}{{0, 0}, {2 * time.Minute, 150}, {3 * time.Minute, 150}, {time.Hour + time.Minute, 151}} {
		now, issues = begun.Add(tt.after), tt.issues
		if err := a.poller.sweep(t.Context(), sink); err != nil {
			t.Fatal(err)
		}
		if n := len(sink.Events()); n != tt.issues {
			t.Errorf("%d events after %v, want %d", n, tt.after, tt.issues)
		}
	}
}

// TestARenamedRepositoryIsReadOn: what was said before the bot heard of the new name is found, and
// what it found under the old one is not found again.
func TestARenamedRepositoryIsReadOn(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]bool{"in GITHUB_REPOSITORIES": false, "listed by GitHub": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now().UTC().Truncate(time.Second)
			now, home := begun, "acme/old"
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", now.Format(http.TimeFormat))
				switch r.URL.Path {
				case "/user/repos":
					_, _ = fmt.Fprintf(w, `[{"id":9,"full_name":%q}]`, home)
				case "/repos/" + home:
					_, _ = fmt.Fprintf(w, `{"id":9,"full_name":%q}`, home)
				case "/repos/" + home + "/issues":
					var all []string
					for n := 1; n < 3; n++ { // the first is opened after a minute, the second after an hour
						at := begun.Add([]time.Duration{time.Minute, time.Hour}[n-1])
						if text := at.Format(time.RFC3339); !at.After(now) && text >= r.URL.Query().Get("since") {
							all = append(all, fmt.Sprintf(`{"number":%d,"state":"open","body":"@remote-agent hi","user":{"id":7,"login":"ann","type":"User"},"created_at":%q,"updated_at":%q}`, n, text, text))
						}
					}
					_, _ = fmt.Fprintf(w, "[%s]", strings.Join(all, ","))
				default:
					_, _ = fmt.Fprint(w, "[]")
				}
			}))
			t.Cleanup(server.Close)
			stored, sink := &memoryCursor{values: make(map[string]string)}, &platformtest.Sink{}
			sweep := func(age time.Duration, want ...string) {
				t.Helper()
				cfg := Config{Token: "ghp_0123456789abcdef", Poll: true, APIURL: server.URL, Surroundings: platform.Surroundings{Cursor: stored}}
				if !listed {
					cfg.Repositories = []string{home}
				}
				a, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer a.CloseIdle()
				now = begun.Add(age)
				if err := a.poller.sweep(t.Context(), sink); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, in := range sink.Events() {
					got = append(got, string(in.Event))
				}
				if !slices.Equal(got, want) {
					t.Errorf("after %v there are %q, want %q", age, got, want)
				}
			}
			sweep(0)
			sweep(2*time.Minute, "found:opened:acme/old#1")
			home = "acme/new"
			sweep(2*time.Hour, "found:opened:acme/old#1", "found:opened:acme/new#2")
			sweep(3*time.Hour, "found:opened:acme/old#1", "found:opened:acme/new#2")
		})
	}
}

// TestWhatOpensAConversationComesFirst: also while GitHub does not list issues.
func TestWhatOpensAConversationComesFirst(t *testing.T) {
	t.Parallel()
	begun := time.Now().UTC().Truncate(time.Second)
	now := begun
	const ann = `"user":{"id":7,"login":"ann","type":"User"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		at := begun.Add(time.Minute).Format(time.RFC3339)
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/web"):
			_, _ = fmt.Fprint(w, "{}")
		case now.Equal(begun) || strings.HasSuffix(path, "/pulls/comments"):
			_, _ = fmt.Fprint(w, "[]")
		case strings.HasSuffix(path, "/web/issues"):
			w.WriteHeader(http.StatusBadGateway)
		case strings.HasSuffix(path, "/issues/comments"):
			comment := `{"id":%d,"body":"@remote-agent and",%s,"created_at":%q,"updated_at":%q,"issue_url":"x/issues/%d"}`
			_, _ = fmt.Fprintf(w, "["+comment+","+comment+","+comment+"]", 11, ann, at, at, 1, 12, ann, at, at, 1, 13, ann, at, at, 2)
		case strings.HasSuffix(path, "/issues/2"): // an old one
			_, _ = fmt.Fprintf(w, `{"number":2,"state":"open","body":"@remote-agent old",%s,"created_at":%q,"updated_at":%q}`, ann, begun.Add(-time.Hour).Format(time.RFC3339), at)
		default:
			_, _ = fmt.Fprintf(w, `{"number":1,"state":"open","body":"@remote-agent hi",%s,"created_at":%q,"updated_at":%q}`, ann, at, at)
		}
	}))
	t.Cleanup(server.Close)
	a, err := New(Config{Token: "ghp_0123456789abcdef", Poll: true, APIURL: server.URL, Repositories: []string{"acme/web"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	sink := &platformtest.Sink{}
	for range 2 {
		if err := a.poller.sweep(t.Context(), sink); err != nil {
			t.Fatal(err)
		}
		now = begun.Add(2 * time.Minute)
	}
	var got []string
	for _, in := range sink.Events() {
		got = append(got, string(in.Event))
	}
	if want := []string{"found:opened:acme/web#1", "found:comment:11", "found:comment:12", "found:comment:13"}; !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

// TestAPullRequestThatFailsHoldsUpNoOther: what is behind one whose reviews cannot be read is
// found all the same, and its own are when they can, also after a restart.
func TestAPullRequestThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	begun := time.Now().UTC().Truncate(time.Second)
	now, failing, broken := begun, true, 0
	at := func(d time.Duration) string { return begun.Add(d).Format(time.RFC3339) }
	const ann = `"user":{"id":7,"login":"ann","type":"User"}`
	pull := func(n int) string {
		return fmt.Sprintf(`{"number":%d,"state":"open","body":"","pull_request":{},%s,"created_at":%q,"updated_at":%q}`, n, ann, at(-time.Hour), at(time.Minute))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/reviews") && failing:
			broken++
			w.WriteHeader(http.StatusBadGateway)
		case strings.HasSuffix(path, "/pulls/1/reviews"):
			_, _ = fmt.Fprintf(w, `[{"id":5,"state":"COMMENTED","body":"@remote-agent look",%s,"submitted_at":%q}]`, ann, at(time.Minute))
		case strings.HasSuffix(path, "/web"):
			_, _ = fmt.Fprint(w, "{}")
		case strings.HasSuffix(path, "/pulls/1"):
			_, _ = fmt.Fprint(w, `{"number":1,"base":{"repo":{"id":9}}}`)
		case strings.HasSuffix(path, "/web/issues") && !now.Equal(begun):
			_, _ = fmt.Fprintf(w, `[%s,{"number":2,"state":"open","body":"@remote-agent hi",%s,"created_at":%q,"updated_at":%q}]`, pull(1), ann, at(2*time.Minute), at(2*time.Minute))
		default:
			_, _ = fmt.Fprint(w, "[]")
		}
	}))
	t.Cleanup(server.Close)
	stored := &memoryCursor{values: make(map[string]string)}
	sink := &platformtest.Sink{}
	start := func() *Adapter {
		a, err := New(Config{Token: "ghp_0123456789abcdef", Poll: true, APIURL: server.URL, Repositories: []string{"acme/web"}, Surroundings: platform.Surroundings{Cursor: stored}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.CloseIdle)
		return a
	}
	a := start()
	sweep := func(age time.Duration, want ...string) {
		t.Helper()
		now = begun.Add(age)
		if err := a.poller.sweep(t.Context(), sink); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, in := range sink.Events() {
			got = append(got, string(in.Event))
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %v there are %q, want %q", age, got, want)
		}
	}
	const issue, review = "found:opened:acme/web#2", "found:review:5"
	sweep(0)
	sweep(3*time.Minute, issue)
	sweep(30*time.Minute, issue)
	if broken < 2 {
		t.Errorf("the reviews were asked for %d times", broken)
	}
	a = start()
	sink = &platformtest.Sink{} // which would know what it has: its events have the same ids
	sweep(40*time.Minute, issue)
	failing = false
	sweep(50*time.Minute, issue, review)
	sweep(60*time.Minute, issue, review)
	if got, _ := stored.Load(t.Context(), "sweep:acme/web:issues"); got != at(2*time.Minute) {
		t.Errorf("the position is %s", got)
	}
}

// TestAPullRequestWithoutItsRepository: an answer that lacks it is taken for a broken one.
func TestAPullRequestWithoutItsRepository(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"number":1}`) }))
	t.Cleanup(server.Close)
	a, err := New(Config{Token: "ghp_0123456789abcdef", Poll: true, APIURL: server.URL, Repositories: []string{"acme/web"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	in := messages.Inbound{
		Conversation: messages.ConversationKey{Platform: Name, ID: "acme/web#1"},
		Repository:   &messages.Repository{URL: server.URL + "/acme/web.git", ReadOnly: true},
	}
	if _, err := a.Locate(t.Context(), in); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it is %v", err)
	}
}

// roundTrip is a transport that answers by itself.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestManyRepositoriesAreReadLessOften: with more of them than can be asked about in time, half of
// what GitHub allows is left for answers, and an operator is told once.
func TestManyRepositoriesAreReadLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		cfg := Config{Token: "ghp_0123456789abcdef", Poll: true, Surroundings: platform.Surroundings{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		for n := range 500 {
			cfg.Repositories = append(cfg.Repositories, fmt.Sprint("acme/web", n))
		}
		a, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		a.client.http = exchange.Client(roundTrip(func(r *http.Request) *http.Response {
			asked.Add(1)
			body := "[]"
			if strings.Count(r.URL.Path, "/") == 3 {
				body = "{}"
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		if err := a.poller.run(ctx, &platformtest.Sink{}); err != nil {
			t.Fatal(err)
		}
		if n := asked.Load(); n < 4500 || n > 6500 { // it would take 8,000
			t.Errorf("GitHub was asked %d times in a quarter of an hour", n)
		}
		if told := strings.Count(log.String(), "GITHUB_REPOSITORIES"); told != 1 {
			t.Errorf("it was told %d times", told)
		}
	})
}
