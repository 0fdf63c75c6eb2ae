// Package chat has every command that people can give the bot in a chat: a file
// for each, and one list of them (see registry.go), from which help, the menus of
// the platforms, "did you mean" and docs/commands.md come. Commands on one subject
// share a type that has what they need (see families.go).
//
// A command is code and never sent to a model. It reads and writes through the
// store, asks the engine for what only the engine can do (see Engine), and names
// no platform: what only some have is asked for by capability.
package chat

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/doctor"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/people"
	"remote-agent/internal/platform"
	"remote-agent/internal/profile"
	"remote-agent/internal/recollect"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/work"
)

// Engine is what commands ask of the engine that runs them.
type Engine interface {
	// Stop ends the turn of a conversation and drops what waits there, up to a
	// sequence number of its inbox, for somebody who is named as in the audit log.
	Stop(ctx context.Context, conv sessions.Conversation, upTo int64, by string) (orchestrator.Stopped, error)

	// RetryNow has the turn at the head of a conversation run now that waits for its next
	// try, or for the end of a provider's limit. It reports false if none does. seq is
	// the number of its entry; 0 is any. Once more it changes nothing.
	RetryNow(ctx context.Context, conv sessions.Conversation, seq int64) (bool, error)

	// Running returns since when a turn of a conversation runs in this process; ok
	// is false if none does.
	Running(conversationID string) (since time.Time, ok bool)

	// RunningTurns returns how many turns run in this process.
	RunningTurns() int

	// Wake has somebody look for work in a conversation, soon.
	Wake(conversationID string)

	// ForgetSession drops what is remembered of a session's messages, because some
	// were taken out of it.
	ForgetSession(id string)

	// Decide settles a question about a tool call, and lets the turn that asked go
	// on, wherever it is.
	Decide(ctx context.Context, r command.Request, v orchestrator.Decision) (approval.Approval, error)

	// Live returns the settings that may change while the process works, as they are
	// now.
	Live() *orchestrator.Live

	// SystemPrompt returns what the next session of a conversation begins with.
	SystemPrompt(conv sessions.Conversation, in messages.Inbound, p *profile.Profile) string

	// ModelProblem says why a profile cannot have the model that it wants in a
	// conversation; empty if it can.
	ModelProblem(p *profile.Profile, conv sessions.Conversation) string
}

// Storage is where commands read and write; *store.Store is one.
type Storage interface {
	// InTx runs fn in one transaction; fn may run more than once.
	InTx(ctx context.Context, fn func(tx *store.Tx) error) error

	// InRead runs fn in a read-only snapshot.
	InRead(ctx context.Context, fn func(tx *store.Tx) error) error
}

// Config configures a Handler. What is nil or zero is not there.
type Config struct {
	Storage  Storage
	Adapters []platform.Adapter
	Redact   *redact.Redactor // nil knows the credentials of services only

	Assistants  map[assistant.Name]assistant.Assistant
	Missing     map[assistant.Name]string      // agents that are not installed, with how to
	Placeholder map[assistant.Name]bool        // assistants that only stand in until a real one is configured
	Mode        approval.Mode                  // of conversations that chose none
	Tools       interface{ Status() []string } // what /status says of tools, a line each

	People    *people.Service
	Memory    *recollect.Service
	Work      *work.Service
	Workspace *codebase.Workspace // goes with Work

	Doctor func(ctx context.Context) doctor.Report // examines the installation until ctx ends

	Link Link // nil: there are no pages

	// Pages is the address of the pages in the browser, for links to what is said in chats;
	// empty if people do not reach them from where they are.
	Pages string

	Version string           // for /status
	Now     func() time.Time // default time.Now
	Log     *slog.Logger
}

// Link makes a link that signs an account in to the pages in the browser, once, and
// says whether it works on the machine of the bot only.
type Link func(ctx context.Context, a signin.Account) (link string, local bool, err error)

// Handler finds the commands, and lists them in help and menus; what they do is in
// their families. It is safe for concurrent use.
type Handler struct {
	platforms
	families

	store  Storage
	link   Link
	engine lateEngine
	has    map[command.Need]bool // in this installation

	list   []command.Command          // in the order in which people read them
	byName map[string]command.Command // aliases, too
	names  []string                   // the keys of byName, sorted
}

// New returns a Handler. Bind comes before anything is run.
func New(config Config) (*Handler, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Redact == nil {
		config.Redact = redact.New()
	}
	config.Mode = cmp.Or(config.Mode, approval.ModeEdit)
	h := &Handler{
		platforms: make(platforms, len(config.Adapters)), store: config.Storage, link: config.Link, byName: make(map[string]command.Command),
		has: map[command.Need]bool{command.Repositories: config.Work != nil, command.Memory: config.Memory != nil, command.Pages: config.Link != nil},
	}
	for _, a := range config.Adapters {
		h.platforms[a.Platform()] = a
	}
	h.families = newFamilies(config, h.platforms, &h.engine, h.isCode)
	return h, h.register(h.commands())
}

// lateEngine is the Engine for commands, which are made before there is one.
type lateEngine struct{ Engine }

// Bind tells the Handler the engine that its commands run in. It is called once,
// before anything runs.
func (h *Handler) Bind(engine Engine) { h.engine.Engine = engine }

type platforms map[messages.Platform]platform.Adapter

// caps returns what a platform can do; nothing of one that is not there.
//
//go:noinline // it would be copied into many callers
func (on platforms) caps(p messages.Platform) platform.Capabilities {
	if a := on[p]; a != nil {
		return a.Capabilities()
	}
	return platform.Capabilities{}
}

// postsFiles reports whether a platform can show files.
func (on platforms) postsFiles(p messages.Platform) bool {
	_, ok := on[p].(platform.Filer)
	return ok
}

// prefix returns what stands before a command's name in a conversation.
//
//go:noinline // it would be copied into many callers
func (on platforms) prefix(key messages.ConversationKey) string {
	return platform.CommandPrefix(on[key.Platform], key)
}

// private reports whether nobody else reads an answer to a message.
func private(in messages.Inbound) bool { return in.Private || in.Whispered }

//go:noinline // it would be copied into many callers
func reply(format string, args ...any) (command.Reply, error) {
	return command.Reply{Text: fmt.Sprintf(format, args...)}, nil
}

// withProblems adds what went wrong besides.
func withProblems(text string, problems []string) string {
	for _, p := range problems {
		text += "\n\n⚠ " + p
	}
	return text
}
