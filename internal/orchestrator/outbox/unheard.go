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
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// ownChatPast is how long ago somebody may have written in their own chat so that the bot
// writes there by itself.
const ownChatPast = 90 * 24 * time.Hour

// tellUnheard tells whoever waits for a delivery why their chat does not take it: alone
// where they wrote, if the platform can, or else in their own chat with the bot. Where
// neither is possible, owners are told. It is best effort, and once a day in a conversation.
func (o *Outbox) tellUnheard(ctx context.Context, key messages.ConversationKey, d messages.Delivery, why string) {
	if d.EventID == "" {
		return
	}
	entry, err := o.answered(ctx, d)
	in := entry.In
	// Of a command nothing is kept. Who wrote alone has left, and whoever wanted to begin a thread
	// is told by the platform.
	if err != nil || in.Sender.ID == "" || in.Private || in.Opening != "" && in.Conversation == key || in.Outside() {
		return
	}
	who := d.ConversationID + " " + string(in.Sender.ID)
	if last, told := o.unheard.Get(who); told && time.Since(last) < toldEvery {
		return
	}
	o.unheard.Put(who, time.Now())
	what := "to it"
	if strings.TrimSpace(in.Text) != "" {
		what = wording.Name(in.Text)
	}
	text := fmt.Sprintf("⚠ The bot could not answer you where you wrote %s. %s", what, why)
	if w, ok := o.Adapters[key.Platform].(platform.Whisperer); ok && w.Whisper(ctx, in, text) == nil {
		return
	}
	err = o.Storage.InTx(ctx, func(tx port.Tx) error {
		own, err := tx.People().PrivateConversation(ctx, key.Platform, in.Sender.ID, time.Now().Add(-ownChatPast))
		chats := []sessions.Conversation{own}
		if fault.Is(err, fault.NotFound) {
			text = fmt.Sprintf("⚠ The bot could not answer %s in `%s`. %s", wording.Who(in.Sender.Name, in.Actor()), key, why)
			chats, err = o.Owners(ctx, tx)
		}
		if err != nil {
			return err
		}
		return tell(ctx, tx, chats, text)
	})
	if err != nil {
		o.Log.InfoContext(ctx, "could not tell that an answer cannot be posted", "conversation", key, "err", err)
	}
}
