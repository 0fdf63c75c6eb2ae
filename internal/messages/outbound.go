package messages

import "time"

// DeliveryID names one outgoing platform message. It is minted before the
// message is sent and does not change over retries, so that a platform with
// markers or metadata can look an ambiguous send up.
type DeliveryID string

// Outbound is one platform message to post: already split to the platform's
// limit, written in CommonMark, rendered by the adapter.
type Outbound struct {
	Delivery     DeliveryID
	Conversation ConversationKey
	ReplyTo      MessageID // answer to this message where the platform can show it
	Text         string
	Silent       bool // do not notify, where the platform can
	Buttons      []Button
	OnlyFor      UserID // only this person needs to see it, where the platform can

	// Asker is who wrote the message that this answers, if there is one. Some
	// platforms show an answer that is being written to that person only.
	Asker Sender

	// Again is set when an earlier attempt to send this delivery may have
	// arrived. An adapter with Capabilities.IdempotentSend looks it up first.
	Again bool

	// Optional is set for what may be left out: an adapter that would have to wait
	// for a rate limit returns fault.RateLimited at once, and leaves room for the
	// rest.
	Optional bool
}

// Button is something to press under a message.
type Button struct {
	// ID is random, at most 40 bytes of [A-Za-z0-9_-]. It says nothing by itself:
	// what it means is looked up when it is pressed.
	ID    string      `json:"id"`
	Label string      `json:"label"`
	Style ButtonStyle `json:"style,omitempty"`
}

// ButtonStyle is how much a button asks to be pressed.
type ButtonStyle string

// The styles.
const (
	ButtonPlain   ButtonStyle = ""
	ButtonPrimary ButtonStyle = "primary"
	ButtonDanger  ButtonStyle = "danger"
)

// DeliveryState is the life of a delivery:
//
//	pending -> sending -> placed -> sent
//	                             -> failed (from any state)
//
// pending: nothing was sent. sending: the message may exist but its id is not
// known. placed: the platform's message id is recorded; it shows a placeholder
// or an earlier text. sent: the final text is confirmed.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending DeliveryState = "pending"
	DeliverySending DeliveryState = "sending"
	DeliveryPlaced  DeliveryState = "placed"
	DeliverySent    DeliveryState = "sent"
	DeliveryFailed  DeliveryState = "failed"
)

// Delivery is the stored record of one outgoing platform message.
type Delivery struct {
	ID             DeliveryID
	ConversationID string
	EventID        string // inbound_events.id of what it answers
	Seq            int64  // order within the conversation; assigned by the store
	ReplyTo        MessageID
	Placeholder    string    // what the message shows until Text is final
	Text           string    // the final text in CommonMark, valid once Final
	Final          bool      // Text is decided; the delivery may be finished
	Buttons        []Button  // under the final text
	OnlyFor        UserID    // see Outbound
	FileName       string    // the message is this file, with Text as its caption
	File           []byte    // its content
	Control        bool      // answer to a control command: not ordered behind the turn
	Message        MessageID // the platform's id once known
	State          DeliveryState
	Attempts       int
	NextAt         time.Time // not to be tried before
	Error          string    // last error, for the operator
	CreatedAt      time.Time

	// Asker is who wrote what this answers, as long as the process that made the
	// delivery has it in hand. It is not stored.
	Asker Sender

	// Whole is set if the message may be sent with all its text the first time, for
	// what may stand twice when nobody knows whether it was. It is not stored.
	Whole bool
}
