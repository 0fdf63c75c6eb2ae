package config

import "slices"

// Groups of options, in the order in which they are listed.
const (
	groupServer    = "Server"
	groupStorage   = "Storage"
	groupWork      = "Conversations"
	groupModel     = "Model"
	groupTelegram  = "Telegram"
	groupSlack     = "Slack"
	groupTools     = "Tools"
	groupAgents    = "Agents"
	groupMemory    = "Memory"
	groupGitHub    = "GitHub"
	groupGit       = "Git"
	groupLog       = "Logs"
	defaultDataDir = "./data"
)

// EnvFile is the file that options are read from if no other is named.
const EnvFile = ".env"

// Option is a row of the table of options.
type Option struct {
	Name    string // of the environment variable
	Default string // empty if unset is meaningful; then Empty says what it means
	Empty   string // what it means that the option is not set
	Secret  bool   // never shown, no flag of its own, can be read from NAME_FILE
	Aliases []Alias
	Group   string
	Help    string // one sentence
	Example string // a value for the example file; Default if empty

	// parse checks text, which is not empty, and stores it in c. Its error says
	// what is wrong and what to do, without the variable's name and without the
	// text of a secret.
	parse func(c *Config, text string) error

	// mask returns the part of a secret that may be shown; nil shows nothing.
	mask func(text string) string
}

// Alias is another name that is accepted for an option.
type Alias struct {
	Name    string
	Renamed bool // an older name: using it is worth a warning

	// convert turns the alias' value into the option's; nil takes it as it is.
	convert func(text string) (string, error)
}

// Flag returns the name of the command-line flag, without dashes. Arguments are
// visible to every user of a machine, so a secret has a flag for its file only.
func (o Option) Flag() string {
	if o.Secret {
		return flagName(o.Name + fileSuffix)
	}
	return flagName(o.Name)
}

// Options returns the table.
func Options() []Option { return append([]Option(nil), options...) }

var options = slices.Concat(baseOptions, careOptions, modelOptions, anthropicOptions, toolOptions, agentOptions, memoryOptions, chatOptions, githubOptions, lastOptions)

var baseOptions = []Option{
	{
		Name: "LISTEN_ADDR", Default: "127.0.0.1:3000", Group: groupServer,
		Help:    "Address of the HTTP server for health, metrics, webhooks and the API, as host:port; loopback unless you say otherwise.",
		Aliases: []Alias{{Name: "PORT", convert: listenOnPort}},
		parse:   parseListenAddr,
	},
	{
		Name: "PUBLIC_URL", Empty: "no webhooks", Group: groupServer,
		Help:    "Address under which the internet reaches this server; needed for webhooks only.",
		Example: "https://bot.example.com",
		parse:   parsePublicURL,
	},
	{
		Name: "API", Default: "on", Group: groupServer,
		Help: "on serves /api/v1 to programs with a key, and to nobody until `bot key create` has made one; off never does.",
		parse: setChoice(func(c *Config, v string) { c.API = v == "on" },
			"on", "off"),
	},
	{
		Name: "DATA_DIR", Default: defaultDataDir, Group: groupStorage,
		Help:  "Folder of the SQLite database, the logs and the workspace; created if it is missing.",
		parse: setText(func(c *Config) *string { return &c.DataDir }),
	},
	{ //nolint:gosec // the password is an example
		Name: "DATABASE_URL", Empty: "SQLite in DATA_DIR", Secret: true, Group: groupStorage,
		Help:    "Database: empty, sqlite:PATH, or postgres://user:password@host/name.",
		Example: "postgres://bot:password@localhost:5432/bot",
		parse:   parseDatabaseURL, mask: maskURL,
	},
	{
		Name: "WORKSPACE_PATH", Empty: "DATA_DIR/workspace", Group: groupStorage,
		Help:    "Folder that conversations work in.",
		Example: "./data/workspace",
		parse:   setText(func(c *Config) *string { return &c.WorkspacePath }),
	},
	{
		Name: "DEFAULT_AI_ASSISTANT", Empty: "openai or anthropic if a key or base URL is set, else demo", Group: groupWork,
		Help:    "What answers new conversations: openai, anthropic, claude, codex, a name of ACP_AGENTS, or demo (scripted and offline).",
		Example: AssistantOpenAI,
		parse:   parseAssistant,
	},
	{
		Name: "MAX_CONCURRENT_CONVERSATIONS", Default: "10", Group: groupWork,
		Help:  "How many conversations are answered at the same time; others wait and are told so.",
		parse: setInt(func(c *Config) *int { return &c.MaxConversations }, 1, 10_000),
	},
	{
		Name: "MAX_WAITING_MESSAGES", Default: "50", Group: groupWork,
		Help:  "How many messages of one person may wait in a conversation, and ten times as many in all of them; more are refused, and they are told so once.",
		parse: setInt(func(c *Config) *int { return &c.MaxWaiting }, 1, 10_000),
	},
	{
		Name: "TURN_TIMEOUT", Default: "60m", Group: groupWork,
		Help:  "Longest time for one answer.",
		parse: setDuration(func(c *Config) *duration { return (*duration)(&c.TurnTimeout) }, true),
	},
	{
		Name: "SHUTDOWN_GRACE", Default: "30s", Group: groupWork,
		Help:  "How long running answers may finish after a stop; then they are put back.",
		parse: setDuration(func(c *Config) *duration { return (*duration)(&c.ShutdownGrace) }, false),
	},
}

