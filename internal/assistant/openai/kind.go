package openai

import (
	"cmp"
	"log/slog"

	"remote-agent/internal/assistant"
	"remote-agent/internal/option"
)

// kind is the API's part of the configuration.
type kind struct {
	key     option.Secret
	baseURL string // empty means OpenAI's own
	model   string
}

// Kind returns OpenAI's API, with options that are not read yet.
func Kind() assistant.Kind { return &kind{} }

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	return []option.Option{
		{
			Name: "OPENAI_API_KEY", Empty: "no key", Secret: true, Group: option.GroupModel,
			Help:  "API key for OpenAI or a compatible server.",
			Parse: option.Secrecy(&k.key),
		},
		{
			Name: "OPENAI_BASE_URL", Empty: "the provider's API", Group: option.GroupModel,
			Help:    "Base URL of an OpenAI-compatible API, including /v1.",
			Example: "http://127.0.0.1:11434/v1",
			Renamed: []string{"OPENAI_API_BASE"},
			Parse:   option.URL(&k.baseURL),
		},
		{
			Name: "OPENAI_MODEL", Default: "gpt-5-mini", Group: option.GroupModel, Live: true,
			Help:  "Model to use.",
			Parse: option.Text(&k.model),
		},
	}
}

// Check implements option.Section.
func (k *kind) Check(c *option.Check) {
	if c.Assistant == k.Assistant() && !k.Configured() && c.Sound("OPENAI_API_KEY", "OPENAI_BASE_URL") {
		c.Problem("DEFAULT_AI_ASSISTANT is openai, but no model is configured: set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server")
	}
	if k.key.IsSet() && option.PlainHTTPAbroad(k.baseURL) {
		c.Warn("OPENAI_BASE_URL is http:// on another machine, so the key and all messages are sent unencrypted; use https://")
	}
}

// WithLive implements option.Section.
func (k *kind) WithLive(next option.Section) option.Section {
	now := *k
	now.model = next.(*kind).model
	return &now
}

// Assistant implements option.Answerer.
func (k *kind) Assistant() string { return string(Name) }

// Configured implements option.Answerer.
func (k *kind) Configured() bool { return k.key.IsSet() || k.baseURL != "" }

// Model implements assistant.Kind.
func (k *kind) Model() string { return k.model }

// Address implements assistant.Kind.
func (k *kind) Address() string { return cmp.Or(k.baseURL, defaultBaseURL) }

// New implements assistant.Kind.
func (k *kind) New(log *slog.Logger) (assistant.Model, error) {
	return New(Config{APIKey: k.key.Reveal(), BaseURL: k.baseURL, Model: k.model, Log: log})
}
