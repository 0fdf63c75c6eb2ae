package telegram

import "slices"

// What only the tests of this package have people and chats do.

// StopsDraft presses the stop button of a draft.
func (p Person) StopsDraft(draftID int64) Sent {
	s := p.server
	s.mu.Lock()
	defer s.unlock()
	c := s.open(p.chat)
	payload := map[string]any{"chat": c.info, "draft_id": draftID}
	if p.thread != 0 {
		payload["message_thread_id"] = p.thread
	}
	return Sent{
		UpdateID: s.enqueue(Update{Kind: "stopped_message_generation", ChatID: p.chat, Payload: payload}),
		ChatID:   p.chat,
	}
}

// Joins lets the person enter the chat, which shows a service message.
func (p Person) Joins() Sent {
	return p.send("", nil, map[string]any{"new_chat_members": []User{p.server.User(p.user)}})
}

// AddsBot lets the person bring the bot into a group.
func (p Person) AddsBot() Sent {
	p.setBotStatus("left", "member", nil)
	return p.send("", nil, map[string]any{"new_chat_members": []User{p.server.bot}})
}

// RemovesBot lets the person throw the bot out of a group, after which it can do
// nothing there.
func (p Person) RemovesBot() Sent {
	what := "group"
	if p.chat < -1_000_000_000_000 {
		what = "supergroup"
	}
	return p.setBotStatus("member", "kicked", forbidden("bot was kicked from the "+what+" chat"))
}

// Anonymously returns the person writing as a hidden administrator of the chat.
func (p Person) Anonymously() Person {
	hidden := p.With("sender_chat", Chat{ID: p.chat, Type: Supergroup})
	hidden.user = anonymousAdmin
	return hidden.With("from", User{ID: anonymousAdmin, IsBot: true, FirstName: "Group", Username: "GroupAnonymousBot"})
}

// DeleteTopic takes a topic and its messages away.
func (c *Chats) DeleteTopic(chatID int64, threadID int) {
	c.mu.Lock()
	defer c.unlock()
	one := c.open(chatID)
	delete(one.topics, threadID)
	for n, m := range slices.Backward(one.messages) {
		if m.ThreadID == threadID {
			one.remove(n)
		}
	}
}

// User returns what is known of an account.
func (c *Chats) User(id int64) User {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user(id)
}

// PublishedLimits are the figures of the Bot API's FAQ.
func PublishedLimits() *Limits { return &Limits{PerChat: 1, PerGroup: 20, Overall: 30} }

// Deliver queues an update and returns its id, or zero if the bot did not ask
// for this kind of update.
func (u *Updates) Deliver(one Update) int64 {
	u.mu.Lock()
	defer u.unlock()
	return u.enqueue(one)
}
