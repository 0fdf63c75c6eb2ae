// Package telegram emulates the Telegram Bot API over HTTP, with people, chats
// and a ledger of what the people would see.
//
// A test makes a Server, gives its URL to the bot, lets a Person do something
// and waits for what appears:
//
//	server := telegram.New(telegram.Options{Token: "1000:test"})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//
//	alice := server.Person(42)
//	sent := alice.Says("hello")
//	answer, err := server.WaitText(ctx, 42, func(text string) bool { return text == "hi" })
//
// Emulated: getMe, getUpdates (offsets, limit, long poll, allowed_updates,
// negative offsets, 409 between pollers and with a webhook, the slowing down of
// repeated offsets, 24 h retention), setWebhook, deleteWebhook, getWebhookInfo
// and delivery to the webhook (secret, order in each chat, retries, Retry-After,
// methods in the answer), sendMessage, sendDocument, editMessageText, deleteMessage,
// sendChatAction, sendMessageDraft, setMessageReaction, createForumTopic, the commands menu,
// getFile and downloads, answerCallbackQuery, getChat. Message ids count up in
// every chat, so they are not unique over chats. Parameters are read from JSON,
// multipart and urlencoded bodies. Everything that the real server refuses in
// these methods and that a bot of text is likely to hit is refused with its
// words: empty and long texts, entities that are out of range or cut a
// character, edits that change nothing, missing messages, topics and chats,
// blocked bots, migrated groups, wrong tokens. Space around a text is trimmed
// and control characters are cleaned as the real server does.
//
// Not emulated: parse_mode (a text with special characters is refused; send
// entities), every other method (404), rich messages, inline mode, payments,
// the closing of a webhook that answers 410, the 3 s delay of repeated
// conflicts, certificates, and the server's own limits, unless Options.Limits
// says so. http URLs are taken as webhooks on loopback.
//
// Faults are injected for each method with Inject and InjectFunc.
package telegram
