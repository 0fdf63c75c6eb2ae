package pages_test

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/backup"
	"remote-agent/internal/command"
	"remote-agent/internal/doctor"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var (
	ann = signin.Account{Platform: "console", ID: "local"} // an owner
	bob = signin.Account{Platform: "telegram", ID: "42"}   // a member
	cat = signin.Account{Platform: "telegram", ID: "43"}   // a viewer
)

// world is the pages over a database, with people who may.
type world struct {
	*store.Store

	t      testing.TB
	pages  *pages.Pages
	config pages.Config
	log    bytes.Buffer

	mu    sync.Mutex // guards what follows
	roles map[signin.Account]sessions.Role
	now   time.Time
	took  []messages.Inbound // commands and messages
	rang  []string           // for conversations
	diff  *pages.Changes     // of every conversation; nil: they have no files

	arrived int // browsers that measure
	reply   func(in messages.Inbound) (command.Reply, bool, error)

	connections func() []pages.Connection
	check       func(ctx context.Context, area string) doctor.Report
	background  func(fn func(ctx context.Context)) bool
	backups     string // their folder
	repository  func(ctx context.Context, c sessions.Codebase) (pages.Repository, error)
	settings    func() ([]pages.Setting, []string)
}

func newWorld(tb testing.TB, s *store.Store, change ...func(*pages.Config)) *world {
	tb.Helper()
	w := &world{
		Store: s, t: tb, now: time.Now().UTC().Truncate(time.Second),
		roles: map[signin.Account]sessions.Role{ann: sessions.Owner, bob: sessions.User, cat: sessions.Reader},
		reply: func(messages.Inbound) (command.Reply, bool, error) { return command.Reply{Text: "Done."}, true, nil },
	}
	config := pages.Config{
		Storage: s, Version: "v1", PublicURL: "https://bot.example.com", Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Role: func(_ context.Context, _ *store.Tx, a signin.Account) (sessions.Role, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if role, ok := w.roles[a]; ok {
				return role, nil
			}
			return sessions.Stranger, nil
		},
		Command: func(_ context.Context, in messages.Inbound) (command.Reply, bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.took = append(w.took, in)
			return w.reply(in)
		},
		Accept: func(_ context.Context, in ...messages.Inbound) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.took = append(w.took, in...)
			return nil
		},
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		},
	}
	config.Changes = live.NewHub(live.Limits{Total: 5, PerOwner: 3})
	config.About.Ring = func(_ context.Context, id string) { w.rang = append(w.rang, id) }
	w.background = func(fn func(ctx context.Context)) bool {
		fn(context.Background())
		return true
	}
	w.settings = func() ([]pages.Setting, []string) { return nil, nil }
	config.About.Settings = func() ([]pages.Setting, []string) { return w.settings() }
	w.repository = func(context.Context, sessions.Codebase) (pages.Repository, error) { return pages.Repository{}, nil }
	config.About.Repository = func(ctx context.Context, c sessions.Codebase) (pages.Repository, error) { return w.repository(ctx, c) }
	config.About.ParseProfile = func(text []byte) (profile.Profile, error) {
		list, err := profile.Parse(text)
		if err != nil {
			return profile.Profile{}, err
		}
		return list[0], list[0].Check(profile.Rules{})
	}
	w.backups = tb.TempDir()
	config.About.Backups = &pages.Backups{
		Folder: w.backups,
		Create: func(ctx context.Context) (string, backup.Manifest, error) {
			dir, m, err := backup.Create(ctx, backup.Source{Store: s, Bot: "v1"}, w.backups, config.Now())
			return filepath.Base(dir), m, err
		},
		Verify: func(ctx context.Context, dir string) (backup.Manifest, error) {
			return backup.Verify(ctx, dir, backup.Postgres{})
		},
	}
	w.connections = func() []pages.Connection { return nil }
	config.About.Connections = func() []pages.Connection { return w.connections() }
	config.About.Check = func(ctx context.Context, area string) doctor.Report { return w.check(ctx, area) }
	config.About.Background = func(fn func(ctx context.Context)) bool { return w.background(fn) }
	config.About.People, config.About.Memories = crowd(w.now), &remembering{w}
	config.About.Changes = func(context.Context, sessions.Conversation) (pages.Changes, bool, error) {
		if w.diff == nil {
			return pages.Changes{}, false, nil
		}
		return *w.diff, true, nil
	}
	for _, c := range change {
		c(&config)
	}
	s.OnChange(config.Changes.Changed)
	w.config, w.pages = config, pages.New(config)
	return w
}

