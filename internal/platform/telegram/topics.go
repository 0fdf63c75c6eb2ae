package telegram

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// maxTopic is the longest name of a topic, in code points (Bot API,
// createForumTopic).
const maxTopic = 128

// firstSupergroup is what the ids of supergroups begin below; links have what is left
// without it.
const firstSupergroup = -1_000_000_000_000

// Open implements platform.Opener: a topic in the same chat. Telegram tells nobody
// which topics there are, so that an attempt that may have worked, or a crash behind
// it, can leave an empty one behind.
func (s *poster) Open(ctx context.Context, o platform.Opening) (messages.ConversationKey, error) {
	at, err := parseKey(o.Beside)
	if err != nil {
		return messages.ConversationKey{}, err
	}
	var topic *models.ForumTopic
	err = s.client.limited(ctx, at.id, "createForumTopic", false, func(ctx context.Context, api *bot.Bot) (err error) {
		topic, err = api.CreateForumTopic(ctx, &bot.CreateForumTopicParams{ChatID: at.id, Name: cutRunes(o.Title, maxTopic)})
		return err
	})
	switch {
	case fault.Is(err, fault.Invalid):
		return messages.ConversationKey{}, &fault.Error{Kind: fault.Unsupported, Err: err, Public: "This chat has no topics. " +
			"In a group an administrator can turn them on in its settings."}
	case fault.Is(err, fault.Forbidden):
		return messages.ConversationKey{}, &fault.Error{Kind: fault.Forbidden, Err: err, Public: "The bot cannot open topics here. " +
			"Make it an administrator of the group with permission to manage topics."}
	case err != nil:
		return messages.ConversationKey{}, err
	case topic.MessageThreadID <= 0:
		return messages.ConversationKey{}, &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: fmt.Errorf("createForumTopic: no topic in the answer")}
	}
	s.observe("topic_opened")
	return makeKey(at.id, topic.MessageThreadID), nil
}

// Link implements platform.Opener. Only topics of supergroups have an address.
func (*poster) Link(_ context.Context, key messages.ConversationKey) string {
	at, err := parseKey(key)
	if err != nil || at.thread == 0 || at.id >= firstSupergroup {
		return ""
	}
	return "https://t.me/c/" + strconv.FormatInt(firstSupergroup-at.id, 10) + "/" + strconv.Itoa(at.thread)
}
