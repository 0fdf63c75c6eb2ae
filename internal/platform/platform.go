// Package platform defines what a messaging platform must be able to do.
//
// One subpackage implements Adapter for each platform. Adapters translate and
// nothing else: they know neither sessions nor storage nor assistants, they do
// not import each other, and they never decide who may talk to the bot.
//
// What every platform can do is in Adapter. What differs is either data, in
// Capabilities, or behavior, in the optional interfaces. The orchestrator asks
// with a type assertion and has a fallback; it never compares platform names.
package platform

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/messages"
)

// Sink takes events from adapters.
type Sink interface {
	// Accept makes all events durable in one transaction and schedules their
	// work. It returns nil once they are stored, and also for events that were
	// accepted before, which change nothing. On error none is stored and the
	// adapter must not acknowledge any of them, so that a platform that
	// delivers again will. Accept does not wait for answers.
	Accept(ctx context.Context, events ...messages.Inbound) error

	// Keep stores an event that could not be understood, so that it is not
	// lost, and counts it. A repeated event changes nothing.
	Keep(ctx context.Context, raw messages.RawEvent) error
}

// Adapter connects one account on one messaging platform.
//
// All methods are safe for concurrent use. Errors are classified with package
// fault and never contain credentials.
type Adapter interface {
	// Platform returns the name that this adapter puts in every
	// messages.ConversationKey. It does no I/O and never changes.
	Platform() messages.Platform

	// Capabilities describes the platform. It does no I/O and never changes.
	Capabilities() Capabilities

	// Run receives events and passes them to sink until ctx is done, then
	// returns nil. It reconnects by itself; it returns an error only for what
	// an operator must fix, such as refused credentials. An adapter that
	// receives only over HTTP waits for ctx.
	Run(ctx context.Context, sink Sink) error

	// Send posts out as exactly one platform message, waiting for the
	// platform's rate limits. If the post may have happened but cannot be
	// confirmed, the error is Uncertain. fault.Gone means that the
	// conversation takes no messages any more. If the Ref names another
	// conversation than out does, the conversation has come into being there (a
	// thread that a slash command opened) and goes on under that key.
	Send(ctx context.Context, out messages.Outbound) (messages.Ref, error)
}

// Capabilities is what the orchestrator needs to know about a platform as data.
type Capabilities struct {
	// MaxText is the longest text that one message may hold, in Measure's unit.
	MaxText int

	// Measure returns the length of a CommonMark text as the platform counts it
	// after rendering. It never panics, for any text. Nil counts code points.
	Measure func(markdown string) int

	// MaxMessages is how many messages an answer may be. Of a longer one the beginning
	// and the end are shown, and the whole is posted as a file where the adapter
	// implements Filer. Zero is no limit.
	MaxMessages int

	// Streaming is true if partial text should be shown while it is written. It
	// matters only to adapters that implement Editor.
	Streaming bool

	// EditInterval is the shortest useful time between edits of one message.
	EditInterval time.Duration

	// IdempotentSend is true if Send with the same Outbound.Delivery cannot post
	// twice. Then answers are sent directly; else a placeholder is sent first
	// and edited.
	IdempotentSend bool

	// PlaceholderAfter is how long a turn runs until a placeholder is posted for it,
	// where IdempotentSend: what is answered sooner is one message and no edit. Such a
	// placeholder is sent as Optional, so that an adapter whose edits are scarce may
	// refuse it with fault.RateLimited; it is tried again while the turn lasts.
	PlaceholderAfter time.Duration

	// SilentEdits is true if a new message notifies its reader and an edit does not.
	// Then an answer that comes late is a message of its own.
	SilentEdits bool

	// Buttons is true if messages can have buttons. Without it what a button does
	// is offered as a command in the text.
	Buttons bool

	// OnlyFor is true if a message can be shown to one person only, so that
	// Outbound.OnlyFor is honored.
	OnlyFor bool

	// Local is true if only the process that accepted a message can answer it, as with
	// a terminal; else any replica can.
	Local bool

	// Comments is true if messages are comments that stand in public or before a team,
	// such as those of an issue: each new one is in the audit log.
	Comments bool

	// OutcomeMarks is true if the mark on a person's message is replaced by one
	// that tells how its turn ended. Without it the mark is taken away.
	OutcomeMarks bool

	// SessionContext is true if Contexter is asked again for every session: what
	// a conversation is about lies outside of its messages, as with an issue.
	SessionContext bool

	// Place says where a conversation is, as in "you talk in a Telegram chat". It
	// is told to assistants.
	Place string

	// Format says, to whoever writes the texts, what becomes of CommonMark here: a
	// sentence or two.
	Format string

	// CommandPrefix is what stands before a command's name here ("/"), unless a
	// conversation has its own; see Prefixer.
	CommandPrefix string
}

