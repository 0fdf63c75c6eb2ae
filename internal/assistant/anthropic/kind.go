package anthropic

import (
	"cmp"
	"log/slog"

	"remote-agent/internal/assistant"
	"remote-agent/internal/option"
)

// kind is the API's part of the configuration.
type kind struct {
	key       option.Secret
	baseURL   string // empty means Anthropic's own
	model     string
	maxTokens int
	thinking  int    // tokens; 0 for none
	effort    string // empty means the API's default
}

// Kind returns Anthropic's API, with options that are not read yet.
func Kind() assistant.Kind { return &kind{} }

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	return []option.Option{
		{
			Name: "ANTHROPIC_API_KEY", Empty: "no key", Secret: true, Group: option.GroupModel,
			Help:  "API key for Anthropic.",
			Parse: option.Secrecy(&k.key),
		},
		{
			Name: "ANTHROPIC_BASE_URL", Empty: "the provider's API", Group: option.GroupModel,
			Help:    "Base URL of a server with the Anthropic Messages API, without /v1.",
			Example: "http://127.0.0.1:8080",
			Parse:   option.URL(&k.baseURL),
		},
		{
			Name: "ANTHROPIC_MODEL", Default: "claude-sonnet-4-6", Group: option.GroupModel, Live: true,
			Help:  "Model to use.",
			Parse: option.Text(&k.model),
		},
		{
			Name: "ANTHROPIC_MAX_TOKENS", Default: "16000", Group: option.GroupModel,
			Help:  "Maximum length of an answer, in tokens.",
			Parse: option.Int(&k.maxTokens, 256, 1_000_000),
		},
		{
			Name: "ANTHROPIC_THINKING_TOKENS", Default: "0", Group: option.GroupModel,
			Help:  "Thinking budget per answer, in tokens: 0 for none, -1 to let the model decide, otherwise 1024 or more.",
			Parse: option.Int(&k.thinking, ThinkingAdaptive, 1_000_000),
		},
		{
			Name: "ANTHROPIC_EFFORT", Empty: "the API's default", Group: option.GroupModel,
			Help:    "Effort: low, medium, high, xhigh or max, if the model supports it.",
			Example: "medium",
			Parse: option.Choice(func(v string) { k.effort = v },
				"low", "medium", "high", "xhigh", "max"),
		},
	}
}

// Check implements option.Section.
func (k *kind) Check(c *option.Check) {
	if c.Assistant == k.Assistant() && !k.Configured() && c.Sound("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL") {
		c.Problem("DEFAULT_AI_ASSISTANT is anthropic, but no model is configured: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for your own server")
	}
	if t := k.thinking; t > 0 && (t < minThinkingBudget || t >= k.maxTokens) && c.Sound("ANTHROPIC_THINKING_TOKENS", "ANTHROPIC_MAX_TOKENS") {
		c.Problem("ANTHROPIC_THINKING_TOKENS is %d: use 0, or a number from 1024 to below ANTHROPIC_MAX_TOKENS (%d)", t, k.maxTokens)
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
	return New(Config{
		APIKey: k.key.Reveal(), BaseURL: k.baseURL, Model: k.model,
		MaxTokens: k.maxTokens, ThinkingBudget: k.thinking, Effort: k.effort, Log: log,
	})
}
