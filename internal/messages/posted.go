package messages

import "time"

// Posted is a message as it stands in a conversation that this program itself shows to
// people.
type Posted struct {
	Chat     string // the conversation's id on its platform
	ID       MessageID
	Seq      int64      // its place in the conversation, from 1 on
	Delivery DeliveryID // of a message of the program; empty: a person said it
	Author   string     // the account of that person, as Inbound.Actor has it
	Text     string     // CommonMark of the program; of a person as it was typed
	Buttons  []Button
	Mark     string // of a person's message: what became of it
	Files    []PostedFile
	At       time.Time
}

// PostedFile is a file of such a message.
type PostedFile struct {
	ID        string
	Name      string
	MediaType string
	Size      int64
	Data      []byte // filled in where it is stored, and where it is asked for
	Gone      bool   // its bytes were deleted, and it is only named
}

// Chat is such a conversation, as it is listed.
type Chat struct {
	ID        string
	Account   string // whose it is
	Title     string // what was said first
	ChangedAt time.Time
}
