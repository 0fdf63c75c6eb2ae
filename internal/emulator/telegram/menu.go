package telegram

import (
	"slices"
	"strconv"
)

// scopeKey returns the key of Menu for a call. Every way to write the scope of
// one chat has the same key. The lock must be held.
func (s *Server) scopeKey(p params) (string, *apiError) {
	scope := struct {
		Type   string     `json:"type"`
		ChatID looseInt64 `json:"chat_id"`
	}{Type: "default"}
	if _, refused := p.json("scope", &scope); refused != nil {
		return "", refused
	}
	switch scope.Type {
	case "default", "all_private_chats", "all_group_chats", "all_chat_administrators":
		return p["scope"] + "|" + p["language_code"], nil
	case "chat", "chat_administrators", "chat_member":
	default:
		return "", badRequest("unsupported BotCommandScope type specified")
	}
	id := strconv.FormatInt(int64(scope.ChatID), 10)
	if _, refused := s.target(params{"chat_id": id}); refused != nil {
		return "", refused
	}
	if scope.Type == "chat" {
		return chatScope(int64(scope.ChatID)) + "|" + p["language_code"], nil
	}
	return p["scope"] + "|" + p["language_code"], nil
}

func chatScope(id int64) string { return `{"type":"chat","chat_id":` + strconv.FormatInt(id, 10) + `}` }

// looseInt64 is a number that may be written as a string.
type looseInt64 int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *looseInt64) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	id, err := strconv.ParseInt(text, 10, 64)
	*n = looseInt64(id)
	return err
}

// ChatMenu returns the commands that ordinary people see in the menu of a chat:
// of the narrowest scope that the bot set without a language.
func (s *Server) ChatMenu(chatID int64) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "all_private_chats"
	if c := s.chats[chatID]; c != nil && c.isGroup() {
		kind = "all_group_chats"
	}
	for _, key := range []string{chatScope(chatID), `{"type":"` + kind + `"}`, `{"type":"default"}`, ""} {
		if list, ok := s.commands[key+"|"]; ok {
			return slices.Clone(list)
		}
	}
	return nil
}
