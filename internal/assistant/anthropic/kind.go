package anthropic

import (
	"log/slog"

	"remote-agent/internal/assistant"
	"remote-agent/internal/option"
)

// kind is the API's part of the configuration.
type kind struct {
	assistant.API

	maxTokens int
	thinking  int    // tokens; 0 for none
	effort    string // empty means the API's default
}

// Kind returns Anthropic's API, with options that are not read yet.
func Kind() assistant.Kind {
	return &kind{API: assistant.API{Name: Name, Official: defaultBaseURL}}
}

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	list := k.API.Options("API key for Anthropic.",
		"Base URL of a server with the Anthropic Messages API, without /v1.", "http://127.0.0.1:8080", "claude-sonnet-4-6")
	return append(list, []option.Option{
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
	}...)
}

// Check implements option.Section.
func (k *kind) Check(c *option.Check) {
	k.API.Check(c)
	if t := k.thinking; t > 0 && (t < minThinkingBudget || t >= k.maxTokens) && c.Sound("ANTHROPIC_THINKING_TOKENS", "ANTHROPIC_MAX_TOKENS") {
		c.Problem("ANTHROPIC_THINKING_TOKENS is %d: use 0, or a number from 1024 to below ANTHROPIC_MAX_TOKENS (%d)", t, k.maxTokens)
	}
}

// WithLive implements option.Section.
func (k *kind) WithLive(next option.Section) option.Section {
	now := *k
	now.Asked = next.(*kind).Asked
	return &now
}

// New implements assistant.Kind.
func (k *kind) New(log *slog.Logger) (assistant.Model, error) {
	return New(Config{
		APIKey: k.Key.Reveal(), BaseURL: k.BaseURL, Model: k.Asked,
		MaxTokens: k.maxTokens, ThinkingBudget: k.thinking, Effort: k.effort, Log: log,
	})
}
