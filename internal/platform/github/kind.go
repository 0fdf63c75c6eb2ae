package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	modePoll    = "poll"
	modeWebhook = "webhook"
)

// kind is the platform's part of the configuration.
type kind struct {
	mode          string // empty: off, or webhook if there is a secret
	webhookSecret option.Secret
	appID         string
	privateKey    option.Secret
	apiURL        string
	webURL        string // where git and people go; empty: what belongs to apiURL
	pollEvery     time.Duration
	sweepEvery    time.Duration
	mention       string   // with its @; empty: the app's name
	allowed       []string // numeric ids or logins
	owners        []string // numeric ids
	repositories  []string // owner/name
	streaming     bool
}

// Kind returns GitHub, with options that are not read yet.
func Kind() platform.Kind { return &kind{} }

// numericID is the id of an account.
var numericID = pattern.Lazy(`^[1-9][0-9]{0,18}$`)

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	const group = "GitHub"
	return []option.Option{
		{
			Name: "GITHUB_MODE", Empty: "webhook if GITHUB_WEBHOOK_SECRET is set, else GitHub is off", Group: group,
			Help:  "How comments are received: webhook (needs GITHUB_WEBHOOK_SECRET and an address that GitHub reaches), or poll (works everywhere, takes up to a minute).",
			Parse: option.Choice(func(v string) { k.mode = v }, modePoll, modeWebhook),
		},
		{
			Name: "GITHUB_WEBHOOK_SECRET", Empty: "webhook mode is refused", Secret: true, Group: group,
			Help:    "Secret that GitHub signs webhooks with, 16 characters or more, for example from `openssl rand -hex 32`.",
			Aliases: []option.Alias{{Name: "WEBHOOK_SECRET"}},
			Parse:   k.parseWebhookSecret,
		},
		{
			Name: "GITHUB_APP_ID", Empty: "no app", Group: group,
			Help:  "ID or client ID of a GitHub App; `bot github manifest` helps create one. Better than a token: it has its own name and short-lived permissions.",
			Parse: option.Text(&k.appID),
		},
		{
			Name: "GITHUB_APP_PRIVATE_KEY", Empty: "no app", Secret: true, Group: group,
			Help:  "Private key of the app, as downloaded from GitHub (PEM); usually as a file.",
			Parse: k.parseKey,
		},
		{
			Name: "GITHUB_API_URL", Empty: "GitHub's own", Group: group,
			Help:    "Address of the API of GitHub Enterprise, or of a stand-in.",
			Example: "https://github.example.com/api/v3",
			Parse:   option.URL(&k.apiURL),
		},
		{
			Name: "GITHUB_WEB_URL", Empty: "the site that belongs to GITHUB_API_URL", Group: group,
			Help:    "Address where repositories are cloned from and people read, for a stand-in.",
			Example: "https://github.example.com",
			Parse:   option.URL(&k.webURL),
		},
		{
			Name: "GITHUB_POLL_EVERY", Default: "45s", Group: group,
			Help:  "How often GitHub is polled in poll mode.",
			Parse: option.Duration(&k.pollEvery, 10*time.Millisecond, 7*24*time.Hour),
		},
		{
			Name: "GITHUB_SWEEP_EVERY", Default: "5m", Group: group,
			Help:  "How often to re-request failed webhook deliveries and look for missed comments.",
			Parse: option.Duration(&k.sweepEvery, 10*time.Millisecond, 7*24*time.Hour),
		},
		{
			Name: "GITHUB_MENTION", Empty: "@ and the app's name, else @remote-agent", Group: group,
			Help:    "Mention that calls the bot in a comment.",
			Example: "@remote-agent",
			Parse:   k.parseMention,
		},
		{
			Name: "GITHUB_ALLOWED_LOGINS", Empty: "everyone with write access to the repository", Group: group, Live: true,
			Help:    "Limits who can use the bot: numeric IDs or logins (resolved to IDs at start), comma-separated. They also need write access.",
			Example: "583231,octocat",
			Parse:   k.parseLogins,
		},
		{
			Name: "GITHUB_OWNER_IDS", Empty: "people added with `bot owner add`", Group: group, Live: true,
			Help:    "Numeric account IDs of the owners, comma-separated. If set, nobody else is an owner on GitHub. They also need write access.",
			Example: "583231",
			Parse:   option.Owners(numericID, "the numeric ID that /whoami shows", &k.owners),
		},
		{
			Name: "GITHUB_REPOSITORIES", Empty: "all repositories that the app is installed on", Group: group,
			Help:    "The only repositories that the bot works in, as owner/name, comma-separated. Polling with a token needs it.",
			Example: "acme/web,acme/api",
			Parse:   k.parseRepositories,
		},
		{
			Name: "GITHUB_STREAMING_MODE", Default: "batch", Group: group,
			Help:  "batch posts the answer when it is complete, stream edits a comment while it is written.",
			Parse: option.Choice(func(v string) { k.streaming = v == "stream" }, "batch", "stream"),
		},
	}
}

