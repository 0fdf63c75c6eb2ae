package telegram

import (
	"bytes"
	"context"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// EditFile implements platform.FileEditor: media can be added to a text message (Bot API,
// editMessageMedia). A server that is too old for that is fault.Unsupported.
func (s *poster) EditFile(ctx context.Context, ref messages.Ref, f platform.File) error {
	to, id, err := parseRef(ref)
	if err != nil {
		return err
	}
	if err := uploadable(f.Data); err != nil {
		return err
	}
	caption := s.caption(f.Caption)
	edit := func() error {
		return s.client.paced(ctx, to.id, func() error {
			return s.client.callWithin(ctx, uploadTimeout, "editMessageMedia", true, func(ctx context.Context, api *bot.Bot) error {
				_, err := api.EditMessageMedia(ctx, &bot.EditMessageMediaParams{ChatID: to.id, MessageID: id, Media: &models.InputMediaDocument{
					Media: "attach://" + uploadName(f.Name), MediaAttachment: bytes.NewReader(f.Data),
					Caption: caption.text, CaptionEntities: caption.entities,
				}})
				return err
			})
		})
	}
	err = edit()
	if isEntityError(err) {
		s.observe("entities_refused")
		s.log.WarnContext(ctx, "telegram refused the formatting of a caption, sending it plain", "err", err)
		caption.entities = nil
		err = edit()
	}
	switch {
	case isNotModified(err):
		return nil
	case isInvalid(err, "there is no media in the message", "message type can't be changed"):
		return fault.Wrap(err, fault.Unsupported, "making a message a file")
	case err == nil:
		s.observe("sent")
	}
	return err
}

func uploadable(data []byte) error {
	switch {
	case len(data) == 0:
		return fault.New(fault.Invalid, "Telegram does not accept empty files.")
	case len(data) > maxUpload:
		return fault.New(fault.Invalid, "Telegram accepts files of at most 50 MB from bots.")
	}
	return nil
}

// Delete implements platform.Deleter.
func (s *poster) Delete(ctx context.Context, ref messages.Ref) error {
	to, id, err := parseRef(ref)
	if err != nil {
		return err
	}
	if err := s.client.limits.pass(ctx, to.id); err != nil {
		return err
	}
	_, err = ask(ctx, s.client, "deleteMessage", (*bot.Bot).DeleteMessage, &bot.DeleteMessageParams{ChatID: to.id, MessageID: id})
	if isInvalid(err, "message to delete not found") {
		return nil
	}
	return s.client.heard(to.id, err) //nolint:contextcheck // it is told to the others whoever gives up
}
