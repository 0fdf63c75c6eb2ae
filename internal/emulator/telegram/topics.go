package telegram

import "unicode/utf8"

// createForumTopic opens a topic in a chat that has topics. In a group the bot must
// be an administrator; the right to manage topics is taken as given then. The service
// message that people see is left out.
func createForumTopic(r *request) (any, *apiError) {
	name := r.p["name"]
	if n := utf8.RuneCountInString(name); n < 1 || n > 128 {
		return nil, badRequest("TOPIC_TITLE_EMPTY")
	}
	c, refused := r.server.target(r.p)
	switch {
	case refused != nil:
		return nil, refused
	case !c.info.IsForum:
		return nil, badRequest("the chat is not a forum")
	case c.isGroup() && !c.botIsAdmin:
		return nil, badRequest("not enough rights to create a topic")
	}
	id := c.nextID // of the service message
	c.nextID++
	c.topics[id] = true
	c.titles = append(c.titles, Topic{ID: id, Name: name})
	return map[string]any{"message_thread_id": id, "name": name, "icon_color": 7322096}, nil
}

// Topic is a topic that the bot opened.
type Topic struct {
	ID   int
	Name string
}

// Topics returns the topics that the bot opened in a chat, in order.
func (c *Chats) Topics(chatID int64) []Topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.byID[chatID]; one != nil {
		return append([]Topic(nil), one.titles...)
	}
	return nil
}
