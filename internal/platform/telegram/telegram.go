// Package telegram connects one bot account of the Telegram Bot API.
//
// It receives by long polling or by webhook and confirms an update to Telegram
// only after the sink has stored it. It sends plain text with entities, never
// with a parse mode, so what a model writes cannot break or forge formatting.
// The Bot API library is used for its methods and its models; its update loop
// confirms before the handler has run, so receiving is done here.
package telegram

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// Name is the platform's name in every conversation key.
const Name = messages.Platform("telegram")

const (
	// maxText is the limit of sendMessage in code points; counting UTF-16 units
	// keeps it in every way of counting (Bot API, sendMessage).
	maxText = 4096

	// callTimeout bounds every call but getUpdates and uploads.
	callTimeout = 30 * time.Second
)

// Config configures an Adapter.
type Config struct {
	platform.Surroundings // with Webhook it has to have the PublicURL

	Token  string // from @BotFather: "<bot id>:<secret>"
	APIURL string // of a self-hosted Bot API server; empty is Telegram's own

	Webhook       bool   // receive over HTTP and not by polling
	WebhookSecret string // 16 to 256 of [A-Za-z0-9_-]; required with Webhook

	Streaming bool // show answers while they are written

	SendRate     float64 // messages and edits per second over all chats; 0 is no limit
	ChatSendRate float64 // the same for one chat; groups get at most 20 a minute; 0 is no limit
}

// Adapter is a Telegram bot account. It implements platform.Adapter and all
// optional interfaces of that package but platform.Dialoger, itself or with the
// exported methods of its parts.
type Adapter struct {
	client    *client
	render    *renderer
	streaming bool

	account
	receiver
	poster
	answers
	menus
	files
}

var (
	_ platform.Editor          = (*Adapter)(nil)
	_ platform.Typer           = (*Adapter)(nil)
	_ platform.Marker          = (*Adapter)(nil)
	_ platform.Menu            = (*Adapter)(nil)
	_ platform.Checker         = (*Adapter)(nil)
	_ platform.Receiving       = (*Adapter)(nil)
	_ platform.Examiner        = (*Adapter)(nil)
	_ platform.OwnerLinker     = (*Adapter)(nil)
	_ platform.WebhookReceiver = (*Adapter)(nil)
	_ platform.Fetcher         = (*Adapter)(nil)
	_ platform.Whisperer       = (*Adapter)(nil)
	_ platform.Filer           = (*Adapter)(nil)
	_ platform.ChatMenu        = (*Adapter)(nil)
	_ platform.Opener          = (*Adapter)(nil)
	_ platform.FileEditor      = (*Adapter)(nil)
	_ platform.Deleter         = (*Adapter)(nil)
	_ platform.Introducer      = (*Adapter)(nil)
	_ platform.Measured        = (*Adapter)(nil)
)

var tokenForm = pattern.Lazy(`^[0-9]{1,18}:[A-Za-z0-9_-]+$`)

