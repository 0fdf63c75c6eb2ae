package github

import (
	"cmp"
	"crypto/rsa"
	"net/http"
	"strconv"
	"sync"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// Options configure a Server. The zero value is usable.
type Options struct {
	App App

	// Limits are how fast the bot may call; nil is what GitHub publishes.
	Limits *Limits

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
	return map[string]string{"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write"}
}

func (o Options) withDefaults() Options {
	o.App.ID = cmp.Or(o.App.ID, 4711)
	o.App.ClientID = cmp.Or(o.App.ClientID, "Iv23liEmulated4711")
	o.App.Slug = cmp.Or(o.App.Slug, "remote-agent")
	o.App.Name = cmp.Or(o.App.Name, "Remote Agent")
	o.App.Owner = cmp.Or(o.App.Owner, "acme")
	if o.App.Permissions == nil {
		o.App.Permissions = DefaultPermissions()
	}
	o.TokenLifetime = cmp.Or(o.TokenLifetime, time.Hour)
	o.AckTimeout = cmp.Or(o.AckTimeout, 10*time.Second)
	o.WebURL = cmp.Or(o.WebURL, "https://github.com")
	if o.Limits == nil {
		o.Limits = &Limits{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

type core = platformapi.Core[Call, apiError]

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
	Comment Comment // as it is after the change; zero if it is about none
}

// Server is an emulated GitHub with one App. It is safe for concurrent use. Its
// state lives as long as the value does, through any number of restarts of the
// bot.
//
// What a test does with a part is a method of the part, which is embedded. The other
// parts are for the calls of the bot.
type Server struct {
	*core
	*webhooks
	*credentials
	*attachments

	world      *world
	creations  *creations
	pace       *pace
	lag        lag
	operations routes
}

// New returns a server that is not listening yet.
func New(opts Options) *Server {
	opts = opts.withDefaults()
	s := &Server{}
	s.core = platformapi.New[apiError](platformapi.Config[Call]{
		Name: "GitHub", Handler: s.Handler, Now: opts.Now, KeepCalls: opts.KeepCalls,
		NameOf: func(c Call) string { return c.Operation }, Faults: func(c Call) []string { return []string{c.Operation, AnyOperation} },
	})
	w := newWorld(s.core, opts)
	s.world, s.webhooks = w, newWebhooks(w)
	s.credentials = &credentials{world: w, tokens: map[string]*token{}, key: sync.OnceValue(func() *rsa.PrivateKey { return makeKey(opts.App.Key) })}
	s.attachments = &attachments{world: w, tokens: s.credentials, files: map[string]attachment{}}
	s.creations = &creations{hooks: s.webhooks, tokens: s.credentials, agreed: map[string]*creation{}}
	s.pace = &pace{world: w, limits: opts.Limits.withDefaults(), byWho: map[string]*paceState{}}
	s.operations = s.routes()
	return s
}

// actor returns who does what a user does, itself or through the App.
func (s *Server) actor(u *user, viaApp bool) actor {
	return actor{world: s.world, hooks: s.webhooks, user: u, viaApp: viaApp}
}

// Handler serves the API. Start serves it on a port of its own.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func itoa(n int) string     { return strconv.Itoa(n) }
func itoa64(n int64) string { return strconv.FormatInt(n, 10) }
