package platform

import (
	"context"
	"log/slog"

	"remote-agent/internal/messages"
	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
	"remote-agent/internal/setup"
)

// Kind is what the program knows of a platform before it connects: its options, and
// how an adapter is made of them. A new platform is a folder with a Kind in it, and a
// line in package app.
type Kind interface {
	option.Host

	// Platform is the name, as in conversations.
	Platform() messages.Platform

	// On reports whether the options turn the platform on.
	On() bool

	// CheckID says why no conversation here can have an id, or nil.
	CheckID(id string) error

	// People says whom the options let in.
	People() People

	// Banner says, in one line without the name, what is on for the bot's account, or
	// how to turn it on.
	Banner(account Account) string

	// Intake says how events come in.
	Intake() Intake

	// New makes the adapter. It connects to nothing.
	New(s Surroundings) (Adapter, error)
}

// Intake is how events of a platform come in.
type Intake int

// The ways of coming in.
const (
	Polled     Intake = iota // one process at a time asks for them; what is not asked for is kept
	OverHTTP                 // they are sent to our own HTTP server
	OverSocket               // they are sent to one of the processes that are connected
)

// Surroundings are what adapters get from the program.
type Surroundings struct {
	PublicURL string
	GitToken  string             // a personal token for github.com; empty if there is none
	Log       *slog.Logger       // may be nil
	Observe   func(event string) // counts one of a few fixed names; may be nil

	// MaxConns is how many connections to the platform may be open at once; calls beyond
	// that wait. Zero is the adapter's own limit, if it has one.
	MaxConns int

	// Commands returns the names of all commands. Nil: they are not known.
	Commands func() []string

	// Engaged reports whether the bot takes part in a conversation already, so that people
	// need not mention it there. An error leaves the event unacknowledged. Nil: only
	// mentions count.
	Engaged func(ctx context.Context, key messages.ConversationKey) (bool, error)

	// Cursor keeps up to where something was read. Nil: memory.
	Cursor Cursor

	// Limits counts the calls of all processes together. Nil: there is no other.
	Limits SharedLimits
}

// Complete puts what does nothing in the place of a Log and an Observe that are nil.
func (s *Surroundings) Complete() {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Observe == nil {
		s.Observe = func(string) {}
	}
}

// Cursor keeps named positions over restarts. Keys have at most 200 bytes and values
// 100. It is safe for concurrent use.
type Cursor interface {
	// Load returns a position; empty if none was saved.
	Load(ctx context.Context, key string) (string, error)

	// Save replaces a position.
	Save(ctx context.Context, key, value string) error
}

// People says whom the options of a platform let in, and what ids of people look like.
type People struct {
	Everyone bool
	IDs      []string
	Owners   []string // all owners there, if it names any

	AllowOption string // what lets people in: the name of an option, or a rule
	OwnerOption string // the option that names owners

	Form     pattern.Pattern // of ids
	FormText string          // what to call one: "a positive number"
}

// Reloader is a Kind whose adapter has to be told of options that changed while it
// runs.
type Reloader interface {
	Kind

	// Reload tells a of this kind's options, where they differ from those before. An
	// error changes nothing.
	Reload(ctx context.Context, before Kind, a Adapter) error
}

// Guided is a Kind that people can set up step by step.
type Guided interface {
	Kind

	// SetUp returns the step, as the options are now. publicURL is the address of this
	// program; empty if there is none.
	SetUp(publicURL string) setup.Step
}

// Introducer is an adapter that tells its platform what the bot is, for people who look
// at it: a description, a picture.
type Introducer interface {
	Adapter

	// Introduce sets what nobody has set yet, and says in a few words what that was;
	// empty if everything was there. It may run again.
	Introduce(ctx context.Context) (did string, err error)
}

// RepoCredentials is a Kind whose adapter knows credentials for repositories.
type RepoCredentials interface {
	Kind

	// CredentialHost is the host that they are for.
	CredentialHost() string

	// Token returns the credential of a for the repository at an address: a
	// fault.Forbidden or fault.NotFound if it has none.
	Token(ctx context.Context, a Adapter, address string) (string, error)
}
