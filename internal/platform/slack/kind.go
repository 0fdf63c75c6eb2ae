package slack

import (
	"fmt"

	"remote-agent/internal/messages"
	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

// kind is the platform's part of the configuration.
type kind struct {
	botToken      option.Secret
	appToken      option.Secret // set: Socket Mode
	signingSecret option.Secret
	apiURL        string
	streaming     bool
	everyone      bool // everybody of the workspace
	allowed       []string
	owners        []string
}

// Kind returns Slack, with options that are not read yet.
func Kind() platform.Kind { return &kind{} }

// userID is the id of a person. Names can be changed and taken by others.
var userID = pattern.Lazy(`^[UW][A-Z0-9]{2,30}$`)

const userIDText = "a user id such as U012AB3CD"

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	const group = "Slack"
	return []option.Option{
		{
			Name: "SLACK_BOT_TOKEN", Empty: "Slack is off", Secret: true, Group: group,
			Help:  "Bot token of the installed app, xoxb-...; `bot slack manifest` helps create the app.",
			Parse: option.Prefixed("xoxb-", &k.botToken),
		},
		{
			Name: "SLACK_APP_TOKEN", Empty: "events come over HTTP", Secret: true, Group: group,
			Help:  "App-level token, xapp-..., with connections:write: Socket Mode, which needs no public address.",
			Parse: option.Prefixed("xapp-", &k.appToken),
		},
		{
			Name: "SLACK_SIGNING_SECRET", Empty: "Socket Mode only", Secret: true, Group: group,
			Help:  "Signing secret of the app, for events over HTTP; needs PUBLIC_URL.",
			Parse: option.Secrecy(&k.signingSecret),
		},
		{
			Name: "SLACK_API_URL", Empty: "Slack's own", Group: group,
			Help:    "Address of the Web API; change it for a stand-in.",
			Example: "http://127.0.0.1:8080/api/",
			Parse:   option.URL(&k.apiURL),
		},
		{
			Name: "SLACK_ALLOWED_USER_IDS", Empty: "nobody until the owner's code is used", Group: group, Live: true,
			Help:    "User IDs (U...) of the people who can use the bot, comma-separated; * allows the whole workspace, except people from other organizations. /whoami shows a person's ID.",
			Example: "U012AB3CD,U045EF6GH",
			Parse:   k.parseAllowed,
		},
		{
			Name: "SLACK_OWNER_IDS", Empty: "who used the owner's code, or `bot owner add`", Group: group, Live: true,
			Help:    "User IDs (U...) of the owners, comma-separated. If set, nobody else is an owner on Slack, including earlier owners.",
			Example: "U012AB3CD",
			Parse:   option.Owners(userID, userIDText, &k.owners),
		},
		{
			Name: "SLACK_STREAMING_MODE", Default: "stream", Group: group,
			Help:  "stream shows an answer while it is written, batch when it is complete.",
			Parse: option.Choice(func(v string) { k.streaming = v == "stream" }, "stream", "batch"),
		},
	}
}

func (k *kind) parseAllowed(text string) error {
	k.everyone, k.allowed = false, nil
	for _, f := range option.List(text) {
		switch {
		case f == "*":
			k.everyone = true
		case !userID.MatchString(f):
			return fmt.Errorf("has %q in it, which is not %s; names can change hands", f, userIDText)
		default:
			k.allowed = append(k.allowed, f)
		}
	}
	return nil
}

// Check implements option.Section: events have to come in somehow.
func (k *kind) Check(c *option.Check) {
	if k.botToken.IsSet() && !k.appToken.IsSet() && !k.signingSecret.IsSet() && c.Sound("SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET") {
		c.Problem("SLACK_BOT_TOKEN is set but no events can come in: set SLACK_APP_TOKEN (Socket Mode), or SLACK_SIGNING_SECRET with PUBLIC_URL (HTTP)")
	}
	if !k.botToken.IsSet() && (k.appToken.IsSet() || k.signingSecret.IsSet()) && c.Sound("SLACK_BOT_TOKEN") {
		c.Problem("SLACK_BOT_TOKEN is not set: Slack needs it besides SLACK_APP_TOKEN or SLACK_SIGNING_SECRET")
	}
	if k.everyone {
		c.Warn("SLACK_ALLOWED_USER_IDS is *: everybody in the workspace may talk to the bot and use up your model's budget")
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
func (k *kind) On() bool { return k.botToken.IsSet() }

// People implements platform.Kind.
func (k *kind) People() platform.People {
	return platform.People{
		Everyone: k.everyone, IDs: k.allowed, Owners: k.owners,
		AllowOption: "SLACK_ALLOWED_USER_IDS", OwnerOption: "SLACK_OWNER_IDS",
		Form: userID, FormText: userIDText,
	}
}

// Banner implements platform.Kind.
func (k *kind) Banner(account platform.Account) string {
	switch {
	case !k.On():
		return "off. `bot setup slack` makes the app and connects it, or set SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
	case k.Intake() == platform.OverHTTP:
		return account.Name + " over HTTP at /webhooks/slack/"
	}
	return account.Name + " by Socket Mode"
}

// Intake implements platform.Kind. Slack gives each event to one of up to ten sockets.
func (k *kind) Intake() platform.Intake {
	if k.appToken.IsSet() {
		return platform.OverSocket
	}
	return platform.OverHTTP
}

// New implements platform.Kind.
func (k *kind) New(s platform.Surroundings) (platform.Adapter, error) {
	return New(Config{
		Surroundings:  s,
		BotToken:      k.botToken.Reveal(),
		AppToken:      k.appToken.Reveal(),
		SigningSecret: k.signingSecret.Reveal(),
		APIURL:        k.apiURL,
		Streaming:     k.streaming,
	})
}
