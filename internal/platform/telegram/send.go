package telegram

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
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

// poster posts messages, changes them and takes them back.
type poster struct {
	client  *client
	render  *renderer
	log     *slog.Logger
	observe func(string)
}

// Send implements platform.Adapter.
func (s *poster) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	to, err := parseKey(out.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	text, err := s.renderWithin(out.Text)
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
		ReplyParameters:     replyTo(out.ReplyTo),
	}
	var sent *models.Message
	post := func() error {
		do := func(ctx context.Context, api *bot.Bot) (err error) {
			sent, err = api.SendMessage(ctx, params)
			return err
		}
		if out.Optional {
			return s.client.shed(ctx, to.id, "sendMessage", do)
		}
		return s.client.limited(ctx, to.id, "sendMessage", false, do)
	}
	err = post()
	if isThreadGone(err) && params.MessageThreadID != 0 {
		// A topic that was deleted or closed: say it in the general one. A reply would go where
		// the question is.
		params.MessageThreadID, params.ReplyParameters = 0, nil
		err = post()
	}
	if isEntityError(err) {
		s.observe("entities_refused")
		s.log.WarnContext(ctx, "telegram refused the formatting of a message, sending it plain", "err", err)
		params.Entities = nil
		err = post()
	}
	if err != nil {
		return messages.Ref{}, err
	}
	s.observe("sent")
	return messages.Ref{Conversation: out.Conversation, Message: messages.MessageID(strconv.Itoa(sent.ID))}, nil
}

// replyTo returns how to answer a message; nil if none is.
func replyTo(message messages.MessageID) *models.ReplyParameters {
	id, err := strconv.Atoi(string(message))
	if err != nil || id <= 0 {
		return nil
	}
	// Without this flag a deleted question would make the answer fail.
	return &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
}

// Edit implements platform.Editor.
func (s *poster) Edit(ctx context.Context, edit platform.Edit) error {
	to, id, err := parseRef(edit.Ref)
	if err != nil {
		return err
	}
	text, err := s.renderWithin(edit.Text)
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
		do := func(ctx context.Context, api *bot.Bot) error {
			_, err := api.EditMessageText(ctx, params)
			return err
		}
		if edit.Progress {
			return s.client.shed(ctx, to.id, "editMessageText", do)
		}
		return s.client.limited(ctx, to.id, "editMessageText", true, do)
	}
	err = change()
	if isEntityError(err) && !edit.Progress {
		s.observe("entities_refused")
		s.log.WarnContext(ctx, "telegram refused the formatting of an edit, sending it plain", "err", err)
		params.Entities = nil
		err = change()
	}
	if isNotModified(err) {
		return nil
	}
	return err
}

// Typing implements platform.Typer.
func (s *poster) Typing(ctx context.Context, key messages.ConversationKey) error {
	to, err := parseKey(key)
	if err != nil {
		return err
	}
	if err := s.client.limits.silence(ctx, to.id); err != nil {
		return err
	}
	_, err = ask(ctx, s.client, "sendChatAction", (*bot.Bot).SendChatAction, &bot.SendChatActionParams{
		ChatID: to.id, MessageThreadID: to.thread, Action: models.ChatActionTyping,
	})
	return s.client.heard(to.id, err) //nolint:contextcheck // it is told to the others whoever gives up
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
func (s *poster) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	to, id, err := parseRef(ref)
	if err != nil {
		return err
	}
	if err := s.client.limits.pass(ctx, to.id); err != nil {
		return err
	}
	_, err = ask(ctx, s.client, "setMessageReaction", (*bot.Bot).SetMessageReaction, &bot.SetMessageReactionParams{
		ChatID: to.id, MessageID: id, Reaction: reaction(mark),
	})
	return s.client.heard(to.id, err) //nolint:contextcheck // it is told to the others whoever gives up
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
func (s *poster) renderWithin(markdown string) (rendered, error) {
	if len(markdown) <= maxSource {
		if r := s.render.render(markdown); r.length <= maxText {
			return r, nil
		}
	}
	return rendered{}, fault.Newf(fault.Invalid, "The message is longer than the %d characters that Telegram allows.", maxText)
}
