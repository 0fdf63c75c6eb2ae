package pages

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	sessionCookie = "bot_session"
	saidCookie    = "bot_said"
	themeCookie   = "bot_theme"

	maxSaid = 600 // letters
)

// errNobody is the error of a request without a session that is good.
var errNobody = errors.New("not signed in")

// site is where browsers find the pages, and what they keep for them.
type site struct {
	url string // empty: this machine only
}

// scheme is that of PUBLIC_URL, if a request asks for its host; empty if not. The port that
// a scheme has anyway counts for nothing: browsers leave it out.
func (s site) scheme(r *http.Request) string {
	u, err := url.Parse(s.url)
	if err != nil {
		return ""
	}
	usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	if !strings.EqualFold(strings.TrimSuffix(u.Host, usual), strings.TrimSuffix(r.Host, usual)) {
		return ""
	}
	return u.Scheme
}

// secure reports whether a request came by https, as far as that can be known: to the
// host of PUBLIC_URL, if that begins with https.
func (s site) secure(r *http.Request) bool { return r.TLS != nil || s.scheme(r) == "https" }

// guarded is the name of a cookie that lets somebody in: where the pages are reached by
// https, one that no other host of the same domain can set.
func (s site) guarded(r *http.Request, name string) string {
	if s.secure(r) {
		return "__Host-" + name
	}
	return name
}

func (s site) setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	c := &http.Cookie{ //nolint:gosec // Secure where the browser would send it back
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds()),
	}
	if life <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// base is where the browser of a request sees the pages.
func (s site) base(r *http.Request) string {
	if s.url != "" && s.secure(r) {
		return strings.TrimSuffix(s.url, "/")
	}
	return "http://" + r.Host
}

// roleOf says what an account may do at this moment.
type roleOf func(ctx context.Context, tx *store.Tx, a signin.Account) (sessions.Role, error)

// session returns a session and what its account may do: nothing once it is over.
func (of roleOf) session(ctx context.Context, from Storage, hash string, now time.Time) (s signin.Session, role sessions.Role, err error) {
	role = sessions.Stranger
	err = from.InRead(ctx, func(tx *store.Tx) (err error) {
		if s, err = tx.SignIn().WebSession(ctx, hash); err == nil && s.Live(now) {
			role, err = of(ctx, tx, s.Account)
		}
		return err
	})
	return s, role, err
}

// authenticate finds who a request is of. It is errNobody if they have no session that
// is good. A request is returned in any case.
func (p *Pages) authenticate(w http.ResponseWriter, plain *http.Request) (*request, error) {
	r := &request{Request: plain}
	cookie, err := plain.Cookie(p.site.guarded(plain, sessionCookie))
	if err != nil || len(cookie.Value) > 200 {
		return r, errNobody
	}
	ctx, cancel := context.WithTimeout(plain.Context(), whoPatience)
	defer cancel()
	now := p.now()
	client := p.identity.Proxies.Client(plain)
	hash := signin.Hash(cookie.Value)
	if p.stale.Wait(hash, now) > 0 { // no guess: the same was wrong already
		return r, errNobody
	}
	if wait := p.failed.Wait(client, now); wait > 0 && !p.uses.Knows(hash) {
		return r, tooMany(w, wait)
	}
	session, role, err := p.role.session(ctx, p.storage, hash, now)
	switch {
	case fault.Is(err, fault.NotFound):
		if p.stale.Take(hash, now) == 0 {
			p.failed.Take(client, now)
		}
		return r, errNobody
	case err != nil:
		return r, err
	case !session.Live(now):
		return r, errNobody
	case role == sessions.Stranger:
		return r, fault.New(fault.Forbidden, "Your account can no longer use the bot. An owner can let you in again.")
	}
	if wait := p.uses.Take(hash, now); wait > 0 {
		return r, tooMany(w, wait)
	}
	p.touch(r, session, now) //nolint:contextcheck // it has the request's
	r.session, r.token, r.role = session, cookie.Value, role
	return r, nil
}

// touch notes that a session was used, once a minute. If that fails, or takes too long, the
// request goes on.
func (p *Pages) touch(r *request, s signin.Session, now time.Time) {
	used := now.UTC().Truncate(time.Minute)
	if !s.LastUsedAt.Before(used) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), touchPatience)
	defer cancel()
	if err := p.storage.InTx(ctx, func(tx *store.Tx) error { return tx.SignIn().TouchWebSession(ctx, s.ID, used) }); err != nil {
		p.log.WarnContext(ctx, "could not note the use of a session", "err", err)
	}
}

func tooMany(w http.ResponseWriter, wait time.Duration) error {
	seconds := int(wait/time.Second) + 1
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return fault.Newf(fault.RateLimited, "Too many requests. Try again in %s.", wording.Count(seconds, "second", "seconds"))
}

// formToken is in every form of a session, so that a page of somebody else cannot send
// one even where the browser does not say where it comes from.
func formToken(session string) string {
	sum := sha256.Sum256([]byte("form:" + session))
	return hex.EncodeToString(sum[:16])
}

// sameText compares two texts in a time that does not depend on how much of them is the
// same.
func sameText(a, b string) bool {
	return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// say keeps what is told on the next page that is shown.
func (s site) say(w http.ResponseWriter, r *request, text string) {
	if text != "" {
		s.setCookie(w, r.Request, saidCookie, base64.RawURLEncoding.EncodeToString([]byte(wording.Head(text, maxSaid))), time.Minute)
	}
}

// heard returns what is to be told now, and forgets it.
func (s site) heard(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(saidCookie)
	if err != nil || r.Method != http.MethodGet {
		return ""
	}
	s.setCookie(w, r, saidCookie, "", 0)
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return string(text)
}

func queryEscape(text string) string { return url.QueryEscape(text) }
