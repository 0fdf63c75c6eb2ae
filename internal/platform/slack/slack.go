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
	"cmp"
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

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
	platform.Surroundings // Commands are those after /agent and after a mention that begins a message

	BotToken      string // xoxb-…
	AppToken      string // xapp-…; set: Socket Mode
	SigningSecret string // of the app; required without AppToken
	APIURL        string // of a stand-in; empty is https://slack.com/api/

	Streaming bool // show answers while they are written

	// Transport carries the calls. Nil: one of the adapter's own.
	Transport http.RoundTripper
}

// Adapter is a Slack app installed in one workspace or organization. It
// implements platform.Adapter and the optional interfaces listed below: itself, or
// with the exported methods of its parts.
type Adapter struct {
	streaming  bool
	api        *api
	people     *people
	streams    *streams
	translator *translator

	installation
	webhook
	socket
	sender
	asides
	files
	marks
	statuses
	history
}

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
	_ platform.Describer       = (*Adapter)(nil)
	_ platform.Contexter       = (*Adapter)(nil)
	_ platform.Namer           = (*Adapter)(nil)
	_ platform.OwnerLinker     = (*Adapter)(nil)
	_ platform.WebhookReceiver = (*Adapter)(nil)
	_ platform.Opener          = (*Adapter)(nil)
	_ platform.Deleter         = (*Adapter)(nil)
	_ platform.Extractor       = (*Adapter)(nil)
	_ platform.Filer           = (*Adapter)(nil)
	_ platform.Measured        = (*Adapter)(nil)
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
	cfg.defaults()
	socketMode, log, observe := cfg.AppToken != "", cfg.Log, cfg.Observe
	api, set, replyTo := newAPI(cfg), newStreamSet(), recent[string]()
	askers := askers{users: recent[string](), homes: recent[string](), calls: recent[string]()}
	claims := claims{recent[claimed]()}
	people := &people{api: api, log: log, names: recent[string](), unnamed: make(chan string, 256)}
	a := &Adapter{streaming: cfg.Streaming, api: api, people: people}
	a.installation = installation{api: api, socketMode: socketMode, log: log, self: platform.NewSelf[identity]()}
	a.translator = &translator{
		me: &a.installation, people: people, askers: askers, commands: cfg.Commands, engaged: cfg.Engaged, log: log, observe: observe,
		gestures: recent[string](), replyTo: replyTo, reached: recent[string](), shared: recent[bool](), revoked: make(chan struct{}, 1),
	}
	a.webhook = webhook{translator: a.translator, secret: cfg.SigningSecret, off: socketMode, log: log, observe: observe}
	a.socket = socket{api: api, translator: a.translator, gap: linkGap, log: log, observe: observe}
	a.statuses = statuses{api: api, streams: set, log: log, shown: recent[time.Time]()}
	a.asides = asides{api: api, log: log, replyTo: replyTo, told: recent[bool]()}
	a.streams = &streams{
		api: api, enabled: cfg.Streaming, people: people, askers: askers, statuses: &a.statuses, claims: claims,
		set: set, stops: make(chan messages.Inbound, 64), log: log, observe: observe,
	}
	a.sender = sender{
		api: api, me: &a.installation, askers: askers, asides: &a.asides, streams: a.streams, statuses: &a.statuses, claims: claims,
		edited: recent[time.Time](), log: log, observe: observe,
	}
	a.files = files{api: api, me: &a.installation, token: cfg.BotToken, log: log, observe: observe}
	a.marks = marks{api: api, set: recent[string]()}
	a.history = history{api: api, me: &a.installation, people: people}
	return a, nil
}

// recent remembers something of the newest messages, people or conversations.
func recent[V any]() *platform.Recent[string, V] { return platform.NewRecent[string, V](4096) }

func (c *Config) defaults() {
	c.Complete()
	c.APIURL = cmp.Or(c.APIURL, defaultAPIURL)
	if c.Transport == nil {
		c.Transport = exchange.Transport(c.MaxConns)
	}
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
		if u, err := url.Parse(c.APIURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
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
		Streaming:      a.streaming,
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

// Run implements platform.Adapter.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	defer a.api.client.CloseIdleConnections()
	if err := a.introduce(ctx); err != nil || ctx.Err() != nil {
		a.refused.Store(err != nil)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	helpers.Go(func() { a.people.askNames(ctx) })
	helpers.Go(func() { a.streams.keep(ctx) })
	helpers.Go(func() { a.streams.tellStops(ctx, sink) })
	receiving := make(chan error, 1)
	go func() {
		if !a.socketMode {
			<-ctx.Done()
			receiving <- nil
			return
		}
		receiving <- a.receive(ctx, sink)
	}()
	for {
		select {
		case err := <-receiving:
			return err
		case <-a.translator.revoked:
		}
		// An event says so, but only Slack itself is believed.
		if _, err := a.askSelf(ctx); fault.Is(err, fault.Unauthorized) {
			a.refused.Store(true)
			cancel()
			<-receiving //nolint:errcheck // it ends because of cancel
			return err
		}
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
func (a *Adapter) CloseIdle() { a.api.client.CloseIdleConnections() }
