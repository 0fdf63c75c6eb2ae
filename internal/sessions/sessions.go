// Package sessions holds the types and rules of conversations and their
// sessions (seed 002): a conversation is one chat, topic, thread or issue; a
// session is one stretch of assistant context inside it, at most one active.
//
// It does no I/O. The storage ports of its consumers use its types, and package
// store implements them.
package sessions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/messages"
)

// ErrLeaseLost is returned, wrapped in fault.Conflict, by every write of a turn
// whose lease has passed to another worker. The worker stops and changes
// nothing more.
var ErrLeaseLost = errors.New("lease lost")

// Codebase is a repository or folder that conversations work on.
type Codebase struct {
	ID            string
	Name          string
	RepositoryURL string
	DefaultCwd    string
	Assistant     string // default ai_assistant_type of its conversations
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// maxCodebaseName is how many characters the name of a codebase has at most.
const maxCodebaseName = 255

// FreeName returns the name of a codebase, with a number behind it if another one has it,
// which taken says. Its error is that of taken.
func FreeName(name string, taken func(name string) (bool, error)) (string, error) {
	free, runes := name, []rune(name)
	for n := 2; ; n++ {
		if is, err := taken(free); err != nil || !is {
			return free, err
		}
		end := fmt.Sprintf("-%d", n)
		free = string(runes[:min(len(runes), maxCodebaseName-len(end))]) + end
	}
}

// CommandDef is an entry of a codebase's command registry: where the Markdown
// file is, never what it says.
type CommandDef struct {
	Path        string   `json:"path"`
	Description string   `json:"description"`
	Produces    Artifact `json:"produces,omitempty"` // as its front matter had it when it was registered
	Consumes    Artifact `json:"consumes,omitempty"`
}

// Conversation is a row of remote_agent_conversations.
type Conversation struct {
	ID         string
	Key        messages.ConversationKey
	CodebaseID string
	Cwd        string
	Assistant  string // ai_assistant_type; never changes after creation
	CreatedAt  time.Time
	UpdatedAt  time.Time

	Settings Settings // what people chose for it
	AgentID  string   // the agent profile that it uses; empty for the default

	InboxSeq    int64  // the last inbox sequence number given out
	StopSeq     int64  // entries up to this one were told to stop
	DeliverySeq int64  // the last delivery sequence number given out
	Owner       string // holder of the lease, if LeaseUntil is in the future
	Epoch       int64  // grows with every claim of the lease
	Leased      bool   // somebody holds a live lease, by the store's clock
}

// Settings are what people chose for a conversation; empty members mean the
// default of the service.
type Settings struct {
	Mode    string `json:"mode,omitempty"`    // ask, edit or auto
	Model   string `json:"model,omitempty"`   // overrides the assistant's own
	Verbose *int   `json:"verbose,omitempty"` // 0, 1 or 2

	// Worktree is the conversation whose worktree this one goes on in, after a
	// hand-off; empty for its own.
	Worktree string `json:"worktree,omitempty"`

	// Home is the key of the conversation that this one was forked from, if it was: one
	// process works on both of them, as the files of the fork are where it was made.
	Home string `json:"home,omitempty"`
}

// HomeKey is what decides which process works on the conversation.
func (c Conversation) HomeKey() string {
	return cmp.Or(c.Settings.Home, c.Key.String())
}

// WorkID returns the conversation under whose id the worktree is kept.
func (c Conversation) WorkID() string {
	return cmp.Or(c.Settings.Worktree, c.ID)
}

// ConversationUpdate changes the fields that are not nil.
type ConversationUpdate struct {
	CodebaseID *string // "" takes the codebase away
	Cwd        *string
	Key        *messages.ConversationKey // archive or migrate to another platform id
	Settings   *Settings
	AgentID    *string // "" goes back to the default profile
}

// Lease is the right to work on a conversation. Every write of a turn is
// conditional on it: Epoch fences a worker that was paused and woke up late.
type Lease struct {
	ConversationID string
	Owner          string
	Epoch          int64
}

// Status is how a session stands, as its runs say (seed 003): it runs while a run
// of it does, has failed if its last run did, and is completed otherwise. Whether it
// has ended is another matter: Session.EndedAt says that.
type Status string

// The statuses of a session.
const (
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
)

// Metadata is the JSON state of a session. Unknown keys are kept.
type Metadata map[string]any

// The keys of Metadata that code reads.
const (
	MetaLastCommand = "lastCommand" // the last prompt command run (seed 002)
	MetaEndReason   = "endReason"   // why the session ended: reset, plan-execute, ...
	MetaForked      = "forked"      // how many messages of its parent a fork began with
	MetaPlan        = "plan"        // the plan that the session began with: "p-3"
	MetaUnreadable  = "unreadable"  // what stood there and was no object
	MetaAgentCost   = "agentCost"   // US dollars that the agent's session has cost, if no message says it
)

// Forked returns how many messages of its parent a session began with; 0 if it is
// no fork.
func (m Metadata) Forked() int {
	switch n := m[MetaForked].(type) {
	case int:
		return n
	case float64: // as it comes out of JSON
		return int(n)
	}
	return 0
}

// AgentCost returns what the agent's session has cost; 0 if no turn of it failed.
func (m Metadata) AgentCost() float64 {
	usd, _ := m[MetaAgentCost].(float64)
	return usd
}

// LastCommand returns the last prompt command that ran in the session.
func (m Metadata) LastCommand() string {
	s, _ := m[MetaLastCommand].(string)
	return s
}

// Session is a row of remote_agent_sessions.
type Session struct {
	ID                 string
	ConversationID     string
	CodebaseID         string
	ParentID           string // the session it continues from, if any
	Assistant          string
	AssistantSessionID string // the external agent's id, to resume
	Active             bool
	Metadata           Metadata
	Status             Status
	AgentName          string // agent profile (seed 003's agent_name)
	AgentID            string // empty for the default profile, and once the profile is deleted
	Model              string
	SystemPrompt       string
	UserPrompt         string // the first request
	Config             json.RawMessage
	Result             string
	Error              string
	InputTokens        int64
	OutputTokens       int64
	LastSeq            int64 // sequence number of the newest message
	StartedAt          time.Time
	EndedAt            time.Time // zero while not ended
}

// NewSession is what a session begins with.
type NewSession struct {
	ConversationID string
	CodebaseID     string
	ParentID       string
	Assistant      string
	AgentName      string
	AgentID        string
	Model          string
	SystemPrompt   string
	Config         json.RawMessage // may be empty
	UserPrompt     string
}

// Fork asks for a session that goes on from a message of another one.
type Fork struct {
	From string // the session
	N    int    // from its first N messages; 0 means all that it has
	Into string // the conversation that the fork begins in; empty means that of From

	// Before is the place in the inbox of who asks: what waits behind it does not
	// keep them from forking. 0 means that all does.
	Before int64
}

// Forked is a session that goes on from a message of its parent.
type Forked struct {
	Session Session
	Taken   int  // messages that it began with
	Of      int  // messages that its parent has
	Again   bool // it was there already, and nothing was said in it
}

// Admission is how an entry is stored together with a claim on its conversation.
type Admission struct {
	Owner      string // of the lease
	TTL        time.Duration
	Deliveries int64 // numbers to keep for deliveries that follow in this transaction

	// Begins is set if the next message of the entry's session, in this transaction, is the
	// first one of its turn: the state before it is recorded with the entry.
	Begins bool
}

// Admitted is what an entry was given that was admitted.
type Admitted struct {
	Lease       Lease
	DeliverySeq int64 // the last number of those that are kept
	MessageSeq  int64 // of the message that its turn begins with; 0 if it does not begin
}

// TurnRecord is what a turn leaves behind on its session.
type TurnRecord struct {
	Model        string
	Result       string // head of the answer
	Error        string
	InputTokens  int64
	OutputTokens int64

	// What the session has on record of these stays where they are empty.
	SystemPrompt string
	Config       json.RawMessage
}

// EntryState is the life of an inbound event.
type EntryState string

// The states of an inbound event. Waiting and running ones are work; all others
// are final.
const (
	EntryWaiting EntryState = "waiting" // accepted, its turn has not started
	EntryRunning EntryState = "running" // its turn has started at least once
	EntryDone    EntryState = "done"    // answered; deliveries may be outstanding
	EntryFailed  EntryState = "failed"  // ended with a visible error
	EntryStopped EntryState = "stopped" // a person stopped it
	EntryRefused EntryState = "refused" // its sender may not talk to the bot
	EntryIgnored EntryState = "ignored" // nothing to do: a late edit, a group migration
	EntryRaw     EntryState = "raw"     // kept, not understood
)

// ErrorLoop is the error of an entry that was refused because it is one of a loop
// (messages.Inbound.Unanswered).
const ErrorLoop = "loop"

// ErrBusy is in the chain of a fault.Conflict that says that something runs or waits in
// a conversation.
var ErrBusy = errors.New("the conversation is at work")

// Lane says who handles an inbound event.
type Lane string

// The lanes.
const (
	LaneTurn    Lane = "turn"    // in order, one at a time per conversation
	LaneControl Lane = "control" // at once, also while a turn runs: /stop, /status, /help
)

// Entry is a row of inbound_events: an event with what became of it.
type Entry struct {
	ID             string // UUIDv7; also the run id of its messages
	ConversationID string // empty for raw and refused events
	Seq            int64  // inbox order within the conversation; 0 where not queued
	Lane           Lane
	State          EntryState
	Attempts       int       // turns started for it
	NextAt         time.Time // not to be tried before
	SessionID      string
	Error          string // last error, for the operator
	In             messages.Inbound
	AcceptedAt     time.Time
	Preparation    Preparation
}

// Paused begins the error of a run of a standing task that is the last one of its day,
// because a budget is used up.
const Paused = "paused: "

// Pauses reports whether the entry is the last run that a standing task has on a day.
func (e Entry) Pauses(day time.Time) bool {
	return strings.HasPrefix(e.Error, Paused) && !e.AcceptedAt.Before(day)
}

// Preparation is what was found out for the turn of an entry before it could begin,
// step by step, so that a process that dies loses no more than its last step. It
// goes when the entry is over.
type Preparation struct {
	// AdmittedAt is when the platform was asked whether the sender may use the bot,
	// and said yes; zero: it has not. It says nothing about later.
	AdmittedAt time.Time `json:"admitted_at,omitzero"`

	// Earlier is what was said before the bot was called, as it was at EarlierAt,
	// and Notice what the person is told about that. A zero EarlierAt means that
	// nobody has looked.
	EarlierAt time.Time        `json:"earlier_at,omitzero"`
	Earlier   []messages.Quote `json:"earlier,omitempty"`
	Notice    string           `json:"notice,omitempty"`

	// Files are the first attachments of the event, with what was read of them until
	// FilesAt. What was said in those that are recordings has been shown by then. A zero
	// FilesAt means that nobody has looked. Readings is how often the next one was begun
	// to be read, and not done.
	FilesAt  time.Time             `json:"files_at,omitzero"`
	Files    []messages.Attachment `json:"files,omitempty"`
	Readings int                   `json:"readings,omitempty"`

	// Repository is what the platform said at LocatedAt of where the work belongs.
	LocatedAt  time.Time            `json:"located_at,omitzero"`
	Repository *messages.Repository `json:"repository,omitempty"`
}

// SessionUpdate changes fields of a session; those that are nil stay.
type SessionUpdate struct {
	AssistantSessionID *string  // by which the assistant resumes it; "" forgets it
	AgentName          *string  // that its profile has now
	Metadata           Metadata // keys that are merged into what is there
}

// EntryUpdate changes the fields that are not nil.
type EntryUpdate struct {
	State     *EntryState
	Attempts  *int
	NextAt    *time.Time
	SessionID *string
	Error     *string

	// Preparation takes the place of what is there. A State that is final takes it
	// away, whatever is given here.
	Preparation *Preparation

	// Checkpoint is the state before the entry's turn, and the session that it runs in.
	Checkpoint *Checkpoint
}

// Role is what an identity may do.
type Role string

// The roles, from the least.
const (
	Stranger Role = "stranger"
	Reader   Role = "reader" // may ask, and change nothing
	User     Role = "user"
	Owner    Role = "owner"
)

// Identity is a person on a platform, by immutable id.
type Identity struct {
	Platform  messages.Platform
	UserID    messages.UserID
	Name      string // last seen display name; never used to decide
	Role      Role
	RefusedAt time.Time // when a stranger was last told no
	CreatedAt time.Time

	GrantedBy string    // GrantedByCode, GrantedByCLI or an owner such as "telegram/42"; empty for a role from before this was kept
	GrantedAt time.Time // zero where GrantedBy is empty
	RemovedAt time.Time // who was removed is a stranger, whatever the configuration says; zero for all others
}

// Who gives roles besides owners.
const (
	GrantedByCode = "code" // joined with a one-time code
	GrantedByCLI  = "cli"  // an operator on the command line
)

// Claimed reports whether the role was taken with a one-time code, and not given
// by somebody.
func (i Identity) Claimed() bool { return i.GrantedBy == "" || i.GrantedBy == GrantedByCode }

// ServiceState is what holds for the whole service, on every replica.
type ServiceState struct {
	AccessSeq  int64     // grows with every change of who may do what, and with every halt and resume
	HaltedAt   time.Time // zero: not halted
	HaltedBy   string
	HaltReason string // in the words of who halted it; may be empty
}

// Halted reports whether nothing may start.
func (s ServiceState) Halted() bool { return !s.HaltedAt.IsZero() }

// Access is all that the database knows when somebody is to be let in.
type Access struct {
	Identity
	ServiceState

	Known bool // Identity is that of a row
}

// ToolStatus is the life of a tool call (seed 003).
type ToolStatus string

// The statuses of a tool call.
const (
	ToolPending   ToolStatus = "pending"
	ToolExecuting ToolStatus = "executing"
	ToolCompleted ToolStatus = "completed"
	ToolFailed    ToolStatus = "failed"
)

// ToolCall is a row of agent_tool_calls.
type ToolCall struct {
	ID          int64
	SessionID   string
	MessageSeq  int64 // the message that asked; 0 if unknown
	CallID      string
	Name        string
	Request     string // JSON
	Response    string // JSON; empty until completed
	Status      ToolStatus
	Error       string
	CreatedAt   time.Time
	CompletedAt time.Time
	Duration    time.Duration // execution_time_ms
}

// Checkpoint is the state before a turn, to go back to. It is a part of the turn's entry.
type Checkpoint struct {
	EntryID        string
	ConversationID string
	SessionID      string
	Seq            int64  // sequence number of the turn's first message
	Ref            string // git ref with the files; empty without a worktree
}

// AuditEntry is a line of audit_log: who did what, where.
type AuditEntry struct {
	Actor          string // "telegram/42", "system", "cli"
	Action         string // "session.reset", "turn.stop", "owner.claim", ...
	ConversationID string
	Target         string
	Detail         string // JSON or empty; never secrets, and nothing that people or models wrote

	// Effect names what happens once, if anything does: however often it is begun, it
	// has one row. Empty for what is not repeated.
	Effect string
}

// Schedule is the standing task of an agent profile in a conversation: every so
// often, as the profile says, it is a message of whoever switched it on.
type Schedule struct {
	ID             int64
	AgentID        string
	ConversationID string
	CreatedBy      string           // who switched it on, such as "telegram/42"
	Origin         messages.Inbound // the message that did
	EntryID        string           // of the last run; empty before the first
	Runs           int64
	LastAt         time.Time // of the last run; zero before the first
	NextAt         time.Time
	CreatedAt      time.Time
}
