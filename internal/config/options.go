package config

import (
	"slices"
	"strings"
	"time"

	"remote-agent/internal/option"
)

// Groups of options, in the order in which they are listed.
const (
	groupServer    = "Server"
	groupStorage   = "Storage"
	groupWork      = "Conversations"
	groupModel     = option.GroupModel
	groupTools     = "Tools"
	groupAgents    = "Agents"
	groupMemory    = "Memory"
	groupGit       = "Git"
	groupLog       = "Logs"
	defaultDataDir = "./data"
)

// EnvFile is the file that options are read from if no other is named.
const EnvFile = ".env"

// Options returns the table, with the options of sections.
func Options(sections ...option.Section) []option.Option {
	return (&Config{Sections: sections}).options()
}

// options returns the options of the program and of its sections, in the order in which
// they are listed. What they parse is stored in c.
func (c *Config) options() []option.Option {
	var models, theirs []option.Option
	for _, s := range c.Sections {
		for _, o := range s.Options() {
			if o.Group == groupModel {
				models = append(models, o)
			} else {
				theirs = append(theirs, o)
			}
		}
	}
	return slices.Concat(c.baseOptions(), c.workOptions(), c.careOptions(), models, c.modelOptions(), c.toolOptions(), c.agentOptions(),
		c.memoryOptions(), c.fileOptions(), c.signInOptions(), theirs, c.lastOptions())
}

func (c *Config) baseOptions() []option.Option {
	return []option.Option{
		{
			Name: "LISTEN_ADDR", Default: "127.0.0.1:3000", Group: groupServer,
			Help:    "Address the HTTP server listens on (health, metrics, webhooks, API), as host:port.",
			Aliases: []option.Alias{{Name: "PORT", Convert: listenOnPort}},
			Parse:   c.parseListenAddr,
		},
		{
			Name: "PUBLIC_URL", Empty: "no webhooks", Group: groupServer,
			Help:    "Public address of this server; needed for webhooks, OIDC_ISSUER and web pages from elsewhere.",
			Example: "https://bot.example.com",
			Parse:   option.URL(&c.PublicURL),
		},
		{
			Name: "API", Default: "on", Group: groupServer,
			Help:  "on serves /api/v1 to programs that have a key from `bot key create`; off disables the API.",
			Parse: option.Choice(func(v string) { c.API = v == "on" }, "on", "off"),
		},
		{
			Name: "DATA_DIR", Default: defaultDataDir, Group: groupStorage,
			Help:  "Folder for the SQLite database, the logs and the workspace; created if missing.",
			Parse: option.Text(&c.DataDir),
		},
		{ //nolint:gosec // the password is an example
			Name: "DATABASE_URL", Empty: "SQLite in DATA_DIR", Secret: true, Group: groupStorage,
			Help:    "Database: sqlite:PATH or postgres://user:password@host/name.",
			Example: "postgres://bot:password@localhost:5432/bot",
			Parse:   c.parseDatabaseURL, Mask: maskURL,
		},
		{
			Name: "WORKSPACE_PATH", Empty: "DATA_DIR/workspace", Group: groupStorage,
			Help:    "Folder for the clones and worktrees of repositories.",
			Example: "./data/workspace",
			Parse:   option.Text(&c.WorkspacePath),
		},
	}
}

