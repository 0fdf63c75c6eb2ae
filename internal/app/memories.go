package app

import (
	"context"

	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/recollect"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
)

// memories is what is remembered of people, as the web pages ask.
type memories struct{ *recollect.Service }

var _ pages.Memories = memories{}

// forPages returns what the pages need of memory; nil if nothing is remembered.
func (m *remembering) forPages() pages.Memories {
	if m.service == nil {
		return nil
	}
	return memories{m.service}
}

// Remember implements pages.Memories.
func (m memories) Remember(ctx context.Context, by signin.Account, once, text string) (memory.Outcome, error) {
	return m.Service.Remember(ctx, statedBy(by, once), fact(by, text))
}

// Correct implements pages.Memories.
func (m memories) Correct(ctx context.Context, by signin.Account, once string, number int64, text string) error {
	_, err := m.Service.Correct(ctx, statedBy(by, once), number, fact(by, text))
	return err
}

// statedBy is what somebody says outside of every conversation.
func statedBy(by signin.Account, once string) sessions.Entry {
	key := messages.ConversationKey{Platform: by.Platform}
	return sessions.Entry{ID: once, In: messages.Inbound{Conversation: key, Sender: messages.Sender{ID: by.ID}, Private: true}}
}

func fact(by signin.Account, text string) memory.Fact {
	return memory.Fact{Scope: memory.Scope{Person: by.String()}, Text: text, Origin: memory.ByPerson}
}
