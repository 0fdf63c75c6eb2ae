package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// ephemeralMark begins the id of a message that only one person sees. It cannot
// be edited, found or answered (contract B2).
const ephemeralMark = "ephemeral-"

// asides is what only one person sees.
type asides struct {
	api     *api
	log     *slog.Logger
	replyTo *platform.Recent[string, string] // event or new- key -> response_url
	told    *platform.Recent[string, bool]   // new- key -> tellAsker has told
}

// send posts a message that only one person sees. If the bot is not in
// the channel, it answers the slash command that was given there.
func (s *asides) send(ctx context.Context, to place, out messages.Outbound) (messages.Ref, error) {
	c := render(out.Text, out.Buttons)
	ts, err := s.postEphemeral(ctx, to, out, c)
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Gone) {
		if address, ok := s.replyTo.Get(out.Conversation.ID); ok && s.api.respond(ctx, address, c) == nil {
			ts, err = strconv.FormatInt(time.Now().UnixNano(), 10), nil
		}
	}
	if err != nil {
		return messages.Ref{}, err
	}
	return messages.Ref{Conversation: out.Conversation, Message: messages.MessageID(ephemeralMark + ts)}, nil
}

func (s *asides) postEphemeral(ctx context.Context, to place, out messages.Outbound, c content) (string, error) {
	var ts string
	r := request{method: "chat.postEphemeral"}
	err := s.api.inAnyForm(ctx, s.log, c, out.Text, out.Buttons, func(c content) error {
		post := func(ctx context.Context, web *slack.Client) (err error) {
			ts, err = web.PostEphemeralContext(ctx, to.channel, string(out.OnlyFor), c.options(to)...)
			return err
		}
		if out.Optional {
			return s.api.shed(ctx, "", r, post)
		}
		return s.api.limited(ctx, to.channel, r, post)
	})
	return ts, err
}

// tellAsker tells who gave a slash command that nothing can be posted there. The root of
// the thread and the answer are both refused then, which is told once.
func (s *asides) tellAsker(ctx context.Context, to place, err error) {
	if !fault.Is(err, fault.Forbidden) && !fault.Is(err, fault.Gone) {
		return
	}
	key := makeKey(to).ID
	if address, ok := s.replyTo.Get(key); ok {
		if told, _ := s.told.Take(key, true); told {
			return
		}
		if err := s.api.respond(ctx, address, render(fault.Public(err), nil)); err != nil {
			s.told.Put(key, false)
			s.log.InfoContext(ctx, "could not tell that nothing can be posted", "err", err)
		}
	}
}

// Whisper implements platform.Whisperer: with a message that only the sender
// sees, or, where the bot cannot post one, with an answer to the command or a direct message.
func (s *asides) Whisper(ctx context.Context, to messages.Inbound, text string) error {
	at, err := parseKey(to.Conversation)
	if err != nil {
		return err
	}
	text = shorten(text, maxPlain)
	c := render(text, nil)
	address, answerable := s.replyTo.Get(string(to.Event))
	if answerable && at.opening != "" && s.api.respond(ctx, address, c) == nil {
		return nil
	}
	_, err = s.postEphemeral(ctx, at, messages.Outbound{OnlyFor: to.Sender.ID, Text: text}, c)
	switch {
	case err != nil && answerable && at.opening == "":
		return s.api.respond(ctx, address, c)
	case fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Gone):
		if _, direct := s.api.post(ctx, place{account: at.account, channel: string(to.Sender.ID)}, "", c); direct == nil {
			return nil
		}
	}
	return err
}

const (
	dialogBlock = "text" // the id of the block and of the field in it

	// The limits of a modal's title, button and field (views.open, text input).
	maxDialogTitle = 24
	maxDialogLabel = 2000
	maxDialogText  = 3000
)

// OpenDialog implements platform.Dialoger. A text that is longer than the 3000
// characters that Slack's field takes is fault.Invalid, and a press that is
// older than three seconds fault.NotFound.
func (s *asides) OpenDialog(ctx context.Context, in messages.Inbound, d platform.Dialog) error {
	if len([]rune(d.Text)) > maxDialogText {
		return fault.Newf(fault.Invalid, "The text is longer than the %d characters that can be edited here.", maxDialogText)
	}
	note, _ := json.Marshal(dialogNote{Action: d.ID, Key: in.Conversation.ID, Message: string(in.Message)}) // it is of strings
	plainText := func(s string, n int) *slack.TextBlockObject {
		if r := []rune(s); len(r) > n {
			s = string(r[:n-1]) + "…"
		}
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	field := slack.NewPlainTextInputBlockElement(nil, dialogBlock).
		WithMultiline(true).WithMaxLength(maxDialogText).WithInitialValue(d.Text)
	view := slack.ModalViewRequest{
		Type:            slack.VTModal,
		Title:           plainText(cmp.Or(d.Title, "Edit"), maxDialogTitle),
		Submit:          plainText(cmp.Or(d.Submit, "Send"), maxDialogTitle),
		Close:           plainText("Cancel", maxDialogTitle),
		PrivateMetadata: string(note),
		CallbackID:      metadataType,
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewInputBlock(dialogBlock, plainText(cmp.Or(d.Label, "Text"), maxDialogLabel), nil, field),
		}},
	}
	err := s.api.limited(ctx, "", request{method: "views.open", idempotent: true}, func(ctx context.Context, web *slack.Client) error {
		_, err := web.OpenViewContext(ctx, d.Trigger, view)
		return err
	})
	switch codeOf(err) {
	case "expired_trigger_id", "trigger_expired", "trigger_exchanged", "invalid_trigger_id", "exchanged_trigger_id":
		return &fault.Error{Kind: fault.NotFound, Public: "That took too long. Press the button again.", Err: err}
	}
	return err
}
