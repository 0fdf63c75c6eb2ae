package config

// The options of what works: models, tools, agents. They belong to the table in
// options.go and are apart from it for their number.

var anthropicOptions = []Option{
	{
		Name: "ANTHROPIC_API_KEY", Empty: "no key", Secret: true, Group: groupModel,
		Help:  "Key of the Anthropic API, for the assistant anthropic.",
		parse: setSecret(func(c *Config) *Secret { return &c.Anthropic.APIKey }),
	},
	{
		Name: "ANTHROPIC_BASE_URL", Empty: "the provider's own", Group: groupModel,
		Help:    "Address of any server with the Messages API, without its /v1.",
		Example: "http://127.0.0.1:8080",
		parse:   setURL(func(c *Config) *string { return &c.Anthropic.BaseURL }),
	},
	{
		Name: "ANTHROPIC_MODEL", Default: "claude-sonnet-4-6", Group: groupModel,
		Help:  "Model to ask.",
		parse: setText(func(c *Config) *string { return &c.Anthropic.Model }),
	},
	{
		Name: "ANTHROPIC_MAX_TOKENS", Default: "16000", Group: groupModel,
		Help:  "Longest answer, in tokens.",
		parse: setInt(func(c *Config) *int { return &c.Anthropic.MaxTokens }, 256, 1_000_000),
	},
	{
		Name: "ANTHROPIC_THINKING_TOKENS", Default: "0", Group: groupModel,
		Help:  "Budget for thinking before an answer, in tokens: 0 for none, -1 leaves it to the model, else 1024 or more.",
		parse: setInt(func(c *Config) *int { return &c.Anthropic.ThinkingTokens }, -1, 1_000_000),
	},
	{
		Name: "ANTHROPIC_EFFORT", Empty: "the API's own", Group: groupModel,
		Help:    "How much the model does for an answer: low, medium, high, xhigh or max, as far as it has it.",
		Example: "medium",
		parse: setChoice(func(c *Config, v string) { c.Anthropic.Effort = v },
			"low", "medium", "high", "xhigh", "max"),
	},
	{
		Name: "MODEL_FAST", Empty: "no such tier", Group: groupModel,
		Help:    "Model that /model fast chooses, as assistant:model.",
		Example: "openai:gpt-5-mini",
		parse:   parseTier("fast"),
	},
	{
		Name: "MODEL_SMART", Empty: "no such tier", Group: groupModel,
		Help:    "Model that /model smart chooses.",
		Example: "anthropic:claude-opus-4-6",
		parse:   parseTier("smart"),
	},
	{
		Name: "MODEL_CHEAP", Empty: "no such tier", Group: groupModel,
		Help:    "Model that /model cheap chooses.",
		Example: "openai:gpt-5-nano",
		parse:   parseTier("cheap"),
	},
}

