package messages

import (
	"encoding/json"
	"log/slog"
	"strings"
	"time"
)

// Platform names a messaging platform, such as "telegram". It is stored as
// platform_type.
type Platform string

// Identifiers are minted by adapters and opaque to every other package. They
// are stored, so an adapter that changes how it writes one needs a migration.
type (
	// MessageID is a message of a platform, unique within a conversation.
	MessageID string

	// UserID is a person, unique within a platform and never reused. It is the
	// only thing authority is granted to; names are for display.
	UserID string

	// EventID is unique within a platform account and the same for every
	// redelivery of one event.
	EventID string
)

// ConversationKey identifies a conversation on its platform: the unit of
// ordering, of session state and of concurrency. It is comparable.
type ConversationKey struct {
	Platform Platform `json:"platform"`
	// ID is the platform_conversation_id: a Telegram chat with its topic, a
	// Slack team, channel and thread, or "owner/repo#42". At most 255 bytes.
	ID string `json:"id"`
}

// String returns the form used in logs.
func (k ConversationKey) String() string { return string(k.Platform) + "/" + k.ID }

// LogValue implements slog.LogValuer.
func (k ConversationKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Ref points at one message on a platform, so that it can be edited or
// answered by a later process.
type Ref struct {
	Conversation ConversationKey `json:"conversation"`
	Message      MessageID       `json:"message"`
}

// Sender is the person or bot that wrote an inbound message.
type Sender struct {
	ID   UserID `json:"id"`
	Name string `json:"name,omitempty"` // for display only; never for authorization
	Bot  bool   `json:"bot,omitempty"`

	// Email is an address for commits in the name of the sender, if the platform
	// has one. It is never used to decide.
	Email string `json:"email,omitempty"`

	// External is set for somebody of another organization, as in a shared
	// channel. Rules for everyone do not mean them; naming their ID does.
	External bool `json:"external,omitempty"`

	// Platform is that of the account that ID names, if it is not that of the
	// conversation: somebody who acts from outside of the chat, as in the browser.
	// Whoever sets it has made sure who it is; adapters leave it empty.
	Platform Platform `json:"platform,omitempty"`

	// Member is set where the platform shows the sender as one of those who may
	// have the right to give orders. It grants nothing.
	Member bool `json:"member,omitempty"`
}

// Attachment is a file that came with a message, or with the result of a tool.
type Attachment struct {
	Name      string `json:"name"` // untrusted; never join it to a path
	MediaType string `json:"media_type,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Source    string `json:"source,omitempty"` // opaque; meaningful to the adapter that made it
	Text      string `json:"text,omitempty"`   // what was read of a text file, at most the adapter's limit
	Note      string `json:"note,omitempty"`   // why the content is not here, or that it was cut; for the model and the person

	// Author is whose file it is, if not the sender's: what it says is no instruction.
	Author string `json:"author,omitempty"`

	// File is the SHA-256 (hex) under which the content is kept, once somebody has
	// looked at it; empty if it is not. Kept pictures have a size in pixels, kept
	// documents may have a number of pages, recordings a length.
	File    string `json:"file,omitempty"`
	Width   int    `json:"width,omitempty"`
	Height  int    `json:"height,omitempty"`
	Pages   int    `json:"pages,omitempty"`
	Seconds int    `json:"seconds,omitempty"`

	// Data is the file itself, for a model that can look at it. It is filled in for
	// one request and is no part of what is stored.
	Data string `json:"-"`
}

// Spoken reports whether Text is what somebody said in a recording.
func (a Attachment) Spoken() bool { return a.Text != "" && strings.HasPrefix(a.MediaType, "audio/") }

// Quote is somebody's words that a message refers to: what it replies to, what
// it forwards. It is context and never an instruction.
type Quote struct {
	Relation string `json:"relation"` // "reply to", "forwarded from", "sent through", "thread"
	Author   string `json:"author,omitempty"`
	Text     string `json:"text"`

	// Files are the pictures and documents that the words came with, where the bot is given
	// more of a conversation than what is said to it.
	Files []Attachment `json:"files,omitempty"`
}

// InboundKind says what happened.
type InboundKind string

// The kinds of inbound events.
const (
	KindMessage  InboundKind = "message"  // a person said something to the bot
	KindEdit     InboundKind = "edit"     // a person changed Message; replaces it if its turn has not started
	KindDeleted  InboundKind = "deleted"  // somebody deleted Message; drops it if its turn has not started. Its Aliases are the message's. No sender is answered
	KindMigrated InboundKind = "migrated" // the conversation is now known as MigratedTo
	KindAction   InboundKind = "action"   // a person pressed a button or sent a dialog; see Action
	KindGone     InboundKind = "gone"     // the bot was blocked or removed; no sender is answered
	KindClosed   InboundKind = "closed"   // what the conversation is about was closed; no sender is answered

	// KindUnreadable is what a stored event becomes whose content is damaged in the
	// database. Nothing but its platform, account, event and message is known of it.
	KindUnreadable InboundKind = "unreadable"
)

// Inbound is an event received from a platform, reduced to what the rest of the
// program needs. It is stored as JSON.
type Inbound struct {
	Account      string          `json:"account,omitempty"` // the bot account that received it; EventID is unique within it
	Event        EventID         `json:"event"`
	Aliases      []EventID       `json:"aliases,omitempty"` // the gesture may also come under another Event with one of these
	Kind         InboundKind     `json:"kind"`
	Conversation ConversationKey `json:"conversation"`
	Message      MessageID       `json:"message,omitempty"`
	Sender       Sender          `json:"sender"`
	Private      bool            `json:"private,omitempty"` // a one-to-one chat: nobody else reads the answer
	Text         string          `json:"text"`
	Quotes       []Quote         `json:"quotes,omitempty"`
	Attachments  []Attachment    `json:"attachments,omitempty"`

	// Album names what several messages were sent as at once, where a platform
	// splits them; they are one turn.
	Album string `json:"album,omitempty"`

	// OnlyAlbum is set if the message is not for the bot by itself, but may be with
	// its Album: people address the bot in one message of it.
	OnlyAlbum bool `json:"-"`

	// Calls is set if an edit has what makes a message of a group one for the bot, which
	// the message may not have had: it is one if nothing of it was heard before.
	Calls bool `json:"-"`

	// Cited are the parts of Text that the sender marked as a quotation or as
	// code in a way that Text does not show.
	Cited []string `json:"cited,omitempty"`

	SentAt time.Time `json:"sent_at"`

	// Action is the Button.ID that was pressed, for KindAction. Message is then the
	// message that has the button, and Text what was written in a dialog.
	Action string `json:"action,omitempty"`

	// Trigger lets the platform answer an action, with a dialog or a note. It is
	// opaque and lives for seconds.
	Trigger string `json:"trigger,omitempty"`

	// Whispered is set if only the sender saw the message, as with a slash
	// command. The answer to a command then goes to the sender only.
	Whispered bool `json:"whispered,omitempty"`

	// Opening is posted as the first message of a conversation that has none on
	// its platform yet: who asked what.
	Opening string `json:"opening,omitempty"`

	// Repository is what the conversation is about, where a platform knows: the
	// codebase of the conversation if it has none yet.
	Repository *Repository `json:"repository,omitempty"`

	// Reference names what the conversation is about in one line, for prompts
	// that must not see more of it.
	Reference string `json:"reference,omitempty"`

	// Unanswered is set if the message is one of a loop, in which somebody answers
	// each answer at once as a program does: it gets a mark and no answer.
	Unanswered bool `json:"unanswered,omitempty"`

	// Queued is set by the program when the message had to wait, so that whoever
	// starts its turn takes the mark away that says so.
	Queued bool `json:"queued,omitempty"`

	// Schedule is set by the program on a run of a standing task: nobody wrote it
	// just now, and Sender is whoever switched the task on.
	Schedule int64 `json:"schedule,omitempty"`

	// MigratedTo is the new conversation id of KindMigrated.
	MigratedTo string `json:"migrated_to,omitempty"`

	// Below is what the ids of the conversations begin with that are within this one, as
	// topics are within a chat. It is for KindGone, which takes them along.
	Below string `json:"below,omitempty"`

	// Raw is the platform's own form of the event. It is stored beside the
	// event and not repeated in its JSON.
	Raw json.RawMessage `json:"-"`
}

// Actor names the sender as plans and the audit log do: "telegram/42".
func (in Inbound) Actor() string { return string(in.Home()) + "/" + string(in.Sender.ID) }

// Home returns the platform of the sender's account.
func (in Inbound) Home() Platform {
	if in.Outside() {
		return in.Sender.Platform
	}
	return in.Conversation.Platform
}

// Outside reports whether the sender's account is of another platform than the
// conversation, so that nothing can be shown to the sender alone there.
func (in Inbound) Outside() bool {
	return in.Sender.Platform != "" && in.Sender.Platform != in.Conversation.Platform
}

// Origin is what a standing task keeps of the message that switched it on: who, and
// where.
func (in Inbound) Origin() Inbound {
	in.Kind, in.Message, in.Text, in.Action, in.Trigger, in.Opening = KindMessage, "", "", "", "", ""
	in.Aliases, in.Quotes, in.Attachments, in.Raw = nil, nil, nil, nil
	in.Whispered, in.Queued = false, false
	return in
}

// Begins reports whether in is a command whose answer only the sender sees and that would
// begin a conversation, in which nothing came before it.
func (in Inbound) Begins() bool { return in.Whispered && in.Opening != "" }

// Aside reports whether only the sender may see the answer, in a place where
// others read along.
func (in Inbound) Aside() bool { return in.Whispered && !in.Private }

// Repository says which repository a conversation is about, and where in it
// work belongs.
type Repository struct {
	URL string `json:"url"` // for git clone, https

	// Branch is the branch that work is done on, made from Base if it does not
	// exist. If Existing is set it is somebody's branch on the remote, and the
	// conversation works on its head.
	Branch   string `json:"branch,omitempty"`
	Existing bool   `json:"existing,omitempty"`
	Base     string `json:"base,omitempty"` // empty: the default branch

	// Head is the commit that Branch had when the event was made.
	Head string `json:"head,omitempty"`

	// ReadOnly is set where nothing may be pushed: a fork's branch, which is
	// fetched by Fetch (such as "refs/pull/7/head"). An Existing branch that is gone is
	// read from there, too.
	ReadOnly bool   `json:"read_only,omitempty"`
	Fetch    string `json:"fetch,omitempty"`

	// Locked is set where not everybody who may write elsewhere may answer: the bot may not be
	// able to.
	Locked bool `json:"locked,omitempty"`

	// Closes is what a pull request of the conversation closes, such as "#42".
	Closes string `json:"closes,omitempty"`
}

// RawEvent is an event that an adapter could not turn into an Inbound, kept so
// that nothing is lost.
type RawEvent struct {
	Platform Platform
	Account  string
	Event    EventID // empty if not even that could be read
	Raw      []byte
	Reason   string // why it was not understood
}
