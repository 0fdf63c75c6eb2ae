// Package commit says what a step of a turn changes, as a value. Whoever holds a
// conversation's lease makes one in memory; the database applies all of it or
// nothing, under that lease.
package commit

import (
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
	Deliveries []messages.Delivery // replaced, but for their files
	Added      []messages.Delivery // new ones; they get the next numbers, in order
	Release    *Release
}

// Entry changes an entry of the inbox, of lane turn.
type Entry struct {
	ID string
	sessions.EntryUpdate
}

// Session adds to a session.
type Session struct {
	ID       string
	Run      string // of the messages
	Messages []messages.Message
	Turn     *sessions.TurnRecord
}

// Run ends a run of a session or puts it aside, and the session's status follows. It
// counts as used what is on record for it then, Usage included.
type Run struct {
	SessionID string
	Number    int64
	sessions.RunEnd
}

// Release gives the lease up unless something came in: the last numbers that were
// given out in the inbox and in the outbox are still these.
type Release struct{ InboxSeq, DeliverySeq int64 }

// News is how a conversation stands after Changes; whoever holds the lease
// compares it with what they know, and reads again only what somebody else moved.
type News struct {
	InboxSeq    int64 // the last number that was given out in the inbox
	StopSeq     int64 // entries up to this one were told to stop
	DeliverySeq int64 // the last number that was given out in the outbox, Added included
	LastSeq     int64 // of the session's last message, if messages were added
	Released    bool  // the lease is given up
}
