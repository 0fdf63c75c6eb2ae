// Package github connects one GitHub account: a GitHub App, or a personal token.
//
// An issue or pull request is a conversation. What people write there arrives
// by webhook, or by polling where GitHub cannot reach the bot; both are read by
// the same translation, and what was missed is swept up. An event is confirmed
// to GitHub only after the sink has stored it.
//
// Calls are those of the library's services, over the round tripper of exchange.
// Webhooks are verified and read here, into the library's models where those hold
// what is needed: the library takes an unsigned body if the secret is empty, and
// refuses events that it does not know.
package github

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// Name is the platform's name in every conversation key.
const Name = messages.Platform("github")

const (
	publicHost     = "api.github.com"
	defaultAPIURL  = "https://" + publicHost + "/"
	defaultMention = "remote-agent"

	// editEvery is how often a comment is edited at most: edits cost of the same
	// limits as answers (contract C6).
	editEvery = 10 * time.Second

	// minSecret is the shortest webhook secret that is taken for one.
	minSecret = 16

	defaultContext = 64 << 10
)

// Config configures an Adapter. It needs a GitHub App or a token, not both, and
// a webhook secret unless it polls.
type Config struct {
	platform.Surroundings // texts may link to the pages below its PublicURL; Commands are those after "/agent"

	AppID      string // the App's number or its client id
	PrivateKey string // of the App, PEM
	Token      string // a personal access token, instead of an App

	WebhookSecret string // at least 16 bytes
	Poll          bool   // ask GitHub for what is new instead of waiting for webhooks

	APIURL string // empty is https://api.github.com/; GitHub Enterprise: https://<host>/api/v3/
	WebURL string // where people and git go; empty is what belongs to APIURL

	// Mention is the name that people call the bot by; empty is "@remote-agent".
	// The App's own name works as well.
	Mention string

	// Repositories are those that the bot works in, as "owner/repo". Empty means
	// all that it can see.
	Repositories []string

	// Allowed narrows who may use the bot to these accounts, among those who may
	// write to the repository. An entry is the number of an account or its login,
	// which is turned into the number when the adapter starts.
	Allowed []string

	// LinkHosts are hosts that answers may link to and show images of, besides
	// links to GitHub itself. Other addresses are shown as text.
	LinkHosts []string

	Streaming bool // show answers while they are written

	// PermissionTTL is how long a yes to "may this person write here" holds.
	// Zero is ten seconds, negative is not at all.
	PermissionTTL time.Duration

	PollEvery  time.Duration // zero is 45 s; a jitter of a quarter is added
	SweepEvery time.Duration // with webhooks: zero is 5 minutes
	EditEvery  time.Duration // zero is 10 s

	// ContextBytes bounds what Context returns; zero is 64 KiB.
	ContextBytes int
}

// Adapter is one account on GitHub. It implements platform.Adapter and the
// optional interfaces listed below: itself, or with the exported methods of its
// parts.
type Adapter struct {
	poll, streaming bool
	editEvery       time.Duration
	log             *slog.Logger
	client          *client
	poller          *poller

	account
	site
	gate
	webhook
	sender
	marks
	pulls
	history
	files
}

var (
	_ platform.Editor          = (*Adapter)(nil)
	_ platform.Marker          = (*Adapter)(nil)
	_ platform.Checker         = (*Adapter)(nil)
	_ platform.Examiner        = (*Adapter)(nil)
	_ platform.Contexter       = (*Adapter)(nil)
	_ platform.Fetcher         = (*Adapter)(nil)
	_ platform.Gatekeeper      = (*Adapter)(nil)
	_ platform.PullRequester   = (*Adapter)(nil)
	_ platform.Locator         = (*Adapter)(nil)
	_ platform.WebhookReceiver = (*Adapter)(nil)
	_ platform.Deleter         = (*Adapter)(nil)
	_ platform.Screener        = (*Adapter)(nil)
	_ platform.Measured        = (*Adapter)(nil)
)

