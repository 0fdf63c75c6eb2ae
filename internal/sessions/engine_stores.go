package sessions

import (
	"context"
	"time"

	"remote-agent/internal/messages"
)

// ConversationStore keeps conversations and finds those with something to do, as a part of a transaction.
type ConversationStore interface {
	// GetOrCreateConversation returns the conversation stored under key and
	// creates it with the assistant type the first time; its row stays locked
	// until the transaction ends. Concurrent callers get the same row.
	GetOrCreateConversation(ctx context.Context, key messages.ConversationKey, assistant string) (c Conversation, created bool, err error)

	// Conversation returns a conversation by id without locking it; fault.NotFound if there is none.
	Conversation(ctx context.Context, id string) (Conversation, error)

	// FindConversation returns a conversation by key without creating or
	// locking it; fault.NotFound if there is none.
	FindConversation(ctx context.Context, key messages.ConversationKey) (Conversation, error)

	// ConversationsBelow returns the conversations of a platform whose ids begin so and in
	// which something waits, runs or is to be repeated, in the order of their ids.
	ConversationsBelow(ctx context.Context, platform messages.Platform, begin string) ([]Conversation, error)

	// UpdateConversation changes fields. Moving it to a key that another
	// conversation has is a fault.Conflict.
	UpdateConversation(ctx context.Context, id string, u ConversationUpdate) error

	// MoveHome gives what was forked from the conversation at a key its new one.
	MoveHome(ctx context.Context, from, to messages.ConversationKey) error

	// OpenWork returns what there is to do in a conversation, and its active
	// session.
	OpenWork(ctx context.Context, conversationID string) (OpenWork, error)

	// ConversationsWithWork returns ids of conversations that have no live
	// lease and either a due entry at the head of their inbox or a due open
	// delivery, the longest waiting first.
	ConversationsWithWork(ctx context.Context, limit int) ([]string, error)
}

// InboxStore keeps what came in, as a part of a transaction.
type InboxStore interface {
	// InsertEntry stores an inbound event. It reports false, and changes
	// nothing, if the event of that platform, account and id is stored already.
	// For a fresh entry with a conversation it takes the next inbox sequence
	// number of the conversation (whose row the caller has locked) and sets
	// e.Seq.
	InsertEntry(ctx context.Context, e *Entry) (fresh bool, err error)

	// AdmitEntry stores an entry as InsertEntry does and claims the lease of its
	// conversation, which nobody holds, as the caller has seen under the lock of
	// its row.
	AdmitEntry(ctx context.Context, e *Entry, a Admission) (fresh bool, got Admitted, err error)

	// KeepRaw stores an event that was not understood, in state raw.
	KeepRaw(ctx context.Context, raw messages.RawEvent) (fresh bool, err error)

	// HasEntry reports whether an event is stored already.
	HasEntry(ctx context.Context, in messages.Inbound) (bool, error)

	// HasMessage reports whether an event of a conversation is about a message.
	HasMessage(ctx context.Context, conversationID string, message messages.MessageID) (bool, error)

	// Entry returns an entry by id.
	Entry(ctx context.Context, id string) (Entry, error)

	// EntryNumbered returns the entry of a conversation that has a number of its inbox;
	// fault.NotFound if there is none.
	EntryNumbered(ctx context.Context, conversationID string, seq int64) (Entry, error)

	// NextEntry returns the oldest waiting or running entry of lane turn, by
	// sequence number, whatever its NextAt. ok is false if there is none.
	NextEntry(ctx context.Context, conversationID string) (e Entry, ok bool, err error)

	// WaitingEntries returns entries of lane turn that wait behind a sequence
	// number, oldest first.
	WaitingEntries(ctx context.Context, conversationID string, after int64, limit int) ([]Entry, error)

	// TakenEntries returns the entries that the turn of an entry, which has begun in
	// its session, took in, oldest first, 100 at most.
	TakenEntries(ctx context.Context, e Entry) ([]Entry, error)

	// ControlWork returns entries of lane control that are still waiting and
	// were accepted before the given time: left over by a crash.
	ControlWork(ctx context.Context, before time.Time, limit int) ([]Entry, error)

	// ControlBefore returns entries of lane control of a conversation that wait and
	// have a sequence number below seq, oldest first.
	ControlBefore(ctx context.Context, conversationID string, seq int64) ([]Entry, error)

	// UpdateEntry changes fields of an entry. Of its checkpoints the first ref is kept, and
	// the first place in a session.
	UpdateEntry(ctx context.Context, id string, u EntryUpdate) error

	// ReplaceWaiting replaces the content of the entry that came from message
	// if its turn has not started. It reports whether it did.
	ReplaceWaiting(ctx context.Context, conversationID string, message messages.MessageID, in messages.Inbound) (bool, error)

	// StopEntries marks the waiting entries of lane turn with a sequence number
	// up to upTo as stopped and returns them, and raises the conversation's
	// StopSeq to upTo, which tells the worker that runs an earlier entry, or has one
	// wait for its next try, which it settles itself.
	StopEntries(ctx context.Context, conversationID string, upTo int64) ([]Entry, error)

	// StoppedEntries returns the newest entries of lane turn up to upTo that were
	// stopped, in order: those behind the last one that was not.
	StoppedEntries(ctx context.Context, conversationID string, upTo int64) ([]Entry, error)

	// WaitingOf counts, up to most, the entries of lane turn that wait and came
	// from the sender of in on its platform: all of them, and those in one
	// conversation. It says when the oldest of them was accepted.
	WaitingOf(ctx context.Context, in messages.Inbound, conversationID string, most int) (all, here int, since time.Time, err error)

	// RefusedSince reports whether a message of the sender of in was refused with
	// an error text at or after a time.
	RefusedSince(ctx context.Context, in messages.Inbound, reason string, since time.Time) (bool, error)
}