func (k *kind) parseWebhookSecret(text string) error {
	if len(text) < minSecret {
		return fmt.Errorf("is too short: use %d characters or more, for example from `openssl rand -hex 32`", minSecret)
	}
	return option.Secrecy(&k.webhookSecret)(text)
}

// parseKey reads a private key. In an environment variable its line breaks may
// be written as \n.
func (k *kind) parseKey(text string) error {
	text = strings.ReplaceAll(text, `\n`, "\n")
	if _, err := parseKeyPEM(text); err != nil {
		return err
	}
	k.privateKey = option.NewSecret(text)
	return nil
}

func (k *kind) parseMention(text string) error {
	name := strings.TrimPrefix(text, "@")
	if !loginForm.MatchString(name) {
		return fmt.Errorf("is %q: use a GitHub name, such as @remote-agent", text)
	}
	k.mention = "@" + name
	return nil
}

func (k *kind) parseLogins(text string) error {
	names := option.List(text)
	for i, n := range names {
		if names[i] = strings.TrimPrefix(n, "@"); !loginForm.MatchString(names[i]) {
			return fmt.Errorf("contains %q, which is neither a numeric ID nor a login", n)
		}
	}
	if len(names) == 0 {
		return errors.New("is empty: list IDs or logins separated by commas, or remove the option")
	}
	k.allowed = names
	return nil
}

