package telegram

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"remote-agent/internal/pattern"
)

var commandPattern = pattern.Lazy(`^[a-z0-9_]{1,32}$`)

func (a *Account) setMyCommands(r *request) (any, *apiError) {
	var commands []Command
	if given, refused := r.p.json("commands", &commands); refused != nil {
		return nil, refused
	} else if !given {
		return nil, badRequest("commands is empty")
	}
	if len(commands) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range commands {
		if !commandPattern.MatchString(c.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := utf8.RuneCountInString(c.Description); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	key, refused := a.scopeKey(r.p)
	if refused != nil {
		return nil, refused
	}
	a.commands[key] = commands
	return true, nil
}

func (a *Account) getMyCommands(r *request) (any, *apiError) {
	key, refused := a.scopeKey(r.p)
	if refused != nil {
		return nil, refused
	}
	return append([]Command{}, a.commands[key]...), nil
}

func (a *Account) deleteMyCommands(r *request) (any, *apiError) {
	key, refused := a.scopeKey(r.p)
	if refused != nil {
		return nil, refused
	}
	delete(a.commands, key)
	return true, nil
}

// Menu returns the commands that the bot set, by scope and language; the key of
// the default is "|". See ChatMenu for what the people of a chat see.
func (a *Account) Menu() map[string][]Command {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.commands)
}

// scopeKey returns the key of Menu for a call. Every way to write the scope of
// one chat has the same key. The lock must be held.
func (a *Account) scopeKey(p params) (string, *apiError) {
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
	if _, refused := a.chats.target(params{"chat_id": id}); refused != nil {
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
func (a *Account) ChatMenu(chatID int64) []Command {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := "all_private_chats"
	if c := a.chats.byID[chatID]; c != nil && c.isGroup() {
		kind = "all_group_chats"
	}
	for _, key := range []string{chatScope(chatID), `{"type":"` + kind + `"}`, `{"type":"default"}`, ""} {
		if list, ok := a.commands[key+"|"]; ok {
			return slices.Clone(list)
		}
	}
	return nil
}
