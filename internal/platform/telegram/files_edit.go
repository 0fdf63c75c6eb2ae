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

var (
	_ platform.FileEditor = (*Adapter)(nil)
	_ platform.Deleter    = (*Adapter)(nil)
)

// EditFile implements platform.FileEditor: media can be added to a text message (Bot API,
// editMessageMedia). A server that is too old for that is fault.Unsupported.
func (a *Adapter) EditFile(ctx context.Context, ref messages.Ref, f platform.File) error {
	to, id, err := parseRef(ref)
	if err != nil {
		return err
	}
	if err := uploadable(f.Data); err != nil {
		return err
	}
	caption := a.caption(f.Caption)
	edit := func() error {
		return a.paced(ctx, to.id, func() error {
			return a.callWithin(ctx, uploadTimeout, "editMessageMedia", true, func(ctx context.Context) error {
				_, err := a.api.EditMessageMedia(ctx, &bot.EditMessageMediaParams{ChatID: to.id, MessageID: id, Media: &models.InputMediaDocument{
					Media: "attach://" + uploadName(f.Name), MediaAttachment: bytes.NewReader(f.Data),
					Caption: caption.text, CaptionEntities: caption.entities,
				}})
				return err
			})
		})
	}
	err = edit()
	if isEntityError(err) {
		a.observe("entities_refused")
		a.log.WarnContext(ctx, "telegram refused the formatting of a caption, sending it plain", "err", err)
		caption.entities = nil
		err = edit()
	}
	switch {
	case isNotModified(err):
		return nil
	case isInvalid(err, "there is no media in the message", "message type can't be changed"):
		return fault.Wrap(err, fault.Unsupported, "making a message a file")
	case err == nil:
		a.observe("sent")
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
func (a *Adapter) Delete(ctx context.Context, ref messages.Ref) error {
	to, id, err := parseRef(ref)
	if err != nil {
		return err
	}
	if err := a.limits.pass(ctx, to.id); err != nil {
		return err
	}
	err = a.call(ctx, "deleteMessage", true, func(ctx context.Context) error {
		_, err := a.api.DeleteMessage(ctx, &bot.DeleteMessageParams{ChatID: to.id, MessageID: id})
		return err
	})
	if isInvalid(err, "message to delete not found") {
		return nil
	}
	return err
}
