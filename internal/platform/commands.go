package platform

import (
	"cmp"
	"context"

	"remote-agent/internal/messages"
)

// Prefixer is implemented by adapters of platforms where commands are given in
// another way in some conversations.
type Prefixer interface {
	Adapter

	// CommandPrefix returns what stands before a command's name in a conversation. It
	// does no I/O.
	CommandPrefix(key messages.ConversationKey) string
}

// CommandPrefix returns what stands before a command's name in a conversation of an
// adapter; "/" if it says nothing, or is nil.
func CommandPrefix(a Adapter, key messages.ConversationKey) string {
	prefix := ""
	if p, ok := a.(Prefixer); ok {
		prefix = p.CommandPrefix(key)
	} else if a != nil {
		prefix = a.Capabilities().CommandPrefix
	}
	return cmp.Or(prefix, "/")
}

// CommandInfo describes a command for a platform's menu.
type CommandInfo struct {
	Name        string // without prefix, [a-z0-9_]
	Description string
}

// Menu is implemented by adapters that show a menu of commands.
type Menu interface {
	Adapter
	SetMenu(ctx context.Context, commands []CommandInfo) error
}

// ChatMenu is implemented by adapters whose menu of commands can differ by chat.
type ChatMenu interface {
	Adapter

	// SetChatMenu shows these commands in the menu of one chat, after those of
	// SetMenu. None takes the chat's own away. Names that the platform cannot
	// show, and those above its limit, are left out.
	SetChatMenu(ctx context.Context, key messages.ConversationKey, commands []CommandInfo) error
}
