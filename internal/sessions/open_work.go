package sessions

import "time"

// OpenWork is what there is to do in a conversation, and the session that a new
// turn would run in.
type OpenWork struct {
	Waiting    bool      // an entry of lane turn waits or runs
	NextAt     time.Time // when the first of those is due
	Control    bool      // a command runs that changes what a turn begins with, perhaps
	Deliveries bool      // a delivery is neither sent nor failed
	Session    Session   // the active one
	Active     bool      // there is one
}

// IsNone reports whether there is neither work nor an open delivery.
func (w OpenWork) IsNone() bool { return !w.Waiting && !w.Deliveries }
