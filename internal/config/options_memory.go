package config

// The options of what is remembered of people.

var memoryOptions = []Option{
	{
		Name: "MEMORY", Default: "on", Group: groupMemory,
		Help: "on lets people and assistants keep things about a person for later conversations (/memory, /remember, /forget), off does not; what is stored stays.",
		parse: setChoice(func(c *Config, v string) { c.Memory.On = v == "on" },
			"on", "off"),
	},
	{
		Name: "MEMORY_LEARNING", Default: "on", Group: groupMemory,
		Help: "on has what people say of themselves remembered by itself: after some turns a model API is asked once about what the person typed. MODEL_CHEAP is asked if it is set, else the usual model; with the demo, or agents alone, nobody is. off remembers only what somebody asks for. It needs MEMORY=on.",
		parse: setChoice(func(c *Config, v string) { c.Memory.Learning = v == "on" },
			"on", "off"),
	},
	{
		Name: "EMBEDDING_BASE_URL", Empty: "the official API if EMBEDDING_API_KEY is set, else memories are found by their words", Group: groupMemory,
		Help:    "Address of any server with an OpenAI-compatible embeddings API, with its /v1. It reads what is remembered.",
		Example: "http://127.0.0.1:11434/v1",
		parse:   setURL(func(c *Config) *string { return &c.Memory.BaseURL }),
	},
	{
		Name: "EMBEDDING_MODEL", Default: "text-embedding-3-small", Group: groupMemory,
		Help:  "Model for embeddings; it has to be able to give 384 dimensions. After a change everything is embedded again.",
		parse: setText(func(c *Config) *string { return &c.Memory.Model }),
	},
	{
		Name: "EMBEDDING_API_KEY", Empty: "no key", Secret: true, Group: groupMemory,
		Help:  "Key of the embeddings API.",
		parse: setSecret(func(c *Config) *Secret { return &c.Memory.APIKey }),
	},
}

// Memory configures what is remembered of people.
type Memory struct {
	On       bool
	Learning bool   // also by itself; needs On
	BaseURL  string // empty means the provider's own
	Model    string
	APIKey   Secret
}

// Embeds reports whether there is an embeddings API to ask.
func (m Memory) Embeds() bool { return m.BaseURL != "" || m.APIKey.IsSet() }