var modelOptions = []Option{
	{
		Name: "OPENAI_API_KEY", Empty: "no key", Secret: true, Group: groupModel,
		Help:  "Key of the model API.",
		parse: setSecret(func(c *Config) *Secret { return &c.OpenAI.APIKey }),
	},
	{
		Name: "OPENAI_BASE_URL", Empty: "the provider's own", Group: groupModel,
		Help:    "Address of any server with an OpenAI-compatible API, with its /v1.",
		Example: "http://127.0.0.1:11434/v1",
		Aliases: []Alias{{Name: "OPENAI_API_BASE", Renamed: true}},
		parse:   setURL(func(c *Config) *string { return &c.OpenAI.BaseURL }),
	},
	{
		Name: "OPENAI_MODEL", Default: "gpt-5-mini", Group: groupModel,
		Help:  "Model to ask.",
		parse: setText(func(c *Config) *string { return &c.OpenAI.Model }),
	},
	{
		Name: "CONTEXT_TOKENS", Default: "100000", Group: groupModel,
		Help:  "How much of a conversation is sent with each message, in tokens.",
		parse: setInt(func(c *Config) *int { return &c.ContextTokens }, 500, 100_000_000),
	},
	{
		Name: "SYSTEM_PROMPT", Empty: "a short built-in one", Group: groupModel,
		Help:    "Instructions for the assistant, in place of the built-in ones. Where it talks and works, and what day it is, it is told in any case.",
		Example: `"Answer briefly."`,
		parse:   setText(func(c *Config) *string { return &c.SystemPrompt }),
	},
}

