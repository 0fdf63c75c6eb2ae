package pages

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/signin/issuer"
	"remote-agent/internal/store"
)

const (
	// namedLife is how long a session lasts that an issuer or a proxy began: they are asked
	// again twice a day, so that whoever they let go is out.
	namedLife = 12 * time.Hour

	// stateLife is how long people may take at the issuer, and stateCookie what they bring
	// back.
	stateLife   = 10 * time.Minute
	stateCookie = "bot_oidc"

	issuerPath = "/sign-in/oidc"
	backPath   = issuerPath + "/back"
)

// Identity is how people get in besides links: named by an issuer or a proxy.
type Identity struct {
	// People are the accounts of those who may, by their names. Nobody else gets in.
	People map[string]signin.Account

	Issuer  *issuer.Issuer // nil: none
	Proxies []netip.Prefix // in front of this server
	Header  string         // in which a proxy names people; empty: none does
}

// behind reports whether a request comes from a trusted proxy.
func (i Identity) behind(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && i.trusts(from.Addr())
}

func (i Identity) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(i.Proxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// client is the address that a request is counted under: behind a trusted proxy the
// nearest one that is none itself.
func (i Identity) client(r *http.Request) string {
	if i.behind(r) {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for _, hop := range slices.Backward(hops) {
			a, err := netip.ParseAddr(strings.TrimSpace(hop))
			if err != nil {
				break
			}
			if !i.trusts(a) {
				return ratelimit.Client(netip.AddrPortFrom(a.Unmap(), 0).String())
			}
		}
	}
	return ratelimit.Client(r.RemoteAddr)
}

// misled says what is wrong with a request that reaches this server by a name of its own
// machine and yet came through a proxy that it does not know: the proxy hides under which
// name it was asked, and whoever reaches the proxy would be taken for somebody here.
// It is empty for any other.
func (i Identity) misled(r *http.Request) string {
	forwarded := slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"}, func(name string) bool {
		return r.Header.Get(name) != ""
	})
	host, err := netip.ParseAddr(strings.Trim(hostOf(r.Host), "[]"))
	if !forwarded || i.behind(r) || hostOf(r.Host) != "localhost" && (err != nil || !host.Unmap().IsLoopback()) {
		return ""
	}
	return "The proxy in front of this server hides the address that you asked for. " +
		"Have it pass the Host header on and set PUBLIC_URL to that address, or name the proxy in TRUSTED_PROXIES."
}

// hostOf is the host of a Host header, without its port.
func hostOf(host string) string {
	u := url.URL{Host: host}
	return strings.ToLower(u.Hostname())
}

// ways are the other ways in, on the page for signing in.
func (p *signInPages) ways(r *request, to string) (ways html.Group) {
	if i := p.identity.Issuer; i != nil {
		ways = append(ways, html.El("p", html.El("a", html.Class("button primary"), html.Href(issuerPath+"?to="+queryEscape(to)), html.Text("Sign in with "+i.Name()))))
	}
	if name, account, ok := p.proxied(r.Request); ok {
		ways = append(ways, html.El("form", html.Attr("method", "post"), html.Attr("action", "/sign-in/proxy"),
			html.El("p", html.Text("You are "), html.El("strong", html.Text(name)), html.Text(".")),
			hidden("to", to), button("Continue as "+account.String(), "primary")))
	}
	return ways
}

// proxied returns whom a trusted proxy names.
func (p *signInPages) proxied(r *http.Request) (name string, a signin.Account, ok bool) {
	values := r.Header.Values(p.identity.Header)
	if p.identity.Header == "" || !p.identity.behind(r) || len(values) != 1 {
		return "", signin.Account{}, false
	}
	a, ok = p.identity.People[values[0]]
	return values[0], a, ok
}

