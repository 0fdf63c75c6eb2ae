package orchestrator_test

import (
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
)

// room is the key of a conversation.
func room(id string) messages.ConversationKey {
	return messages.ConversationKey{Platform: ot.PlatformName, ID: id}
}
