package slack

import (
	"context"
	"strings"
	"sync"

	"github.com/slack-go/slack"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	methodReact   = "reactions.add"
	methodUnreact = "reactions.remove"

	emojiSeen   = "eyes"
	emojiQueued = "inbox_tray"
	emojiDone   = "white_check_mark"
	emojiFailed = "warning"
)

// emojiOf is the reaction for each mark.
var emojiOf = map[platform.Mark]string{
	platform.MarkSeen: emojiSeen, platform.MarkQueued: emojiQueued, platform.MarkDone: emojiDone, platform.MarkFailed: emojiFailed,
}

// marks are the bot's reactions.
type marks struct {
	api     *api
	set     *platform.Recent[string, string] // message -> reaction that it has
	marking keyed                            // by message
}

// Mark implements platform.Marker with reactions. A mark takes the place of the
// one before it, and what comes late does not take the place of the last: marks
// are set in the background. In a thread of a direct message the status says it
// all.
func (m *marks) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	to, ts, err := parseRef(ref)
	if err != nil {
		return err
	}
	if strings.HasPrefix(to.channel, "D") && to.thread != "" && mark != platform.MarkNone {
		return nil
	}
	id := messageID(to, ts)
	defer m.marking.lock(id)()
	has, known := m.set.Get(id)
	over := mark == platform.MarkDone || mark == platform.MarkFailed
	switch want := emojiOf[mark]; {
	case mark != platform.MarkNone && !over && (has == emojiDone || has == emojiFailed), known && has == want:
		return nil
	case want == "":
	default:
		if err := m.react(ctx, methodReact, to.channel, ts, want); err != nil {
			return err
		}
	}
	old := []string{has}
	if !known && (over || mark == platform.MarkNone) {
		old = []string{emojiSeen, emojiQueued} // perhaps: set by another process
	}
	m.set.Put(id, emojiOf[mark])
	for _, emoji := range old {
		if emoji == "" {
			continue
		}
		if err := m.react(ctx, methodUnreact, to.channel, ts, emoji); err != nil && mark == platform.MarkNone {
			return err
		} // beside another mark one that stays does no harm
	}
	return nil
}

// keyed is a lock for each key that is in use.
type keyed struct {
	mu   sync.Mutex // guards used
	used map[string]*keyedLock
}

type keyedLock struct {
	sync.Mutex
	users int
}

// lock takes the lock of a key and returns what gives it back.
func (k *keyed) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.used == nil {
		k.used = make(map[string]*keyedLock)
	}
	l := k.used[key]
	if l == nil {
		l = &keyedLock{}
		k.used[key] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.used, key)
		}
	}
}

// react makes one reaction call. What is already so is success.
func (m *marks) react(ctx context.Context, method, channel, ts, emoji string) error {
	set := (*slack.Client).AddReactionContext
	if method == methodUnreact {
		set = (*slack.Client).RemoveReactionContext
	}
	err := m.api.limited(ctx, "", request{method: method, idempotent: true}, func(ctx context.Context, web *slack.Client) error {
		return set(web, ctx, emoji, slack.NewRefToMessage(channel, ts))
	})
	switch codeOf(err) {
	case "already_reacted", "no_reaction":
		return nil
	}
	return err
}
