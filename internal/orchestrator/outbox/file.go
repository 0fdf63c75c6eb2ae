package outbox

import (
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
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
