package telegram

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// chat is what a conversation id stands for.
type chat struct {
	id     int64
	thread int // forum topic, or 0
}

// makeKey returns the conversation of a chat and, if thread is not 0, a topic
// in it.
func makeKey(chatID int64, thread int) messages.ConversationKey {
	id := strconv.FormatInt(chatID, 10)
	if thread != 0 {
		id += ":" + strconv.Itoa(thread)
	}
	return messages.ConversationKey{Platform: Name, ID: id}
}

// parseKey is the inverse of makeKey.
func parseKey(key messages.ConversationKey) (chat, error) {
	id, thread, topic := strings.Cut(key.ID, ":")
	var c chat
	var err error
	if c.id, err = strconv.ParseInt(id, 10, 64); err != nil || key.Platform != Name {
		return chat{}, fault.Newf(fault.Invalid, "%s is not a Telegram conversation.", key)
	}
	if topic {
		if c.thread, err = strconv.Atoi(thread); err != nil {
			return chat{}, fault.Newf(fault.Invalid, "%s is not a Telegram conversation.", key)
		}
	}
	return c, nil
}

// Send implements platform.Adapter.
func (a *Adapter) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	to, err := parseKey(out.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	text, err := a.renderWithin(out.Text)
	if err != nil {
		return messages.Ref{}, err
	}
	markup, err := keyboard(out.Buttons)
	if err != nil {
		return messages.Ref{}, err
	}
	params := &bot.SendMessageParams{
		ChatID:              to.id,
		MessageThreadID:     to.thread,
		Text:                text.text,
		Entities:            text.entities,
		LinkPreviewOptions:  noPreview(),
		DisableNotification: out.Silent,
		ReplyMarkup:         markup,
	}
	if id, convErr := strconv.Atoi(string(out.ReplyTo)); convErr == nil && id > 0 {
		// Without this flag a deleted question would make the answer fail.
		params.ReplyParameters = &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
	}
	var sent *models.Message
	post := func() error {
		do := func(ctx context.Context) (err error) {
			sent, err = a.api.SendMessage(ctx, params)
			return err
		}
		if out.Optional {
			return a.shed(ctx, to.id, "sendMessage", do)
		}
		return a.limited(ctx, to.id, "sendMessage", false, do)
	}
	err = post()
	if isThreadGone(err) && params.MessageThreadID != 0 {
		params.MessageThreadID = 0 // a deleted topic: say it in the general one
		err = post()
	}
	if isEntityError(err) {
		a.observe("entities_refused")
		a.log.WarnContext(ctx, "telegram refused the formatting of a message, sending it plain", "err", err)
		params.Entities = nil
		err = post()
	}
	if err != nil {
		return messages.Ref{}, err
	}
	a.observe("sent")
	return messages.Ref{Conversation: out.Conversation, Message: messages.MessageID(strconv.Itoa(sent.ID))}, nil
}

// Edit implements platform.Editor.
func (a *Adapter) Edit(ctx context.Context, edit platform.Edit) error {
	to, id, err := parseRef(edit.Ref)
	if err != nil {
		return err
	}
	text, err := a.renderWithin(edit.Text)
	if err != nil {
		return err
	}
	markup, err := keyboard(edit.Buttons)
	if err != nil {
		return err
	}
	params := &bot.EditMessageTextParams{
		ChatID:             to.id,
		MessageID:          id,
		Text:               text.text,
		Entities:           text.entities,
		LinkPreviewOptions: noPreview(),
		ReplyMarkup:        markup,
	}
	change := func() error {
		do := func(ctx context.Context) error {
			_, err := a.api.EditMessageText(ctx, params)
			return err
		}
		if edit.Progress {
			return a.shed(ctx, to.id, "editMessageText", do)
		}
		return a.limited(ctx, to.id, "editMessageText", true, do)
	}
	err = change()
	if isEntityError(err) && !edit.Progress {
		a.observe("entities_refused")
		a.log.WarnContext(ctx, "telegram refused the formatting of an edit, sending it plain", "err", err)
		params.Entities = nil
		err = change()
	}
	if isNotModified(err) {
		return nil
	}
	return err
}

// limited runs a call when the rate limits allow it and waits out a short 429.
func (a *Adapter) limited(ctx context.Context, chatID int64, method string, idempotent bool, fn func(context.Context) error) error {
	return a.paced(ctx, chatID, func() error { return a.call(ctx, method, idempotent, fn) })
}

