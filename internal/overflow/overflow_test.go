package overflow

import (
	"strings"
	"testing"
)

func TestReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"The input (250000 tokens) is longer than the model's context length (131072 tokens).":                                                                        131072, // Together, SGLang
		"The decoder prompt (length 8357) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no less":                                 8192,   // vLLM
		"Trying to keep the first 9394 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.": 4096,   // LM Studio
		"Context size has been exceeded.":                                                       0, // llama.cpp
		"invalid params, context window exceeds limit (2013)":                                   0, // MiniMax
		"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]": 98304,
		"1261 Prompt exceeds max length":                                                        0, // Z.ai
		"Input is too long for requested model.":                                                0, // Bedrock
		"5021: The estimated number of input and maximum output tokens (155740) exceeded this model context window limit (128000).":          128000, // Cloudflare
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens and 512 `max_new_tokens`": 32769,
		"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000":                                                      4096,
		"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.":                                                     131040,
		"prompt too long; exceeded max context length by 5 tokens":                                                                           0, // Ollama; not the limit
		"Codex ran out of room in the model's context window. Start a new thread.":                                                           0,
		`Internal error {"codexErrorInfo":"contextWindowExceeded"}`:                                                                          0, // Codex
		"context_exhausted": 0, // Claude Code
		"Context limit reached · /compact or /clear to continue":                                0, // Claude Code
		"ContextOverflowError: Input exceeds context window of this model":                      0, // opencode
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease": 200000,
	} {
		if limit, ok := Reported(strings.ToLower(text)); !ok || limit != want {
			t.Errorf("%s: %d, %v, want %d", text, limit, ok, want)
		}
	}
	for _, text := range []string{
		"Range of max_tokens should be [1, 8192]",
		"max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens",
		"Unknown parameter: 'context'", "Unknown option context_length in config.toml", "The context window of the model is not known, so that 128000 is used",
		"input length must be at least 1", "The tool's name is longer than 64 characters",
	} {
		if limit, ok := Reported(strings.ToLower(text)); ok {
			t.Errorf("%s: an overflow of %d", text, limit)
		}
	}
}
