package telegram

import (
	"net/http"
	"strconv"
)

// Edits changes the text of one of the person's messages.
func (p Person) Edits(messageID int, text string) Sent {
	s := p.server
	s.mu.Lock()
	defer s.unlock()
	c := s.open(p.chat)
	sent := Sent{ChatID: p.chat, MessageID: messageID}
	old, ok := c.find(messageID)
	if !ok {
		return sent
	}
	m := *old
	m.Text, m.Entities = text, FindEntities(text)
	c.supersede(old, &m)
	if c.visible(&m, nil) {
		sent.UpdateID = s.tell(c, "edited_message", &m, p.extra)
	}
	return sent
}

// Deletes takes a message away. Bots are not told.
func (p Person) Deletes(messageID int) {
	s := p.server
	s.mu.Lock()
	defer s.unlock()
	c := s.open(p.chat)
	if n, ok := c.index(messageID); ok {
		s.change(ChangeDeleted, c.remove(n))
	}
}

// Presses presses a button of a message of the bot. It is not checked that the
// message has such a button: people can forge that. The query's id is
// "query<update id>".
func (p Person) Presses(messageID int, data string) Sent {
	s := p.server
	s.mu.Lock()
	defer s.unlock()
	c := s.open(p.chat)
	id := "query" + strconv.FormatInt(s.queue.next, 10)
	query := map[string]any{
		"id": id, "from": s.user(p.user), "data": data, "chat_instance": strconv.FormatInt(p.chat, 10),
	}
	if m, ok := c.find(messageID); ok {
		query["message"] = c.wire(m, true)
	}
	s.callbacks[id] = true
	return Sent{
		UpdateID: s.enqueue(Update{Kind: "callback_query", ChatID: p.chat, Payload: query}),
		ChatID:   p.chat, MessageID: messageID,
	}
}

// Blocks lets the person block the bot.
func (p Person) Blocks() Sent {
	return p.setBotStatus("member", "kicked", forbidden("bot was blocked by the user"))
}

// Unblocks takes Blocks back.
func (p Person) Unblocks() Sent { return p.setBotStatus("kicked", "member", nil) }

// PromotesBot makes the bot an administrator of the chat.
func (p Person) PromotesBot() Sent {
	s := p.server
	s.mu.Lock()
	s.open(p.chat).botIsAdmin = true
	s.mu.Unlock()
	return p.setBotStatus("member", "administrator", nil)
}

func (p Person) setBotStatus(from, to string, refusal *apiError) Sent {
	s := p.server
	s.mu.Lock()
	defer s.unlock()
	c := s.open(p.chat)
	c.refusal = refusal
	id := s.enqueue(Update{Kind: "my_chat_member", ChatID: p.chat, Payload: map[string]any{
		"chat": c.info, "from": s.user(p.user), "date": s.opts.Now().Unix(),
		"old_chat_member": map[string]any{"status": from, "user": s.bot},
		"new_chat_member": map[string]any{"status": to, "user": s.bot},
	}})
	return Sent{UpdateID: id, ChatID: p.chat}
}

// Migrate turns a group into a supergroup: both get a service message, and every
// call about the old id is refused with migrate_to_chat_id.
func (s *Server) Migrate(oldID, newID int64) (left, arrived Sent) {
	old := s.Person(anonymousAdmin).In(oldID)
	left = old.send("", nil, map[string]any{"migrate_to_chat_id": newID})
	s.mu.Lock()
	title := s.open(oldID).info.Title
	s.open(newID).info = &Chat{ID: newID, Type: Supergroup, Title: title}
	s.open(oldID).refusal = &apiError{
		code: http.StatusBadRequest, migrateTo: newID,
		text: "Bad Request: group chat was upgraded to a supergroup chat",
	}
	s.mu.Unlock()
	arrived = s.Person(anonymousAdmin).In(newID).send("", nil, map[string]any{"migrate_from_chat_id": oldID})
	return left, arrived
}
