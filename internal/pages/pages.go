// Package pages is the web pages of the program: what waits for a person, what runs,
// what was said, what it cost, and who may. Everything can be read and decided without
// JavaScript.
//
// Nobody sees a page without a session (package signin). What somebody may see and do is
// that of their account, looked up for every request; what they do goes the way of the
// chat commands. All that comes from outside is escaped by package html.
package pages

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/time/rate"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/sessions"
	"remote-agent/internal/setup"
	"remote-agent/internal/signin"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// What a client may cost.
const (
	pageRate    = rate.Limit(20) // requests a second in one session
	pageBurst   = 100
	failedRate  = rate.Limit(1.0 / 6) // wrong links and cookies a second from one address
	failedBurst = 10
	staleFor    = time.Hour // how long a wrong cookie is one guess, however often it comes

	maxForm = 256 << 10 // bytes of a form
)

// How long what is asked of a page may take. Whoever waits for a database that does not answer
// reads that, before the server breaks the connection off without a word.
const (
	whoPatience   = 8 * time.Second  // to find out who asks
	pagePatience  = 30 * time.Second // to show a page
	formPatience  = 50 * time.Second // to do what a form asks for, which may be to try a service
	touchPatience = 2 * time.Second  // to note that a session was used
)

// bounded is a request that may take as long as d.
func bounded(r *http.Request, d time.Duration) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	return r.WithContext(ctx), cancel
}

// policy is the content security policy of every page.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Storage is where pages read and write; *store.Store is one.
type Storage interface {
	InTx(ctx context.Context, fn func(tx *store.Tx) error) error
	InRead(ctx context.Context, fn func(tx *store.Tx) error) error
}

// Config configures Pages.
type Config struct {
	Storage   Storage
	PublicURL string // empty: this machine only
	Version   string

	// Role says what an account may do at this moment.
	Role func(ctx context.Context, tx *store.Tx, a signin.Account) (sessions.Role, error)

	// SecondApprover is that approvals need somebody else than the one who asked.
	SecondApprover bool

	// Command takes in a command, or a button that was pressed; see
	// orchestrator.Command. Accept takes in what somebody says.
	Command func(ctx context.Context, in messages.Inbound) (answer command.Reply, known bool, err error)
	Accept  func(ctx context.Context, events ...messages.Inbound) error

	// Redact removes secrets from what is shown; nil changes nothing.
	Redact func(text string) string

	// About are facts that only the program as a whole knows.
	About About

	// Talk takes what people say in the browser; nil: they cannot.
	Talk Talk

	// Changes tells pages that are open of what changes; nil: they stay as they are.
	Changes *live.Hub

	// Setup returns what changes the configuration, as it is now; nil if nothing can.
	Setup func() (setup.Service, error)

	// Identity is how people get in besides links.
	Identity Identity

	Log *slog.Logger
	Now func() time.Time // default time.Now
}

// Pages answers the requests of browsers: it knows the paths and guards them. What is
// shown and done there is of the families of pages. It is safe for concurrent use.
type Pages struct {
	storage  Storage
	role     roleOf
	identity Identity
	site     site
	frame    *frame
	log      *slog.Logger
	now      func() time.Time

	mux      *http.ServeMux
	guard    *http.CrossOriginProtection
	uses     *ratelimit.Limits // of a session
	failed   *ratelimit.Limits // of an address
	stale    *ratelimit.Limits // of a cookie that is of no session: browsers send an old one with each request
	together sharedPages
	anybody  string // stands for the token of a session in a page that is made for several
}

// New returns Pages.
func New(config Config) *Pages {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.About.Budget == nil {
		config.About.Budget = func() spend.Budget { return spend.Budget{} }
	}
	if config.Redact == nil {
		config.Redact = func(text string) string { return text }
	}
	show := &renderer{redact: config.Redact, now: config.Now, markdown: html.NewRenderer()}
	p := &Pages{
		storage: config.Storage, role: config.Role, identity: config.Identity, site: site{config.PublicURL}, log: config.Log, now: config.Now,
		frame: &frame{show: show, version: config.Version, assets: readAssets(), changes: config.Changes, log: config.Log},
		mux:   http.NewServeMux(), guard: http.NewCrossOriginProtection(), anybody: rand.Text(),
		uses: ratelimit.New(pageRate, pageBurst), failed: ratelimit.New(failedRate, failedBurst), stale: ratelimit.New(rate.Every(staleFor), 1),
	}
	p.routes(config, show)
	return p
}

