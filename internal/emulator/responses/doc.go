// Package responses emulates the OpenAI Responses API over HTTP, with a model
// that answers by a script. It is enough for coding agents that keep their own
// history, such as Codex.
//
//	server := responses.New(responses.Options{APIKey: "key"})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//
//	server.Enqueue(
//		responses.Calls(responses.Call{ID: "call_1", Name: "exec_command", Arguments: `{"cmd":"ls"}`}),
//		responses.Text("There are two files."),
//	)
//
// Emulated: POST /v1/responses, streamed with numbered events or not: messages,
// refusals, reasoning with a summary and encrypted content, function calls, calls
// of custom tools and of the local shell, usage, incomplete and failed answers;
// GET /v1/models; keys; errors in the API's form, before and in the middle of an
// answer.
//
// Requests are checked as the API does: known parameters, item and content types,
// roles, ids of at most 64 characters, tools, each call answered exactly once by
// an output of its kind that comes after it. Encrypted reasoning is taken only as
// this package made it, by the model that it was made for.
//
// Not emulated: stored responses (previous_response_id is refused, as for one that
// has expired), conversations, background mode, tools that run at the provider,
// websockets, compaction, tokens (four bytes count as one), every other endpoint
// (404).
package responses
