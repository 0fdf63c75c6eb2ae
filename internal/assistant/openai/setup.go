package openai

import "remote-agent/internal/setup"

// Ways implements assistant.Guided.
func (k *kind) Ways() []setup.Way {
	key := k.Way("OpenAI's API",
		"Open https://platform.openai.com/api-keys and create a secret key.",
		"Its project needs credit: https://platform.openai.com/settings/organization/billing.",
		"Copy the key, sk-...")
	key.Fields = append(key.Fields, setup.Field{Name: "OPENAI_MODEL", Label: "Model", Default: "gpt-5-mini"})

	server := k.Way("your own server or another provider, with OpenAI's API",
		"Start the server, such as Ollama: its address is http://127.0.0.1:11434/v1 then.",
		"The address ends where the provider's manual says, usually in /v1.",
		"The model is called as the server lists it, such as qwen3:14b.")
	server.Name = "server"
	server.Fields = []setup.Field{
		{Name: "OPENAI_BASE_URL", Label: "Address"},
		{Name: "OPENAI_API_KEY", Label: "API key, if it asks for one", Secret: true, Optional: true, For: "OPENAI_BASE_URL"},
		{Name: "OPENAI_MODEL", Label: "Model"},
	}
	delete(server.Set, "OPENAI_BASE_URL")
	return []setup.Way{key, server}
}