// FewMessages is how many messages a person reads as one answer, where each of them
// is a line in their chat.
const FewMessages = 4

// Placeholder is the text of a message that is sent before there is anything to
// say, to be edited later. An adapter may show it as it likes, or not at all.
const Placeholder = "…"

// Edit is a new text for a message that Send posted.
type Edit struct {
	Ref  messages.Ref
	Text string // CommonMark, within MaxText

	Buttons []messages.Button // under the new text; none takes them away

	// Progress marks an edit that another one will follow. The adapter does not
	// wait for rate limits with it: it returns fault.RateLimited at once.
	Progress bool

	// Aside marks what tells how things stand while the answer is still to come.
	Aside bool
}

// Editor is implemented by adapters that can replace a message they posted.
// Without it partial text is not shown and answers are sent as new messages.
type Editor interface {
	Adapter

	// Edit replaces the text of a message. It is idempotent: the same text
	// again is success. fault.NotFound means that the message cannot be edited
	// any more and must be sent anew.
	Edit(ctx context.Context, edit Edit) error
}

// Typer is implemented by adapters that can show that an answer is coming. The
// indication lasts a few seconds; the orchestrator repeats it every TypingEvery.
type Typer interface {
	Adapter
	Typing(ctx context.Context, key messages.ConversationKey) error
}

// TypingEvery is how often a typing indication is repeated. Telegram shows it
// for at most five seconds (Bot API, sendChatAction).
const TypingEvery = 4 * time.Second

// Mark is a sign on a person's message that tells its state.
type Mark string

// The marks.
const (
	MarkNone   Mark = ""       // takes a mark away
	MarkSeen   Mark = "seen"   // received
	MarkQueued Mark = "queued" // waits for its turn
	MarkDone   Mark = "done"   // answered; only where Capabilities.OutcomeMarks
	MarkFailed Mark = "failed" // ended with an error or a stop; likewise
)

// Marker is implemented by adapters that can put a mark on a message, as a
// reaction. It is best effort; without it the state is told in words.
type Marker interface {
	Adapter
	Mark(ctx context.Context, ref messages.Ref, mark Mark) error
}

// Account is the bot's own account on a platform.
type Account struct {
	ID   string // as in messages.Inbound.Account
	Name string // for people, such as "@acme_bot"
}

// Checker is implemented by adapters that can tell, without receiving or
// sending anything, whether their credentials work.
type Checker interface {
	Adapter

	// Check asks the platform who the bot is. fault.Unauthorized means that the
	// credentials were refused and names the option to change;
	// fault.Unavailable that the platform is not responding now.
	Check(ctx context.Context) (Account, error)
}

// Examiner is implemented by adapters that can tell more of how they are set up than
// Checker, again without receiving or sending anything.
type Examiner interface {
	Checker

	// Examine is called after Check has worked. A finding's fix is a command or a link
	// where there is one.
	Examine(ctx context.Context) []doctor.Finding
}

// Namer is implemented by adapters whose events do not always say what their sender is
// called.
type Namer interface {
	Adapter

	// NameOf asks the platform what somebody is called. It returns nothing if that
	// cannot be told.
	NameOf(ctx context.Context, id messages.UserID) string
}

// OwnerLinker is implemented by adapters with a link that opens the chat and
// sends a start code.
type OwnerLinker interface {
	Adapter

	// OwnerLink returns the link for account that sends code, or what to type.
	OwnerLink(account Account, code string) string
}

