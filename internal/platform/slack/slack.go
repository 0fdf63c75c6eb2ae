// Package slack connects one Slack app, over Socket Mode or over HTTP.
//
// Both transports hand the same payloads to the same translation, and confirm
// an event to Slack only after the sink has stored it. Payloads are read
// leniently: blocks are never parsed, so a malformed one costs nothing.
//
// Calls go through slack.Client of the Slack library, Socket Mode through its
// socketmode, signatures through its verifier. What they lack is in the round
// tripper below them: see package exchange, and wire for what only Slack needs.
package slack

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// Name is the platform's name in every conversation key.
const Name = messages.Platform("slack")

const (
	defaultAPIURL = "https://slack.com/api/"

	// callTimeout bounds every call to the Web API.
	callTimeout = 30 * time.Second

	// editEvery is the shortest time between two edits that show progress: what
	// clients redraw without flicker, and a share of chat.update's tier (50 a
	// minute for the workspace). streamEvery is how often it is worth to append to
	// a stream.
	editEvery   = 3 * time.Second
	streamEvery = time.Second

	// placeholderAfter is how long a turn runs until there is a message that shows it:
	// the status does so before. Each such message takes an edit of the workspace's.
	placeholderAfter = 2 * time.Second
)

// Config configures an Adapter.
type Config struct {
	BotToken      string // xoxb-…
	AppToken      string // xapp-…; set: Socket Mode
	SigningSecret string // of the app; required without AppToken
	APIURL        string // of a stand-in; empty is https://slack.com/api/

	Streaming bool // show answers while they are written

	// Engaged reports whether the bot takes part in a conversation, so that
	// people need not mention it there. An error leaves the event
	// unacknowledged. Nil: only mentions count.
	Engaged func(ctx context.Context, key messages.ConversationKey) (bool, error)

	// Commands returns the names that are commands after /agent and after a
	// mention that begins a message. Nil: only a few words are, such as stop.
	Commands func() []string

	// Transport carries the calls. Nil: one of the adapter's own.
	Transport http.RoundTripper

	// MaxConns is how many connections to the platform are open at once; calls beyond
	// that wait. Zero is no limit.
	MaxConns int

	// Limits counts the calls of all processes together. Nil: there is no other.
	Limits platform.SharedLimits

	Log *slog.Logger

	// Observe counts events of a small, fixed set of names. May be nil.
	Observe func(event string)
}

// Adapter is a Slack app installed in one workspace or organization. It
// implements platform.Adapter and the optional interfaces listed below.
type Adapter struct {
	cfg     Config
	base    string // the API's URL with a slash at the end
	log     *slog.Logger
	observe func(string)
	client  *http.Client
	web     *slack.Client
	scrub   *exchange.Scrubber
	clock   exchange.Clock
	limits  *limiter
	linkGap time.Duration
	open    atomic.Int32     // sockets
	hearing platform.Hearing // over them

	// self is who auth.test says that we are, once known.
	self   *platform.Self[identity]
	scopes atomic.Pointer[[]string]

	// revoked has room for one word that the app was removed; Run looks into it.
	revoked chan struct{}

	streams   *streamSet
	noStreams [2]atomic.Int64                     // by kindOfPlace: none are opened until then, in Unix nanoseconds
	stops     chan messages.Inbound               // stops that Run passes on
	askers    *platform.Recent[string, string]    // message -> user id of who wrote it
	homes     *platform.Recent[string, string]    // user id -> team
	claims    claims                              // message -> delivery
	edited    *platform.Recent[string, time.Time] // message -> when it last showed progress

	sessions atomic.Int32                        // what sessionState is known
	noStatus atomic.Bool                         // the workspace has no status of assistant threads
	left     leftovers                           // statuses to take away
	gestures *platform.Recent[string, string]    // client_msg_id -> ts that it was first seen with
	replyTo  *platform.Recent[string, string]    // event or new- key -> response_url
	names    *platform.Recent[string, string]    // user id -> name
	unnamed  chan string                         // user ids whose names Run asks for
	statuses *platform.Recent[string, time.Time] // conversation id -> when its status was set
	marks    *platform.Recent[string, string]    // message -> reaction that it has
	marking  keyed                               // by message
}

// identity is the bot's own account.
type identity struct {
	team       string
	enterprise string // only for an organization-wide installation
	user       string // the bot user's id
	bot        string // the bot's id, as in bot_id of its messages
	name       string
}

func (me identity) account() string { return account(me.enterprise, me.team) }

