// Package telegram connects one bot account of the Telegram Bot API.
//
// It receives by long polling or by webhook and confirms an update to Telegram
// only after the sink has stored it. It sends plain text with entities, never
// with a parse mode, so what a model writes cannot break or forge formatting.
// The Bot API library is used for its methods and its models; its update loop
// confirms before the handler has run, so receiving is done here.
package telegram

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// Name is the platform's name in every conversation key.
const Name = messages.Platform("telegram")

const (
	defaultAPIURL = "https://api.telegram.org"

	// maxText is the limit of sendMessage in code points; counting UTF-16 units
	// keeps it in every way of counting (Bot API, sendMessage).
	maxText = 4096

	// callTimeout bounds every call but getUpdates and uploads.
	callTimeout = 30 * time.Second
)

// Config configures an Adapter.
type Config struct {
	Token  string // from @BotFather: "<bot id>:<secret>"
	APIURL string // of a self-hosted Bot API server; empty is Telegram's own

	Webhook       bool   // receive over HTTP and not by polling
	WebhookSecret string // 16 to 256 of [A-Za-z0-9_-]; required with Webhook
	PublicURL     string // where Telegram reaches this program; required with Webhook

	Streaming bool // show answers while they are written

	SendRate     float64 // messages and edits per second over all chats; 0 is no limit
	ChatSendRate float64 // the same for one chat; groups get at most 20 a minute; 0 is no limit

	// MaxConns is how many connections to the platform are open at once; calls beyond
	// that wait. Zero is no limit.
	MaxConns int

	// Limits counts the calls of all processes together. Nil: there is no other.
	Limits platform.SharedLimits

	Log *slog.Logger

	// Observe counts events of a small, fixed set of names. May be nil.
	Observe func(event string)
}

// Adapter is a Telegram bot account. It implements platform.Adapter and all
// optional interfaces of that package but platform.Dialoger.
type Adapter struct {
	cfg     Config
	base    string // Config.APIURL without a slash at the end
	account string // the bot's user id
	botID   int64
	log     *slog.Logger
	observe func(string)

	client *http.Client // Run closes what it leaves idle
	scrub  *exchange.Scrubber
	api    *bot.Bot
	render *renderer
	limits *limiter

	presses *presses
	hearing platform.Hearing // of the poll

	// menu is what SetMenu was last called with, as Telegram takes it.
	menu atomic.Pointer[[]models.BotCommand]

	// self is who getMe says that we are, once known.
	self *platform.Self[identity]
}

type identity struct {
	id       int64
	username string
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
)

var (
	tokenForm  = pattern.Lazy(`^[0-9]{1,18}:[A-Za-z0-9_-]+$`)
	secretForm = pattern.Lazy(`^[A-Za-z0-9_-]{16,256}$`)
)

// New returns an adapter for the account of cfg.Token. It does no I/O. What is
// wrong with cfg is a fault.Invalid that names the option.
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
	a := &Adapter{
		cfg:     cfg,
		base:    strings.TrimRight(cfg.APIURL, "/"),
		log:     cfg.Log,
		observe: cfg.Observe,
		client:  exchange.Client(exchange.Transport(cfg.MaxConns)),
		scrub:   cfg.scrubber(),
		render:  newRenderer(),
		limits:  newLimiter(cfg.SendRate, cfg.ChatSendRate, cfg.Limits, exchange.AccountOf(cfg.Token)),
		presses: newPresses(),
		self:    platform.NewSelf[identity](),
	}
	a.client.CheckRedirect = noRedirect
	if a.base == "" {
		a.base = defaultAPIURL
	}
	a.account, _, _ = strings.Cut(cfg.Token, ":")
	api, err := bot.New(cfg.Token, bot.WithSkipGetMe(), bot.WithServerURL(a.base),
		bot.WithHTTPClient(callTimeout, a.client),
		bot.WithErrorsHandler(func(error) {}), bot.WithDebugHandler(func(string, ...any) {}))
	if err != nil {
		return nil, fault.Wrap(a.scrub.Error(err), fault.Internal, "preparing the Telegram client")
	}
	a.api, a.botID = api, api.ID()
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
	if !secretForm.MatchString(c.WebhookSecret) {
		return fault.New(fault.Invalid, "TELEGRAM_WEBHOOK_SECRET must have 16 to 256 characters of A-Z, a-z, 0-9, _ and -; without it anyone could pose as Telegram")
	}
	if !isWebURL(c.PublicURL) {
		return fault.New(fault.Invalid, "PUBLIC_URL must be the http or https address under which Telegram reaches this program")
	}
	return nil
}

