//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/api"
	"remote-agent/internal/apikey"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/store"
)

// Until a key was made there is no API, not even one that asks for a key.
func TestWithoutAKeyThereIsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, path := range []string{api.Prefix, api.Prefix + "/sessions", api.Prefix + "/nothing"} {
			r := w.send("GET", path, "rak_aaaaaaaaaa_"+strings.Repeat("a", 52))
			if r.status != http.StatusNotFound || string(r.body) != "Not Found\n" || r.header.Get("WWW-Authenticate") != "" {
				t.Errorf("GET %s: %d %v %s", path, r.status, r.header, r.body)
			}
		}
		_, token := w.key("ci", 0, apikey.SessionsRead)
		if r := w.send("GET", api.Prefix, token); r.status != http.StatusOK || r.at(t, "key", "name") != "ci" {
			t.Errorf("with the first key: %d %s", r.status, r.body)
		}
		if r := w.send("GET", api.Prefix, ""); r.status != http.StatusUnauthorized {
			t.Errorf("without a key: %d %s", r.status, r.body)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		good, token := w.key("good", 0, apikey.SessionsRead)
		_, short := w.key("short", time.Hour, apikey.SessionsRead)
		gone, revoked := w.key("gone", 0, apikey.SessionsRead)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.SignIn().RevokeAPIKey(ctx, gone.ID)
			return err
		})
		otherSecret := token[:15] + strings.Repeat("a", 52)
		for name, c := range map[string]struct {
			headers []string
			later   time.Duration
			status  int
			code    string
		}{
			"good":          {[]string{"Bearer " + token}, 0, 200, ""},
			"lower case":    {[]string{"bearer  " + token}, 0, 200, ""},
			"none":          {nil, 0, 401, "key_missing"},
			"empty":         {[]string{""}, 0, 401, "key_invalid"},
			"another kind":  {[]string{"Basic " + token}, 0, 401, "key_invalid"},
			"two":           {[]string{"Bearer " + token, "Bearer " + token}, 0, 401, "key_invalid"},
			"no prefix":     {[]string{"Bearer " + token[4:]}, 0, 401, "key_invalid"},
			"cut":           {[]string{"Bearer " + token[:len(token)-1]}, 0, 401, "key_invalid"},
			"longer":        {[]string{"Bearer " + token + "a"}, 0, 401, "key_invalid"},
			"id only":       {[]string{"Bearer " + good.ID}, 0, 401, "key_invalid"},
			"hash":          {[]string{"Bearer " + good.Hash}, 0, 401, "key_invalid"},
			"other secret":  {[]string{"Bearer " + otherSecret}, 0, 401, "key_invalid"},
			"unknown":       {[]string{"Bearer rak_zzzzzzzzzz_" + strings.Repeat("a", 52)}, 0, 401, "key_invalid"},
			"before expiry": {[]string{"Bearer " + short}, time.Hour - time.Second, 200, ""},
			"after expiry":  {[]string{"Bearer " + short}, time.Hour, 401, "key_expired"},
			"revoked":       {[]string{"Bearer " + revoked}, 0, 401, "key_revoked"},
			// Only who has the secret is told that a key was revoked.
			"revoked, other secret": {[]string{"Bearer " + revoked[:15] + strings.Repeat("a", 52)}, 0, 401, "key_invalid"},
		} {
			w.serve() // each with fresh limits
			start := *w.now.Load()
			w.clock(start.Add(c.later))
			r := w.send("GET", api.Prefix+"/sessions", "", func(r *http.Request) { r.Header["Authorization"] = c.headers })
			w.clock(start)
			if r.status != c.status || c.code != "" && r.at(t, "code") != c.code {
				t.Errorf("%s: %d %s, want %d %s", name, r.status, r.body, c.status, c.code)
			}
			if challenge := r.header.Get("WWW-Authenticate"); c.status == 401 && !strings.HasPrefix(challenge, `Bearer realm="remote-agent"`) {
				t.Errorf("%s: WWW-Authenticate %q", name, challenge)
			}
		}
		// A key in the address would be in logs of proxies and in histories.
		if r := w.send("GET", api.Prefix+"/sessions?access_token="+token, ""); r.status != http.StatusUnauthorized {
			t.Errorf("with the key in the address: %d", r.status)
		}
		for _, secret := range []string{token, short, revoked, otherSecret, good.Hash} {
			if log := w.log.String(); strings.Contains(log, secret) || strings.Contains(log, secret[15:]) {
				t.Errorf("a key is in the log: %s", log)
			}
		}
	})
}

func TestScopesAreSeparate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		d := readDocument(t)
		for _, have := range apikey.Scopes() {
			_, token := w.key(strings.ReplaceAll(string(have), ":", "-"), 0, have)
			for _, ask := range w.asks() {
				o := d.operations[ask.id]
				if o.Security == nil || o.method != "GET" {
					continue
				}
				need := o.Security[0]["key"][0]
				want := http.StatusForbidden
				if need == string(have) {
					want = http.StatusOK
				}
				r := w.send(o.method, api.Prefix+ask.target, token)
				if r.status != want {
					t.Errorf("%s with %s: %d, want %d", ask.id, have, r.status, want)
				}
				if challenge := r.header.Get("WWW-Authenticate"); want == http.StatusForbidden &&
					(r.at(t, "scope") != need || !strings.Contains(challenge, `error="insufficient_scope", scope="`+need+`"`)) {
					t.Errorf("%s with %s: %q %s", ask.id, have, challenge, r.body)
				}
			}
		}
		_, reader := w.key("reader", 0, apikey.SessionsRead, apikey.MemoriesRead, apikey.AgentsRead)
		for _, ask := range w.asks() {
			if o := d.operations[ask.id]; o.method != "GET" {
				if r := w.send(o.method, api.Prefix+ask.target, reader); r.status != http.StatusForbidden {
					t.Errorf("a key that only reads: %s: %d", ask.id, r.status)
				}
			}
		}
		if got := w.get(api.Prefix+"/sessions/"+w.done.ID).at(t, "message_count"); got != 4.0 {
			t.Errorf("then %v messages are left", got)
		}
	})
}

