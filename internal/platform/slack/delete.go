package slack

import (
	"context"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

var _ platform.Deleter = (*Adapter)(nil)

// Delete implements platform.Deleter.
func (a *Adapter) Delete(ctx context.Context, ref messages.Ref) error {
	to, ts, err := parseRef(ref)
	if err != nil {
		return err
	}
	if st := a.streams.find(messageID(to, ts)); st != nil {
		st.mu.Lock()
		a.streamOver(st)
		st.mu.Unlock()
	}
	err = a.limited(ctx, "", request{method: "chat.delete", idempotent: true}, func(ctx context.Context) error {
		_, _, err := a.web.DeleteMessageContext(ctx, to.channel, ts)
		return err
	})
	if codeOf(err) == "message_not_found" {
		return nil
	}
	return err
}
