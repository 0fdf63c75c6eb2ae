package github

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
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
			c := newClient(Config{AppID: "4711", APIURL: server.URL, Surroundings: platform.Surroundings{Observe: func(string) {}}})
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

// TestHowLongALimitHolds: the time that GitHub names is by its clock, and is that of the
// limit that was reached.
func TestHowLongALimitHolds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ahead     time.Duration
		remaining int
		want      time.Duration
	}{
		"the hour's":              {0, 0, 20 * time.Minute},
		"GitHub's clock is back":  {-2 * time.Hour, 0, 20 * time.Minute},
		"GitHub's clock is ahead": {2 * time.Hour, 0, 20 * time.Minute},
		"another one":             {0, 4000, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limited := false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				theirs := time.Now().Add(tt.ahead).UTC()
				w.Header().Set("Date", theirs.Format(http.TimeFormat))
				if limited {
					w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(tt.remaining))
					w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(theirs.Add(20*time.Minute).Unix(), 10))
					w.WriteHeader(http.StatusForbidden)
					_, _ = fmt.Fprint(w, `{"message":"You have exceeded a secondary rate limit."}`)
					return
				}
				_, _ = fmt.Fprint(w, "{}")
			}))
			t.Cleanup(server.Close)
			c := newClient(Config{Token: "ghp_0123456789abcdef", APIURL: server.URL, Surroundings: platform.Surroundings{Observe: func(string) {}}})
			t.Cleanup(c.http.CloseIdleConnections)
			if _, err := c.askRepository(t.Context(), "acme/web"); err != nil {
				t.Fatal(err)
			}
			limited = true
			_, err := c.askRepository(t.Context(), "acme/web")
			if after := exchange.RetryAfter(err); !fault.Is(err, fault.RateLimited) || (after-tt.want).Abs() > 20*time.Second {
				t.Errorf("to wait for %v, want %v: %v", after, tt.want, err)
			}
		})
	}
}

// TestWhereTheAppIsNoLongerInstalled: what was known of an installation that is gone is
// forgotten, however that is heard of.
func TestWhereTheAppIsNoLongerInstalled(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	c := newClient(Config{AppID: "4711", APIURL: server.URL, Surroundings: platform.Surroundings{Observe: func(string) {}}})
	t.Cleanup(c.http.CloseIdleConnections)
	c.assertion.value, c.assertion.until = "x.y.z", time.Now().Add(time.Hour)
	home := func() int64 {
		id, _ := c.homes.Get("acme/web")
		return id
	}
	c.homes.Put("acme/web", 5)
	if _, err := c.askRepository(t.Context(), "acme/web"); !fault.Is(err, fault.Gone) || home() != 0 {
		t.Errorf("a call: %v, and the installation is %d", err, home())
	}
	c.homes.Put("acme/web", 5)
	tr := &translator{client: c, observe: func(string) {}, log: slog.New(slog.DiscardHandler)}
	var p payload
	if err := lenient([]byte(`{"action":"removed","repositories_removed":[{"full_name":"Acme/Web"}]}`), &p); err != nil {
		t.Fatal(err)
	}
	if !tr.housekeeping(t.Context(), "installation_repositories", p) || home() != 0 {
		t.Errorf("a repository was removed, and the installation is %d", home())
	}
	for action, kept := range map[string]bool{"deleted": false, "suspend": false, "new_permissions_accepted": true} {
		before := c.minted(tokenKey{installation: 5})
		tr.housekeeping(t.Context(), "installation", payload{Action: action, Installation: &github.Installation{ID: new(int64(5))}})
		if (c.minted(tokenKey{installation: 5}) == before) != kept {
			t.Errorf("%s: the token is kept: %v", action, !kept)
		}
	}
}

// answering is a transport that needs no network, so that time can stand still.
type answering func(req *http.Request) *http.Response

func (f answering) RoundTrip(req *http.Request) (*http.Response, error) { return f(req), nil }

// TestNoLimitHoldsForLonger: a limit of GitHub ends within the hour, so that whatever an
// answer says, GitHub is asked again after that.
func TestNoLimitHoldsForLonger(t *testing.T) {
	t.Parallel()
	years := strconv.FormatInt(time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), 10)
	for name, tt := range map[string]struct {
		status  int
		message string
		header  map[string]string
	}{
		"primary":            {http.StatusForbidden, "API rate limit exceeded", map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": years}},
		"primary, 429":       {http.StatusTooManyRequests, "API rate limit exceeded", map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": years}},
		"no time at all":     {http.StatusTooManyRequests, "API rate limit exceeded", map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "9223372036854775807"}},
		"secondary":          {http.StatusForbidden, "You have exceeded a secondary rate limit.", map[string]string{"Retry-After": "99999999"}},
		"secondary, a date":  {http.StatusTooManyRequests, "slow down", map[string]string{"Retry-After": "Fri, 01 Jan 2999 00:00:00 GMT"}},
		"secondary, too big": {http.StatusForbidden, "You have exceeded a secondary rate limit.", map[string]string{"Retry-After": "9223372036854775807"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked, limited := 0, true
				c := newClient(Config{Token: "ghp_0123456789abcdef", APIURL: "http://127.0.0.1:9", Surroundings: platform.Surroundings{Observe: func(string) {}}})
				c.http = exchange.Client(answering(func(req *http.Request) *http.Response {
					asked++
					r := httptest.NewRecorder()
					r.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
					if limited {
						for k, v := range tt.header {
							r.Header().Set(k, v)
						}
						r.WriteHeader(tt.status)
						_, _ = fmt.Fprintf(r, `{"message":%q,"documentation_url":"https://docs.github.com/rest#secondary-rate-limits"}`, tt.message)
					} else {
						_, _ = fmt.Fprint(r, "{}")
					}
					res := r.Result()
					res.Request = req
					return res
				}))
				for try := range 3 {
					_, err := c.askRepository(t.Context(), "acme/web")
					after := exchange.RetryAfter(err)
					if !fault.Is(err, fault.RateLimited) || after <= 0 || after > time.Hour || asked != 1 {
						t.Fatalf("try %d: asked %d times, to wait for %v: %v", try, asked, after, err)
					}
					time.Sleep(after / 2)
				}
				limited = false
				time.Sleep(time.Hour)
				if _, err := c.askRepository(t.Context(), "acme/web"); err != nil || asked != 2 {
					t.Errorf("an hour later: asked %d times: %v", asked, err)
				}
			})
		})
	}
}
