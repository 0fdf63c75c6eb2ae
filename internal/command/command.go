// Package command is the vocabulary of chat commands: "/name args" as people type
// it, on every platform, and what a command is, is asked and answers.
//
// It knows no command: package chat has all of them, and the engine runs them.
package command

import (
	"context"
	"errors"
	"strings"

	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
)

// FollowUpPrefix begins the event ids of messages that the program put into an inbox
// itself, because a command or a button said so.
const FollowUpPrefix = "then:"

// Lane says when a command runs.
type Lane int

// The lanes.
const (
	// AtOnce commands wait for nothing, also while a turn runs.
	AtOnce Lane = iota

	// Ahead commands run at once, too, but change what a turn begins with, such as
	// its session: a message that was sent behind one begins when it has run,
	// however close the two are.
	Ahead

	// Job commands run in the conversation's order, like turns: they may take long,
	// show what they do, and are ended by /stop.
	Job

	// Turn commands are prompts: the assistant gets their text, in a turn like any
	// other.
	Turn
)

// Where says where a command is offered: in help and menus. Given
// elsewhere it says itself what is in the way.
type Where int

// The places.
const (
	Anywhere Where = iota

	// Aside commands answer only in private chats. A platform that has
	// no such place, because its messages are comments, does not offer them.
	Aside
)

// Need is what an installation must have for a command to be there.
type Need int

// The needs.
const (
	Nothing      Need = iota
	Repositories      // git, and a place for clones
	Memory            // what is remembered of people
	Pages             // web pages
)

// Reading says whether people who may ask but change nothing can give a command.
type Reading int

// What they can do.
const (
	NotReading      Reading = iota // it changes something: they cannot
	ReadingAside                   // it changes the talk only: in private chats
	ReadingAnywhere                // it only shows something, or stops what runs
)

// Takes says how much may follow the name of a command on its line. More is refused, not
// dropped: it may have been what the command was for.
type Takes int

// What they take.
const (
	Any     Takes = iota // Run says what it does not understand
	NoWord               // nothing
	OneWord              // a word at most
)

// Run answers a command. It may run twice, after a crash, and must then have the
// same effect once. Its error is shown by its public text.
type Run func(ctx context.Context, r Request) (Reply, error)

// Command is something a person asks for by name. It is handled by code and never
// sent to a model, except for a Prompt.
type Command struct {
	Name    string   // canonical: lower case, "_" for "-"
	Aliases []string // other names, canonical as well
	Usage   string   // "repo <name|number>"
	Summary string   // one line for /help and for menus
	Details string   // what /help NAME says besides, in whole sentences; may be empty
	Example string   // "repo shop"
	Rank    int      // place in the short /help, where there is room for a few; 0 is none
	Menu    bool     // shown in the platforms' menus
	Hidden  bool     // not listed by /help
	Owners  bool     // refused to everybody but owners of the bot
	Lane    Lane
	Hurries bool // of lane Job: it runs at once while a turn waits for its next try, which it then has run
	Past    bool // it is about what came before it; see messages.Inbound.Begins
	Files   bool // it looks at the conversation's files: where another process has them, it runs there, in the conversation's order
	Where   Where
	Reading Reading
	Needs   Need
	Takes   Takes

	Run    Run     // nil for a Prompt
	Prompt *Prompt // only of lane Turn
}

// Names returns the name and the aliases.
func (c Command) Names() []string { return append([]string{c.Name}, c.Aliases...) }

// Request is a command that somebody gave, or a button that they pressed.
type Request struct {
	Entry sessions.Entry
	Conv  sessions.Conversation
	Call  Call // zero for a button
	Role  sessions.Role

	// Show replaces what the person sees while a job runs. It is nil for
	// commands that run at once, and safe for concurrent use.
	Show func(markdown string)
}

// Actor names who asked, as plans and the audit log do: "telegram/42".
func (r Request) Actor() string { return r.Entry.In.Actor() }

// ErrStopped is the cause of a command's context once a person has stopped it: it does not run again.
var ErrStopped = errors.New("stopped by a person")

// Reply is the answer to a command.
type Reply struct {
	Text    string // CommonMark; empty says nothing
	Buttons []messages.Button
	Whole   bool   // of a job: all of the text is shown, in however many messages
	Files   []File // posted after the text, where the platform can and whoever reads along may see them

	// Note is told to the person who pressed a button and to nobody else.
	Note string

	// Edits replace messages that were delivered earlier, buttons included.
	Edits []messages.Delivery

	// Unkept is sent as a message of its own behind the text and is stored nowhere:
	// a secret that is only good for a while. If the process dies at that moment it
	// is not sent again. Only whoever gave the command may see it.
	Unkept string

	// Plan is the version of a plan that the text shows, nil for none. Which message
	// shows it goes on record in the transaction that stores the reply.
	Plan *plan.Plan

	// Then is run as the person's next message, in the conversation's order.
	Then string

	// Once names Then, if that must not follow twice: what follows under the same name is
	// left out the second time, and Twice said instead.
	Once, Twice string

	// Again is an earlier message that is run again as the person's next one, in
	// the name of who asks now.
	Again *messages.Inbound
}

// File is a file that goes with a reply.
type File struct {
	Name string
	Data []byte
}

// Prompt is a command whose text goes to the assistant: a turn like any other,
// with a place in the plan->execute rule.
type Prompt struct {
	Meta  sessions.CommandMeta
	Model string // asked for this turn; empty is the assistant's own

	// Missing refuses a command with which nothing came to work on: no text, quote, file,
	// or issue where it was given, and no session in which something was said before.
	// Empty: it needs nothing.
	Missing string

	// Expand returns the text for the assistant. plan is the text of the plan
	// that the command consumes, or empty. Warnings are shown to the person.
	Expand func(call Call, plan string) (text string, warnings []string)
}

// Invoke is the canonical name of seed 002's long form:
// "/command-invoke <name> [args]".
const Invoke = "command_invoke"

// Invoked returns the call that c means: itself, or the one that it names through
// /command-invoke. Without a name there it stays as it is; a name that cannot be
// one is empty.
func (c Call) Invoked() Call {
	if c.Name != Invoke || len(c.Args) == 0 {
		return c
	}
	name, _ := Canonical(strings.TrimPrefix(c.Args[0], "/"))
	return Call{Name: name, Args: c.Args[1:], Rest: afterWord(c.Rest)}
}

// WithoutFirst returns the call without its first argument.
func (c Call) WithoutFirst() Call {
	if len(c.Args) > 0 {
		c.Args, c.Rest = c.Args[1:], afterWord(c.Rest)
	}
	return c
}

// afterWord returns a text without its first word.
func afterWord(text string) string {
	_, rest := firstWord(text)
	return strings.TrimSpace(rest)
}
