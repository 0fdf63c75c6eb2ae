package config

import "remote-agent/internal/option"

// The options of what people attach: pictures, documents and recordings.

const groupFiles = "Pictures, documents and voice messages"

func (c *Config) fileOptions() []option.Option {
	return []option.Option{
		{
			Name: "TRANSCRIBE_BASE_URL", Empty: "the official API if TRANSCRIBE_API_KEY is set, otherwise voice messages are not transcribed", Group: groupFiles,
			Help:    "Base URL of an OpenAI-compatible transcription API, including /v1. Voice messages (OGG, M4A, MP3, WAV) are sent to it.",
			Example: "http://127.0.0.1:8000/v1",
			Parse:   option.URL(&c.Transcribe.BaseURL),
		},
		{
			Name: "TRANSCRIBE_MODEL", Default: "whisper-1", Group: groupFiles,
			Help:  "Model for transcription, as the server names it.",
			Parse: option.Text(&c.Transcribe.Model),
		},
		{
			Name: "TRANSCRIBE_API_KEY", Empty: "no key", Secret: true, Group: groupFiles,
			Help:  "API key for the transcription API.",
			Parse: option.Secrecy(&c.Transcribe.APIKey),
		},
		{
			Name: "RETENTION_FILES", Default: "90d", Group: groupFiles,
			Help:  "How long pictures and documents are kept after they were last attached, or shown by a tool, such as 90d or 720h, at least 1d; off keeps them as long as a message refers to them. They are always deleted with the last session that contains them.",
			Parse: setRetention(&c.Retention.Files),
		},
	}
}

// Transcribe configures who writes down what is said in recordings.
type Transcribe struct {
	BaseURL string // empty means the provider's API
	Model   string
	APIKey  Secret
}

// Configured reports whether there is a transcription API to ask.
func (t Transcribe) Configured() bool { return t.BaseURL != "" || t.APIKey.IsSet() }
