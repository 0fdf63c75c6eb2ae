package memory

import "time"

// An account may send LinkTries wrong link codes within LinkTriesFor.
const (
	LinkTries    = 5
	LinkTriesFor = time.Hour
)

// Account is an account of a platform in so far as its person has others.
type Account struct {
	Name string // "telegram/42"

	// ConversationID is where the account was linked, for notices to it; empty if
	// that is gone. Whispered says that only this account may see them there.
	ConversationID string
	Whispered      bool

	Key      string // of the message that linked it
	LinkedAt time.Time
}

// LinkCode is a code that an account showed, to be sent from another one.
type LinkCode struct {
	Account // who showed it, and where
	Hash    string
	Expires time.Time
}

// Joined says what joining two people did.
type Joined struct {
	Moved      int64 // memories that have another number now
	Same       int64 // memories that both had
	FirstMoved int64 // their numbers begin behind this one
	Off        bool  // memory is off, because it was for one of them
}

// Lesson is a message from which something may be learned of who wrote it.
type Lesson struct {
	EntryID        string // of the message, a UUID
	Account        string // who wrote it
	ConversationID string
	Attempts       int       // how often it was begun
	Due            time.Time // not before
}

// Holdings counts what is kept of a person besides conversations, of which it names those
// that are theirs alone.
type Holdings struct {
	Person   string    // the id under which memories are kept
	Accounts []Account // all of them; one without links is the only one
	On       bool      // memory is on
	Facts    int64
	Episodes int64
	Lessons  int64    // messages that are still to be learned from
	Codes    int64    // link codes that were shown and not used
	Chats    []string // their latest chats in the browser, by id
}
