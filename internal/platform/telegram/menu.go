package telegram

import (
	"context"
	"sync/atomic"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

// Limits of a menu (Bot API, setMyCommands and BotCommand).
const (
	maxCommands    = 100
	maxDescription = 256 // characters
)

var commandForm = pattern.Lazy(`^[a-z0-9_]{1,32}$`)

// menus shows commands.
type menus struct {
	client *client

	// common is what SetMenu was last called with, as Telegram takes it.
	common atomic.Pointer[[]models.BotCommand]
}

// SetMenu implements platform.Menu. Commands that Telegram would refuse are
// left out, and descriptions cut to its limit.
func (m *menus) SetMenu(ctx context.Context, commands []platform.CommandInfo) error {
	list := appendCommands(nil, commands)
	m.common.Store(&list)
	for _, scope := range []models.BotCommandScope{&models.BotCommandScopeAllPrivateChats{}, &models.BotCommandScopeAllGroupChats{}} {
		if err := m.setCommands(ctx, list, scope); err != nil {
			return err
		}
	}
	return nil
}

// SetChatMenu implements platform.ChatMenu. The topics of a chat share its menu.
// A menu that a chat has already does not follow a later SetMenu.
func (m *menus) SetChatMenu(ctx context.Context, key messages.ConversationKey, commands []platform.CommandInfo) error {
	to, err := parseKey(key)
	if err != nil {
		return err
	}
	if err := m.client.limits.silence(ctx, to.id); err != nil {
		return err
	}
	var common []models.BotCommand
	if menu := m.common.Load(); menu != nil {
		common = *menu
	}
	// The copy keeps calls for several chats out of each other's lists.
	list := appendCommands(append([]models.BotCommand{}, common...), commands)
	scope := &models.BotCommandScopeChat{ChatID: to.id}
	if len(list) > len(common) {
		return m.setCommands(ctx, list, scope)
	}
	_, err = ask(ctx, m.client, "deleteMyCommands", (*bot.Bot).DeleteMyCommands, &bot.DeleteMyCommandsParams{Scope: scope})
	return err
}

// appendCommands adds to a menu what Telegram can show and what is not there.
func appendCommands(list []models.BotCommand, commands []platform.CommandInfo) []models.BotCommand {
	known := make(map[string]bool, len(list)+len(commands))
	for _, c := range list {
		known[c.Command] = true
	}
	for _, c := range commands {
		if len(list) >= maxCommands || known[c.Name] || !commandForm.MatchString(c.Name) || c.Description == "" {
			continue
		}
		known[c.Name] = true
		list = append(list, models.BotCommand{Command: c.Name, Description: cutRunes(c.Description, maxDescription)})
	}
	return list
}

func (m *menus) setCommands(ctx context.Context, list []models.BotCommand, scope models.BotCommandScope) error {
	_, err := ask(ctx, m.client, "setMyCommands", (*bot.Bot).SetMyCommands, &bot.SetMyCommandsParams{Commands: list, Scope: scope})
	return err
}
