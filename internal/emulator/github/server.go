package github

import (
	"context"
	"crypto/rsa"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/calls"
)

// Options configure a Server. The zero value is usable.
type Options struct {
	App App

	// Limits are how fast the bot may call; nil is what GitHub publishes.
	Limits *Limits

	// OldTokens makes installation tokens of the old format, 40 characters,
	// unless the request asks for one with X-GitHub-Stateless-S2S-Token.
	OldTokens bool

	// TokenLifetime is how long an installation token is good; default one hour.
	TokenLifetime time.Duration

	// AckTimeout is how long the bot may take to answer a delivery; default 10 s.
	AckTimeout time.Duration

	// WebURL stands before the addresses of pages; default "https://github.com".
	WebURL string

	// Login is a person whose personal access tokens are the bot's own; see
	// PersonalToken. What it writes counts as written by the bot.
	Login string

	// OnChange is called after each change of what people see, outside of the
	// server's lock and before the bot's call is answered. It may be called
	// concurrently.
	OnChange func(Change)

	// Addr is where Start listens; default a free port of 127.0.0.1.
	Addr string

	// KeepCalls is how many calls and deliveries are kept. Zero keeps all, a
	// negative number none; deliveries that the bot has not acknowledged stay.
	KeepCalls int

	// Now is the clock of all dates; default time.Now. Timers use real time.
	Now func() time.Time
}

// App is the GitHub App under test.
type App struct {
	ID       int64  // default 4711
	ClientID string // default "Iv23liEmulated4711"
	Slug     string // default "remote-agent"; its bot is "<slug>[bot]"
	Name     string // default "Remote Agent"
	Owner    string // default "acme"

	// Permissions and Events are those of every installation; nil is
	// DefaultPermissions and all events.
	Permissions map[string]string
	Events      []string

	// Key is the private key; nil makes one on first use.
	Key *rsa.PrivateKey
}

// DefaultPermissions returns what an App has that works on issues and pull
// requests.
func DefaultPermissions() map[string]string {
	return map[string]string{"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write", "members": "read"}
}

