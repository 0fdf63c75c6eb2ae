package access

import (
	"cmp"
	"context"
	"slices"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/order"
	"remote-agent/internal/sessions"
)

// chatsPast is how long ago an owner may have written in a private chat so that the
// bot writes there by itself.
const chatsPast = 90 * 24 * time.Hour

// OwnerChats returns the private chats of owners, as they are at this moment: those on
// platforms with buttons, or all others if there is none. A platform that this process
// does not serve is left out.
func (a *Access) OwnerChats(ctx context.Context, tx port.Tx) (chats []sessions.Conversation, err error) {
	owners, err := a.owners(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, buttons := range []bool{true, false} {
		for _, o := range owners {
			if a.Adapters[o.Platform].Capabilities().Buttons != buttons {
				continue
			}
			c, err := tx.People().PrivateConversation(ctx, o.Platform, o.UserID, time.Now().Add(-chatsPast))
			switch {
			case fault.Is(err, fault.NotFound):
			case err != nil:
				return nil, err
			case !slices.ContainsFunc(chats, func(have sessions.Conversation) bool { return have.ID == c.ID }):
				chats = append(chats, c)
			}
		}
		if len(chats) > 0 {
			return chats, nil
		}
	}
	return nil, nil
}

// owners returns who owns the bot, by what is stored and by the configuration.
func (a *Access) owners(ctx context.Context, tx port.Tx) (owners []sessions.Identity, err error) {
	stored, err := tx.People().Roles(ctx)
	if err != nil {
		return nil, err
	}
	for p := range a.Adapters {
		rule := a.Rules(p)
		known := make(map[messages.UserID]bool)
		for _, i := range stored {
			if i.Platform != p {
				continue
			}
			known[i.UserID] = true
			if rule.Role(i, messages.Sender{ID: i.UserID}, false) == sessions.Owner {
				owners = append(owners, i)
			}
		}
		for id := range rule.Owners {
			if !known[id] {
				owners = append(owners, sessions.Identity{Platform: p, UserID: id})
			}
		}
	}
	order.By(owners, func(a, b sessions.Identity) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.UserID, b.UserID))
	})
	return owners, nil
}
