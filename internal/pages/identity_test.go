//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/pages"
	"remote-agent/internal/signin"
	"remote-agent/internal/signin/issuer"
	"remote-agent/internal/signin/issuertest"
)

// identified are pages behind a proxy at 192.0.2.1 that names people, and with an issuer.
func identified(p *issuertest.Provider) func(*pages.Config) {
	return func(c *pages.Config) {
		c.Identity = pages.Identity{
			People:  map[string]signin.Account{"ann@example.com": ann, "bob": bob, "gone@example.com": {Platform: "telegram", ID: "99"}},
			Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/30")}, Header: "X-Forwarded-User",
		}
		if p != nil {
			c.Identity.Issuer = issuer.New(issuer.Config{URL: p.URL, ClientID: issuertest.Client, Claim: issuer.EmailClaim})
		}
	}
}

func TestAProxySignsIn(t *testing.T) {
	t.Parallel()
	eachWith(t, identified(nil), func(t *testing.T, w *world) {
		for name, tt := range map[string]struct {
			header http.Header
			from   string
			code   int
		}{
			"a person":           {http.Header{"X-Forwarded-User": {"bob"}}, "", http.StatusSeeOther},
			"nobody":             {http.Header{}, "", http.StatusForbidden},
			"not listed":         {http.Header{"X-Forwarded-User": {"eve"}}, "", http.StatusForbidden},
			"no longer allowed":  {http.Header{"X-Forwarded-User": {"gone@example.com"}}, "", http.StatusForbidden},
			"named twice":        {http.Header{"X-Forwarded-User": {"bob", "ann@example.com"}}, "", http.StatusForbidden},
			"not from the proxy": {http.Header{"X-Forwarded-User": {"bob"}}, "192.0.2.9:1", http.StatusForbidden},
		} {
			b := w.browser()
			b.host, b.header, b.from = "bot.example.com", tt.header, tt.from
			r := b.send("POST", "/sign-in/proxy", url.Values{"to": {"/account"}})
			if r.Code != tt.code {
				t.Errorf("%s: %d, want %d: %s", name, r.Code, tt.code, r.Body)
			}
			if tt.code != http.StatusSeeOther {
				if len(b.cookies) > 0 {
					t.Errorf("%s: cookies %v", name, b.cookies)
				}
				continue
			}
			wants(t, b.get("/account"), "telegram/42", "member")
			w.later(13 * time.Hour)
			if r := b.send("GET", "/account", nil); r.Code != http.StatusSeeOther {
				t.Errorf("%s: half a day later: %d", name, r.Code)
			}
		}
		b := w.browser()
		b.host, b.header = "bot.example.com", http.Header{"X-Forwarded-User": {"bob"}}
		wants(t, b.get("/sign-in"), "Continue as telegram/42")
		b.from = "192.0.2.9:1"
		if page := b.get("/sign-in"); strings.Contains(page, "Continue as") {
			t.Error("whoever sends the header is somebody")
		}
	})
}

func TestAnIssuerSignsIn(t *testing.T) {
	t.Parallel()
	p := issuertest.New(t, "https://bot.example.com/sign-in/oidc/back")
	eachWith(t, identified(p), func(t *testing.T, w *world) {
		begin := func() (b *browser, query url.Values) {
			b = w.browser()
			b.host = "bot.example.com"
			wants(t, b.get("/sign-in?to=/account"), "Sign in with 127.0.0.1", "/sign-in/oidc?to=%2Faccount")
			r := b.send("GET", "/sign-in/oidc?to=/account", nil)
			if r.Code != http.StatusSeeOther {
				t.Fatalf("to the issuer: %d %s", r.Code, r.Body)
			}
			return b, p.Asked(t, r.Header().Get("Location"))
		}
		b, query := begin()
		r := b.send("GET", "/sign-in/oidc/back?"+p.Answer(query, "ann@example.com").Encode(), nil)
		if r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/account" {
			t.Fatalf("back from the issuer: %d %s", r.Code, r.Body)
		}
		wants(t, b.get("/account"), "console/local", "owner")
		if b.cookies["__Host-bot_oidc"] != nil {
			t.Error("the state is still kept")
		}
		for name, who := range map[string]string{"not listed": "eve@example.com", "no longer allowed": "gone@example.com"} {
			b, query := begin()
			r := b.send("GET", "/sign-in/oidc/back?"+p.Answer(query, who).Encode(), nil)
			if r.Code != http.StatusForbidden || len(b.cookies) > 0 {
				t.Errorf("%s: %d, cookies %v", name, r.Code, b.cookies)
			}
		}
		_, query = begin()
		other := w.browser() // somebody is sent to the end of another's sign-in
		other.host = "bot.example.com"
		if r := other.send("GET", "/sign-in/oidc/back?"+p.Answer(query, "ann@example.com").Encode(), nil); r.Code != http.StatusBadRequest {
			t.Errorf("without the state: %d", r.Code)
		}
		b, query = begin() // and a host of the same domain can give a browser any cookie but this one
		b.cookies["__Host-bot_oidc"].Name = "bot_oidc"
		if r := b.send("GET", "/sign-in/oidc/back?"+p.Answer(query, "ann@example.com").Encode(), nil); r.Code != http.StatusBadRequest {
			t.Errorf("with a state that another host may have set: %d", r.Code)
		}
	})
}

