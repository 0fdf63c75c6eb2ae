package telegram

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/messages"
	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	modePoll    = "poll"
	modeWebhook = "webhook"
	officialAPI = "https://api.telegram.org"
)

// kind is the platform's part of the configuration.
type kind struct {
	token         option.Secret
	apiURL        string // without a trailing slash
	mode          string
	webhookSecret option.Secret
	everyone      bool
	allowed       []string // numeric ids
	owners        []string // numeric ids
	streaming     bool
	rate, perChat float64 // messages per second; 0 is no limit
}

// Kind returns Telegram, with options that are not read yet.
func Kind() platform.Kind { return &kind{} }

// numericID is the id of a person.
var numericID = pattern.Lazy(`^[1-9][0-9]{0,18}$`)

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	const group = "Telegram"
	return []option.Option{
		{
			Name: "TELEGRAM_BOT_TOKEN", Empty: "Telegram is off", Secret: true, Group: group,
			Help:  "Bot token from @BotFather.",
			Parse: k.parseToken,
		},
		{
			Name: "TELEGRAM_API_URL", Default: officialAPI, Group: group,
			Help:  "Address of the Bot API; change it to use your own server.",
			Parse: option.URL(&k.apiURL),
		},
		{
			Name: "TELEGRAM_MODE", Default: modePoll, Group: group,
			Help:  "How messages are received: poll (works everywhere), or webhook (needs PUBLIC_URL and TELEGRAM_WEBHOOK_SECRET).",
			Parse: option.Choice(func(v string) { k.mode = v }, modePoll, modeWebhook),
		},
		{
			Name: "TELEGRAM_WEBHOOK_SECRET", Empty: "webhook mode is refused", Secret: true, Group: group,
			Help:  "What Telegram must send with every webhook call: 16 to 256 of A-Z a-z 0-9 _ -, for example from `openssl rand -hex 32`.",
			Parse: k.parseWebhookSecret,
		},
		{
			Name: "TELEGRAM_ALLOWED_USER_IDS", Empty: "nobody until the owner link is used", Group: group, Live: true,
			Help:    "Numeric IDs of the people who can use the bot, comma-separated; * allows everyone. /whoami shows a person's ID.",
			Example: "12345678,23456789",
			Parse:   k.parseAllowed,
		},
		{
			Name: "TELEGRAM_OWNER_IDS", Empty: "who used the owner link, or `bot owner add`", Group: group, Live: true,
			Help:    "Numeric IDs of the owners, comma-separated. If set, nobody else is an owner on Telegram, including earlier owners.",
			Example: "12345678",
			Parse:   option.Owners(numericID, "the number that /whoami shows", &k.owners),
		},
		{
			Name: "TELEGRAM_STREAMING_MODE", Default: "stream", Group: group,
			Help:  "stream shows an answer while it is written, batch when it is complete.",
			Parse: option.Choice(func(v string) { k.streaming = v == "stream" }, "stream", "batch"),
		},
		{
			Name: "TELEGRAM_SEND_RATE", Default: "30", Group: group,
			Help:  "Messages per second across all chats; 0 means no limit.",
			Parse: option.Rate(&k.rate),
		},
		{
			Name: "TELEGRAM_CHAT_SEND_RATE", Default: "1", Group: group,
			Help:  "Messages per second in each chat; 0 means no limit.",
			Parse: option.Rate(&k.perChat),
		},
	}
}

var tokenPattern = pattern.Lazy(`^[0-9]+:[^\s/?#%]+$`)

func (k *kind) parseToken(text string) error {
	if !tokenPattern.MatchString(text) {
		return errors.New("is not a bot token: copy the whole line <digits>:<letters> from @BotFather")
	}
	k.token = option.NewSecret(text)
	return nil
}

// secretPattern is what setWebhook allows (Bot API, secret_token).
var secretPattern = pattern.Lazy(`^[A-Za-z0-9_-]{16,256}$`)

func (k *kind) parseWebhookSecret(text string) error {
	if !secretPattern.MatchString(text) {
		return errors.New("is too short or has characters that Telegram does not allow: use 16 to 256 of A-Z a-z 0-9 _ -, for example from `openssl rand -hex 32`")
	}
	k.webhookSecret = option.NewSecret(text)
	return nil
}