// Revoking takes effect with the next request.
func TestARevokedKeyIsOverAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		k, token := w.key("ci", 0, apikey.SessionsRead)
		if r := w.send("GET", api.Prefix, token); r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.SignIn().RevokeAPIKey(ctx, k.ID)
			return err
		})
		if r := w.send("GET", api.Prefix, token); r.status != http.StatusUnauthorized || r.at(t, "code") != "key_revoked" {
			t.Errorf("%d %s", r.status, r.body)
		}
	})
}

func TestTheUseOfAKeyIsNotedByTheHour(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.clock(time.Date(2026, 11, 21, 12, 10, 0, 0, time.UTC))
		k, token := w.key("ci", 0, apikey.SessionsRead)
		used := func() (at time.Time) {
			w.do(func(ctx context.Context, tx *store.Tx) error {
				stored, err := tx.SignIn().APIKey(ctx, k.ID)
				at = stored.LastUsedAt
				return err
			})
			return at
		}
		w.send("GET", api.Prefix, k.ID) // a wrong key is no use of it
		if got := used(); !got.IsZero() {
			t.Errorf("before its first use: %s", got)
		}
		for _, c := range []struct{ minute, hour int }{{20, 12}, {59, 12}, {65, 13}} {
			w.clock(time.Date(2026, 11, 21, 12, c.minute, 0, 0, time.UTC))
			w.send("GET", api.Prefix, token)
			if got := used(); got.Hour() != c.hour || got.Minute() != 0 {
				t.Errorf("used at minute %d, noted %s", c.minute, got)
			}
		}
	})
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		_, first := w.key("first", 0, apikey.SessionsRead)
		_, second := w.key("second", 0, apikey.SessionsRead)
		limited := func(r reply) bool {
			t.Helper()
			if r.status != http.StatusTooManyRequests {
				return false
			}
			if n, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || n < 1 {
				t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
			}
			return true
		}
		count := func(token string) (n int) {
			for !limited(w.send("GET", api.Prefix, token)) {
				n++
			}
			return n
		}
		if n := count(first); n != 60 {
			t.Errorf("%d requests at once, want 60", n)
		}
		if r := w.send("GET", api.Prefix, second); r.status != http.StatusOK {
			t.Errorf("another key: %d", r.status)
		}
		w.clock(w.now.Load().Add(time.Second))
		if n := count(first); n != 20 {
			t.Errorf("a second later %d requests, want 20", n)
		}

		wrong := func(i int) string {
			return fmt.Sprintf("rak_%s_%s", strings.Repeat("b", 10), strings.Repeat("c", 50)+fmt.Sprintf("%02d", i%6+22))
		}
		n := 0
		for !limited(w.send("GET", api.Prefix, wrong(n))) {
			n++
		}
		if n != 10 {
			t.Errorf("%d wrong keys, want 10", n)
		}
		if r := w.send("GET", api.Prefix, second); r.status != http.StatusOK {
			t.Errorf("a good key from the same address: %d", r.status)
		}
		if r := w.send("GET", api.Prefix, ""); r.status != http.StatusUnauthorized {
			t.Errorf("no key: %d", r.status)
		}
		w.clock(w.now.Load().Add(time.Minute))
		if r := w.send("GET", api.Prefix, wrong(0)); r.status != http.StatusUnauthorized {
			t.Errorf("a minute later: %d", r.status)
		}
		if strings.Count(w.log.String(), "too many wrong keys") == 0 {
			t.Error("the operator is not told of wrong keys")
		}
	})
}

// TestWrongKeysOfOneClientAreItsOwn: behind a proxy, whoever sends wrong keys keeps nobody
// else out, and cannot go by another name.
func TestWrongKeysOfOneClientAreItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		_, good := w.key("good", 0, apikey.SessionsRead)
		from := func(hops, token string) int {
			return w.send("GET", api.Prefix, token, func(r *http.Request) { r.Header.Set("X-Forwarded-For", hops) }).status
		}
		const guesser, other = "198.51.100.1", "198.51.100.2"
		guess := func() {
			w.serve() // which forgets keys that were used
			for range 10 {
				from(guesser, "rak_guess")
			}
		}
		guess()
		if got := from(other, good); got != http.StatusTooManyRequests {
			t.Errorf("another one, from a proxy that nobody trusts: %d", got)
		}
		w.proxies = ratelimit.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
		for hops, want := range map[string]int{
			guesser:                      http.StatusTooManyRequests,
			other + ", " + guesser:       http.StatusTooManyRequests,
			guesser + ":4711, 127.0.0.2": http.StatusTooManyRequests,
			other:                        http.StatusOK,
			guesser + ", " + other:       http.StatusOK,
			"127.0.0.3":                  http.StatusOK,
		} {
			guess()
			if got := from(hops, good); got != want {
				t.Errorf("through %s: %d, want %d", hops, got, want)
			}
		}
	})
}