// WebhookReceiver is implemented by adapters that receive events over HTTP. The
// application mounts the handler at /webhooks/{platform} and below. The handler
// verifies who calls before it parses, limits what it reads, and answers 2xx
// only after sink accepted the event. One that takes more than a MiB says so by a
// method MaxBody() int64.
type WebhookReceiver interface {
	Adapter
	Webhook(sink Sink) http.Handler
}

// MovedError says that a conversation is now known under another id (a Telegram
// group that became a supergroup). It is in the chain of the fault.Conflict
// that Send, Edit and the other calls return for the old id.
type MovedError struct {
	To string // the new messages.ConversationKey.ID
}

// Error implements error.
func (e *MovedError) Error() string { return "the conversation has moved to " + e.To }

// Fetcher is implemented by adapters that can read what was attached to a
// message. Receiving does not wait for it: attachments arrive as metadata.
type Fetcher interface {
	Adapter

	// Fetch opens the content of an attachment that this adapter received. The
	// caller closes it and limits what it reads of it. fault.Invalid means that
	// the platform does not hand out a file of that size, fault.NotFound that it
	// no longer has it.
	Fetch(ctx context.Context, a messages.Attachment) (io.ReadCloser, error)
}

// Describer is implemented by adapters whose events may say of an attachment only that it
// is there.
type Describer interface {
	Fetcher

	// Describe asks the platform what an attachment is, of which neither name nor type is
	// known.
	Describe(ctx context.Context, a messages.Attachment) (messages.Attachment, error)
}

// Whisperer is implemented by adapters that can tell one person something: a
// note on the button they pressed, a message that only they see. It is best
// effort.
type Whisperer interface {
	Adapter
	Whisper(ctx context.Context, to messages.Inbound, text string) error
}

// Dialog asks a person for a text.
type Dialog struct {
	Trigger string // Inbound.Trigger of the action it answers
	ID      string // comes back as Inbound.Action
	Title   string
	Label   string
	Text    string // what is there to begin with
	Submit  string // label of the button that sends it
}

// Dialoger is implemented by adapters that can open a dialog. What a person
// sends comes back as a messages.KindAction with Text. Without it people are
// told the command to type.
type Dialoger interface {
	Adapter
	OpenDialog(ctx context.Context, in messages.Inbound, d Dialog) error
}

// Contexter is implemented by adapters that can read what was said in a
// conversation before the bot was called into it.
type Contexter interface {
	Adapter

	// Context returns what was said before in, oldest first, within the
	// adapter's limits; nothing if in begins the conversation. It is asked once,
	// when the first turn of a conversation starts, so that receiving does not
	// wait for it. fault.Forbidden means that the bot may not read it.
	Context(ctx context.Context, in messages.Inbound) ([]messages.Quote, error)
}

// File is a file to post as one message.
type File struct {
	Delivery     messages.DeliveryID
	Conversation messages.ConversationKey
	ReplyTo      messages.MessageID
	Name         string // a plain file name
	Data         []byte
	Caption      string // CommonMark, short; may be empty

	// Again is set when an earlier attempt may have posted it. An adapter that can find
	// its files looks for it first.
	Again bool
}

// Filer is implemented by adapters that can post files. Without it what a file
// says is told in the text before it.
type Filer interface {
	Adapter

	// SendFile posts a file as one message. A file that is too large for the
	// platform is fault.Invalid. If the post may have happened the error is
	// Uncertain; it is then repeated, with Again.
	SendFile(ctx context.Context, f File) (messages.Ref, error)
}

// FileEditor is implemented by adapters that cannot find a file which they may have
// posted, but can make a message a file: so the message is posted first, and the file
// never twice.
type FileEditor interface {
	Filer

	// EditFile puts a file in the place of the text of a message that Send posted. It is
	// idempotent. fault.NotFound means that the message cannot be edited any more,
	// fault.Unsupported that the platform's server cannot do that.
	EditFile(ctx context.Context, ref messages.Ref, f File) error
}

// Deleter is implemented by adapters that can take a message back that they posted.
type Deleter interface {
	Adapter

	// Delete takes a message away. One that is not there any more is success.
	Delete(ctx context.Context, ref messages.Ref) error
}

