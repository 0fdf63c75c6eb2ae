package pages

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/signin/issuer"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	// namedLife is how long a session lasts that an issuer or a proxy began: they are asked
	// again twice a day, so that whoever they let go is out.
	namedLife = 12 * time.Hour

	// stateLife is how long people may take at the issuer, and stateCookie what they bring
	// back.
	stateLife   = 10 * time.Minute
	stateCookie = "bot_oidc"

	maxBrowsers = 100 // on a page

	issuerPath = "/sign-in/oidc"
	backPath   = issuerPath + "/back"
)

// Identity is how people get in besides links: named by an issuer or a proxy.
type Identity struct {
	// People are the accounts of those who may, by their names. Nobody else gets in.
	People map[string]signin.Account

	Issuer  *issuer.Issuer    // nil: none
	Proxies ratelimit.Proxies // in front of this server
	Header  string            // in which a proxy names people; empty: none does
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
	if !forwarded || i.Proxies.Sent(r) || hostOf(r.Host) != "localhost" && (err != nil || !host.Unmap().IsLoopback()) {
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

// Link returns the address that signs in with a token. base is where the pages are, such
// as https://bot.example.com.
func Link(base, token string) string { return base + "/sign-in?k=" + token }

var errLink = fault.New(fault.Invalid, "This link is wrong, expired (after 5 minutes) or already used. Get a new one: send /web to the bot in a private chat, or run `bot owner-link` on the machine.")

// signInPages let people in, by a link or by who they are elsewhere, and out again.
type signInPages struct {
	storage  Storage
	show     *renderer
	role     roleOf
	site     site
	identity Identity
	failed   *ratelimit.Limits // of an address
	log      *slog.Logger
}

func (p *signInPages) routes(to *Pages) {
	to.open("GET /sign-in", p.signInPage)
	to.open("POST /sign-in", p.signIn)
	to.open("POST /sign-in/proxy", p.proxySignIn)
	to.open("GET "+issuerPath, p.toIssuer)
	to.open("GET "+backPath, p.fromIssuer)
	to.page("GET /account", p.account)
	to.act("POST /account/end", p.endSession)
	to.act("POST /sign-out", p.signOut)
	to.act("POST /theme", p.chooseTheme)
}

// signInPage says whom a link signs in, or how to get one. It uses nothing up, so that
// programs which look at links in chats do not.
func (p *signInPages) signInPage(w http.ResponseWriter, r *request) (view, error) {
	token, to := r.URL.Query().Get("k"), localPath(r.URL.Query().Get("to"))
	if token == "" {
		ways, need := p.ways(r, to), "You need a link to sign in. It works once, for 5 minutes."
		if len(ways) > 0 {
			need = "Or get a link, which works once, for 5 minutes:"
		}
		return view{title: "Sign in", body: html.Group{
			html.Tag("h1", "Sign in"),
			ways,
			html.Tag("p", need),
			html.El("ul",
				html.El("li", html.Text("In a private chat with the bot, send "), html.Tag("code", "/web"), html.Text(".")),
				html.El("li", html.Text("On the machine that it runs on, run "), html.Tag("code", "bot owner-link"), html.Text("."))),
		}}, nil
	}
	now, ctx := p.show.now(), r.Context()
	client := p.identity.Proxies.Client(r.Request)
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	var link signin.Link
	err := p.storage.InRead(ctx, func(tx *store.Tx) error {
		l, ok, err := tx.SignIn().SignInLink(ctx, signin.Hash(token), now)
		if err == nil && !ok {
			err = errLink
		}
		link = l
		return err
	})
	if err != nil {
		p.failed.Take(client, now)
		return view{}, err
	}
	return view{title: "Sign in", body: html.Group{
		html.Tag("h1", "Sign in"),
		html.El("p", html.Text("This link signs this browser in as "), html.Tag("strong", link.String()), html.Text(".")),
		html.El("form", html.Attr("method", "post"), html.Attr("action", "/sign-in"),
			hidden("k", token), hidden("to", to), button("Sign in", "primary")),
		html.Styled("p", "muted", "Do not continue if somebody else sent you the link."),
	}}, nil
}

// signIn uses a link up and begins a session.
func (p *signInPages) signIn(w http.ResponseWriter, r *request) (view, error) {
	if err := readForm(r.Request); err != nil {
		return view{}, err
	}
	now, ctx := p.show.now(), r.Context()
	client := p.identity.Proxies.Client(r.Request)
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	token, err := p.begin(ctx, signin.Hash(r.PostForm.Get("k")), r.UserAgent(), now)
	if err != nil {
		p.failed.Take(client, now)
		return view{}, err
	}
	p.site.setCookie(w, r.Request, p.site.guarded(r.Request, sessionCookie), token, signin.SessionLife)
	http.Redirect(w, r.Request, localPath(r.PostForm.Get("to")), http.StatusSeeOther)
	return view{}, nil
}

// begin makes a session of a link, in one transaction.
func (p *signInPages) begin(ctx context.Context, hash, client string, now time.Time) (token string, err error) {
	err = p.storage.InTx(ctx, func(tx *store.Tx) error {
		link, ok, err := tx.SignIn().TakeSignInLink(ctx, hash, now)
		if err == nil && !ok {
			err = errLink
		}
		if err != nil {
			return err
		}
		token, err = p.beginSession(ctx, tx, link.Account, client, now, signin.SessionLife, "link")
		return err
	})
	return token, err
}

// account shows who is signed in, and where.
func (p *signInPages) account(r *request) (view, error) {
	ctx, of := r.Context(), r.session.Account
	if r.owner() {
		of = signin.Account{}
	}
	until, err := r.number("until")
	if err != nil {
		return view{}, err
	}
	list, err := store.Within(ctx, p.storage.InRead, func(tx *store.Tx) ([]signin.Session, error) {
		return tx.SignIn().WebSessions(ctx, of, p.show.now(), until, maxBrowsers+1)
	})
	if err != nil {
		return view{}, err
	}
	var more html.Node
	if len(list) > maxBrowsers {
		more = older(r, "until", strconv.FormatInt(list[maxBrowsers].CreatedAt.UnixMilli(), 10), "", "Older sign-ins")
		list = list[:maxBrowsers]
	}
	return view{title: "Account", body: html.Group{
		html.Tag("h1", "Account"),
		html.El("p", html.Text("You are "), html.Tag("strong", r.actor()), html.Textf(", role %s.", roleName(r.role))),
		html.Tag("h2", "Signed-in browsers"),
		table([]string{"Account", "Browser", "Signed in", "Last used", ""}, html.Map(list, func(s signin.Session) html.Node {
			end := form(r, "/account/end", hidden("id", s.ID), button("Sign out", ""))
			if s.ID == r.session.ID {
				end = html.Text("this browser")
			}
			return row(html.Text(s.String()), html.Text(s.Client), p.show.when(s.CreatedAt), p.show.when(s.LastUsedAt), end)
		})),
		more,
		form(r, "/sign-out", button("Sign out here", "")),
	}}, nil
}

// roleName is what a role is called on pages.
func roleName(r sessions.Role) string {
	switch r {
	case sessions.User:
		return "member"
	case sessions.Reader:
		return "viewer"
	case sessions.Owner, sessions.Stranger:
	}
	return string(r)
}

// endSession ends a session: one's own, or for owners anybody's.
func (p *signInPages) endSession(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx, id := r.Context(), r.PostForm.Get("id")
	var ended signin.Session
	err := p.storage.InTx(ctx, func(tx *store.Tx) error {
		s, done, err := tx.SignIn().RevokeWebSession(ctx, id)
		if err != nil {
			return err
		}
		if s.Account != r.session.Account && !r.owner() {
			return fault.New(fault.NotFound, "There is no such session.")
		}
		if ended = s; !done {
			return nil
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: "web.revoke", Target: s.String(), Detail: `{"session":"` + s.ID + `"}`})
	})
	return outcome{to: "/account", said: "Signed out " + ended.String() + " (" + wording.Head(ended.Client, 60) + ")."}, err
}

// signOut ends the session of the request.
func (p *signInPages) signOut(w http.ResponseWriter, r *request) (outcome, error) {
	ctx := r.Context()
	err := p.storage.InTx(ctx, func(tx *store.Tx) error {
		if _, _, err := tx.SignIn().RevokeWebSession(ctx, r.session.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: "web.sign_out", Target: r.session.ID})
	})
	if err != nil {
		return outcome{}, err
	}
	p.site.setCookie(w, r.Request, p.site.guarded(r.Request, sessionCookie), "", 0)
	return outcome{to: "/sign-in"}, nil
}

