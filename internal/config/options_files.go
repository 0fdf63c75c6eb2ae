package config

import "time"

// The options of what people attach: pictures, documents and recordings.

const groupFiles = "Pictures, documents and voice messages"

var fileOptions = []Option{
	{
		Name: "TRANSCRIBE_BASE_URL", Empty: "the official API if TRANSCRIBE_API_KEY is set, else voice messages are not understood", Group: groupFiles,
		Help:    "Address of any server with an OpenAI-compatible transcription API, with its /v1. It gets the voice messages (OGG, M4A, MP3, WAV) that people send.",
		Example: "http://127.0.0.1:8000/v1",
		parse:   setURL(func(c *Config) *string { return &c.Transcribe.BaseURL }),
	},
	{
		Name: "TRANSCRIBE_MODEL", Default: "whisper-1", Group: groupFiles,
		Help:  "Model for transcription, as the server names it.",
		parse: setText(func(c *Config) *string { return &c.Transcribe.Model }),
	},
	{
		Name: "TRANSCRIBE_API_KEY", Empty: "no key", Secret: true, Group: groupFiles,
		Help:  "Key of the transcription API.",
		parse: setSecret(func(c *Config) *Secret { return &c.Transcribe.APIKey }),
	},
	{
		Name: "RETENTION_FILES", Default: "90d", Group: groupFiles,
		Help:  "How long pictures and documents are kept after somebody attached them last, such as 90d or 720h, at least 1d; off keeps them as long as a message has them. They are deleted with the last session that has them in any case.",
		parse: setRetention(func(c *Config) *time.Duration { return &c.Retention.Files }),
	},
}

// Transcribe configures who writes down what is said in recordings.
type Transcribe struct {
	BaseURL string // empty means the provider's API
	Model   string
	APIKey  Secret
}

// Configured reports whether there is a transcription API to ask.
func (t Transcribe) Configured() bool { return t.BaseURL != "" || t.APIKey.IsSet() }