// routes makes the families of pages; each adds its paths.
func (p *Pages) routes(c Config, show *renderer) {
	about := c.About
	jobs := &jobs{background: about.Background, now: c.Now, log: c.Log}
	p.mux.HandleFunc("GET /assets/{name}", p.frame.assets.serve)
	(&signInPages{storage: c.Storage, show: show, role: c.Role, site: p.site, identity: c.Identity, failed: p.failed, log: c.Log}).routes(p)
	(&overviewPages{storage: c.Storage, show: show, budget: about.Budget, platforms: about.Platforms}).routes(p)
	(&approvalPages{storage: c.Storage, show: show, commands: c.Command, secondApprover: c.SecondApprover}).routes(p)
	(&sessionPages{storage: c.Storage, show: show, diff: about.Changes, exports: about.Export, removes: about.RemoveSession != nil, log: c.Log}).routes(p)
	(&sessionForms{storage: c.Storage, commands: c.Command, accept: c.Accept, deletes: about.RemoveSession, now: c.Now}).routes(p)
	(&livePages{storage: c.Storage, role: c.Role, changes: c.Changes, now: c.Now}).routes(p)
	(&repoPages{storage: c.Storage, show: show, workspace: about.Repository}).routes(p)
	(&profilePages{storage: c.Storage, show: show, frame: p.frame, parse: about.ParseProfile}).routes(p)
	(&manualPages{version: c.Version, markdown: sync.OnceValue(func() *html.Renderer { return html.NewManual(manualLink) })}).routes(p)
	(&costPages{storage: c.Storage, show: show, budget: about.Budget}).routes(p)
	(&memoryPages{storage: c.Storage, show: show, memories: about.Memories}).routes(p)
	(&queuePages{storage: c.Storage, show: show, commands: c.Command, ring: about.Ring}).routes(p)
	(&peoplePages{storage: c.Storage, show: show, directory: about.People, budget: about.Budget}).routes(p)
	(&auditPages{storage: c.Storage, show: show, jobs: jobs, sound: about.AuditSound}).routes(p)
	(&systemPages{storage: c.Storage, show: show, jobs: jobs, connections: about.Connections, options: about.Settings, examine: about.Check}).routes(p)
	(&setupPages{storage: c.Storage, show: show, frame: p.frame, site: p.site, configuration: c.Setup, log: c.Log}).routes(p)
	if c.Talk != nil {
		(&chatPages{storage: c.Storage, show: show, commands: c.Command, talk: c.Talk, remove: about.RemoveChat, uploading: make(chan struct{}, uploads)}).routes(p)
	}
	if about.Backups != nil {
		(&backupPages{storage: c.Storage, show: show, jobs: jobs, can: about.Backups, log: c.Log}).routes(p)
	}
}