// SessionStore keeps sessions and their runs, as a part of a transaction.
type SessionStore interface {
	// ActiveSession returns the active session of a conversation; ok is false
	// if there is none.
	ActiveSession(ctx context.Context, conversationID string) (s Session, ok bool, err error)

	// Session returns a session by id.
	Session(ctx context.Context, id string) (Session, error)

	// CreateSession starts the active session of a conversation, in which nothing
	// runs yet. It is a fault.Conflict if one is active.
	CreateSession(ctx context.Context, s NewSession) (Session, error)

	// UpdateSession changes fields of a session.
	UpdateSession(ctx context.Context, id string, u SessionUpdate) error

	// DeactivateSession ends a session, for a reason that is kept in its metadata.
	// Its status stays what its runs say. Ending an ended session changes nothing.
	DeactivateSession(ctx context.Context, id, reason string) error

	// BeginRun begins a run of a session, which is running from now on, and appends
	// messages to it: a message of no blocks is refused (fault.Invalid). With r.Again a run that was put aside
	// goes on instead, and one that nobody ended was interrupted.
	BeginRun(ctx context.Context, r NewRun, msgs ...messages.Message) (BegunRun, error)

	// EndOpenRun ends the run of an entry that nobody works on, if there is one.
	EndOpenRun(ctx context.Context, sessionID, entryID string, end RunEnd) error
}

// MessageStore keeps the message array of sessions and the files in it, as a part of a transaction.
type MessageStore interface {
	// MessagesBefore returns up to limit messages of a session with sequence
	// numbers below before, newest first, read by index. Messages of role
	// system are left out.
	MessagesBefore(ctx context.Context, sessionID string, before int64, limit int) ([]messages.Message, error)

	// RunMessages returns the messages that a run has stored, in order.
	RunMessages(ctx context.Context, runID string) ([]messages.Message, error)

	// WithdrawMessages takes the messages of a session from a sequence number on out of
	// the message array: they stay stored and are left out of MessagesBefore and
	// RunMessages. Once more it changes nothing.
	WithdrawMessages(ctx context.Context, session string, seq int64) error

	// HoldFile reports whether a file that a message will have is still kept, and
	// keeps it until the transaction ends.
	HoldFile(ctx context.Context, hash string) (bool, error)

	// HasFile reports whether a file is kept.
	HasFile(ctx context.Context, hash string) (bool, error)
}

// DeliveryStore keeps what goes out, as a part of a transaction.
type DeliveryStore interface {
	// AddDelivery stores a delivery and assigns its Seq.
	AddDelivery(ctx context.Context, d *messages.Delivery) error

	// AddNumbered stores a delivery under the number that AdmitEntry kept for it.
	AddNumbered(ctx context.Context, d *messages.Delivery) error

	// UpdateDelivery replaces state, texts, buttons, whom it is for, platform
	// message id, attempts, next time and error of a delivery, and who brings it out.
	UpdateDelivery(ctx context.Context, d messages.Delivery) error

	// RecordSending is UpdateDelivery for whoever brings d out and began with the
	// text begun. If it has another text by now, that text stays open, to be shown
	// next, and only where the message is gets recorded.
	RecordSending(ctx context.Context, d messages.Delivery, begun string) error

	// AllOpenDeliveries returns the deliveries of a conversation that are neither
	// sent nor failed, in order.
	AllOpenDeliveries(ctx context.Context, conversationID string) ([]messages.Delivery, error)

	// EntryDeliveries returns all deliveries that answer an entry, in order.
	EntryDeliveries(ctx context.Context, entryID string) ([]messages.Delivery, error)

	// Delivery returns a delivery by id.
	Delivery(ctx context.Context, id messages.DeliveryID) (messages.Delivery, error)

	// ToldSince reports whether a text was put into a conversation at or after a
	// time.
	ToldSince(ctx context.Context, conversationID, text string, since time.Time) (bool, error)
}