var (
	_ platform.Editor          = (*Adapter)(nil)
	_ platform.Prefixer        = (*Adapter)(nil)
	_ platform.Typer           = (*Adapter)(nil)
	_ platform.Marker          = (*Adapter)(nil)
	_ platform.Checker         = (*Adapter)(nil)
	_ platform.Receiving       = (*Adapter)(nil)
	_ platform.Examiner        = (*Adapter)(nil)
	_ platform.Whisperer       = (*Adapter)(nil)
	_ platform.Dialoger        = (*Adapter)(nil)
	_ platform.Fetcher         = (*Adapter)(nil)
	_ platform.Contexter       = (*Adapter)(nil)
	_ platform.OwnerLinker     = (*Adapter)(nil)
	_ platform.WebhookReceiver = (*Adapter)(nil)
	_ platform.Opener          = (*Adapter)(nil)
)

var (
	botTokenForm = pattern.Lazy(`^xox[abep][A-Za-z0-9.-]*-[A-Za-z0-9-]+$`)
	appTokenForm = pattern.Lazy(`^xapp-[A-Za-z0-9-]+$`)
)

// minSecret is the shortest signing secret that is taken for one. Slack's have
// 32 characters.
const minSecret = 16

// New returns an adapter. It does no I/O. What is wrong with cfg is a
// fault.Invalid that names the option.
func New(cfg Config) (*Adapter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string) {}
	}
	if cfg.APIURL == "" {
		cfg.APIURL = defaultAPIURL
	}
	a := &Adapter{
		cfg:      cfg,
		base:     strings.TrimRight(cfg.APIURL, "/") + "/",
		log:      cfg.Log,
		observe:  cfg.Observe,
		scrub:    exchange.NewScrubber(nil, cfg.BotToken, cfg.AppToken, cfg.SigningSecret),
		limits:   newLimiter(cfg.Limits, exchange.AccountOf(cfg.BotToken)),
		linkGap:  linkGap,
		revoked:  make(chan struct{}, 1),
		self:     platform.NewSelf[identity](),
		gestures: platform.NewRecent[string, string](4096),
		replyTo:  platform.NewRecent[string, string](4096),
		names:    platform.NewRecent[string, string](4096),
		unnamed:  make(chan string, 256),
		streams:  newStreamSet(),
		stops:    make(chan messages.Inbound, 64),
		askers:   platform.NewRecent[string, string](4096),
		homes:    platform.NewRecent[string, string](4096),
		claims:   claims{platform.NewRecent[string, claimed](4096)},
		edited:   platform.NewRecent[string, time.Time](4096),
		statuses: platform.NewRecent[string, time.Time](4096),
		marks:    platform.NewRecent[string, string](4096),
	}
	if cfg.Transport == nil {
		cfg.Transport = exchange.Transport(cfg.MaxConns)
	}
	a.client = exchange.Client(wire{cfg.Transport, cfg.BotToken})
	a.web = slack.New(cfg.BotToken, slack.OptionAPIURL(a.base), slack.OptionAppLevelToken(cfg.AppToken), slack.OptionHTTPClient(a.client))
	return a, nil
}

func (c Config) check() error {
	if !botTokenForm.MatchString(c.BotToken) {
		return fault.New(fault.Invalid, "SLACK_BOT_TOKEN is not a bot token: it begins with xoxb- and is on the app's page, OAuth & Permissions")
	}
	if c.AppToken != "" && !appTokenForm.MatchString(c.AppToken) {
		return fault.New(fault.Invalid, "SLACK_APP_TOKEN is not an app-level token: it begins with xapp- and is on the app's page, Basic Information")
	}
	if c.AppToken == "" && len(c.SigningSecret) < minSecret {
		return fault.New(fault.Invalid, "SLACK_SIGNING_SECRET is missing or too short: without it, or SLACK_APP_TOKEN for Socket Mode, anyone could pose as Slack")
	}
	if c.APIURL != "" {
		if u, err := url.Parse(c.APIURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fault.New(fault.Invalid, "SLACK_API_URL is not an http or https URL")
		}
	}
	return nil
}

// Platform implements platform.Adapter.
func (a *Adapter) Platform() messages.Platform { return Name }

// Capabilities implements platform.Adapter.
func (a *Adapter) Capabilities() platform.Capabilities {
	return platform.Capabilities{
		MaxText:        maxText,
		MaxMessages:    platform.FewMessages,
		Measure:        measure,
		Streaming:      a.cfg.Streaming,
		EditInterval:   streamEvery, // edits that come too early are shed
		SilentEdits:    true,
		IdempotentSend: true,

		PlaceholderAfter: placeholderAfter,

		Buttons:       true,
		OnlyFor:       true,
		OutcomeMarks:  true,
		Place:         "Slack",
		Format:        "Bold, italics, strikethrough, links, quotes, lists, headings, tables and code are shown; images and HTML are not. Long code is posted as a file.",
		CommandPrefix: slashPrefix,
	}
}

