package anthropic

import "remote-agent/internal/setup"

// Ways implements assistant.Guided.
func (k *kind) Ways() []setup.Way {
	return []setup.Way{k.Way("Anthropic's API",
		"Open https://console.anthropic.com/settings/keys and create a key.",
		"Its organization needs credit: https://console.anthropic.com/settings/billing.",
		"Copy the key, sk-ant-...")}
}