func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Platform implements platform.Adapter.
func (a *Adapter) Platform() messages.Platform { return Name }

// Capabilities implements platform.Adapter.
func (a *Adapter) Capabilities() platform.Capabilities {
	return platform.Capabilities{
		MaxText:       maxText,
		MaxMessages:   platform.FewMessages,
		Measure:       a.render.measure,
		Streaming:     a.cfg.Streaming,
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
	defer a.client.CloseIdleConnections()
	defer a.presses.start(ctx, a.dismiss)()
	if err := a.introduce(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if a.cfg.Webhook {
		return a.runWebhook(ctx)
	}
	return a.poll(ctx, sink)
}

// introduce asks who we are until Telegram answers. It returns an error only
// for refused credentials.
func (a *Adapter) introduce(ctx context.Context) error {
	return exchange.UntilDone(ctx, a.log, "telegram is not responding", func(ctx context.Context) error {
		_, err := a.whoami(ctx)
		return err
	}, fault.Unauthorized)
}

// whoami returns the account, asking Telegram the first time.
func (a *Adapter) whoami(ctx context.Context) (identity, error) { return a.self.Get(ctx, a.askSelf) }

func (a *Adapter) askSelf(ctx context.Context) (identity, error) {
	var user *models.User
	err := a.call(ctx, "getMe", true, func(ctx context.Context) (err error) {
		user, err = a.api.GetMe(ctx)
		return err
	})
	if err != nil {
		return identity{}, err
	}
	me := identity{id: a.botID, username: user.Username}
	a.self.Store(&me)
	return me, nil
}

// Check implements platform.Checker.
func (a *Adapter) Check(ctx context.Context) (platform.Account, error) {
	me, err := a.askSelf(ctx)
	if err != nil {
		return platform.Account{}, err
	}
	return platform.Account{ID: a.account, Name: "@" + me.username}, nil
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

// maxDownload is the largest file that the Bot API hands out (getFile).
const maxDownload = 20 << 20

// Fetch implements platform.Fetcher. The download link holds the token, so it
// is neither returned nor logged.
func (a *Adapter) Fetch(ctx context.Context, att messages.Attachment) (io.ReadCloser, error) {
	if att.Source == "" {
		return nil, fault.New(fault.Unsupported, "That kind of attachment cannot be read.")
	}
	if att.Size > maxDownload {
		return nil, fault.New(fault.Invalid, "Telegram lets bots download files of at most 20 MB.")
	}
	var file *models.File
	err := a.call(ctx, "getFile", true, func(ctx context.Context) (err error) {
		file, err = a.api.GetFile(ctx, &bot.GetFileParams{FileID: att.Source})
		return err
	})
	if err != nil {
		return nil, err
	}
	if file.FilePath == "" || strings.HasPrefix(file.FilePath, "/") || strings.Contains(file.FilePath, "..") {
		return nil, fault.Wrap(errBadPath, fault.Unsupported, "downloading a file")
	}
	return a.download(ctx, (&url.URL{Path: file.FilePath}).EscapedPath())
}

func (a *Adapter) download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/file/bot"+a.cfg.Token+"/"+path, http.NoBody)
	if err != nil {
		return nil, fault.Wrap(a.scrub.Error(err), fault.Internal, "downloading a file")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, (&exchange.Call{Idempotent: true, Scrub: a.scrub}).Failure(ctx, "downloading a file", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		kind := fault.NotFound
		if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests {
			kind = fault.Unavailable
		}
		return nil, fault.Wrap(statusError(resp.StatusCode), kind, "downloading a file")
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxDownload), resp.Body}, nil
}
