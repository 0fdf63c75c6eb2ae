package pages

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

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
			html.El("h1", html.Text("Sign in")),
			ways,
			html.El("p", html.Text(need)),
			html.El("ul",
				html.El("li", html.Text("In a private chat with the bot, send "), html.El("code", html.Text("/web")), html.Text(".")),
				html.El("li", html.Text("On the machine that it runs on, run "), html.El("code", html.Text("bot owner-link")), html.Text("."))),
		}}, nil
	}
	now, ctx := p.show.now(), r.Context()
	client := p.identity.client(r.Request)
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	var link signin.Link
	err := p.storage.InRead(ctx, func(tx *store.Tx) error {
		l, ok, err := tx.SignInLink(ctx, signin.Hash(token), now)
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
		html.El("h1", html.Text("Sign in")),
		html.El("p", html.Text("This link signs this browser in as "), html.El("strong", html.Text(link.String())), html.Text(".")),
		html.El("form", html.Attr("method", "post"), html.Attr("action", "/sign-in"),
			hidden("k", token), hidden("to", to), button("Sign in", "primary")),
		html.El("p", html.Class("muted"), html.Text("Do not continue if somebody else sent you the link.")),
	}}, nil
}

// signIn uses a link up and begins a session.
func (p *signInPages) signIn(w http.ResponseWriter, r *request) (view, error) {
	if err := readForm(r.Request); err != nil {
		return view{}, err
	}
	now, ctx := p.show.now(), r.Context()
	client := p.identity.client(r.Request)
	if wait := p.failed.Wait(client, now); wait > 0 {
		return view{}, tooMany(w, wait)
	}
	token, err := p.begin(ctx, signin.Hash(r.PostForm.Get("k")), r.UserAgent(), now)
	if err != nil {
		p.failed.Take(client, now)
		return view{}, err
	}
	p.site.setCookie(w, r.Request, p.site.cookieName(r.Request), token, signin.SessionLife)
	http.Redirect(w, r.Request, localPath(r.PostForm.Get("to")), http.StatusSeeOther)
	return view{}, nil
}

// begin makes a session of a link, in one transaction.
func (p *signInPages) begin(ctx context.Context, hash, client string, now time.Time) (token string, err error) {
	err = p.storage.InTx(ctx, func(tx *store.Tx) error {
		link, ok, err := tx.TakeSignInLink(ctx, hash, now)
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
	var list []signin.Session
	err := p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		list, err = tx.WebSessions(ctx, of, p.show.now())
		return err
	})
	if err != nil {
		return view{}, err
	}
	return view{title: "Account", body: html.Group{
		html.El("h1", html.Text("Account")),
		html.El("p", html.Text("You are "), html.El("strong", html.Text(r.actor())), html.Textf(", role %s.", roleName(r.role))),
		html.El("h2", html.Text("Signed-in browsers")),
		table([]string{"Account", "Browser", "Signed in", "Last used", ""}, html.Map(list, func(s signin.Session) html.Node {
			end := form(r, "/account/end", hidden("id", s.ID), button("Sign out", ""))
			if s.ID == r.session.ID {
				end = html.Text("this browser")
			}
			return row(html.Text(s.String()), html.Text(s.Client), p.show.when(s.CreatedAt), p.show.when(s.LastUsedAt), end)
		})),
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
		s, done, err := tx.RevokeWebSession(ctx, id)
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
		if _, _, err := tx.RevokeWebSession(ctx, r.session.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.actor(), Action: "web.sign_out", Target: r.session.ID})
	})
	if err != nil {
		return outcome{}, err
	}
	p.site.setCookie(w, r.Request, p.site.cookieName(r.Request), "", 0)
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
