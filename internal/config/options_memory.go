package config

import "remote-agent/internal/option"

// The options of what is remembered of people.

func (c *Config) memoryOptions() []option.Option {
	return []option.Option{
		{
			Name: "MEMORY", Default: "on", Group: groupMemory,
			Help:  "on lets people and assistants save facts about a person for later conversations (/memory, /remember, /forget). off disables this and keeps what is stored.",
			Parse: option.Choice(func(v string) { c.Memory.On = v == "on" }, "on", "off"),
		},
		{
			Name: "MEMORY_LEARNING", Default: "on", Group: groupMemory,
			Help:  "on remembers what people say about themselves automatically: after some turns, a model reads what the person typed. It uses MODEL_CHEAP if set, otherwise the default model; it needs a model API, so the demo and agents alone learn nothing. off remembers only on request. Requires MEMORY=on.",
			Parse: option.Choice(func(v string) { c.Memory.Learning = v == "on" }, "on", "off"),
		},
		{
			Name: "EMBEDDING_BASE_URL", Empty: "the official API if EMBEDDING_API_KEY is set, otherwise memories are found by keyword", Group: groupMemory,
			Help:    "Base URL of an OpenAI-compatible embeddings API, including /v1. Memories are sent to it.",
			Example: "http://127.0.0.1:11434/v1",
			Parse:   option.URL(&c.Memory.BaseURL),
		},
		{
			Name: "EMBEDDING_MODEL", Default: "text-embedding-3-small", Group: groupMemory,
			Help:  "Embedding model; it must support 384 dimensions. Changing it re-embeds all memories.",
			Parse: option.Text(&c.Memory.Model),
		},
		{
			Name: "EMBEDDING_API_KEY", Empty: "no key", Secret: true, Group: groupMemory,
			Help:  "API key for the embeddings API.",
			Parse: option.Secrecy(&c.Memory.APIKey),
		},
	}
}

// Memory configures what is remembered of people.
type Memory struct {
	On       bool
	Learning bool   // also by itself; needs On
	BaseURL  string // empty means the provider's API
	Model    string
	APIKey   Secret
}

// Embeds reports whether there is an embeddings API to ask.
func (m Memory) Embeds() bool { return m.BaseURL != "" || m.APIKey.IsSet() }
