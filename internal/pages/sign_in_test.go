//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// each runs test over both databases.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	eachWith(t, func(*pages.Config) {}, test)
}

// eachWith does so with pages that are configured in another way.
func eachWith(t *testing.T, change func(*pages.Config), test func(t *testing.T, w *world)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		test(t, newWorld(t, open(t), change))
	})
}

func TestNobodySeesAPageWithoutASession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b := w.browser()
		for _, path := range []string{"/", "/account", "/sessions?state=failed&q=a%26b"} {
			r := b.send("GET", path, nil)
			if to := r.Header().Get("Location"); r.Code != http.StatusSeeOther || to != "/sign-in?to="+url.QueryEscape(path) {
				t.Errorf("GET %s: %d to %q", path, r.Code, to)
			}
		}
		for _, path := range []string{"/account/end", "/sign-out", "/theme"} {
			if r := b.send("POST", path, url.Values{}); r.Code != http.StatusUnauthorized {
				t.Errorf("POST %s: %d", path, r.Code)
			}
		}
		b.cookies["bot_session"] = &http.Cookie{Name: "bot_session", Value: "guessed"}
		if r := b.send("GET", "/", nil); r.Code != http.StatusSeeOther {
			t.Errorf("with a made-up cookie: %d", r.Code)
		}
		for path, want := range map[string]int{"/nothing": 404, "//": 404, "/sessions/../": 404, "/sign-in": 200} {
			if r := b.send("GET", path, nil); r.Code != want {
				t.Errorf("GET %s: %d, want %d", path, r.Code, want)
			}
		}
		member := w.as(bob)
		for _, path := range []string{"/nothing", "/sessions/../"} {
			if r := member.send("GET", path, nil); r.Code != http.StatusNotFound || !strings.Contains(r.Body.String(), `aria-label="Main"`) {
				t.Errorf("GET %s of somebody who is signed in: %d without navigation\n%s", path, r.Code, r.Body)
			}
		}
		if r := b.send("DELETE", "/", nil); r.Code != http.StatusMethodNotAllowed || r.Header().Get("Allow") == "" {
			t.Errorf("DELETE /: %d", r.Code)
		}
	})
}

func TestALinkSignsInOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		token := w.link(bob)
		b := w.browser()
		for range 2 { // looking at it, as programs in chats do, uses nothing up
			wants(t, b.get("/sign-in?k="+token), "telegram/42", `value="`+token+`"`)
		}
		r := b.send("POST", "/sign-in", url.Values{"k": {token}, "to": {"/account"}})
		if r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/account" {
			t.Fatalf("signing in: %d %s", r.Code, r.Body)
		}
		c := b.cookies["bot_session"]
		if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" {
			t.Fatalf("the cookie: %+v", c)
		}
		page := b.get("/account")
		wants(t, page, "telegram/42", "member")
		again := w.browser()
		for _, form := range []url.Values{{"k": {token}}, {"k": {"wrong"}}, {}} {
			r := again.send("POST", "/sign-in", form)
			if r.Code != http.StatusBadRequest || !strings.Contains(r.Body.String(), "already used") || len(again.cookies) > 0 {
				t.Errorf("%v: %d %s", form, r.Code, r.Body)
			}
		}
		if r := again.send("GET", "/sign-in?k="+token, nil); r.Code != http.StatusBadRequest {
			t.Errorf("looking at a used link: %d", r.Code)
		}
		late := w.link(bob)
		w.later(signin.LinkLife)
		if r := w.browser().send("POST", "/sign-in", url.Values{"k": {late}}); r.Code != http.StatusBadRequest {
			t.Errorf("an expired link: %d", r.Code)
		}
		rows := 0
		w.do(func(ctx context.Context, tx *store.Tx) error {
			log, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "web.sign_in", Limit: 10})
			rows = len(log)
			return err
		})
		if rows != 1 {
			t.Errorf("%d rows in the audit log", rows)
		}
	})
}

func TestLinksLeadNowhereElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, to := range []string{"https://example.com", "//example.com", `/\example.com`, "javascript:alert(1)", "/\t/example.com", "/a\r\nSet-Cookie: x=y"} {
			r := w.browser().send("POST", "/sign-in", url.Values{"k": {w.link(bob)}, "to": {to}})
			if got := r.Header().Get("Location"); got != "/" {
				t.Errorf("%q leads to %q", to, got)
			}
		}
	})
}

// A browser leaves the usual port out, also where PUBLIC_URL has it, and a proxy may add it.
func TestBehindHTTPSTheCookieIsSecure(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"https://bot.example.com", "https://Bot.example.com:443"} {
		eachWith(t, func(c *pages.Config) { c.PublicURL = public }, func(t *testing.T, w *world) {
			for _, host := range []string{"bot.example.com", "bot.example.com:443"} {
				b := w.browser()
				b.host = host
				r := b.send("POST", "/sign-in", url.Values{"k": {w.link(bob)}})
				if c := b.cookies["__Host-bot_session"]; c == nil || !c.Secure || !c.HttpOnly || r.Header().Get("Strict-Transport-Security") == "" {
					t.Errorf("%s asked as %s: the cookies: %+v", public, host, b.cookies)
				}
				b.get("/account")
			}
		})
	}
}

func TestFormsOfOthersDoNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b := w.as(bob)
		token := tokenField.FindStringSubmatch(b.get("/account"))[1]
		for name, change := range map[string]func(form url.Values){
			"no token":      func(form url.Values) { form.Del("token") },
			"a wrong token": func(form url.Values) { form.Set("token", strings.Repeat("0", 32)) },
			"a foreign origin": func(url.Values) {
				b.header.Set("Origin", "https://example.com")
			},
			"another site": func(url.Values) {
				b.header.Set("Sec-Fetch-Site", "cross-site")
			},
		} {
			b.header = http.Header{}
			form := url.Values{"token": {token}}
			change(form)
			if r := b.send("POST", "/sign-out", form); r.Code != http.StatusForbidden {
				t.Errorf("%s: %d", name, r.Code)
			}
		}
		b.header = http.Header{"Origin": {"http://127.0.0.1:3000"}, "Sec-Fetch-Site": {"same-origin"}}
		b.get("/account")
		if r := b.send("POST", "/sign-out", url.Values{"token": {token}, "nonce": {strings.Repeat("0", 32)}}); r.Code != http.StatusSeeOther {
			t.Errorf("one's own form: %d", r.Code)
		}
		if r := b.send("POST", "/theme", url.Values{"token": {strings.Repeat("x", 300<<10)}}); r.Code == http.StatusSeeOther {
			t.Error("a form that is too large was taken")
		}
	})
}

// A page of somebody else signs no browser in: who is signed in as another account does
// their own work there.
func TestOtherSitesSignNobodyIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		link := url.Values{"k": {w.link(bob)}}
		for _, header := range []http.Header{
			{"Origin": {"https://example.com"}}, {"Origin": {"null"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}},
		} {
			b := w.browser()
			b.header = header
			if r := b.send("POST", "/sign-in", link); r.Code != http.StatusForbidden || len(b.cookies) > 0 {
				t.Errorf("%v: %d, cookies %v", header, r.Code, b.cookies)
			}
		}
		if r := w.browser().send("POST", "/sign-in", link); r.Code != http.StatusSeeOther {
			t.Errorf("the link was used up: %d", r.Code)
		}
	})
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		over := func(b *browser) bool { return b.send("GET", "/account", nil).Code == http.StatusSeeOther }
		b := w.as(bob)
		cookies := map[string]*http.Cookie{"bot_session": b.cookies["bot_session"]}
		if to := b.post("/sign-out", url.Values{}).Header().Get("Location"); to != "/sign-in" {
			t.Errorf("signing out leads to %q", to)
		}
		b.cookies = cookies // somebody kept it
		if !over(b) {
			t.Error("the session goes on after signing out")
		}

		idle := w.as(bob)
		w.later(signin.Idle - time.Hour)
		if over(idle) {
			t.Error("a session that is used ends")
		}
		w.later(signin.Idle + time.Minute)
		if !over(idle) {
			t.Error("an idle session goes on")
		}

		b = w.as(bob)
		w.mu.Lock()
		delete(w.roles, bob)
		w.mu.Unlock()
		if r := b.send("GET", "/account", nil); r.Code != http.StatusForbidden {
			t.Errorf("somebody who was removed: %d", r.Code)
		}
		w.mu.Lock()
		w.roles[bob] = sessions.User
		w.mu.Unlock()
	})
}

func TestOnlyOwnersEndTheSessionsOfOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner, member := w.as(ann), w.as(bob)
		var ids []string
		w.do(func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.SignIn().WebSessions(ctx, ann, w.now, 0, 9)
			for _, s := range list {
				ids = append(ids, s.ID)
			}
			return err
		})
		if strings.Contains(member.get("/account"), ids[0]) {
			t.Error("a member sees an owner's session")
		}
		if r := member.post("/account/end", url.Values{"id": {ids[0]}}); r.Code != http.StatusNotFound {
			t.Errorf("a member ends an owner's session: %d", r.Code)
		}
		owner.get("/account")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.SignIn().WebSessions(ctx, bob, w.now, 0, 9)
			ids = []string{list[0].ID}
			return err
		})
		wants(t, owner.get("/account"), ids[0])
		wants(t, owner.follow(owner.post("/account/end", url.Values{"id": {ids[0]}})), "Signed out telegram/42")
		if r := member.send("GET", "/account", nil); r.Code != http.StatusSeeOther {
			t.Errorf("the session goes on: %d", r.Code)
		}
	})
}