func (w *world) do(fn func(ctx context.Context, tx *store.Tx) error) {
	w.t.Helper()
	ctx := context.Background()
	if err := w.InTx(ctx, func(tx *store.Tx) error { return fn(ctx, tx) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) later(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// link makes a link and returns its token.
func (w *world) link(a signin.Account) string {
	w.t.Helper()
	l, token := signin.NewLink(a, w.now)
	w.do(func(ctx context.Context, tx *store.Tx) error { return tx.SignIn().SaveSignInLink(ctx, l, w.now) })
	return token
}

// browser is somebody's browser.
type browser struct {
	*world

	host    string
	from    string // address and port; empty: 192.0.2.1:1000
	cookies map[string]*http.Cookie
	header  http.Header
	ctx     context.Context //nolint:containedctx // of its requests; nil: the test's
}

func (w *world) browser() *browser {
	return &browser{world: w, host: "127.0.0.1:3000", cookies: map[string]*http.Cookie{}, header: http.Header{}}
}

// as is the browser of somebody who is signed in.
func (w *world) as(a signin.Account) *browser {
	w.t.Helper()
	b := w.browser()
	if r := b.send("POST", "/sign-in", url.Values{"k": {w.link(a)}}); r.Code != http.StatusSeeOther {
		w.t.Fatalf("signing in: %d %s", r.Code, r.Body)
	}
	return b
}

func (b *browser) send(method, target string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	ctx := b.ctx
	if ctx == nil {
		ctx = b.t.Context()
	}
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
	r.Host, r.RemoteAddr = b.host, cmp.Or(b.from, "192.0.2.1:1000")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	maps.Copy(r.Header, b.header)
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	out := httptest.NewRecorder()
	b.pages.ServeHTTP(out, r)
	for _, c := range out.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
			continue
		}
		b.cookies[c.Name] = c
	}
	return out
}

// get returns a page that has to be there.
func (b *browser) get(target string) string {
	b.t.Helper()
	r := b.send("GET", target, nil)
	if r.Code != http.StatusOK {
		b.t.Fatalf("GET %s: %d\n%s", target, r.Code, r.Body)
	}
	return r.Body.String()
}

var assetPath = regexp.MustCompile(`/assets/[a-z.]+\?v=[0-9a-f]+`)

var tokenField = regexp.MustCompile(`name="token" value="([0-9a-f]+)"`)

// post sends a form as the pages have it.
func (b *browser) post(target string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	m := tokenField.FindStringSubmatch(b.get("/account"))
	if m == nil {
		b.t.Fatal("there is no form on the page")
	}
	form.Set("token", m[1])
	if form.Get("nonce") == "" {
		form.Set("nonce", strings.ReplaceAll(uuid.NewString(), "-", ""))
	}
	return b.send("POST", target, form)
}

// page returns a page with what is answered to a form.
func (b *browser) follow(r *httptest.ResponseRecorder) string {
	b.t.Helper()
	if r.Code != http.StatusSeeOther {
		b.t.Fatalf("no redirect: %d\n%s", r.Code, r.Body)
	}
	path, _, _ := strings.Cut(r.Header().Get("Location"), "#")
	return b.get(path)
}

func wants(tb testing.TB, page string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(page, part) {
			tb.Errorf("the page has no %q:\n%s", part, page)
		}
	}
}

var (
	sessionLink = regexp.MustCompile(`<a href="/sessions/([0-9a-f-]{36})">`)
	olderLink   = regexp.MustCompile(`href="(/sessions\?[^"]*before=[^"]*)"`)
)
