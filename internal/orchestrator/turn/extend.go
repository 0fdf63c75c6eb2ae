package turn

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// Worktrees prepares what turns work on: the directory, and the prompts that a
// codebase's command files hold. A nil Worktrees has neither.
type Worktrees interface {
	// Prepare gets everything ready for the turn of an entry, outside of any
	// transaction. It may take seconds, and is called again after a crash. A
	// conversation without a codebase gets the one that the entry is about, which
	// is cloned if it has to be. NeedsClone is an error of it.
	Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (Prepared, error)

	// Clone gets the repository of an address, which a person has allowed, for all
	// codebases of it whose folder is not on this machine. Prepare says with
	// NeedsClone that it is wanted. A second time it changes nothing.
	Clone(ctx context.Context, url string) error

	// Release frees the worktree of a conversation; its state is saved.
	Release(ctx context.Context, conv sessions.Conversation) error
}

// Prepared is what a turn begins with.
type Prepared struct {
	Dir        string          // where an assistant may work; empty without a codebase
	Tree       string          // the top of the worktree that Dir is in
	GitData    string          // git's data of the repository, which programs may read; empty: they get none
	Head       string          // commit of Dir
	Checkpoint string          // git ref of the files as they are now
	Prompt     *command.Prompt // the command file that the entry names
	Notice     string          // something the person should know before the answer
	Codebase   string          // its name
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
