package slack

import (
	"context"

	"github.com/slack-go/slack"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Open implements platform.Opener: a thread in the same channel. Its root has the
// title, and metadata by which a repeated attempt finds it.
func (a *Adapter) Open(ctx context.Context, o platform.Opening) (messages.ConversationKey, error) {
	at, err := parseKey(o.Beside)
	if err != nil {
		return messages.ConversationKey{}, err
	}
	at.thread, at.opening = "", openingOf(string(o.Delivery))
	ref, err := a.Send(ctx, messages.Outbound{Delivery: o.Delivery, Conversation: makeKey(at), Text: o.Title, Again: o.Again})
	return ref.Conversation, err
}

// Link implements platform.Opener: the permalink of a thread's root.
func (a *Adapter) Link(ctx context.Context, key messages.ConversationKey) string {
	at, err := parseKey(key)
	if err != nil || at.thread == "" {
		return ""
	}
	link := ""
	err = a.limited(ctx, "", request{method: "chat.getPermalink", idempotent: true}, func(ctx context.Context) (err error) {
		link, err = a.web.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: at.channel, Ts: at.thread})
		return err
	})
	if err != nil {
		a.log.InfoContext(ctx, "could not find out the address of a thread", "err", err)
	}
	return link
}