// TestASignInThatBeginsByAnotherNameGoesOnUnderThePublicOne: the issuer sends the browser
// there, where what it keeps of the sign-in is not known otherwise. A proxy that hides the
// name ends in no loop.
func TestASignInThatBeginsByAnotherNameGoesOnUnderThePublicOne(t *testing.T) {
	t.Parallel()
	p := issuertest.New(t, "https://bot.example.com/sign-in/oidc/back")
	eachWith(t, identified(p), func(t *testing.T, w *world) {
		b := w.browser()
		b.host = "localhost:8080"
		r := b.send("GET", "/sign-in/oidc?to=/account%3Fa=b", nil)
		to, begins := strings.CutPrefix(r.Header().Get("Location"), "https://bot.example.com/")
		if r.Code != http.StatusSeeOther || !begins || len(b.cookies) > 0 {
			t.Fatalf("by another name: %d to %s", r.Code, r.Header().Get("Location"))
		}
		b.host = "bot.example.com"
		query := p.Asked(t, b.send("GET", "/"+to, nil).Header().Get("Location"))
		r = b.send("GET", "/sign-in/oidc/back?"+p.Answer(query, "ann@example.com").Encode(), nil)
		if r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/account?a=b" {
			t.Errorf("back from the issuer: %d to %s", r.Code, r.Header().Get("Location"))
		}
		b.host = "hidden.internal"
		p.Asked(t, b.send("GET", "/"+to, nil).Header().Get("Location"))
	})
}

// behindProxy is a browser whose requests come through the proxies of identified.
func (w *world) behindProxy(hops string) *browser {
	b := w.browser()
	b.host, b.header = "bot.example.com", http.Header{"X-Forwarded-For": {hops}}
	return b
}

// TestALockoutIsOfOneClient: whoever guesses behind a proxy locks nobody else out.
func TestALockoutIsOfOneClient(t *testing.T) {
	t.Parallel()
	eachWith(t, identified(nil), func(t *testing.T, w *world) {
		from := w.behindProxy
		guesser := from("198.51.100.1")
		for range 20 {
			guesser.send("POST", "/sign-in", url.Values{"k": {"guess"}})
		}
		if r := guesser.send("POST", "/sign-in", url.Values{"k": {"guess"}}); r.Code != http.StatusTooManyRequests {
			t.Errorf("the guesser: %d", r.Code)
		}
		// What a client itself writes into the header stands before what the proxy adds.
		if r := from("203.0.113.5, 198.51.100.1").send("POST", "/sign-in", url.Values{"k": {"guess"}}); r.Code != http.StatusTooManyRequests {
			t.Errorf("the guesser under a made-up address: %d", r.Code)
		}
		if r := from("198.51.100.1, 192.0.2.2").send("POST", "/sign-in", url.Values{"k": {"guess"}}); r.Code != http.StatusTooManyRequests {
			t.Errorf("the guesser through two proxies: %d", r.Code)
		}
		if r := from("198.51.100.1, 203.0.113.5, 192.0.2.2").send("POST", "/sign-in", url.Values{"k": {w.link(bob)}}); r.Code != http.StatusSeeOther {
			t.Errorf("another client: %d %s", r.Code, r.Body)
		}
	})
}

