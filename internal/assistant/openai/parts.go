package openai

import (
	"bytes"
	"encoding/json"

	"remote-agent/internal/pattern"
)

var inParts = pattern.Lazy(`"created"\s*:\s*(?:"|\d+[.eE])|"content"\s*:\s*\[|"arguments"\s*:\s*\{|"reasoning"\s*:\s*"|"extra_content"\s*:\s*\{|"reasoning_details"\s*:\s*\[\s*\{`)

// asTexts returns a chunk with texts where go-openai reads nothing else: some servers send
// what a model says as a list of parts, with its reasoning among them, and the arguments
// of a call as an object. What signs a call or a thought is put in a text, too; see carry.
// Reasoning has two names: vLLM, Ollama and OpenRouter use the other one. The time is left out:
// SambaNova's has fractions of a second.
func asTexts(data []byte) []byte {
	if !inParts.Match(data) {
		return data
	}
	var chunk map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if decoder.Decode(&chunk) != nil {
		return data
	}
	delete(chunk, "created")
	for _, c := range list(chunk["choices"]) {
		delta := object(object(c)["delta"])
		if said, is := delta["reasoning"].(string); is && delta["reasoning_content"] == nil {
			delta["reasoning_content"] = said
		}
		if details := list(delta["reasoning_details"]); len(details) > 0 {
			if text, err := json.Marshal(details); err == nil {
				delta["role"] = string(text) // nobody needs the role
			}
		}
		if parts, is := delta["content"].([]any); is {
			delta["content"], delta["reasoning_content"] = textOf(parts)
		}
		for _, call := range list(delta["tool_calls"]) {
			carry(object(call))
			f := object(object(call)["function"])
			if arguments, is := f["arguments"].(map[string]any); is {
				if text, err := json.Marshal(arguments); err == nil {
					f["arguments"] = string(text)
				}
			}
		}
	}
	if texts, err := json.Marshal(chunk); err == nil {
		return texts
	}
	return data
}

func textOf(parts []any) (text, thought string) {
	for _, p := range parts {
		part := object(p)
		switch said, _ := part["text"].(string); part["type"] {
		case "text":
			text += said
		case "thinking":
			more, _ := textOf(list(part["thinking"]))
			thought += more
		}
	}
	return text, thought
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