var errNoPage = fault.New(fault.NotFound, "There is no such page.")

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // without one, older browsers do not say where a form comes from
	if p.site.secure(r) {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if why := p.identity.misled(r); why != "" {
		p.frame.explain(w, &request{Request: r}, http.StatusMisdirectedRequest, why, nil) //nolint:contextcheck // it has the request's
		return
	}
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path {
		p.failHere(w, r, errNoPage) //nolint:contextcheck // r carries it
		return
	}
	if err := p.guard.Check(r); err != nil {
		p.frame.fail(w, &request{Request: r}, fault.New(fault.Forbidden, "This form was sent from another site, so nothing was done.")) //nolint:contextcheck // as above
		return
	}
	limit := int64(maxForm)
	if isUpload(r) {
		limit = maxUpload
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	handler, pattern := p.mux.Handler(r)
	if pattern == "" {
		seen := &statusRecorder{header: http.Header{}}
		handler.ServeHTTP(seen, r) // says whether it is the path or the method
		err := errNoPage
		if seen.status == http.StatusMethodNotAllowed {
			h.Set("Allow", seen.header.Get("Allow"))
			err = fault.New(fault.Unsupported, "This page cannot be used that way.")
		}
		p.failHere(w, r, err) //nolint:contextcheck // as above
		return
	}
	p.mux.ServeHTTP(w, r)
}

// failHere shows an error of no page, with the navigation for who is signed in.
func (p *Pages) failHere(w http.ResponseWriter, plain *http.Request, err error) {
	r, _ := p.authenticate(w, plain) // whoever is not is told the same
	p.frame.fail(w, r, err)
}

// statusRecorder notes the status of an answer and drops it.
type statusRecorder struct {
	header http.Header
	status int
}

func (s *statusRecorder) Header() http.Header         { return s.header }
func (s *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (s *statusRecorder) WriteHeader(status int)      { s.status = status }

// request is one of somebody who is signed in.
type request struct {
	*http.Request

	session signin.Session
	token   string // of the session
	role    sessions.Role
	said    string // what became of what they did before
}

// owner reports whether they may see and do everything.
func (r *request) owner() bool { return r.role == sessions.Owner }

// actor names who it is, as the audit log does.
func (r *request) actor() string { return r.session.String() }

// view is a page that is ready to be shown.
type view struct {
	title string
	body  html.Node
	badge string // what a tab shows before the title
	live  string // what its changes are of, as /events names it; empty: it stays as it is
	at    string // the last change before it was made

	formTo string // the one other site that a form of the page leads to; may be empty
}

// outcome is what an action came to.
type outcome struct {
	to   string // a path of the pages
	said string // told on the next page, in Markdown
}

// open adds what people do who are not signed in yet.
func (p *Pages) open(pattern string, do func(w http.ResponseWriter, r *request) (view, error)) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serveOpen(w, r, do) }) //nolint:contextcheck // r carries it
}

func (p *Pages) serveOpen(w http.ResponseWriter, plain *http.Request, do func(w http.ResponseWriter, r *request) (view, error)) {
	plain, cancel := bounded(plain, pagePatience)
	defer cancel()
	r := &request{Request: plain}
	v, err := do(w, r)
	switch {
	case err != nil:
		p.frame.fail(w, r, err) //nolint:contextcheck // r carries it
	case v.body != nil:
		p.frame.write(w, r, http.StatusOK, v)
	}
}

// page adds a page for people who are signed in.
//
//go:noinline // it would be copied into many callers
func (p *Pages) page(pattern string, show func(r *request) (view, error)) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.servePage(w, r, show) }) //nolint:contextcheck // r carries it
}

func (p *Pages) servePage(w http.ResponseWriter, plain *http.Request, show func(r *request) (view, error)) {
	plain, cancel := bounded(plain, pagePatience)
	defer cancel()
	r, err := p.authenticate(w, plain)
	if errors.Is(err, errNobody) {
		http.Redirect(w, plain, "/sign-in?to="+queryEscape(plain.URL.RequestURI()), http.StatusSeeOther) //nolint:gosec // a path of ours
		return
	}
	if err != nil {
		p.frame.fail(w, r, err) //nolint:contextcheck // r carries it
		return
	}
	if isPart(plain) && plain.URL.Path == "/" {
		if err := p.share(w, r, show); err != nil { //nolint:contextcheck // r carries it
			p.frame.fail(w, r, err) //nolint:contextcheck // r carries it
		}
		return
	}
	if !isPart(plain) {
		r.said = p.site.heard(w, plain)
	}
	at := p.frame.position()
	v, err := show(r)
	if err != nil {
		p.frame.fail(w, r, err) //nolint:contextcheck // r carries it
		return
	}
	v.at = at
	p.frame.write(w, r, http.StatusOK, v)
}

// file adds something that is not a page, for people who are signed in.
//
//go:noinline // it would be copied into many callers
func (p *Pages) file(pattern string, send func(w http.ResponseWriter, r *request) error) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serveFile(w, r, send) }) //nolint:contextcheck // r carries it
}

func (p *Pages) serveFile(w http.ResponseWriter, plain *http.Request, send func(w http.ResponseWriter, r *request) error) {
	r, err := p.authenticate(w, plain)
	if errors.Is(err, errNobody) {
		err = fault.New(fault.Unauthorized, "You are not signed in.")
	}
	if err == nil {
		err = send(w, r)
	}
	if err != nil {
		p.frame.fail(w, r, err) //nolint:contextcheck // r carries it
	}
}