// TestFailedSignInsThroughTheIssuerCount: they are guesses like those of links, and are
// counted together with them. What is the issuer's own fault is not counted.
func TestFailedSignInsThroughTheIssuerCount(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(p *issuertest.Provider, asked url.Values) url.Values
		status int // of the issuer
		counts bool
	}{
		"an answer that nobody asked for": {func(*issuertest.Provider, url.Values) url.Values { return url.Values{"code": {"c"}, "state": {"s"}} }, 0, true},
		"a made-up code": {func(_ *issuertest.Provider, asked url.Values) url.Values {
			return url.Values{"code": {"c"}, "state": asked["state"]}
		}, 0, true},
		"somebody who is not listed": {func(p *issuertest.Provider, asked url.Values) url.Values { return p.Answer(asked, "eve@example.com") }, 0, true},
		"the issuer is away":         {func(p *issuertest.Provider, asked url.Values) url.Values { return p.Answer(asked, "bob") }, http.StatusServiceUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := issuertest.New(t, "https://bot.example.com/sign-in/oidc/back")
			p.Status = tt.status
			eachWith(t, identified(p), func(t *testing.T, w *world) {
				for n := range 10 {
					b := w.behindProxy("198.51.100.1")
					asked := p.Asked(t, b.send("GET", "/sign-in/oidc", nil).Header().Get("Location"))
					r := b.send("GET", "/sign-in/oidc/back?"+tt.answer(p, asked).Encode(), nil)
					if r.Code < 400 || r.Code == http.StatusTooManyRequests || b.cookies["__Host-bot_session"] != nil {
						t.Fatalf("failed sign-in %d: %d %s", n+1, r.Code, r.Body)
					}
				}
				for _, ask := range [][2]string{{"GET", "/sign-in/oidc"}, {"GET", "/sign-in/oidc/back?code=c&state=s"}, {"GET", "/sign-in?k=guess"}, {"POST", "/sign-in"}} {
					r := w.behindProxy("198.51.100.1").send(ask[0], ask[1], url.Values{"k": {"guess"}})
					if limited := r.Code == http.StatusTooManyRequests && r.Header().Get("Retry-After") != ""; limited != tt.counts {
						t.Errorf("%s %s after 10 of them: %d", ask[0], ask[1], r.Code)
					}
				}
				if r := w.behindProxy("203.0.113.5").send("GET", "/sign-in/oidc", nil); r.Code != http.StatusSeeOther {
					t.Errorf("another client: %d %s", r.Code, r.Body)
				}
			})
		})
	}
}

// TestAddressesWithAPortAreRead: gateways such as those of Azure name the port of a client.
func TestAddressesWithAPortAreRead(t *testing.T) {
	t.Parallel()
	eachWith(t, identified(nil), func(t *testing.T, w *world) {
		guess := func(hops string) int {
			return w.behindProxy(hops).send("POST", "/sign-in", url.Values{"k": {"guess"}}).Code
		}
		guesses := func(n int, hops ...string) {
			for i := range n {
				if got := guess(hops[i%len(hops)]); got != http.StatusBadRequest {
					t.Errorf("guess %d, of %q: %d", i, hops[i%len(hops)], got)
				}
			}
		}
		guesses(10, "198.51.100.1:4711", "198.51.100.1:4712, 192.0.2.2:443", "[::ffff:198.51.100.1]:443", "198.51.100.1")
		guesses(10, "[2001:db8::1]:443", "2001:db8::2")
		for _, hops := range []string{"198.51.100.1", "203.0.113.5:1, 198.51.100.1:4713", "2001:db8::3", "[2001:db8::4]:1"} {
			if got := guess(hops); got != http.StatusTooManyRequests {
				t.Errorf("one guess more, of %q: %d", hops, got)
			}
		}
		guesses(2, "198.51.100.2:4711", "[2001:db8:1::1]:443")
		// What is no address is the proxy's own, all of it together.
		guesses(10, "unknown", "198.51.100.7:", "198.51.100.7:99999", "[2001:db8::7", "[2001:db8::7]:x", "_hidden:1", "198.51.100.7:443:443", "198.51.100.7:443, :443")
		if got := guess("[198.51.100.8]:x"); got != http.StatusTooManyRequests {
			t.Errorf("a guess of what is no address: %d", got)
		}
	})
}

// TestAProxyThatHidesTheName: what came through a proxy is not taken for somebody at this
// machine.
func TestAProxyThatHidesTheName(t *testing.T) {
	t.Parallel()
	eachWith(t, identified(nil), func(t *testing.T, w *world) {
		for name, tt := range map[string]struct {
			host, header, from string
			code               int
		}{
			"hidden":                {"127.0.0.1:3000", "X-Forwarded-For", "127.0.0.1:9", http.StatusMisdirectedRequest},
			"hidden as localhost":   {"localhost:3000", "Forwarded", "127.0.0.1:9", http.StatusMisdirectedRequest},
			"hidden by version 6":   {"[::1]:3000", "Via", "[::1]:9", http.StatusMisdirectedRequest},
			"a trusted proxy":       {"127.0.0.1:3000", "X-Forwarded-For", "192.0.2.1:9", http.StatusOK},
			"the name passed on":    {"bot.example.com", "X-Forwarded-For", "127.0.0.1:9", http.StatusOK},
			"nothing in the middle": {"127.0.0.1:3000", "Accept", "127.0.0.1:9", http.StatusOK},
		} {
			b := w.browser()
			b.host, b.from, b.header = tt.host, tt.from, http.Header{tt.header: {"203.0.113.5"}}
			r := b.send("GET", "/sign-in", nil)
			if r.Code != tt.code {
				t.Errorf("%s: %d, want %d", name, r.Code, tt.code)
			}
			if hsts := r.Header().Get("Strict-Transport-Security"); (hsts != "") != (tt.host == "bot.example.com") {
				t.Errorf("%s: Strict-Transport-Security is %q", name, hsts)
			}
		}
	})
}
