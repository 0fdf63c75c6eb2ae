// Package overflow knows how model APIs, and the agents above them, say that a prompt does
// not fit the context window of the model. There is no code for it that all of them use.
package overflow

import (
	"strconv"
	"strings"

	"remote-agent/internal/pattern"
)

// overflows are the ways in which servers say, in lower case, that the prompt does not fit
// the context window. A group holds the limit where it is named.
var overflows = pattern.Lazy(`context[ _](?:length|window|size)[ _](?:has been )?exceed|string_above_max_length` + // OpenAI, MiniMax, llama.cpp
	`|exceed context limit: \d+ \+ \d+ > (\d+)` + // Anthropic, with max_tokens
	`|maximum context length (?:of|is|for this model is) (\d[\d,]*)` + // OpenAI, vLLM, OpenRouter, DeepSeek
	`|prompt is too long(?:: \d+ tokens > (\d+) maximum)?` + // Anthropic
	`|input is too long for requested model|prompt exceeds max length` + // Bedrock, Z.ai
	`|input token count .*exceeds the maximum number of tokens (?:allowed )?\(?(\d+)?` + // Gemini
	`|maximum (?:prompt|allowed input) length (?:is|of) (\d+)` + // xAI, SGLang
	`|reduce the length of the (?:messages|prompt|input)` + // Groq, OpenAI
	`|exceed(?:s|ed)? (?:the |this )?(?:model'?s? )?(?:available |max(?:imum)? )?context (?:size|window|length|limit)(?: limit)?(?: \(?(?:of )?(\d[\d,]*))?` + // llama.cpp, OpenAI, Cloudflare
	`|(?:greater|larger|longer) than the (?:model's |maximum )?(?:context|model) (?:length|window|size)(?: (?:of |\()(\d+))?` + // LM Studio, Together, SGLang, vLLM
	`|context length of only (\d+)` + // LM Studio
	`|prompt token count of \d+ exceeds the limit of (\d+)` + // Copilot
	`|exceeded model token limit: (\d+)` + // Kimi
	`|too large for model with (\d+) maximum context` + // Mistral
	`|range of input length should be \[\d+, ?(\d+)` + // Qwen
	`|inputs. (?:tokens \+ .max_new_tokens. must be <=|must have less than) (\d+)` + // Hugging Face
	`|ran out of room in the model's context window|context_?window_?exceeded|context_exhausted|context limit reached|contextoverflow`) // Codex, Claude Code, opencode

// overflow recognizes what others may say.
var overflow = pattern.Lazy(`(?:input|prompt|request).{0,40}too (?:long|many tokens).{0,60}(?:context|tokens)|(?:tokens|input) .{0,40}exceeds? .{0,40}context`)

// rate recognizes texts that speak of tokens or limits but mean a rate.
var rate = pattern.Lazy(`rate.?limit|too many requests|throttl|per (?:minute|hour|day)|\((?:tpm|rpm|tpd)\)|quota|overloaded|concurren`)

// LimitsRate reports whether the text of an error, in lower case, means a limit of the rate
// of requests.
func LimitsRate(text string) bool { return rate.MatchString(text) }

// Reported reports whether the text of an error, in lower case, says that the prompt does
// not fit the model, and the limit in tokens, or zero if it names none.
func Reported(text string) (limit int, ok bool) {
	if LimitsRate(text) {
		return 0, false
	}
	found := overflows.FindAllStringSubmatch(text, -1)
	for _, groups := range found {
		if digits := strings.Join(groups[1:], ""); digits != "" { // one group at most has any
			limit, _ = strconv.Atoi(strings.ReplaceAll(digits, ",", "")) // one that is no number is none
			return limit, true
		}
	}
	return 0, len(found) > 0 || overflow.MatchString(text)
}