// Gatekeeper is implemented by adapters whose platform says who may give orders
// in a conversation, such as the people with write access to a repository. It is
// asked when a message has arrived, and again before it is acted on; both times
// outside of transactions.
type Gatekeeper interface {
	Adapter

	// Admits reports whether the sender of in may use the bot there. Any error is
	// a no; it is told from a plain no so that a person hears why.
	Admits(ctx context.Context, in messages.Inbound) (bool, error)
}

// Screening says whether it is worth to ask a Gatekeeper about somebody now.
type Screening int

// The answers of Screener.Screen.
const (
	ScreenAsk    Screening = iota // Admits is to be asked
	ScreenDenied                  // Admits said no of them a moment ago
	ScreenBusy                    // more people wait to be asked about than may be
)

// Screener is implemented by gatekeepers that have to ask somebody else, which is
// limited: many who may not use the bot must not keep out those who may. It is
// asked before anything of a message is stored. Who was admitted before is never
// ScreenBusy.
type Screener interface {
	Gatekeeper

	// Screen does no I/O. It may count the sender of in as one who is asked about.
	Screen(in messages.Inbound) Screening
}

// PullRequest is a request to merge a branch that was pushed.
type PullRequest struct {
	Head  string // the branch
	Base  string // empty: the default branch
	Title string
	Body  string // Markdown
	Draft bool
}

// PullRequester is implemented by adapters of platforms with pull requests.
type PullRequester interface {
	Adapter

	// OpenPullRequest opens a pull request in the repository of a conversation,
	// or updates title and body of the open one of the same head. It is
	// idempotent. fault.Forbidden names the permission that is missing. The key
	// may also be what RepositoryID returned.
	OpenPullRequest(ctx context.Context, key messages.ConversationKey, pr PullRequest) (url string, err error)

	// Hosts reports whether a repository, by its address for git, is on this
	// platform, and RepositoryID names it for OpenPullRequest.
	Hosts(address string) bool
	RepositoryID(address string) string
}

// Opening asks for a place of its own beside a conversation.
type Opening struct {
	Delivery messages.DeliveryID // names the place, as it names a message
	Beside   messages.ConversationKey
	Title    string // plain text, one line
	Again    bool   // an earlier attempt may have opened it
}

// Opener is implemented by adapters that can open another place to talk beside a
// conversation: a topic of the same chat, a thread in the same channel.
type Opener interface {
	Adapter

	// Open opens a place, which everybody in the chat or channel sees, and returns
	// the key of the conversation there. With Again the place is looked for first,
	// where the platform can tell. fault.Unsupported means that there are no such
	// places here, fault.Forbidden that the bot may not open them; their public texts
	// say what to do.
	Open(ctx context.Context, o Opening) (messages.ConversationKey, error)

	// Link returns the address of a conversation for people, or nothing where it has
	// none or it cannot be found out now.
	Link(ctx context.Context, key messages.ConversationKey) string
}

// Locator is implemented by adapters whose events do not say everything about
// the repository of a conversation.
type Locator interface {
	Adapter

	// Locate completes in.Repository. It is asked once before each turn, outside
	// of transactions. ErrWithdrawn means that the message has been deleted since it
	// was heard of, where no event tells of that.
	Locate(ctx context.Context, in messages.Inbound) (messages.Repository, error)
}

// ErrWithdrawn is an error of Locator: nobody waits for an answer any more.
var ErrWithdrawn = errors.New("the message has been deleted")

// FilePart is a part of an answer that is better read as a file of its own.
type FilePart struct {
	Name string // a plain file name; no two of one answer are the same
	Data []byte
}

// Extractor is implemented by adapters that can post files and on whose platform
// a long stretch of code is hard to read within a message.
type Extractor interface {
	Filer

	// Extract takes what is better posted as a file out of a complete CommonMark
	// text; a line that names the file stands in its place. It does no I/O, never
	// panics, and returns the text as it is if there is nothing to take out.
	// Deliver the files after the text, in their order.
	Extract(markdown string) (text string, files []FilePart)
}
