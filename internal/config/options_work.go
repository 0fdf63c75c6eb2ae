package config

import (
	"time"

	"remote-agent/internal/option"
)

// The options of what works: tools, agents. They belong to the table in
// options.go and are apart from it for their number.

func (c *Config) toolOptions() []option.Option {
	return []option.Option{
		{
			Name: "PERMISSION_MODE", Default: "edit", Group: groupTools,
			Help:  "Default permission mode, until changed with /mode: ask (read only) or edit (files can be changed; commands need approval).",
			Parse: option.Choice(func(v string) { c.Tools.Mode = v }, "ask", "edit"),
		},
		{
			Name: "APPROVERS", Default: "self", Group: groupTools,
			Help:  "Who approves: self (the person who asked for the work, or an owner) or other (someone else).",
			Parse: option.Choice(func(v string) { c.Tools.SecondApprover = v == "other" }, "self", "other"),
		},
		{
			Name: "SANDBOX", Default: "best", Group: groupTools,
			Help:  "Sandbox for programs that assistants run: best (as much as this system supports), strict (refuse to run with less than the full sandbox) or off.",
			Parse: option.Choice(func(v string) { c.Tools.Sandbox = v }, "best", "strict", "off"),
		},
		{
			Name: "TOOL_NETWORK", Default: "off", Group: groupTools,
			Help:  "on lets programs that assistants run reach the hosts in TOOL_HOSTS; off gives them no network.",
			Parse: option.Choice(func(v string) { c.Tools.Network = v == "on" }, "on", "off"),
		},
		{
			Name: "TOOL_HOSTS", Empty: "none", Group: groupTools,
			Help:    "Hosts that programs may reach with TOOL_NETWORK=on, comma-separated: host, *.host, host:port, or * for every public host. Private addresses need a port: host:port.",
			Example: "packages.example.com,127.0.0.1:8080",
			Parse:   setHosts(&c.Tools.Hosts),
		},
		{
			Name: "TOOL_TIMEOUT", Default: "10m", Group: groupTools,
			Help:  "Time limit for one command run by an assistant.",
			Parse: option.Duration(&c.Tools.Timeout, 10*time.Millisecond, 365*day),
		},
		{
			Name: "TOOL_READ_PATHS", Empty: "system folders only", Group: groupTools,
			Help:    "Extra folders tools may read, comma-separated, such as a compiler or a package cache.",
			Example: "/opt/toolchain,/srv/cache",
			Parse:   setPaths(&c.Tools.ReadPaths),
		},
		{
			Name: "TOOL_ENV", Empty: "a few harmless variables", Group: groupTools,
			Help:    "Extra environment variables passed to tools, comma-separated names. Never put secrets here.",
			Example: "GOFLAGS,JAVA_HOME",
			Parse:   c.setVariables(&c.Tools.Env, false),
		},
		{
			Name: "FETCH_URL", Default: "off", Group: groupTools,
			Help:  "on gives assistants a tool that reads public https pages; each fetch needs approval. Pages can contain instructions from strangers.",
			Parse: option.Choice(func(v string) { c.Tools.Fetch = v == "on" }, "on", "off"),
		},
		{
			Name: "MCP_CONFIG", Empty: "no MCP servers", Group: groupTools,
			Help:    "JSON file with MCP servers for assistants: {\"mcpServers\": {\"name\": {\"command\": ..., \"args\": [...], \"hosts\": [...]}}}, or url instead of command. hosts lists what a server may reach. Each call needs approval.",
			Example: "./mcp.json",
			Parse:   option.Text(&c.Tools.MCPConfig),
		},
		{
			Name: "MAX_ROUNDS", Default: "50", Group: groupTools, Live: true,
			Help:  "Model requests in one turn before a person is asked whether to continue.",
			Parse: option.Int(&c.Tools.MaxRounds, 1, 1000),
		},
		{
			Name: "BUDGET_TURN_USD", Empty: "no limit", Group: groupTools, Live: true,
			Help:    "Cost of one turn in US dollars before a person is asked whether to continue.",
			Example: "2.50",
			Parse:   setDollars(&c.Budget.TurnMicros),
		},
		{
			Name: "BUDGET_PERSON_USD", Empty: "no limit", Group: groupTools, Live: true,
			Help:    "Daily budget per person in US dollars (UTC day).",
			Example: "10",
			Parse:   setDollars(&c.Budget.PersonMicros),
		},
		{
			Name: "BUDGET_DAY_USD", Empty: "no limit", Group: groupTools, Live: true,
			Help:    "Daily budget for everyone together in US dollars (UTC day).",
			Example: "50",
			Parse:   setDollars(&c.Budget.DayMicros),
		},
		{
			Name: "BUDGET_TURN_TOKENS", Empty: "no limit", Group: groupTools, Live: true,
			Help:    "Like BUDGET_TURN_USD, in tokens, for models without a known price.",
			Example: "500000",
			Parse:   setCount(&c.Budget.TurnTokens),
		},
		{
			Name: "BUDGET_PERSON_TOKENS", Empty: "no limit", Group: groupTools, Live: true,
			Help:    "Like BUDGET_PERSON_USD, in tokens.",
			Example: "2000000",
			Parse:   setCount(&c.Budget.PersonTokens),
		},
		{
			Name: "BUDGET_DAY_TOKENS", Empty: "no limit", Group: groupTools, Live: true,
			Help:    "Like BUDGET_DAY_USD, in tokens.",
			Example: "20000000",
			Parse:   setCount(&c.Budget.DayTokens),
		},
	}
}

