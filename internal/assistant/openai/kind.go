package openai

import (
	"log/slog"

	"remote-agent/internal/assistant"
	"remote-agent/internal/option"
)

// kind is the API's part of the configuration.
type kind struct{ assistant.API }

// Kind returns OpenAI's API, with options that are not read yet.
func Kind() assistant.Kind {
	return &kind{API: assistant.API{Name: Name, Official: defaultBaseURL}}
}

// Options implements option.Section.
func (k *kind) Options() []option.Option {
	list := k.API.Options("API key for OpenAI or a compatible server.",
		"Base URL of an OpenAI-compatible API, including /v1.", "http://127.0.0.1:11434/v1", "gpt-5-mini")
	list[1].Aliases = []option.Alias{{Name: "OPENAI_API_BASE", Renamed: true}}
	return list
}

// Check implements option.Section.
func (k *kind) Check(c *option.Check) {
	k.API.Check(c)
	if k.Key.IsSet() && option.PlainHTTPAbroad(k.BaseURL) {
		c.Warn("OPENAI_BASE_URL is http:// on another machine, so the key and all messages are sent unencrypted; use https://")
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
	return New(Config{APIKey: k.Key.Reveal(), BaseURL: k.BaseURL, Model: k.Asked, Log: log})
}