var toolOptions = []Option{
	{
		Name: "PERMISSION_MODE", Default: "edit", Group: groupTools,
		Help: "How much may happen without asking, until /mode says otherwise: ask (read only) or edit (files may change, commands ask).",
		parse: setChoice(func(c *Config, v string) { c.Tools.Mode = v },
			"ask", "edit"),
	},
	{
		Name: "APPROVERS", Default: "self", Group: groupTools,
		Help: "Who decides on what is asked: self (the one who asked for the work, or an owner), or other (somebody else).",
		parse: setChoice(func(c *Config, v string) { c.Tools.SecondApprover = v == "other" },
			"self", "other"),
	},
	{
		Name: "SANDBOX", Default: "best", Group: groupTools,
		Help: "Confinement of programs that assistants run: best (all that this system has), strict (refuse to run without all of it) or off.",
		parse: setChoice(func(c *Config, v string) { c.Tools.Sandbox = v },
			"best", "strict", "off"),
	},
	{
		Name: "TOOL_NETWORK", Default: "off", Group: groupTools,
		Help: "on lets programs that assistants run reach the hosts of TOOL_HOSTS, off nothing.",
		parse: setChoice(func(c *Config, v string) { c.Tools.Network = v == "on" },
			"on", "off"),
	},
	{
		Name: "TOOL_HOSTS", Empty: "none", Group: groupTools,
		Help:    "Hosts that programs may reach with TOOL_NETWORK=on, with commas: host, *.host, host:port, or * for every public one. Addresses inside only as host:port.",
		Example: "packages.example.com,127.0.0.1:8080",
		parse:   parseProgramHosts(func(c *Config) *[]string { return &c.Tools.Hosts }),
	},
	{
		Name: "TOOL_TIMEOUT", Default: "10m", Group: groupTools,
		Help:  "Longest time for one command of an assistant.",
		parse: setDuration(func(c *Config) *duration { return (*duration)(&c.Tools.Timeout) }, true),
	},
	{
		Name: "TOOL_READ_PATHS", Empty: "the system's own folders only", Group: groupTools,
		Help:    "Further folders that programs of assistants may read, with commas, such as a compiler or a package cache.",
		Example: "/opt/toolchain,/srv/cache",
		parse:   parsePaths(func(c *Config) *[]string { return &c.Tools.ReadPaths }),
	},
	{
		Name: "TOOL_ENV", Empty: "a few harmless ones only", Group: groupTools,
		Help:    "Names of further environment variables that programs of assistants get, with commas. Never secrets.",
		Example: "GOFLAGS,JAVA_HOME",
		parse:   parseNames(func(c *Config) *[]string { return &c.Tools.Env }),
	},
	{
		Name: "FETCH_URL", Default: "off", Group: groupTools,
		Help: "on gives assistants a tool that reads public https pages; each fetch asks. Pages can hold instructions of strangers.",
		parse: setChoice(func(c *Config, v string) { c.Tools.Fetch = v == "on" },
			"on", "off"),
	},
	{
		Name: "MCP_CONFIG", Empty: "no MCP servers", Group: groupTools,
		Help:    "JSON file of MCP servers whose tools assistants get, {\"mcpServers\": {\"name\": {\"command\": ..., \"args\": [...], \"hosts\": [...]}}} or with a url; each call asks. hosts are those it may reach.",
		Example: "./mcp.json",
		parse:   setText(func(c *Config) *string { return &c.Tools.MCPConfig }),
	},
	{
		Name: "MAX_ROUNDS", Default: "50", Group: groupTools,
		Help:  "Requests to the model in one turn before a person is asked whether it may go on.",
		parse: setInt(func(c *Config) *int { return &c.Tools.MaxRounds }, 1, 1000),
	},
	{
		Name: "BUDGET_TURN_USD", Empty: "no limit", Group: groupTools,
		Help:    "What one turn may cost before a person is asked.",
		Example: "2.50",
		parse:   setDollars(func(c *Config) *int64 { return &c.Budget.TurnMicros }),
	},
	{
		Name: "BUDGET_PERSON_USD", Empty: "no limit", Group: groupTools,
		Help:    "What one person may use in a day (UTC).",
		Example: "10",
		parse:   setDollars(func(c *Config) *int64 { return &c.Budget.PersonMicros }),
	},
	{
		Name: "BUDGET_DAY_USD", Empty: "no limit", Group: groupTools,
		Help:    "What everybody together may use in a day (UTC).",
		Example: "50",
		parse:   setDollars(func(c *Config) *int64 { return &c.Budget.DayMicros }),
	},
	{
		Name: "BUDGET_TURN_TOKENS", Empty: "no limit", Group: groupTools,
		Help:    "The same as BUDGET_TURN_USD, in tokens, for models whose price is not known.",
		Example: "500000",
		parse:   setCount(func(c *Config) *int64 { return &c.Budget.TurnTokens }),
	},
	{
		Name: "BUDGET_PERSON_TOKENS", Empty: "no limit", Group: groupTools,
		Help:    "The same as BUDGET_PERSON_USD, in tokens.",
		Example: "2000000",
		parse:   setCount(func(c *Config) *int64 { return &c.Budget.PersonTokens }),
	},
	{
		Name: "BUDGET_DAY_TOKENS", Empty: "no limit", Group: groupTools,
		Help:    "The same as BUDGET_DAY_USD, in tokens.",
		Example: "20000000",
		parse:   setCount(func(c *Config) *int64 { return &c.Budget.DayTokens }),
	},
}

var agentOptions = []Option{
	{
		Name: "CLAUDE_COMMAND", Default: "claude-agent-acp", Group: groupAgents,
		Help:  "Command that starts Claude Code for the assistant claude: npm install -g @agentclientprotocol/claude-agent-acp.",
		parse: setText(func(c *Config) *string { return &c.Agents.Claude }),
	},
	{
		Name: "CODEX_COMMAND", Default: "codex-acp", Group: groupAgents,
		Help:  "Command that starts Codex for the assistant codex: npm install -g @agentclientprotocol/codex-acp.",
		parse: setText(func(c *Config) *string { return &c.Agents.Codex }),
	},
	{
		Name: "ACP_AGENTS", Empty: "no others", Group: groupAgents,
		Help:    "Other agents that speak the Agent Client Protocol, as name=command, with semicolons.",
		Example: `"gemini=gemini --experimental-acp; mine=/opt/agent serve"`,
		parse:   setText(func(c *Config) *string { return &c.Agents.Others }),
	},
	{
		Name: "AGENT_ENV", Default: "ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,ANTHROPIC_MODEL,CLAUDE_CONFIG_DIR,OPENAI_API_KEY,OPENAI_BASE_URL,CODEX_API_KEY,CODEX_HOME", Group: groupAgents,
		Help:  "Names of the environment variables that agents get, with commas. ANTHROPIC_* and CLAUDE_* are for claude, OPENAI_* and CODEX_* for codex, other keys and tokens for agents of ACP_AGENTS; agent=NAME gives one to that agent alone.",
		parse: parseAgentNames(func(c *Config) *[]string { return &c.Agents.Env }),
	},
	{
		Name: "AGENT_HOSTS", Empty: "each agent reaches its own provider", Group: groupAgents,
		Help:    "Further hosts that agents may reach, with commas, as in TOOL_HOSTS; agent=host is for that agent alone.",
		Example: "github.com,gemini=generativelanguage.googleapis.com,codex=127.0.0.1:8080",
		parse:   parseProgramHosts(func(c *Config) *[]string { return &c.Agents.Hosts }),
	},
	{
		Name: "AGENT_HOME", Empty: "DATA_DIR/agents", Group: groupAgents,
		Help:    "Home folder of agents: their logins, settings and sessions. They can write to it.",
		Example: "./data/agents",
		parse:   setText(func(c *Config) *string { return &c.Agents.Home }),
	},
	{
		Name: "AGENT_IDLE", Default: "10m", Group: groupAgents,
		Help:  "How long the process of an agent is kept for the next message of its conversation.",
		parse: setDuration(func(c *Config) *duration { return (*duration)(&c.Agents.Idle) }, true),
	},
}