func (c *Config) agentOptions() []option.Option {
	return []option.Option{
		{
			Name: "CLAUDE_COMMAND", Default: "claude-agent-acp", Group: groupAgents,
			Help:  "Command that starts Claude Code for the assistant claude. Install: npm install -g @agentclientprotocol/claude-agent-acp.",
			Parse: option.Text(&c.Agents.Claude),
		},
		{
			Name: "CODEX_COMMAND", Default: "codex-acp", Group: groupAgents,
			Help:  "Command that starts Codex for the assistant codex. Install: npm install -g @agentclientprotocol/codex-acp.",
			Parse: option.Text(&c.Agents.Codex),
		},
		{
			Name: "ACP_AGENTS", Empty: "no others", Group: groupAgents,
			Help:    "Other agents that support the Agent Client Protocol, as name=command, separated by semicolons.",
			Example: `"gemini=gemini --acp; mine=/opt/agent serve"`,
			Parse:   option.Text(&c.Agents.Others),
		},
		{
			Name: "AGENT_ENV", Default: "ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,ANTHROPIC_MODEL,CLAUDE_CONFIG_DIR,OPENAI_API_KEY,OPENAI_BASE_URL,CODEX_API_KEY,CODEX_HOME", Group: groupAgents,
			Help:  "Environment variables passed to agents, comma-separated names. ANTHROPIC_* and CLAUDE_* go to claude, OPENAI_* and CODEX_* to codex, other keys and tokens to the agents in ACP_AGENTS; agent=NAME passes a variable to one agent only.",
			Parse: c.setVariables(&c.Agents.Env, true),
		},
		{
			Name: "AGENT_HOSTS", Empty: "each agent can reach its own provider", Group: groupAgents,
			Help:    "Extra hosts that agents may reach, comma-separated, as in TOOL_HOSTS; agent=host allows one agent only.",
			Example: "github.com,gemini=generativelanguage.googleapis.com,codex=127.0.0.1:8080",
			Parse:   setHosts(&c.Agents.Hosts),
		},
		{
			Name: "AGENT_HOME", Empty: "DATA_DIR/agents", Group: groupAgents,
			Help:    "Home folder of agents, with their logins, settings and sessions. Agents can write to it.",
			Example: "./data/agents",
			Parse:   option.Text(&c.Agents.Home),
		},
		{
			Name: "AGENT_IDLE", Default: "10m", Group: groupAgents,
			Help:  "How long an agent's process stays ready for the next message of its conversation.",
			Parse: option.Duration(&c.Agents.Idle, 10*time.Millisecond, 365*day),
		},
	}
}