// New returns an adapter. It does no I/O. What is wrong with cfg is a
// fault.Invalid that names the option.
func New(cfg Config) (*Adapter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.defaults()
	log, observe, client, guard := cfg.Log, cfg.Observe, newClient(cfg), newLoopGuard()
	a := &Adapter{poll: cfg.Poll, streaming: cfg.Streaming, editEvery: cfg.EditEvery, log: log, client: client}
	a.account = account{client: client, self: platform.NewSelf[identity](), poll: cfg.Poll, log: log}
	a.site = site{base: client.base, only: lowered(cfg.Repositories)}
	a.web, _ = url.Parse(strings.TrimRight(cfg.WebURL, "/")) // checked
	render := &renderer{web: a.web, links: lowered(cfg.LinkHosts)}
	if own, err := url.Parse(cfg.PublicURL); err == nil {
		render.own = strings.ToLower(own.Host)
	}
	a.gate = gate{
		client: client, logins: cfg.Allowed, ttl: cfg.PermissionTTL, admits: platform.NewRecent[string, time.Time](4096),
		newcomers: newNewcomers(), log: log, observe: observe,
	}
	a.narrowed.Store(len(cfg.Allowed) > 0)
	translator := &translator{
		client: client, me: &a.account, site: &a.site, guard: guard, mention: strings.ToLower(strings.TrimPrefix(cfg.Mention, "@")),
		commands: cfg.Commands, log: log, observe: observe,
	}
	a.webhook = webhook{translator: translator, secret: cfg.WebhookSecret, off: cfg.Poll, log: log, observe: observe}
	a.poller = &poller{
		client: client, site: &a.site, translator: translator, cursor: cfg.Cursor, feeds: platform.NewRecent[string, feedState](4096),
		retried: platform.NewRecent[string, int](4096), told: platform.NewRecent[string, bool](4096), followed: platform.NewRecent[string, bool](4096), every: cfg.PollEvery, log: log, observe: observe,
	}
	if !cfg.Poll {
		a.poller.webhooks, a.poller.every, a.poller.grace = true, cfg.SweepEvery, min(maxGrace, cfg.SweepEvery/10)
	}
	a.sender = sender{
		client: client, me: &a.account, render: render, guard: guard, sent: platform.NewRecent[messages.MessageID, string](4096),
		observe: observe, pause: platform.Sleep,
	}
	a.marks = marks{client: client, me: &a.account}
	a.pulls = pulls{client: client, site: &a.site, render: render, poll: cfg.Poll, observe: observe}
	a.history = history{client: client, me: &a.account, gate: &a.gate, site: &a.site, limit: cfg.ContextBytes, log: log}
	a.files = files{client: client, site: &a.site}
	return a, nil
}

// lowered returns names in lower case as a set.
func lowered(names []string) map[string]bool {
	set := make(map[string]bool)
	for _, n := range names {
		set[strings.ToLower(n)] = true
	}
	return set
}

func (c Config) check() error {
	switch {
	case c.AppID != "" && c.Token != "":
		return fault.New(fault.Invalid, "GITHUB_APP_ID and GITHUB_TOKEN are both set; keep the one that the bot is to appear as")
	case c.AppID == "" && c.Token == "":
		return fault.New(fault.Invalid, "GitHub needs GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY, or GITHUB_TOKEN")
	case (!c.Poll || c.WebhookSecret != "") && len(c.WebhookSecret) < minSecret:
		return fault.Newf(fault.Invalid, "GITHUB_WEBHOOK_SECRET is missing or shorter than %d bytes: without it anyone could pose as GitHub; or set GITHUB_MODE=poll", minSecret)
	case c.Mention != "" && !loginForm.MatchString(strings.TrimPrefix(c.Mention, "@")):
		return fault.Newf(fault.Invalid, "GITHUB_MENTION is not a name like @%s", defaultMention)
	}
	if c.AppID != "" {
		if !appIDForm.MatchString(c.AppID) {
			return fault.New(fault.Invalid, "GITHUB_APP_ID is neither the App's number nor its client id")
		}
		if _, err := parseKeyPEM(c.PrivateKey); err != nil {
			return fault.New(fault.Invalid, "GITHUB_APP_PRIVATE_KEY is not the RSA key, in PEM, that GitHub made for the App")
		}
	} else if !tokenForm.MatchString(c.Token) {
		return fault.New(fault.Invalid, "GITHUB_TOKEN is not a token: it has letters, digits and underscores only, and no spaces")
	}
	for _, r := range c.Repositories {
		if _, ok := repoName(r); !ok {
			return fault.Newf(fault.Invalid, "GITHUB_REPOSITORIES: %q is not owner/repo", platform.Cut(r, 100))
		}
	}
	for _, who := range c.Allowed {
		if !loginForm.MatchString(who) {
			return fault.Newf(fault.Invalid, "GITHUB_ALLOWED_LOGINS: %q is neither the number of an account nor its login", platform.Cut(who, 100))
		}
	}
	for name, address := range map[string]string{"GITHUB_API_URL": c.APIURL, "GITHUB_WEB_URL": c.WebURL} {
		if address == "" {
			continue
		}
		if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" {
			return fault.Newf(fault.Invalid, "%s is not an http or https URL", name)
		}
	}
	return nil
}