// New returns an adapter for the account of cfg.Token. It does no I/O. What is
// wrong with cfg is a fault.Invalid that names the option.
func New(cfg Config) (*Adapter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Complete()
	c := &client{
		base:    cmp.Or(strings.TrimRight(cfg.APIURL, "/"), officialAPI),
		token:   cfg.Token,
		http:    exchange.Client(exchange.Transport(cfg.MaxConns)),
		scrub:   cfg.scrubber(),
		limits:  newLimiter(cfg.SendRate, cfg.ChatSendRate, cfg.Limits, exchange.AccountOf(cfg.Token)),
		observe: cfg.Observe,
	}
	c.http.CheckRedirect = noRedirect
	api, err := bot.New(cfg.Token, bot.WithSkipGetMe(), bot.WithServerURL(c.base),
		bot.WithHTTPClient(callTimeout, c.http),
		bot.WithErrorsHandler(func(error) {}), bot.WithDebugHandler(func(string, ...any) {}))
	if err != nil {
		return nil, fault.Wrap(c.scrub.Error(err), fault.Internal, "preparing the Telegram client")
	}
	c.api = api
	id, _, _ := strings.Cut(cfg.Token, ":")
	hook := ""
	if cfg.Webhook {
		hook = strings.TrimRight(cfg.PublicURL, "/") + webhookPath
	}
	render, presses := newRenderer(), newPresses()
	a := &Adapter{client: c, render: render, streaming: cfg.Streaming}
	a.account = account{client: c, id: id, botID: api.ID(), hook: hook, log: cfg.Log, self: platform.NewSelf[identity]()}
	a.receiver = receiver{
		client: c, me: &a.account, hook: hook, secret: cfg.WebhookSecret, presses: presses, log: cfg.Log, observe: cfg.Observe,
		refused: platform.NewRecent[messages.EventID, time.Time](1024),
	}
	a.poster = poster{client: c, render: render, log: cfg.Log, observe: cfg.Observe}
	a.answers = answers{client: c, render: render, presses: presses, log: cfg.Log, observe: cfg.Observe}
	a.menus.client, a.files.client = c, c
	return a, nil
}

// noRedirect keeps requests, whose paths hold the token, from going anywhere
// else: a redirected request would also carry the path as its Referer.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c Config) check() error {
	if !tokenForm.MatchString(c.Token) {
		return fault.New(fault.Invalid, "TELEGRAM_BOT_TOKEN is not a bot token: it looks like 123456789:AbC-dEf and comes from @BotFather")
	}
	if c.APIURL != "" && !isWebURL(c.APIURL) {
		return fault.New(fault.Invalid, "TELEGRAM_API_URL is not an http or https URL")
	}
	if c.SendRate < 0 || c.ChatSendRate < 0 {
		return fault.New(fault.Invalid, "TELEGRAM_SEND_RATE and TELEGRAM_CHAT_SEND_RATE must not be negative")
	}
	if !c.Webhook {
		return nil
	}
	if !secretPattern.MatchString(c.WebhookSecret) {
		return fault.New(fault.Invalid, "TELEGRAM_WEBHOOK_SECRET must have 16 to 256 characters of A-Z, a-z, 0-9, _ and -; without it anyone could pose as Telegram")
	}
	if !isWebURL(c.PublicURL) {
		return fault.New(fault.Invalid, "PUBLIC_URL must be the http or https address under which Telegram reaches this program")
	}
	return nil
}

func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// Platform implements platform.Adapter.
func (a *Adapter) Platform() messages.Platform { return Name }

// Capabilities implements platform.Adapter.
func (a *Adapter) Capabilities() platform.Capabilities {
	return platform.Capabilities{
		MaxText:       maxText,
		MaxMessages:   platform.FewMessages,
		Measure:       a.render.measure,
		Streaming:     a.streaming,
		EditInterval:  time.Second,
		SilentEdits:   true,
		Buttons:       true,
		Place:         "a Telegram chat",
		Format:        "Bold, italics, strikethrough, links, quotes, lists and code are shown; headings become bold lines, tables text of fixed width, and images links. People read it on phones: prefer short lists to wide tables.",
		CommandPrefix: "/",
	}
}

// Run implements platform.Adapter. While it runs, pressed buttons that nobody
// whispers about within two seconds are answered with nothing, so that clients
// do not show them as waiting.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	defer a.client.http.CloseIdleConnections()
	defer a.answers.presses.start(ctx, a.dismiss)()
	if err := a.introduce(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if a.receiver.hook != "" {
		return a.runWebhook(ctx)
	}
	return a.poll(ctx, sink)
}

// OwnerLink implements platform.OwnerLinker. An account whose name is not known
// has no link.
func (a *Adapter) OwnerLink(account platform.Account, code string) string {
	name := strings.TrimPrefix(account.Name, "@")
	if name == "" {
		return "send the bot: /start " + code
	}
	return "https://t.me/" + url.PathEscape(name) + "?start=" + url.QueryEscape(code)
}