func TestGuessingIsLimited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b, codes := w.browser(), map[int]int{}
		for range 30 {
			codes[b.send("POST", "/sign-in", url.Values{"k": {"guess"}}).Code]++
		}
		if codes[http.StatusBadRequest] != 10 || codes[http.StatusTooManyRequests] != 20 {
			t.Errorf("answers by status: %v", codes)
		}
		w.later(7 * time.Second)
		if r := b.send("POST", "/sign-in", url.Values{"k": {w.link(bob)}}); r.Code != http.StatusSeeOther {
			t.Errorf("a link that is good, later: %d", r.Code)
		}
		clear(codes)
		for range 150 {
			r := b.send("GET", "/account", nil)
			codes[r.Code]++
			if r.Code == http.StatusTooManyRequests && r.Header().Get("Retry-After") == "" {
				t.Error("it does not say when to try again")
			}
		}
		if codes[http.StatusOK] != 100 || codes[http.StatusTooManyRequests] != 50 {
			t.Errorf("one session's answers by status: %v", codes)
		}
	})
}

// Whatever is guessed counts against the same address, and who is at work there already
// goes on.
func TestEveryWayOfGuessingIsLimited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		member := w.as(bob)
		member.get("/account")
		guesses := 0
		for name, guess := range map[string]func(b *browser) int{
			"a link that is looked at": func(b *browser) int { return b.send("GET", "/sign-in?k=guess", nil).Code },
			"a link that is used":      func(b *browser) int { return b.send("POST", "/sign-in", url.Values{"k": {"guess"}}).Code },
			"a session": func(b *browser) int {
				guesses++
				b.cookies["bot_session"] = &http.Cookie{Name: "bot_session", Value: fmt.Sprintf("%052d", guesses)}
				return b.send("GET", "/account", nil).Code
			},
		} {
			w.later(time.Hour)
			member.get("/account")
			b, refused := w.browser(), 0
			for range 30 {
				if guess(b) == http.StatusTooManyRequests {
					refused++
				}
			}
			if refused != 20 {
				t.Errorf("%s: %d of 30 guesses were refused, want 20", name, refused)
			}
			if r := member.send("GET", "/account", nil); r.Code != http.StatusOK {
				t.Errorf("%s: who is signed in there reads %d", name, r.Code)
			}
		}
	})
}

// A cookie that is of no session any more, as of a database that is not there, is sent with
// each request of each tab: that is no guessing.
func TestAnOldCookieIsOneGuess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		old, guesser := w.browser(), w.browser()
		old.cookies["bot_session"] = &http.Cookie{Name: "bot_session", Value: strings.Repeat("A", 52)}
		var tabs sync.WaitGroup
		for range 30 {
			tabs.Go(func() {
				if r := old.send("GET", "/account", nil); r.Code != http.StatusSeeOther {
					t.Errorf("a tab that is open: %d", r.Code)
				}
			})
		}
		tabs.Wait()
		if r := w.browser().send("POST", "/sign-in", url.Values{"k": {w.link(bob)}}); r.Code != http.StatusSeeOther {
			t.Errorf("signing in from there: %d", r.Code)
		}
		refused := 0
		for i := range 30 {
			guesser.cookies["bot_session"] = &http.Cookie{Name: "bot_session", Value: fmt.Sprintf("%052d", i)}
			if guesser.send("GET", "/account", nil).Code == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 21 {
			t.Errorf("%d of 30 guesses were refused, want 21: the old cookie was one", refused)
		}
		if r := old.send("GET", "/account", nil); r.Code != http.StatusSeeOther {
			t.Errorf("a tab while somebody guesses: %d", r.Code)
		}
	})
}

func TestHeadersAndAssets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b := w.as(bob)
		r := b.send("GET", "/account", nil)
		policy := r.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy: %s", policy)
		}
		page, size := r.Body.String(), 0
		for _, bad := range []string{"<style", " style=", " onclick=", "javascript:"} {
			if strings.Contains(page, bad) {
				t.Errorf("the page has %q, which the policy refuses", bad)
			}
		}
		for _, path := range assetPath.FindAllString(page, -1) {
			a := w.browser().send("GET", path, nil)
			if a.Code != http.StatusOK || !strings.Contains(a.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("GET %s: %d", path, a.Code)
			}
			if strings.Contains(strings.ReplaceAll(a.Body.String(), "http://www.w3.org/2000/svg", ""), "http") {
				t.Errorf("%s names another server", path)
			}
			size += a.Body.Len()
		}
		if size < 5000 || size > 60_000 {
			t.Errorf("style and script have %d bytes", size)
		}
		if r := b.send("GET", "/assets/..%2fassets.go", nil); r.Code != http.StatusNotFound {
			t.Errorf("another file: %d", r.Code)
		}
		b.follow(b.post("/theme", url.Values{"theme": {"dark"}, "back": {"/account"}}))
		wants(t, b.get("/account"), `data-theme="dark"`)
		if r := b.post("/theme", url.Values{"theme": {`"><script>`}}); r.Code != http.StatusBadRequest {
			t.Errorf("a theme that there is not: %d", r.Code)
		}
	})
}
