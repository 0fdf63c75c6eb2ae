// Package openai emulates the OpenAI chat completions API over HTTP, with a
// model that answers by a script.
//
//	server := openai.New(openai.Options{APIKey: "key"})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//
//	gate := emulator.NewGate()
//	server.Enqueue(openai.Reply(openai.Delta("one "), openai.Gate(gate), openai.Delta("two")))
//	... start a turn ...
//	<-gate.Reached() // "one " has been sent
//	gate.Open()
//
// Emulated: POST /v1/chat/completions, streamed or not, with text, parallel tool
// calls in pieces, usage, [DONE]; GET /v1/models; keys; errors in the API's
// form, before and in the middle of an answer. Requests are checked as the API
// does and harder where providers that call themselves compatible differ: tool
// results directly after the calls and each exactly once, no empty content, ids
// of at most 40 and names of at most 64 characters of [a-zA-Z0-9_-], known
// roles, known parameters, parameters that contradict each other.
//
// Not emulated: tokens (four bytes count as one), more than one choice,
// sampling, response formats, images, audio, organizations, the legacy function
// role, every other endpoint (404).
package openai
