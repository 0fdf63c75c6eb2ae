// Package slack emulates a Slack platform for one app: the Web API, events,
// slash commands and interactions over HTTP or Socket Mode, with workspaces,
// people, channels and a ledger of what the people would see.
//
// A test makes a Server, gives its APIURL and tokens to the bot, says where
// events go, lets a Person do something and waits for what appears:
//
//	server := slack.New(slack.Options{})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//	server.UseSocketMode() // or server.UseHTTP(slack.Endpoints{Events: ...})
//
//	ann := server.User("U1").In("C1")
//	sent := ann.Mentions("hello")
//	answer, err := server.WaitText(ctx, "C1", sent.TS, func(text string) bool { return text == "hi" })
//
// Emulated methods: auth.test, apps.connections.open, chat.postMessage, update,
// delete, postEphemeral, getPermalink, startStream, appendStream, stopStream,
// assistant.threads.setStatus, setTitle, setSuggestedPrompts,
// agents.sessions.setStatus and rename (unknown_method unless switched on),
// conversations.replies, history, info, open, members, users.info, bots.info,
// reactions.add, remove, get, files.getUploadURLExternal,
// completeUploadExternal, info, uploads and downloads, views.open, update, push,
// publish, and response URLs. Arguments come as a query, a form or JSON; the
// reading methods take no JSON, as on the real platform.
//
// Refused with Slack's error codes: wrong, revoked and inactive tokens, missing
// scopes, unknown and archived channels and those without the bot, texts and
// blocks over their limits, malformed blocks and metadata, answers to messages
// that are not the root of a thread, edits of other people's messages, closed
// edit windows and running streams, doubled reactions, and streams in the wrong
// state. Where the public documentation is silent the emulator takes the
// stricter reading; the doc comments of the methods say so.
//
// Events carry event ids, signatures and retry headers. One mention arrives as
// app_mention and as message, in an order that the test chooses; copies can be
// doubled, lost or first come as a retry. What the bot posts comes back to it as
// events, as Slack does. Nothing is delivered in order across gestures.
//
// Not emulated: every other method (unknown_method), OAuth, scheduled messages,
// search, canvases, lists, user tokens, link unfurling (the flags are kept) and
// the rendering of Slack's clients beyond plain text.
//
// Faults are injected for each method with Inject and InjectFunc.
package slack
