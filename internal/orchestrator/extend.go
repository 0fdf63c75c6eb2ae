package orchestrator

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
)

// Storage and Tx are the port of the database; see there.
type (
	Storage = port.Storage
	Tx      = port.Tx
)

// Button is what pressing a messages.Button means.
type Button = plan.Button

// Command is something a person asks for by name. It is handled by code and
// never sent to a model.
type Command struct {
	Name    string // canonical: lower case, "_" for "-"
	Usage   string // "repo <name|number>"
	Summary string // one line for /help and for menus
	Menu    bool   // shown in the platforms' menus
	Hidden  bool   // not listed by /help

	// Job commands run in the conversation's order, like turns: they may take
	// long, show what they do, and are ended by /stop. All others run at once,
	// also while a turn runs.
	Job bool

	// Ahead commands change what a turn begins with, such as its session: a message
	// that was sent behind one begins when it has run, however close the two are.
	// They run at once and wait for no turn.
	Ahead bool

	// Run answers the command. It may run twice, after a crash, and must then
	// have the same effect once. Its error is shown by its public text.
	Run func(ctx context.Context, r Request) (Reply, error)
}

// Request is a command that somebody gave, or a button that they pressed.
type Request struct {
	Entry sessions.Entry
	Conv  sessions.Conversation
	Call  command.Call // zero for a button
	Role  sessions.Role

	// Show replaces what the person sees while a job runs. It is nil for
	// commands that run at once, and safe for concurrent use.
	Show func(markdown string)
}

// Actor names who asked, as plans and the audit log do: "telegram/42".
func (r Request) Actor() string { return actor(r.Entry.In) }

// Reply is the answer to a command.
type Reply struct {
	Text    string // CommonMark; empty says nothing
	Buttons []messages.Button
	Files   []File // posted after the text, where the platform can and whoever reads along may see them

	// Note is told to the person who pressed a button and to nobody else.
	Note string

	// Edits replace messages that were delivered earlier, buttons included.
	Edits []messages.Delivery

	// Unkept is sent as a message of its own behind the text and is stored nowhere:
	// a secret that is only good for a while. If the process dies at that moment it
	// is not sent again. Only whoever gave the command may see it.
	Unkept string

	// Stored is called in the transaction that stores the reply, with the last
	// message of it. It may be called again if the transaction is repeated.
	Stored func(ctx context.Context, tx Tx, last messages.DeliveryID) error

	// Then is run as the person's next message, in the conversation's order.
	Then string

	// Again is an earlier message that is run again as the person's next one, in
	// the name of who asks now.
	Again *messages.Inbound
}

// File is a file that goes with a reply.
type File struct {
	Name string
	Data []byte
}

// Workshop prepares what turns work on: the directory, and the prompts that a
// codebase's command files hold. A nil Workshop has neither.
type Workshop interface {
	// Lookup reports whether the codebase of a conversation has a prompt command
	// of that canonical name. It reads the database only.
	Lookup(ctx context.Context, tx Tx, conv sessions.Conversation, name string) (bool, error)

	// Status returns what /status says of the codebase, a line each.
	Status(ctx context.Context, conv sessions.Conversation) []string

	// Prepare gets everything ready for the turn of an entry, outside of any
	// transaction. It may take seconds, and is called again after a crash. A
	// conversation without a codebase gets the one that the entry is about, which
	// is cloned if it has to be. NeedsClone is an error of it.
	Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (Prepared, error)

	// Clone gets the repository of an address, which a person has allowed, for all
	// codebases of it whose folder is not on this machine. Prepare says with
	// NeedsClone that it is wanted. A second time it changes nothing.
	Clone(ctx context.Context, url string) error

	// Fork gives a conversation a worktree of its own that begins as that of another
	// one of the same codebase is now. It returns what could not be taken along, for a
	// person. A second time it changes nothing.
	Fork(ctx context.Context, from, to sessions.Conversation) (left []string, err error)

	// Release frees the worktree of a conversation; its state is saved.
	Release(ctx context.Context, conv sessions.Conversation) error
}

// Prepared is what a turn begins with.
type Prepared struct {
	Dir        string  // where an assistant may work; empty without a codebase
	Tree       string  // the top of the worktree that Dir is in
	GitData    string  // git's data of the repository, which programs may read; empty: they get none
	Head       string  // commit of Dir
	Checkpoint string  // git ref of the files as they are now
	Prompt     *Prompt // the command file that the entry names
	Notice     string  // something the person should know before the answer
	Codebase   string  // its name
	Branch     string

	// What the repository says to assistants: instead of the built-in instructions,
	// and besides them; and in which files.
	Instructions, InstructionsFrom string
	Notes, NotesFrom               string
}

// Memory knows what is remembered of people. A nil Memory remembers nothing.
type Memory interface {
	// Recall returns what is remembered of the sender of an entry that has to do
	// with it. It is asked outside of any transaction, and again after a crash.
	// What it does not know soon it leaves out: an answer does not wait for it.
	//
	// The turn's request shows it to the assistant, and nothing keeps it there: in
	// a conversation of several people, what one of them told is not for the next.
	Recall(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, limits RecallLimits) ([]messages.Quote, error)
}

// Learner finds out later what people say of themselves. A nil Learner learns
// nothing.
type Learner interface {
	// Teaches reports whether something might be learned of its sender from a
	// message. It is asked in the transaction that stores the answer, so it is
	// quick and does no I/O.
	Teaches(in messages.Inbound) bool

	// Noted tells that such a message was noted and its answer stored.
	Noted()
}

// Prompt is a command whose text goes to the assistant: a turn like any other,
// with a place in the plan->execute rule.
type Prompt struct {
	Meta    sessions.CommandMeta
	Model   string // asked for this turn; empty is the assistant's own
	Usage   string
	Summary string

	// Expand returns the text for the assistant. plan is the text of the plan
	// that the command consumes, or empty. Warnings are shown to the person.
	Expand func(call command.Call, plan string) (text string, warnings []string)
}

// Arguments returns the free text of a call, without the name of a command that
// was given through /command-invoke.
func Arguments(call command.Call) string { return arguments(call) }

// InvokedArgs returns the arguments of the command that a call means.
func InvokedArgs(call command.Call) []string {
	if call.Name == commandInvoke && len(call.Args) > 0 {
		return call.Args[1:]
	}
	return call.Args
}

// InvokedName returns the canonical name of the command that a call means: its
// own, or the one that /command-invoke names.
func InvokedName(call command.Call) string {
	if call.Name == commandInvoke && len(call.Args) > 0 {
		return canonicalArg(call.Args[0])
	}
	return call.Name
}
