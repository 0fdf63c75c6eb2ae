package outbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
)

// sendFile tries to post the file of a delivery once. Where files cannot be found again
// but a message can become one, its message is on record first, as that of a text is.
func (o *Outbox) sendFile(ctx context.Context, filer platform.Filer, key messages.ConversationKey, d *messages.Delivery, record Record) (messages.ConversationKey, error) {
	f := platform.File{
		Delivery: d.ID, Conversation: key, ReplyTo: d.ReplyTo, Name: d.FileName, Data: d.File, Caption: d.Text,
		Again: d.State == messages.DeliverySending,
	}
	if editor, ok := filer.(platform.FileEditor); ok {
		var err error
		if d.Message == "" {
			if key, err = o.Place(ctx, key, d, record); err != nil {
				return key, err
			}
			f.Conversation = key
		}
		ref := messages.Ref{Conversation: key, Message: d.Message}
		if err = editor.EditFile(ctx, ref, f); !fault.Is(err, fault.Unsupported) {
			return key, err
		}
		if err = o.anew(ctx, key, d, record); err != nil {
			return key, &recordError{err}
		}
	}
	ref, err := filer.SendFile(ctx, f)
	d.Message = ref.Message
	return key, err
}

// show gives the message of a delivery its text. A text that the platform refuses to show
// becomes a file, where a message can become one and has no buttons, which a file would
// lose. What is stored stays the text: whoever goes on after a crash does the same again.
func (o *Outbox) show(ctx context.Context, editor platform.Editor, key messages.ConversationKey, d messages.Delivery) error {
	ref := messages.Ref{Conversation: key, Message: d.Message}
	err := editor.Edit(ctx, platform.Edit{Ref: ref, Text: d.Text, Buttons: d.Buttons, Aside: d.Control && strings.HasPrefix(d.Text, haltedNotice)})
	filer, ok := editor.(platform.FileEditor)
	if !ok || !fault.Is(err, fault.Invalid) || !d.Final || len(d.Buttons) > 0 || d.Text == refusedText {
		return err
	}
	o.Log.ErrorContext(ctx, "the platform refuses a text; a file takes its place", "conversation", key, "delivery", d.ID, "err", err)
	d.FileName, d.File = fmt.Sprintf("answer-%s.md", tag(d.ID)), []byte(d.Text)
	failed := o.Storage.InTx(ctx, func(tx port.Tx) error {
		return AuditFiles(ctx, tx, actor(key, d.Asker), []messages.Delivery{d})
	})
	if failed != nil {
		return &recordError{err: fmt.Errorf("record a file: %w", failed)}
	}
	failed = filer.EditFile(ctx, ref, platform.File{Delivery: d.ID, Conversation: key, Name: d.FileName, Data: d.File, Caption: refusedFile})
	if fault.Is(failed, fault.Invalid) || fault.Is(failed, fault.Unsupported) {
		return err
	}
	return failed
}

// TakeBack takes a message away whose delivery is over, or goes on in another message,
// where the platform can do that. It is best effort.
func (o *Outbox) TakeBack(ctx context.Context, ref messages.Ref) {
	deleter, ok := o.Adapters[ref.Conversation.Platform].(platform.Deleter)
	if !ok || ref.Message == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := deleter.Delete(ctx, ref); err != nil {
		o.Log.InfoContext(ctx, "could not withdraw a message", "conversation", ref.Conversation, "err", err)
	}
}