func (c *Config) defaults() {
	c.APIURL = cmp.Or(c.APIURL, defaultAPIURL)
	c.WebURL = cmp.Or(c.WebURL, webOf(c.APIURL))
	c.Mention = cmp.Or(c.Mention, defaultMention)
	c.PermissionTTL = cmp.Or(c.PermissionTTL, 10*time.Second)
	c.PollEvery = cmp.Or(c.PollEvery, 45*time.Second)
	c.SweepEvery = cmp.Or(c.SweepEvery, 5*time.Minute)
	c.EditEvery = cmp.Or(c.EditEvery, editEvery)
	c.ContextBytes = cmp.Or(c.ContextBytes, defaultContext)
	if c.Cursor == nil {
		c.Cursor = &memoryCursor{values: make(map[string]string)}
	}
	c.Complete()
}

// webOf returns where the pages of an API's GitHub are.
func webOf(api string) string {
	u, err := url.Parse(api)
	if err != nil {
		return ""
	}
	host := u.Host
	if host == publicHost || strings.HasPrefix(host, "api.") && strings.HasSuffix(host, ".ghe.com") {
		host = strings.TrimPrefix(host, "api.")
	}
	return u.Scheme + "://" + host
}

// Platform implements platform.Adapter.
func (a *Adapter) Platform() messages.Platform { return Name }

// Capabilities implements platform.Adapter. Who ticked a box can be told from a
// webhook only, so there are no buttons where the bot polls.
func (a *Adapter) Capabilities() platform.Capabilities {
	return platform.Capabilities{
		MaxText:        maxText,
		MaxMessages:    platform.FewMessages,
		Measure:        measure,
		Streaming:      a.streaming,
		EditInterval:   a.editEvery,
		SilentEdits:    true,
		IdempotentSend: true,
		Buttons:        !a.poll,
		Comments:       true,
		OutcomeMarks:   true,
		SessionContext: true,
		Place:          "a GitHub issue or pull request",
		Format:         "GitHub Flavored Markdown is shown, with tables, task lists and code; HTML and images from elsewhere are not. Mentions notify nobody.",
		CommandPrefix:  "/agent ",
	}
}

// Run implements platform.Adapter. It returns an error for credentials that are refused
// at its start, and for a login in Config.Allowed that does not exist.
func (a *Adapter) Run(ctx context.Context, sink platform.Sink) error {
	defer a.client.http.CloseIdleConnections()
	if err := a.introduce(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return a.poller.run(ctx, sink)
}

// introduce asks who we are, and who is allowed, until GitHub answers. It
// returns an error for what an operator has to change.
func (a *Adapter) introduce(ctx context.Context) error {
	return exchange.UntilDone(ctx, a.log, "github does not answer", func(ctx context.Context) error {
		_, err := a.whoami(ctx)
		if err == nil {
			err = a.resolveAllowed(ctx)
		}
		if err == nil {
			a.warnPermissions(ctx)
		}
		return err
	}, fault.Unauthorized, fault.Invalid)
}

// Check implements platform.Checker.
func (a *Adapter) Check(ctx context.Context) (platform.Account, error) {
	me, err := a.askSelf(ctx)
	if err != nil {
		return platform.Account{}, err
	}
	if err := a.resolveAllowed(ctx); err != nil {
		return platform.Account{}, err
	}
	a.warnPermissions(ctx)
	return platform.Account{ID: a.name(), Name: "@" + me.login}, nil
}

// CloseIdle closes connections that are not in use, for whoever made an adapter
// and does not run it.
func (a *Adapter) CloseIdle() { a.client.http.CloseIdleConnections() }