// act adds something that people who are signed in do with a form.
//
//go:noinline // it would be copied into many callers
func (p *Pages) act(pattern string, do func(w http.ResponseWriter, r *request) (outcome, error)) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serveAct(w, r, do) }) //nolint:contextcheck // r carries it
}

func (p *Pages) serveAct(w http.ResponseWriter, plain *http.Request, do func(w http.ResponseWriter, r *request) (outcome, error)) {
	r, err := p.authenticate(w, plain)
	if errors.Is(err, errNobody) {
		err = fault.New(fault.Unauthorized, "You are not signed in, so nothing was done. Sign in and try again.")
	}
	if err == nil && isUpload(plain) { // who is not signed in gets no more time than others
		until, control := time.Now().Add(uploadTime), http.NewResponseController(w)
		_ = control.SetReadDeadline(until) // where there is none, there is nothing to wait for
		_ = control.SetWriteDeadline(until.Add(time.Minute))
	}
	if err == nil {
		err = readForm(plain)
	}
	if err == nil && !sameText(plain.PostForm.Get("token"), formToken(r.token)) {
		err = fault.New(fault.Forbidden, "This form is not from a page that you have open, so nothing was done. Reload the page and try again.")
	}
	if err == nil && !isNonce(plain.PostForm.Get("nonce")) {
		err = fault.New(fault.Invalid, "The form is not complete, so nothing was done. Reload the page and try again.")
	}
	var done outcome
	if err == nil { // the server looks after the files of the request that has read them
		var cancel context.CancelFunc
		r.Request, cancel = bounded(plain, formPatience)
		defer cancel()
		done, err = do(w, r)
	}
	switch {
	case errors.Is(err, errAnswered):
	case err != nil:
		p.frame.refuse(w, r, err) //nolint:contextcheck // r carries it
	case wording.Head(done.said, maxSaid) != done.said: // no cookie has room for it
		p.frame.write(w, r, http.StatusOK, p.frame.answer(done))
	default:
		p.site.say(w, r, done.said)
		http.Redirect(w, plain, localPath(done.to), http.StatusSeeOther)
	}
}

func ownersSee(show func(r *request) (view, error)) func(r *request) (view, error) {
	return func(r *request) (view, error) {
		if !r.owner() {
			return view{}, fault.New(fault.Forbidden, "Only owners can see this page.")
		}
		return show(r)
	}
}

func ownersDo(do func(w http.ResponseWriter, r *request) (outcome, error)) func(w http.ResponseWriter, r *request) (outcome, error) {
	return func(w http.ResponseWriter, r *request) (outcome, error) {
		if !r.owner() {
			return outcome{}, fault.New(fault.Forbidden, "Only owners can do this.")
		}
		return do(w, r)
	}
}

// errAnswered is the error of an action that has written a page itself, such as the form
// again with what is wrong in it.
var errAnswered = errors.New("answered")

func readForm(r *http.Request) error {
	if isUpload(r) {
		return readUploads(r)
	}
	err := r.ParseForm()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return fault.New(fault.Invalid, "The form is too large: send at most 256 KiB.")
	}
	if err != nil {
		return fault.New(fault.Invalid, "The form could not be read.")
	}
	return nil
}

// localPath returns where to go next: a path of the pages, whatever was asked for.
// Browsers leave out tabs and line breaks, and take a backslash for a slash: what they
// make of "/\t/example.com" is another site.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) || strings.ContainsFunc(to, unicode.IsControl) {
		return "/"
	}
	return to
}

var statuses = map[fault.Kind]int{ //nolint:gochecknoglobals // a constant
	fault.Invalid: http.StatusBadRequest, fault.Unauthorized: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.NotFound: http.StatusNotFound, fault.Gone: http.StatusNotFound, fault.Conflict: http.StatusConflict, fault.RateLimited: http.StatusTooManyRequests,
	fault.Unsupported: http.StatusMethodNotAllowed, fault.Unavailable: http.StatusServiceUnavailable,
	fault.Descriptors: http.StatusServiceUnavailable, fault.Memory: http.StatusServiceUnavailable, fault.Disk: http.StatusServiceUnavailable,
}

// statusOf is the status of an answer that is an error.
func statusOf(err error) int {
	return cmp.Or(statuses[fault.KindOf(err)], http.StatusInternalServerError)
}
