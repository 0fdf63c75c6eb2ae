package app

import (
	"remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/config"
	"remote-agent/internal/option"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/platform/telegram"
)

// Sections returns the model APIs and the platforms that there are, besides the console,
// as parts of a configuration that is to be read. A new one is a line here. Of several
// models that are configured, the first one answers.
func Sections() []option.Section {
	return []option.Section{
		openai.Kind(),
		anthropic.Kind(),
		telegram.Kind(),
		slack.Kind(),
		github.Kind(),
	}
}

// LoadConfig reads the configuration with the options of all of them; see config.Load.
func LoadConfig(src config.Source) (config.Config, error) { return config.Load(src, Sections()...) }

// sectionsOf returns the sections of one kind in a configuration. Written out wherever it
// is called, it would make the program 20 kB larger.
//
//go:noinline
func sectionsOf[K option.Section](cfg config.Config) []K {
	var list []K
	for _, s := range cfg.Sections {
		if k, ok := s.(K); ok {
			list = append(list, k)
		}
	}
	return list
}
