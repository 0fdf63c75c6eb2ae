package store

import (
	"encoding/json"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// eventColumns are those that make up an inbound event, see storedEvent.
const eventColumns = `platform_type, account, event_id, message_id, data`

// storedEvent is an inbound event as columns of its row have it.
type storedEvent struct {
	platform messages.Platform
	account  string
	event    messages.EventID
	message  messages.MessageID
	data     string // the rest; empty if it is kept no more
}

// dest is where eventColumns go.
func (s *storedEvent) dest() []any {
	return []any{&s.platform, &s.account, &s.event, &s.message, text{&s.data}}
}

// eventData is the JSON of an event without what the other columns say. Conversation is
// the ID alone: by that it is told from the whole JSON of an event, and a version of this
// program that knows only that one refuses it, so that it takes no event for another.
type eventData struct {
	messages.Inbound

	Conversation json.RawMessage     `json:"conversation"`
	Account      *string             `json:"account,omitempty"` // these are set where a column says something else
	Event        *messages.EventID   `json:"event,omitempty"`
	Message      *messages.MessageID `json:"message,omitempty"`
}

// encode sets the JSON of an event whose row has the other columns of s.
func (s *storedEvent) encode(in messages.Inbound) error {
	whole := any(in)
	if in.Conversation.Platform == s.platform {
		id, err := json.Marshal(in.Conversation.ID)
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "encode inbound event")
		}
		whole = eventData{
			Inbound: in, Conversation: id,
			Account: unless(in.Account, s.account), Event: unless(in.Event, s.event), Message: unless(in.Message, s.message),
		}
	}
	data, err := json.Marshal(whole)
	s.data = string(data)
	return wrap(err, "encode inbound event")
}

// unless returns a value that is not the one of its column.
func unless[T comparable](value, column T) *T {
	if value == column {
		return nil
	}
	return &value
}

// read is decode for whoever goes on without the content of an event that is damaged, which
// becomes one of messages.KindUnreadable: one wrong byte must not hold up what is around it.
func (s *storedEvent) read() messages.Inbound {
	in, _, err := s.decode()
	if err != nil {
		in = messages.Inbound{Kind: messages.KindUnreadable, Account: s.account, Event: s.event, Message: s.message}
		in.Conversation.Platform = s.platform
	}
	return in
}

// decode returns the event, and whether columns had a part of it. One whose content is
// kept no more is empty.
func (s *storedEvent) decode() (in messages.Inbound, part bool, err error) {
	if s.data == "" {
		return in, false, nil
	}
	var d eventData
	if err := json.Unmarshal([]byte(s.data), &d); err != nil {
		return in, false, fault.Wrap(err, fault.Internal, "decode inbound event")
	}
	in = d.Inbound
	if in.Account, in.Event, in.Message = s.account, s.event, s.message; d.Account != nil {
		in.Account = *d.Account
	}
	if d.Event != nil {
		in.Event = *d.Event
	}
	if d.Message != nil {
		in.Message = *d.Message
	}
	in.Conversation.Platform = s.platform
	if json.Unmarshal(d.Conversation, &in.Conversation.ID) == nil {
		return in, true, nil
	}
	in = messages.Inbound{}
	err = json.Unmarshal([]byte(s.data), &in)
	return in, false, wrap(err, "decode inbound event")
}