// chooseTheme keeps how the pages look in a cookie, so that they come right at once.
func (p *signInPages) chooseTheme(w http.ResponseWriter, r *request) (outcome, error) {
	theme := r.PostForm.Get("theme")
	switch theme {
	case "light", "dark":
		p.site.setCookie(w, r.Request, themeCookie, theme, 365*24*time.Hour)
	case "auto":
		p.site.setCookie(w, r.Request, themeCookie, "", 0)
	default:
		return outcome{}, fault.New(fault.Invalid, "Choose light, dark or automatic.")
	}
	return outcome{to: r.PostForm.Get("back")}, nil
}

// ways are the other ways in, on the page for signing in.
func (p *signInPages) ways(r *request, to string) (ways html.Group) {
	if i := p.identity.Issuer; i != nil {
		ways = append(ways, html.El("p", html.El("a", html.Class("button primary"), html.Href(issuerPath+"?to="+queryEscape(to)), html.Text("Sign in with "+i.Name()))))
	}
	if name, account, ok := p.proxied(r.Request); ok {
		ways = append(ways, html.El("form", html.Attr("method", "post"), html.Attr("action", "/sign-in/proxy"),
			html.El("p", html.Text("You are "), html.Tag("strong", name), html.Text(".")),
			hidden("to", to), button("Continue as "+account.String(), "primary")))
	}
	return ways
}