func (o Options) withDefaults() Options {
	setDefault(&o.App.ID, 4711)
	setDefault(&o.App.ClientID, "Iv23liEmulated4711")
	setDefault(&o.App.Slug, "remote-agent")
	setDefault(&o.App.Name, "Remote Agent")
	setDefault(&o.App.Owner, "acme")
	if o.App.Permissions == nil {
		o.App.Permissions = DefaultPermissions()
	}
	setDefault(&o.TokenLifetime, time.Hour)
	setDefault(&o.AckTimeout, 10*time.Second)
	setDefault(&o.WebURL, "https://github.com")
	if o.Limits == nil {
		o.Limits = &Limits{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func setDefault[T comparable](target *T, value T) {
	var zero T
	if *target == zero {
		*target = value
	}
}

// ChangeKind says what happened.
type ChangeKind string

// The kinds of changes.
const (
	ChangeOpened    ChangeKind = "opened"    // an issue or pull request
	ChangeUpdated   ChangeKind = "updated"   // its title, text, state or labels
	ChangeCommented ChangeKind = "commented" // also a review and a comment of one
	ChangeEdited    ChangeKind = "edited"    // a comment
	ChangeDeleted   ChangeKind = "deleted"   // a comment
	ChangeReacted   ChangeKind = "reacted"   // a reaction came or went
)

// Change is one change of what people see.
type Change struct {
	Kind    ChangeKind
	Repo    string
	Number  int
	Comment Comment // as it is after the change; zero if it is about none
	ByBot   bool
	At      time.Time
}

// Server is an emulated GitHub with one App. It is safe for concurrent use. Its
// state lives as long as the value does, through any number of restarts of the
// bot.
type Server struct {
	opts    Options
	limits  Limits
	routes  []*route
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	once    sync.Once
	changed emulator.Signal
	tasks   sync.WaitGroup // deliveries
	client  *http.Client   // for deliveries
	key     func() *rsa.PrivateKey
	faults  calls.Faults[Call, Fault]
	calls   *calls.Log[Call]

	// mu guards all that follows.
	mu            sync.Mutex
	loop          *emulator.Loopback
	closed        bool
	lastID        int64
	users         []*user
	repos         []*repo
	comments      map[int64]*comment
	installations []*installation
	tokens        map[string]*token
	appBot        *user
	appHook       *hook
	deliveries    []*delivery
	byGUID        map[string]*delivery
	outgoing      []*delivery // of what is done under the lock now
	network       Network
	dice          *rand.Rand
	lag           lag
	pace          pacing
	problems      []Violation
	changes       []Change // for OnChange, after the lock is given back
}

// New returns a server that is not listening yet.
func New(opts Options) *Server {
	opts = opts.withDefaults()
	s := &Server{
		opts:   opts,
		limits: opts.Limits.withDefaults(),
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		lastID:   2_500_000_000, // ids of comments have not fitted into 32 bits for years
		comments: map[int64]*comment{},
		byGUID:   map[string]*delivery{},
		tokens:   map[string]*token{},
		dice:     rand.New(rand.NewPCG(1, 1)), //nolint:gosec // deterministic on purpose
		calls:    calls.NewLog[Call](opts.KeepCalls),
		pace:     pacing{byWho: map[string]*paceState{}},
	}
	s.key = sync.OnceValue(func() *rsa.PrivateKey { return makeKey(opts.App.Key) })
	s.routes = routes()
	// Not the context of a caller: deliveries live until Close.
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.appBot = s.know(opts.App.Slug + "[bot]")
	s.appBot.kind, s.appBot.app = typeBot, true
	s.appHook = &hook{id: s.id(), app: true}
	return s
}

// Start serves on Options.Addr.
func (s *Server) Start() error {
	loop, err := emulator.Listen(s.opts.Addr, s.Handler())
	if err != nil {
		return fmt.Errorf("starting the GitHub emulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = loop
	return nil
}

// URL returns the base URL of the API, without a slash at the end, or the empty
// string before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url()
}

func (s *Server) url() string {
	if s.loop == nil {
		return ""
	}
	return s.loop.URL()
}

// BotLogin returns the login of the App's bot.
func (s *Server) BotLogin() string { return s.appBot.login }

// AppID returns the id of the App.
func (s *Server) AppID() int64 { return s.opts.App.ID }

// Close ends all deliveries and connections and waits for them. The ledger stays
// readable. It may be called more than once.
func (s *Server) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		loop := s.loop
		s.mu.Unlock()
		s.cancel()
		if loop != nil {
			loop.Close()
		}
		s.tasks.Wait()
		s.client.CloseIdleConnections()
	})
}

// unlock gives the lock back, sends what came up meanwhile and tells everyone
// who watches about the changes.
func (s *Server) unlock() {
	changes, out := s.changes, s.outgoing
	s.changes, s.outgoing = nil, nil
	if len(out) > 0 {
		s.spawn(func() { s.sendAll(out) })
	}
	s.mu.Unlock()
	if s.opts.OnChange != nil {
		for _, c := range changes {
			s.opts.OnChange(c)
		}
	}
	s.changed.Notify()
}

// change notes a change; c may be nil. The lock must be held.
func (s *Server) change(kind ChangeKind, i *issue, c *comment, by *user) {
	if s.opts.OnChange == nil {
		return
	}
	note := Change{Kind: kind, Repo: i.repo.fullName(), Number: i.number, ByBot: s.isBot(by), At: s.opts.Now()}
	if c != nil {
		note.Comment = s.viewComment(c)
	}
	s.changes = append(s.changes, note)
}

// isBot reports whether a user is the bot under test.
func (s *Server) isBot(u *user) bool {
	return u == s.appBot || s.opts.Login != "" && sameName(u.login, s.opts.Login)
}

// spawn runs a delivery unless the server is closed. The lock must be held.
func (s *Server) spawn(task func()) {
	if !s.closed {
		s.tasks.Go(task)
	}
}

// id returns a new id. The lock must be held, but in New.
func (s *Server) id() int64 {
	s.lastID++
	return s.lastID
}

// Handler serves the API. Start serves it on a port of its own.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func itoa(n int) string     { return strconv.Itoa(n) }
func itoa64(n int64) string { return strconv.FormatInt(n, 10) }