func (a *Adapter) paced(ctx context.Context, chatID int64, call func() error) error {
	deadline := time.Now().Add(exchange.ShortWait)
	for {
		if err := a.limits.wait(ctx, chatID); err != nil {
			return err
		}
		err := call()
		if !fault.Is(err, fault.RateLimited) {
			return err
		}
		a.observe("rate_limited")
		after := exchange.RetryAfter(err)
		a.limits.block(chatID, after) //nolint:contextcheck // it is told to the others whoever gives up
		if time.Now().Add(after).After(deadline) {
			return err
		}
	}
}

// shed runs a call that is worth nothing later: at once or not at all.
func (a *Adapter) shed(ctx context.Context, chatID int64, method string, fn func(context.Context) error) error {
	if err := a.limits.try(ctx, chatID); err != nil {
		a.observe("edit_shed")
		return err
	}
	err := a.call(ctx, method, true, fn)
	if fault.Is(err, fault.RateLimited) {
		a.observe("rate_limited")
		a.limits.block(chatID, exchange.RetryAfter(err)) //nolint:contextcheck // as above
	}
	return err
}

// Typing implements platform.Typer.
func (a *Adapter) Typing(ctx context.Context, key messages.ConversationKey) error {
	to, err := parseKey(key)
	if err != nil {
		return err
	}
	if err := a.limits.silence(ctx, to.id); err != nil {
		return err
	}
	return a.call(ctx, "sendChatAction", true, func(ctx context.Context) error {
		_, err := a.api.SendChatAction(ctx, &bot.SendChatActionParams{
			ChatID: to.id, MessageThreadID: to.thread, Action: models.ChatActionTyping,
		})
		return err
	})
}

// The reactions are of the list that bots may use (Bot API, ReactionTypeEmoji).
func reaction(mark platform.Mark) []models.ReactionType {
	var emoji string
	switch mark {
	case platform.MarkSeen:
		emoji = "👀"
	case platform.MarkQueued:
		emoji = "🫡"
	default:
		return nil
	}
	return []models.ReactionType{{
		Type:              models.ReactionTypeTypeEmoji,
		ReactionTypeEmoji: &models.ReactionTypeEmoji{Type: models.ReactionTypeTypeEmoji, Emoji: emoji},
	}}
}

// Mark implements platform.Marker. A reaction is no message, so it does not count
// against those of its chat, but it does against all calls together.
func (a *Adapter) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	to, id, err := parseRef(ref)
	if err != nil {
		return err
	}
	if err := a.limits.pass(ctx, to.id); err != nil {
		return err
	}
	err = a.call(ctx, "setMessageReaction", true, func(ctx context.Context) error {
		_, err := a.api.SetMessageReaction(ctx, &bot.SetMessageReactionParams{
			ChatID: to.id, MessageID: id, Reaction: reaction(mark),
		})
		return err
	})
	if fault.Is(err, fault.RateLimited) {
		a.observe("rate_limited")
		a.limits.block(to.id, exchange.RetryAfter(err)) //nolint:contextcheck // as above
	}
	return err
}

// parseRef returns where a message is and which it is.
func parseRef(ref messages.Ref) (chat, int, error) {
	to, err := parseKey(ref.Conversation)
	if err != nil {
		return to, 0, err
	}
	id, err := strconv.Atoi(string(ref.Message))
	if err != nil || id <= 0 {
		return to, 0, fault.Newf(fault.NotFound, "%q is not a Telegram message.", ref.Message)
	}
	return to, id, nil
}

// noPreview keeps Telegram and its clients from fetching links: a preview of a
// link that a model was made to write leaks what is in it.
func noPreview() *models.LinkPreviewOptions {
	return &models.LinkPreviewOptions{IsDisabled: bot.True()}
}

// renderWithin renders markdown and checks Telegram's limit.
func (a *Adapter) renderWithin(markdown string) (rendered, error) {
	if len(markdown) <= maxSource {
		if r := a.render.render(markdown); r.length <= maxText {
			return r, nil
		}
	}
	return rendered{}, fault.Newf(fault.Invalid, "The message is longer than the %d characters that Telegram allows.", maxText)
}