var chatOptions = []Option{
	{
		Name: "TELEGRAM_BOT_TOKEN", Empty: "Telegram is off", Secret: true, Group: groupTelegram,
		Help:  "Token that @BotFather gave you.",
		parse: parseToken,
	},
	{
		Name: "TELEGRAM_API_URL", Default: officialTelegramAPI, Group: groupTelegram,
		Help:  "Address of the Bot API; change it for a server of your own.",
		parse: setURL(func(c *Config) *string { return &c.Telegram.APIURL }),
	},
	{
		Name: "TELEGRAM_MODE", Default: ModePoll, Group: groupTelegram,
		Help: "How messages come in: poll (works everywhere), or webhook (needs PUBLIC_URL and TELEGRAM_WEBHOOK_SECRET).",
		parse: setChoice(func(c *Config, v string) { c.Telegram.Mode = v },
			ModePoll, ModeWebhook),
	},
	{
		Name: "TELEGRAM_WEBHOOK_SECRET", Empty: "webhook mode is refused", Secret: true, Group: groupTelegram,
		Help:  "What Telegram must send with every webhook call: 16 to 256 of A-Z a-z 0-9 _ -, for example from `openssl rand -hex 32`.",
		parse: parseWebhookSecret,
	},
	{
		Name: "TELEGRAM_ALLOWED_USER_IDS", Empty: "nobody until the owner link is used", Group: groupTelegram,
		Help:    "Numeric ids of the people who may talk to the bot, with commas; * lets everyone in. /whoami tells a person's id.",
		Example: "12345678,23456789",
		parse:   parseAllowed,
	},
	{
		Name: "TELEGRAM_OWNER_IDS", Empty: "who used the owner link, or `bot owner add`", Group: groupTelegram,
		Help:    "Numeric ids of the owners, with commas; if it names any, nobody else is an owner on Telegram, whatever was claimed before.",
		Example: "12345678",
		parse:   parseOwners(numericID, "the number that /whoami tells", func(c *Config) *[]string { return &c.Telegram.Owners }),
	},
	{
		Name: "TELEGRAM_STREAMING_MODE", Default: "stream", Group: groupTelegram,
		Help: "stream shows an answer while it is written, batch when it is complete.",
		parse: setChoice(func(c *Config, v string) { c.Telegram.Streaming = v == "stream" },
			"stream", "batch"),
	},
	{
		Name: "TELEGRAM_SEND_RATE", Default: "30", Group: groupTelegram,
		Help:  "Messages per second over all chats; 0 means no limit.",
		parse: setRate(func(c *Config) *float64 { return &c.Telegram.SendRate }),
	},
	{
		Name: "TELEGRAM_CHAT_SEND_RATE", Default: "1", Group: groupTelegram,
		Help:  "Messages per second and chat; 0 means no limit.",
		parse: setRate(func(c *Config) *float64 { return &c.Telegram.ChatSendRate }),
	},
	{
		Name: "SLACK_BOT_TOKEN", Empty: "Slack is off", Secret: true, Group: groupSlack,
		Help:  "Bot token of the installed app, xoxb-...; `bot slack manifest` makes the app.",
		parse: parsePrefixed("xoxb-", func(c *Config) *Secret { return &c.Slack.BotToken }),
	},
	{
		Name: "SLACK_APP_TOKEN", Empty: "events come over HTTP", Secret: true, Group: groupSlack,
		Help:  "App-level token, xapp-..., with connections:write: Socket Mode, which needs no public address.",
		parse: parsePrefixed("xapp-", func(c *Config) *Secret { return &c.Slack.AppToken }),
	},
	{
		Name: "SLACK_SIGNING_SECRET", Empty: "Socket Mode only", Secret: true, Group: groupSlack,
		Help:  "Signing secret of the app, for events over HTTP; needs PUBLIC_URL.",
		parse: setSecret(func(c *Config) *Secret { return &c.Slack.SigningSecret }),
	},
	{
		Name: "SLACK_API_URL", Empty: "Slack's own", Group: groupSlack,
		Help:    "Address of the Web API; change it for a stand-in.",
		Example: "http://127.0.0.1:8080/api/",
		parse:   setURL(func(c *Config) *string { return &c.Slack.APIURL }),
	},
	{
		Name: "SLACK_ALLOWED_USER_IDS", Empty: "nobody until the owner's code is used", Group: groupSlack,
		Help:    "User ids (U...) of the people who may talk to the bot, with commas; * lets the workspace in, people of other organizations not. /whoami tells a person's id.",
		Example: "U012AB3CD,U045EF6GH",
		parse:   parseSlackAllowed,
	},
	{
		Name: "SLACK_OWNER_IDS", Empty: "who used the owner's code, or `bot owner add`", Group: groupSlack,
		Help:    "User ids (U...) of the owners, with commas; if it names any, nobody else is an owner on Slack, whatever was claimed before.",
		Example: "U012AB3CD",
		parse:   parseOwners(slackUser, "a user id such as U012AB3CD", func(c *Config) *[]string { return &c.Slack.Owners }),
	},
	{
		Name: "SLACK_STREAMING_MODE", Default: "stream", Group: groupSlack,
		Help: "stream shows an answer while it is written, batch when it is complete.",
		parse: setChoice(func(c *Config, v string) { c.Slack.Streaming = v == "stream" },
			"stream", "batch"),
	},
}

var lastOptions = []Option{
	{
		Name: "GIT_ALLOWED_HOSTS", Default: "github.com", Group: groupGit,
		Help:  "Hosts that repositories may come from, with commas; host:port where it is not 443. Nothing else is ever asked.",
		parse: parseHosts,
	},
	{
		Name: "LOG_LEVEL", Default: "info", Group: groupLog,
		Help:  "debug, info, warn or error.",
		parse: setChoice(setLevel, "debug", "info", "warn", "error"),
	},
	{
		Name: "LOG_FORMAT", Default: FormatAuto, Group: groupLog,
		Help: "auto (text on a terminal, JSON otherwise), text or json.",
		parse: setChoice(func(c *Config, v string) { c.Log.Format = v },
			FormatAuto, FormatText, FormatJSON),
	},
}
