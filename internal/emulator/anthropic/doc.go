// Package anthropic emulates the Anthropic Messages API over HTTP, with a model
// that answers by a script.
//
//	server := anthropic.New(anthropic.Options{APIKey: "key"})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//
//	server.Enqueue(
//		anthropic.Reply(anthropic.Thought("hm"), anthropic.ToolUse(anthropic.Call{ID: "toolu_1", Name: "read", Arguments: `{}`})),
//		anthropic.Text("done"),
//	)
//
// Emulated: POST /v1/messages, streamed or not, with text, thinking, redacted
// thinking, parallel tool use in pieces, pings, every stop reason and cumulative
// usage; POST /v1/messages/count_tokens; GET /v1/models; keys in x-api-key or as
// a bearer; errors in the API's form, before and in the middle of an answer.
//
// Requests are checked as the API does: anthropic-version and max_tokens, roles,
// content that is not empty, results directly after the calls, each exactly once
// and before any text, names and ids, an answer that the client began only where
// it continues a turn that was paused, at most four cache breakpoints. Thinking
// has a signature that only this package makes and that holds for one text and
// one model: what was changed, or what another model thought, is refused.
//
// The prompt cache is accounted for as the API does, without its minimum length:
// a request reads the longest prefix of tools, system and messages that an
// earlier request of the last five minutes ended with at a breakpoint, byte for
// byte.
//
// Not emulated: tokens (four bytes count as one), tools that run at the provider
// (their blocks can be scripted), sampling, files, batches, rate limit headers,
// every other endpoint (404).
package anthropic
