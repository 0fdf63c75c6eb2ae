package app

import (
	"strconv"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// parseKey makes the key of a conversation from what a person typed.
func parseKey(platform, id string) (messages.ConversationKey, error) {
	if platform == "" || id == "" {
		return messages.ConversationKey{}, fault.New(fault.Invalid, "Specify a conversation by its ID, or as platform/id, such as telegram/123.")
	}
	return messages.ConversationKey{Platform: messages.Platform(platform), ID: id}, nil
}

// parseCursor reads the cursor of a search.
func parseCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fault.Newf(fault.Invalid, "--before %q is not a number printed by a search.", text)
	}
	return n, nil
}

func auditRemoval(id string) sessions.AuditEntry {
	return sessions.AuditEntry{Actor: "cli", Action: "session.remove", Target: id}
}