func (c *Config) workOptions() []option.Option {
	models := modelNames(c.Sections)
	return []option.Option{
		{
			Name: "DEFAULT_AI_ASSISTANT", Empty: option.OrList(models) + " if its key or base URL is set, otherwise demo", Group: groupWork,
			Help:    "Assistant for new conversations: " + strings.Join(append(models, AssistantClaude, AssistantCodex), ", ") + ", a name from ACP_AGENTS, or demo (scripted and offline).",
			Example: append(models, AssistantDemo)[0],
			Parse:   c.parseAssistant,
		},
		{
			Name: "MAX_CONCURRENT_CONVERSATIONS", Default: "10", Group: groupWork, Live: true,
			Help:  "How many conversations are answered in parallel; others are queued and told so.",
			Parse: option.Int(&c.MaxConversations, 1, 10_000),
		},
		{
			Name: "MAX_WAITING_MESSAGES", Default: "50", Group: groupWork, Live: true,
			Help:  "How many messages one person can have queued in a conversation, and ten times that across all of them; further messages are refused, with one notice.",
			Parse: option.Int(&c.MaxWaiting, 1, 10_000),
		},
		{
			Name: "PAIRING", Default: "on", Group: groupWork,
			Help:  "on asks the owners, in their private chats, whether to let in people who write to the bot privately; off refuses them.",
			Parse: option.Choice(func(v string) { c.Pairing = v == "on" }, "on", "off"),
		},
		{
			Name: "TURN_TIMEOUT", Default: "60m", Group: groupWork, Live: true,
			Help:  "Time limit for one answer.",
			Parse: option.Duration(&c.TurnTimeout, 10*time.Millisecond, 365*day),
		},
		{
			Name: "SHUTDOWN_GRACE", Default: "30s", Group: groupWork, Live: true,
			Help:  "How long running answers may take to finish at shutdown; the rest continue after the restart.",
			Parse: option.Duration(&c.ShutdownGrace, 0, day),
		},
	}
}

func (c *Config) modelOptions() []option.Option {
	return []option.Option{
		{
			Name: "CONTEXT_TOKENS", Default: "100000", Group: groupModel, Live: true,
			Help:  "How much of the conversation is sent with each message, in tokens.",
			Parse: option.Int(&c.ContextTokens, 500, 100_000_000),
		},
		{
			Name: "SYSTEM_PROMPT", Empty: "short built-in instructions", Group: groupModel, Live: true,
			Help:    "Instructions for the assistant, replacing the built-in ones. The platform, repository and date are always added.",
			Example: `"Answer briefly."`,
			Parse:   option.Text(&c.SystemPrompt),
		},
		{
			Name: "MODEL_FAST", Empty: "no such tier", Group: groupModel, Live: true,
			Help:    "Model for /model fast, as assistant:model.",
			Example: "openai:gpt-5-mini",
			Parse:   c.parseTier("fast"),
		},
		{
			Name: "MODEL_SMART", Empty: "no such tier", Group: groupModel, Live: true,
			Help:    "Model for /model smart.",
			Example: "anthropic:claude-opus-4-6",
			Parse:   c.parseTier("smart"),
		},
		{
			Name: "MODEL_CHEAP", Empty: "no such tier", Group: groupModel,
			Help:    "Model for /model cheap.",
			Example: "openai:gpt-5-nano",
			Parse:   c.parseTier("cheap"),
		},
	}
}

func (c *Config) lastOptions() []option.Option {
	return []option.Option{
		{
			Name: "GIT_ALLOWED_HOSTS", Default: "github.com", Group: groupGit,
			Help:  "Hosts that repositories may be cloned from, comma-separated; host:port if the port is not 443. Git never contacts any other host.",
			Parse: c.parseHosts,
		},
		{
			Name: "GITHUB_TOKEN", Empty: "the GitHub App, or public repositories only", Secret: true, Group: groupGit,
			Help:    "Personal access token. Git sends it only to github.com, or instead to the GitHub of GITHUB_API_URL; with GITHUB_MODE, the bot comments as this person.",
			Aliases: []option.Alias{{Name: "GH_TOKEN"}},
			Parse:   option.Secrecy(&c.Git.Token),
		},
		{
			Name: "LOG_LEVEL", Default: "info", Group: groupLog, Live: true,
			Help:  "Log level: debug, info, warn or error.",
			Parse: option.Choice(func(v string) { _ = c.Log.Level.UnmarshalText([]byte(v)) }, "debug", "info", "warn", "error"),
		},
		{
			Name: "LOG_FORMAT", Default: FormatAuto, Group: groupLog,
			Help:  "Log format: auto (text on a terminal, otherwise JSON), text or json.",
			Parse: option.Choice(func(v string) { c.Log.Format = v }, FormatAuto, FormatText, FormatJSON),
		},
	}
}