// proxySignIn begins a session for whom a trusted proxy names.
func (p *signInPages) proxySignIn(w http.ResponseWriter, r *request) (view, error) {
	if err := readForm(r.Request); err != nil {
		return view{}, err
	}
	name, _, ok := p.proxied(r.Request)
	if !ok {
		return view{}, fault.New(fault.Forbidden, "No proxy that this server trusts says who you are, or SIGN_IN_PEOPLE does not list you.")
	}
	if err := p.enter(w, r, name, "proxy"); err != nil {
		return view{}, err
	}
	http.Redirect(w, r.Request, localPath(r.PostForm.Get("to")), http.StatusSeeOther)
	return view{}, nil
}

// toIssuer sends a browser to the issuer.
func (p *signInPages) toIssuer(w http.ResponseWriter, r *request) (view, error) {
	if p.identity.Issuer == nil {
		return view{}, errNoPage
	}
	client, now := p.identity.client(r.Request), p.show.now()
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	address, state, err := p.identity.Issuer.Begin(r.Context(), p.site.url+backPath)
	if err != nil {
		p.log.WarnContext(r.Context(), "could not send somebody to the issuer", "err", err)
		return view{}, err
	}
	to := localPath(r.URL.Query().Get("to"))
	p.site.setCookie(w, r.Request, stateCookie, state.Text()+"|"+url.QueryEscape(to), stateLife)
	http.Redirect(w, r.Request, address, http.StatusSeeOther)
	return view{}, nil
}

// fromIssuer begins a session for whom the issuer names.
func (p *signInPages) fromIssuer(w http.ResponseWriter, r *request) (view, error) {
	if p.identity.Issuer == nil {
		return view{}, errNoPage
	}
	client, now := p.identity.client(r.Request), p.show.now()
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	var state issuer.State
	to := "/"
	if c, err := r.Cookie(stateCookie); err == nil {
		kept, path, _ := strings.Cut(c.Value, "|")
		state = issuer.ParseState(kept)
		if path, err = url.QueryUnescape(path); err == nil {
			to = localPath(path)
		}
	}
	p.site.setCookie(w, r.Request, stateCookie, "", 0) // good once
	name, err := p.identity.Issuer.Finish(r.Context(), p.site.url+backPath, state, r.URL.Query())
	if err == nil {
		err = p.enter(w, r, name, "oidc")
	}
	if err != nil {
		p.log.InfoContext(r.Context(), "somebody was not signed in by the issuer", "err", err)
		if !fault.Is(err, fault.Unavailable) {
			p.failed.Take(client, now)
		}
		return view{}, err
	}
	http.Redirect(w, r.Request, to, http.StatusSeeOther)
	return view{}, nil
}

// enter begins a session for somebody by the name that an issuer or a proxy gives.
func (p *signInPages) enter(w http.ResponseWriter, r *request, name, way string) error {
	account, ok := p.identity.People[name]
	if !ok {
		return fault.Newf(fault.Forbidden, "%s may not sign in here. An owner can add the name to SIGN_IN_PEOPLE.", name)
	}
	ctx := r.Context()
	var token string
	err := p.storage.InTx(ctx, func(tx *store.Tx) (err error) {
		token, err = p.beginSession(ctx, tx, account, r.UserAgent(), p.show.now(), namedLife, way)
		return err
	})
	if err != nil {
		return err
	}
	p.site.setCookie(w, r.Request, p.site.cookieName(r.Request), token, namedLife)
	return nil
}

// beginSession makes a session for an account that may use the bot.
func (p *signInPages) beginSession(ctx context.Context, tx *store.Tx, a signin.Account, client string, now time.Time, life time.Duration, way string) (token string, err error) {
	role, err := p.role(ctx, tx, a)
	if err == nil && role == sessions.Stranger {
		err = fault.New(fault.Forbidden, "This account can no longer use the bot.")
	}
	if err != nil {
		return "", err
	}
	session, token := signin.NewSession(a, client, now, life)
	if err := tx.InsertWebSession(ctx, session); err != nil {
		return "", err
	}
	return token, tx.Audit(ctx, sessions.AuditEntry{Actor: a.String(), Action: "web.sign_in", Target: session.ID, Detail: `{"way":"` + way + `"}`})
}