// proxied returns whom a trusted proxy names.
func (p *signInPages) proxied(r *http.Request) (name string, a signin.Account, ok bool) {
	values := r.Header.Values(p.identity.Header)
	if p.identity.Header == "" || !p.identity.Proxies.Sent(r) || len(values) != 1 {
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

// toIssuer sends a browser to the issuer, from the address to which that sends it back:
// what the browser keeps meanwhile is known there only.
func (p *signInPages) toIssuer(w http.ResponseWriter, r *request) (view, error) {
	if p.identity.Issuer == nil {
		return view{}, errNoPage
	}
	client, now := p.identity.Proxies.Client(r.Request), p.show.now()
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	to := localPath(r.URL.Query().Get("to"))
	if p.site.scheme(r.Request) == "" && r.URL.Query().Get("from") == "" { // once: a proxy may hide the name
		http.Redirect(w, r.Request, p.site.url+issuerPath+"?from=elsewhere&to="+queryEscape(to), http.StatusSeeOther)
		return view{}, nil
	}
	address, state, err := p.identity.Issuer.Begin(r.Context(), p.site.url+backPath)
	if err != nil {
		p.log.WarnContext(r.Context(), "could not send somebody to the issuer", "err", err)
		return view{}, err
	}
	p.site.setCookie(w, r.Request, p.site.guarded(r.Request, stateCookie), state.Text()+"|"+url.QueryEscape(to), stateLife)
	http.Redirect(w, r.Request, address, http.StatusSeeOther)
	return view{}, nil
}

// fromIssuer begins a session for whom the issuer names.
func (p *signInPages) fromIssuer(w http.ResponseWriter, r *request) (view, error) {
	if p.identity.Issuer == nil {
		return view{}, errNoPage
	}
	client, now := p.identity.Proxies.Client(r.Request), p.show.now()
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	var state issuer.State
	to := "/"
	if c, err := r.Cookie(p.site.guarded(r.Request, stateCookie)); err == nil {
		kept, path, _ := strings.Cut(c.Value, "|")
		state = issuer.ParseState(kept)
		if path, err = url.QueryUnescape(path); err == nil {
			to = localPath(path)
		}
	}
	p.site.setCookie(w, r.Request, p.site.guarded(r.Request, stateCookie), "", 0) // good once
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
	token, err := store.Within(ctx, p.storage.InTx, func(tx *store.Tx) (string, error) {
		return p.beginSession(ctx, tx, account, r.UserAgent(), p.show.now(), namedLife, way)
	})
	if err != nil {
		return err
	}
	p.site.setCookie(w, r.Request, p.site.guarded(r.Request, sessionCookie), token, namedLife)
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
	if err := tx.SignIn().InsertWebSession(ctx, session); err != nil {
		return "", err
	}
	return token, tx.Audit(ctx, sessions.AuditEntry{Actor: a.String(), Action: "web.sign_in", Target: session.ID, Detail: `{"way":"` + way + `"}`})
}