func (k *kind) parseAllowed(text string) error {
	k.everyone, k.allowed = false, nil
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\n", r) })
	if len(fields) == 0 {
		return fmt.Errorf("is %q: use numeric IDs separated by commas, or leave it empty", text)
	}
	for _, f := range fields {
		switch {
		case f == "*":
			k.everyone = true
		case numericID.MatchString(f):
			if !slices.Contains(k.allowed, f) {
				k.allowed = append(k.allowed, f)
			}
		case numericID.MatchString(strings.TrimPrefix(f, "-")):
			return fmt.Errorf("contains %q, which is a group and not a person: use the IDs of people, which /whoami shows", f)
		default:
			return fmt.Errorf("contains %q, which is not a numeric ID: names can change hands, so use the number that /whoami shows", f)
		}
	}
	return nil
}

// Check implements option.Section.
func (k *kind) Check(c *option.Check) {
	if k.mode == modeWebhook {
		k.checkWebhook(c)
	}
	if k.everyone {
		c.Warn("TELEGRAM_ALLOWED_USER_IDS is *: everybody on Telegram may talk to the bot and use up your model's budget")
	}
	if k.token.IsSet() && option.PlainHTTPAbroad(k.apiURL) {
		c.Warn("TELEGRAM_API_URL is http:// on another machine: the token and all messages travel unencrypted; use https://")
	}
}

func (k *kind) checkWebhook(c *option.Check) {
	if c.Sound("PUBLIC_URL", "TELEGRAM_API_URL") {
		// Only a Bot API server of one's own calls a plain http address.
		ownServer := k.apiURL != officialAPI
		switch {
		case c.PublicURL == "":
			c.Problem("PUBLIC_URL is not set but TELEGRAM_MODE is webhook: set it to the https:// address of this server, or use TELEGRAM_MODE=poll")
		case !strings.HasPrefix(c.PublicURL, "https://") && !ownServer:
			c.Problem("PUBLIC_URL is not https:// but TELEGRAM_MODE is webhook: Telegram calls https:// addresses only; change it, or use TELEGRAM_MODE=poll")
		}
	}
	if c.Sound("TELEGRAM_WEBHOOK_SECRET") && !k.webhookSecret.IsSet() {
		c.Problem("TELEGRAM_WEBHOOK_SECRET is not set but TELEGRAM_MODE is webhook: set it to the output of `openssl rand -hex 32`, or use TELEGRAM_MODE=poll")
	}
}

// WithLive implements option.Section.
func (k *kind) WithLive(next option.Section) option.Section {
	now, from := *k, next.(*kind)
	now.everyone, now.allowed, now.owners = from.everyone, from.allowed, from.owners
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
func (k *kind) On() bool { return k.token.IsSet() }

// People implements platform.Kind.
func (k *kind) People() platform.People {
	return platform.People{
		Everyone: k.everyone, IDs: k.allowed, Owners: k.owners,
		AllowOption: "TELEGRAM_ALLOWED_USER_IDS", OwnerOption: "TELEGRAM_OWNER_IDS",
		Form: numericID, FormText: "a positive number",
	}
}

// Banner implements platform.Kind.
func (k *kind) Banner(account platform.Account) string {
	if !k.On() {
		return "off. `bot setup telegram` connects it, or set TELEGRAM_BOT_TOKEN."
	}
	who := "for its owner"
	switch {
	case k.everyone:
		who = "open to EVERYONE (TELEGRAM_ALLOWED_USER_IDS=*)"
	case len(k.allowed) > 0:
		who = "for the people in TELEGRAM_ALLOWED_USER_IDS"
	}
	return fmt.Sprintf("%s by %s, %s", account.Name, k.mode, who)
}

// Intake implements platform.Kind.
func (k *kind) Intake() platform.Intake {
	if k.mode == modeWebhook {
		return platform.OverHTTP
	}
	return platform.Polled
}

// New implements platform.Kind.
func (k *kind) New(s platform.Surroundings) (platform.Adapter, error) {
	return New(Config{
		Surroundings:  s,
		Token:         k.token.Reveal(),
		APIURL:        k.apiURL,
		Webhook:       k.mode == modeWebhook,
		WebhookSecret: k.webhookSecret.Reveal(),
		Streaming:     k.streaming,
		SendRate:      k.rate,
		ChatSendRate:  k.perChat,
	})
}