var repositoryOption = pattern.Lazy(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$`)

func (k *kind) parseRepositories(text string) error {
	names := option.List(text)
	for _, n := range names {
		if !repositoryOption.MatchString(n) {
			return fmt.Errorf("has %q in it: use owner/name", n)
		}
	}
	k.repositories = names
	return nil
}

// Check implements option.Section: the adapter needs an identity and a way in.
func (k *kind) Check(c *option.Check) {
	app, token := k.appID != "" || k.privateKey.IsSet(), c.IsSet("GITHUB_TOKEN")
	if app && c.Sound("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY") {
		switch {
		case token:
			c.Problem("GITHUB_TOKEN is set and so is a GitHub App (GITHUB_APP_ID): keep one of them, so that it is clear who acts")
		case k.appID == "":
			c.Problem("GITHUB_APP_PRIVATE_KEY is set but GITHUB_APP_ID is not: both are on the page of the app")
		case !k.privateKey.IsSet():
			c.Problem("GITHUB_APP_ID is set but GITHUB_APP_PRIVATE_KEY is not: make a key on the page of the app and set GITHUB_APP_PRIVATE_KEY_FILE")
		}
	}
	mode := k.effectiveMode()
	if mode == "" || !c.Sound("GITHUB_MODE", "GITHUB_APP_ID", "GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET", "PUBLIC_URL", "GITHUB_REPOSITORIES") {
		return
	}
	if !app && !token {
		c.Problem("GITHUB_MODE is %s but the bot has no identity on GitHub: set GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY_FILE, or GITHUB_TOKEN", mode)
	}
	switch {
	case mode == modeWebhook && !k.webhookSecret.IsSet():
		c.Problem("GITHUB_WEBHOOK_SECRET is not set but GITHUB_MODE is webhook: set it to the output of `openssl rand -hex 32`, or use GITHUB_MODE=poll")
	case mode == modePoll && !app && len(k.repositories) == 0:
		c.Problem("GITHUB_REPOSITORIES is not set: with a token the bot cannot know which repositories to look at; set it to owner/name, with commas")
	}
	if option.PlainHTTPAbroad(k.apiURL) {
		c.Warn("GITHUB_API_URL is http:// on another machine: tokens and all comments travel unencrypted; use https://")
	}
}

// effectiveMode is the mode, where a secret alone means webhooks; empty is off.
func (k *kind) effectiveMode() string {
	if k.mode == "" && k.webhookSecret.IsSet() {
		return modeWebhook
	}
	return k.mode
}

// WithLive implements option.Section.
func (k *kind) WithLive(next option.Section) option.Section {
	now, from := *k, next.(*kind)
	now.allowed, now.owners = from.allowed, from.owners
	return &now
}

// Platform implements platform.Kind.
func (k *kind) Platform() messages.Platform { return Name }

// Accounts implements option.Host.
func (k *kind) Accounts() string { return string(Name) }

// CheckID implements platform.Kind.
func (k *kind) CheckID(id string) error {
	_, err := parseKey(messages.ConversationKey{Platform: Name, ID: id})
	return err
}

// On implements platform.Kind.
func (k *kind) On() bool { return k.effectiveMode() != "" }

// People implements platform.Kind.
func (k *kind) People() platform.People {
	return platform.People{
		Owners: k.owners, AllowOption: "write access to the repository", OwnerOption: "GITHUB_OWNER_IDS",
		Form: numericID, FormText: "a positive number",
	}
}

// Banner implements platform.Kind.
func (k *kind) Banner(account platform.Account) string {
	switch {
	case !k.On():
		return "off. `bot setup github` makes the app and connects it, or set GITHUB_MODE=poll and GITHUB_TOKEN."
	case k.Intake() == platform.OverHTTP:
		return account.Name + " by webhook at /webhooks/github"
	}
	return account.Name + " by polling"
}

// Intake implements platform.Kind.
func (k *kind) Intake() platform.Intake {
	if k.effectiveMode() == modeWebhook {
		return platform.OverHTTP
	}
	return platform.Polled
}

// New implements platform.Kind.
func (k *kind) New(s platform.Surroundings) (platform.Adapter, error) {
	return New(Config{
		Surroundings:  s,
		AppID:         k.appID,
		PrivateKey:    k.privateKey.Reveal(),
		Token:         s.GitToken,
		WebhookSecret: k.webhookSecret.Reveal(),
		Poll:          k.effectiveMode() == modePoll,
		APIURL:        k.apiURL,
		WebURL:        k.webURL,
		Mention:       k.mention,
		Repositories:  k.repositories,
		Allowed:       k.allowed,
		Streaming:     k.streaming,
		PollEvery:     k.pollEvery,
		SweepEvery:    k.sweepEvery,
	})
}

// Reload implements platform.Reloader: logins of people who may use the bot are
// turned into ids.
func (k *kind) Reload(ctx context.Context, before platform.Kind, a platform.Adapter) error {
	if old, ok := before.(*kind); ok && slices.Equal(old.allowed, k.allowed) {
		return nil
	}
	return a.(*Adapter).SetAllowed(ctx, k.allowed)
}

// CredentialHost implements platform.RepoCredentials.
func (k *kind) CredentialHost() string {
	u, err := url.Parse(cmp.Or(k.webURL, webOf(cmp.Or(k.apiURL, defaultAPIURL))))
	if err != nil {
		return ""
	}
	return u.Host
}

// Token implements platform.RepoCredentials.
func (k *kind) Token(ctx context.Context, a platform.Adapter, address string) (string, error) {
	return a.(*Adapter).Token(ctx, address)
}
