package openai

import (
	"net/http"
	"strconv"
	"strings"

	"remote-agent/internal/pattern"
)

// overflowTexts are the ways in which providers say, in lower case, that the
// prompt does not fit the context window. A group holds the limit where the
// provider names it.
var overflowTexts = []pattern.Pattern{
	pattern.Lazy(`context_length_exceeded|context_window_exceeded|string_above_max_length`),
	pattern.Lazy(`maximum context length (?:of|is|for this model is) (\d[\d,]*)`),                                                       // OpenAI, vLLM, OpenRouter, DeepSeek
	pattern.Lazy(`prompt is too long(?:: \d+ tokens > (\d+) maximum)?`),                                                                 // Anthropic behind a gateway
	pattern.Lazy(`input token count .*exceeds the maximum number of tokens (?:allowed )?\(?(\d+)?`),                                     // Gemini
	pattern.Lazy(`maximum prompt length is (\d+)`),                                                                                      // xAI
	pattern.Lazy(`reduce the length of the (?:messages|prompt|input)`),                                                                  // Groq, OpenAI
	pattern.Lazy(`exceeds? (?:the |this )?(?:model'?s? )?(?:available |maximum )?context (?:size|window|length)(?: \(?(?:of )?(\d+))?`), // llama.cpp, OpenAI
	pattern.Lazy(`(?:greater|larger|longer) than the context (?:length|window|size)`),                                                   // LM Studio
	pattern.Lazy(`prompt token count of \d+ exceeds the limit of (\d+)`),                                                                // Copilot
	pattern.Lazy(`exceeded model token limit: (\d+)`),                                                                                   // Kimi
	pattern.Lazy(`too large for model with (\d+) maximum context`),                                                                      // Mistral
	pattern.Lazy(`(?:input|prompt|request).{0,40}(?:too (?:long|many tokens)).{0,60}(?:context|tokens)`),
	pattern.Lazy(`(?:tokens|input) .{0,40}exceeds? .{0,40}context`),
}

// rateLimit recognizes texts that speak of tokens or limits but mean a rate.
var rateLimit = pattern.Lazy(`rate.?limit|too many requests|throttl|per (?:minute|hour|day)|\((?:tpm|rpm|tpd)\)|quota|overloaded|concurren`)

// tooLargeForRate is a request that alone is above the tokens per minute of the
// account: no wait makes it fit, a smaller window does.
var tooLargeForRate = pattern.Lazy(`request too large for .*limit:? (\d+)`)

// overflows reports whether f means that the array does not fit the model, and
// the limit in tokens if it says so. text is the error in lower case.
func overflows(f *apiFailure, text string) (limit int, ok bool) {
	if m := tooLargeForRate.FindStringSubmatch(text); m != nil {
		return number(m[1]), true
	}
	if f.status == http.StatusRequestEntityTooLarge || f.status == http.StatusBadRequest && !f.body {
		// Cerebras sends nothing more than the status.
		return 0, true
	}
	if f.status == http.StatusTooManyRequests || f.status == http.StatusUnauthorized || rateLimit.MatchString(text) {
		return 0, false
	}
	for _, re := range overflowTexts {
		m := re.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		ok = true
		if len(m) > 1 && m[1] != "" {
			return number(m[1]), true
		}
	}
	return 0, ok
}

func number(digits string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(digits, ",", ""))
	if err != nil {
		return 0
	}
	return n
}