// CommandPrefix implements platform.Prefixer. Slack knows no slash commands in threads:
// there the name of a command stands behind a mention of the bot.
func (a *Adapter) CommandPrefix(key messages.ConversationKey) string {
	to, err := parseKey(key)
	if me := a.self.Load(); err == nil && to.thread != "" && me != nil && me.name != "" {
		return "@" + me.name + " "
	}
	return slashPrefix
}

// slashPrefix stands before a command's name where there are slash commands.
const slashPrefix = "/agent "

// Run implements platform.Adapter.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	defer a.client.CloseIdleConnections()
	if err := a.introduce(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	helpers.Go(func() { a.askNames(ctx) })
	helpers.Go(func() { a.keep(ctx) })
	helpers.Go(func() { a.tellStops(ctx, sink) })
	receiving := make(chan error, 1)
	go func() {
		if a.cfg.AppToken == "" {
			<-ctx.Done()
			receiving <- nil
			return
		}
		receiving <- a.socketMode(ctx, sink)
	}()
	for {
		select {
		case err := <-receiving:
			return err
		case <-a.revoked:
		}
		// An event says so, but only Slack itself is believed.
		if _, err := a.askSelf(ctx); fault.Is(err, fault.Unauthorized) {
			cancel()
			<-receiving //nolint:errcheck // it ends because of cancel
			return err
		}
	}
}

// introduce asks who we are until Slack answers. It returns an error only for
// refused credentials.
func (a *Adapter) introduce(ctx context.Context) error {
	return exchange.UntilDone(ctx, a.log, "slack does not answer", func(ctx context.Context) error {
		_, err := a.whoami(ctx)
		if err == nil {
			a.warnScopes(ctx)
		}
		return err
	}, fault.Unauthorized)
}

// whoami returns the account, asking Slack the first time.
func (a *Adapter) whoami(ctx context.Context) (identity, error) { return a.self.Get(ctx, a.askSelf) }

func (a *Adapter) askSelf(ctx context.Context) (identity, error) {
	var install struct {
		OrgWide bool `json:"is_enterprise_install"` // which the library does not tell
	}
	var out *slack.AuthTestResponse
	call, err := a.call(ctx, request{method: "auth.test", idempotent: true, more: &install}, func(ctx context.Context) (err error) {
		out, err = a.web.AuthTestContext(ctx)
		return err
	})
	switch {
	case err != nil:
		return identity{}, err
	case out == nil:
		return identity{}, fault.Wrap(errNoAnswer, fault.Unavailable, "auth.test")
	}
	me := identity{team: out.TeamID, user: out.UserID, bot: out.BotID, name: out.User}
	if install.OrgWide {
		me.enterprise = out.EnterpriseID
	}
	if list := call.Answered().Get("X-OAuth-Scopes"); list != "" {
		granted := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
		a.scopes.Store(&granted)
	}
	a.self.Store(&me)
	return me, nil
}

// Check implements platform.Checker. After it MissingScopes can tell.
func (a *Adapter) Check(ctx context.Context) (platform.Account, error) {
	me, err := a.askSelf(ctx)
	if err != nil {
		return platform.Account{}, err
	}
	a.warnScopes(ctx)
	return platform.Account{ID: me.account(), Name: "@" + me.name}, nil
}

// MissingScopes returns the scopes that the app's manifest asks for and the
// installation has not granted, sorted. It is empty before Slack was asked, and
// if Slack did not tell.
func (a *Adapter) MissingScopes() []string {
	granted := a.scopes.Load()
	if granted == nil {
		return nil
	}
	var missing []string
	for _, s := range Scopes() {
		if !slices.Contains(*granted, s) {
			missing = append(missing, s)
		}
	}
	return missing
}

func (a *Adapter) warnScopes(ctx context.Context) {
	if missing := a.MissingScopes(); len(missing) > 0 {
		a.log.WarnContext(ctx, "the slack app lacks scopes; add them to the app and install it again", "missing", missing)
	}
}

// OwnerLink implements platform.OwnerLinker. Slack has no link that sends a
// text, and takes a slash at the start of a message for a slash command, which
// is why the code is given to the bot's own.
func (a *Adapter) OwnerLink(account platform.Account, code string) string {
	return "send " + account.Name + " a direct message that says: start " + code
}

// CloseIdle closes connections that are not in use, for whoever made an adapter
// and does not run it.
func (a *Adapter) CloseIdle() { a.client.CloseIdleConnections() }
