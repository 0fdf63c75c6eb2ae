package issuer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/signin/issuer"
	"remote-agent/internal/signin/issuertest"
)

const back = "https://bot.example.com/sign-in/oidc/back"

// begin sends a browser to the provider.
func begin(t *testing.T, p *issuertest.Provider, i *issuer.Issuer) (issuer.State, url.Values) {
	t.Helper()
	address, state, err := i.Begin(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	return issuer.ParseState(state.Text()), p.Answer(p.Asked(t, address), "ann@example.com")
}

func TestIssuer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claim  string // default email
		claims map[string]any
		status int
		change func(s *issuer.State, q url.Values)
		want   string
		kind   fault.Kind
	}{
		"somebody":                     {want: "ann@example.com"},
		"another claim":                {claim: "sub", want: "1"},
		"verified in words":            {claims: map[string]any{"email_verified": "true"}, want: "ann@example.com"},
		"an email nobody verified":     {claims: map[string]any{"email_verified": false}, kind: fault.Forbidden},
		"no word on verification":      {claims: map[string]any{"email_verified": nil}, kind: fault.Forbidden},
		"no such claim":                {claim: "upn", kind: fault.Forbidden},
		"a claim that is no text":      {claim: "groups", claims: map[string]any{"groups": []string{"a"}}, kind: fault.Forbidden},
		"for another program":          {claims: map[string]any{"aud": "other"}, kind: fault.Forbidden},
		"of another issuer":            {claims: map[string]any{"iss": "https://example.com"}, kind: fault.Forbidden},
		"expired":                      {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, kind: fault.Forbidden},
		"a token of another sign-in":   {claims: map[string]any{"nonce": "other"}, kind: fault.Forbidden},
		"no state":                     {change: func(s *issuer.State, _ url.Values) { *s = issuer.State{} }, kind: fault.Invalid},
		"no state at all":              {change: func(s *issuer.State, q url.Values) { *s = issuer.ParseState(".."); q.Del("state") }, kind: fault.Invalid},
		"the state of another":         {change: func(_ *issuer.State, q url.Values) { q.Set("state", "guessed") }, kind: fault.Invalid},
		"the person said no":           {change: func(_ *issuer.State, q url.Values) { q.Set("error", "access_denied") }, kind: fault.Forbidden},
		"a made-up code":               {change: func(_ *issuer.State, q url.Values) { q.Set("code", "guessed") }, kind: fault.Forbidden},
		"no code":                      {change: func(_ *issuer.State, q url.Values) { q.Del("code") }, kind: fault.Forbidden},
		"the provider is out of order": {status: http.StatusBadGateway, kind: fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := issuertest.New(t, back)
			p.Claims, p.Status = tt.claims, tt.status
			claim := tt.claim
			if claim == "" {
				claim = issuer.EmailClaim
			}
			i := issuer.New(issuer.Config{URL: p.URL, ClientID: issuertest.Client, Secret: "hush", Claim: claim})
			state, query := begin(t, p, i)
			if tt.change != nil {
				tt.change(&state, query)
			}
			got, err := i.Finish(t.Context(), back, state, query)
			if got != tt.want || fault.KindOf(err) != tt.kind && err != nil || err == nil && tt.kind != "" {
				t.Errorf("%q, %v; want %q, %s", got, err, tt.want, tt.kind)
			}
			if err != nil && fault.Public(err) == "" {
				t.Error("nothing is said to the person")
			}
			if _, err := i.Finish(t.Context(), back, state, query); err == nil {
				t.Error("the same answer signs in twice")
			}
		})
	}
}

// TestIssuerComesBack: a provider that was away is asked again.
func TestIssuerComesBack(t *testing.T) {
	t.Parallel()
	away := true
	p := issuertest.New(t, back)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		p.Config.Handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	i := issuer.New(issuer.Config{URL: p.URL, ClientID: issuertest.Client, Claim: issuer.EmailClaim, Client: &http.Client{Transport: through{front}}})
	if _, _, err := i.Begin(t.Context(), back); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while it is away: %v", err)
	}
	away = false
	begin(t, p, i)
}

// TestTheCodeStaysWithTheProvider: its discovery may lead elsewhere, what is to be exchanged not.
func TestTheCodeStaysWithTheProvider(t *testing.T) {
	t.Parallel()
	p := issuertest.New(t, back)
	var leaked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	defer elsewhere.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case r.URL.RawQuery == "" && strings.HasSuffix(r.URL.Path, "/openid-configuration"):
			http.Redirect(w, r, r.URL.Path+"?moved", http.StatusFound)
		default:
			p.Config.Handler.ServeHTTP(w, r)
		}
	}))
	defer front.Close()
	provider := strings.TrimPrefix(p.URL, "http://")
	way := func(r *http.Request) (*http.Response, error) { // only what is for the provider passes its front
		if r.URL.Host == provider {
			return through{front}.RoundTrip(r)
		}
		return http.DefaultTransport.RoundTrip(r)
	}
	i := issuer.New(issuer.Config{URL: p.URL, ClientID: issuertest.Client, Secret: "hush", Claim: issuer.EmailClaim, Client: &http.Client{Transport: transport(way)}})
	state, query := begin(t, p, i)
	if _, err := i.Finish(t.Context(), back, state, query); err == nil || leaked.Load() {
		t.Errorf("the code went elsewhere (%t): %v", leaked.Load(), err)
	}
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// through sends all requests to one server.
type through struct{ to *httptest.Server }

func (s through) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimPrefix(s.to.URL, "http://")
	return http.DefaultTransport.RoundTrip(r)
}

// TestIssuerIsBounded: what the provider sends is not read without an end.
func TestIssuerIsBounded(t *testing.T) {
	t.Parallel()
	wrote := make(chan int, 1)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		total := 0
		defer func() { wrote <- total }()
		for chunk := make([]byte, 64<<10); total < 64<<20; total += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	i := issuer.New(issuer.Config{URL: endless.URL, ClientID: issuertest.Client, Claim: issuer.EmailClaim})
	if _, _, err := i.Begin(t.Context(), back); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an endless answer: %v", err)
	}
	if total := <-wrote; total >= 64<<20 {
		t.Errorf("all %d bytes were taken", total)
	}
}

// hanging is the way to a provider that says nothing.
type hanging struct{ asked atomic.Int32 }

// RoundTrip implements http.RoundTripper.
func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Who signs in does not wait for those who came before, and no longer than they want to.
func TestAProviderThatHangsKeepsEverybodyWaitingOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &hanging{}
		i := issuer.New(issuer.Config{URL: "https://issuer.example.com", ClientID: issuertest.Client, Client: &http.Client{Transport: way}})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				begun := time.Now()
				if _, _, err := i.Begin(t.Context(), back); !fault.Is(err, fault.Unavailable) || time.Since(begun) > 11*time.Second {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
			})
		}
		all.Go(func() {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, _, err := i.Begin(ctx, back); err == nil || time.Since(begun) > time.Second {
				t.Errorf("somebody who left: %v", err)
			}
		})
		all.Wait()
		if n := way.asked.Load(); n != 1 {
			t.Errorf("the provider was asked %d times at once", n)
		}
	})
}
