// Package commit says what a step of a turn changes, as a value. Whoever holds a
// conversation's lease makes one in memory; the database applies all of it or
// nothing, under that lease.
package commit

import (
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// Changes is what a step did. Empty members change nothing. A row that is gone
// meanwhile, because somebody deleted it, stays gone.
type Changes struct {
	Entry      *Entry
	Session    *Session
	Run        *Run
	Usage      *spend.Record
	Lessons    []Lesson
	Deliveries []messages.Delivery // replaced, but for their files
	Added      []messages.Delivery // new ones; they get the next numbers, in order
	Renew      time.Duration       // how long the lease holds from now on; 0 leaves that
	Release    *Release
}

// Entry changes an entry of the inbox, of lane turn.
type Entry struct {
	ID string
	sessions.EntryUpdate
}

// Session adds to a session. A call that its messages ask for is on record as pending
// from then on, and a result in them ends its call, if that is open.
type Session struct {
	ID       string
	Run      string // of the messages
	Messages []messages.Message
	Turn     *sessions.TurnRecord

	// Calls may come twice: one that is on record and open stays as it is. Otherwise that is
	// a fault.Conflict. One that has ended makes way for a new one of its name in any case,
	// because some servers of models count their calls from the start in every answer.
	Twice bool

	// The turn is over: calls that were begun may have had their effect, those that were
	// not have none. They fail.
	Over bool
}

// Lesson is that something may be learned of an account from the message of an entry: by
// what is on record, once, and not of somebody whose memory is off.
type Lesson struct {
	Entry, Account string
	Due            time.Time // not before then
}

// Run ends a run of a session or puts it aside, and the session's status follows. It
// counts as used what is on record for it then, Usage included.
type Run struct {
	SessionID string
	Number    int64
	sessions.RunEnd
}

// Release gives the lease up, unless something came in: the last numbers that were given
// out in the inbox and in the outbox are still these. Anyway does not ask for that.
type Release struct {
	InboxSeq, DeliverySeq int64
	Anyway                bool
}

// News is how a conversation stands after Changes; whoever holds the lease
// compares it with what they know, and reads again only what somebody else moved.
type News struct {
	InboxSeq    int64 // the last number that was given out in the inbox
	StopSeq     int64 // entries up to this one were told to stop
	DeliverySeq int64 // the last number that was given out in the outbox, Added included
	LastSeq     int64 // of the session's last message, if messages were added
	Released    bool  // the lease is given up
}
