// Package turn works on conversations, each under its lease: it begins the turn of
// the oldest message, runs the assistant, shows its progress, asks people where a
// rule says so, and ends the turn in one transaction with everything that it left to
// be sent.
//
// A worker keeps what it knows while it holds the lease (worker.go). A turn begins in
// begin.go, runs in run.go with the tools and answers that host.go gives the
// assistant, and ends in end.go. Every step may run twice.
package turn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// Commands are the chat commands as turns meet them.
type Commands interface {
	// Find returns the command that has a canonical name or alias.
	Find(name string) (command.Command, bool)

	// Unknown answers a call whose name Find does not know, and neither the
	// codebase of the conversation.
	Unknown(ctx context.Context, r command.Request) (command.Reply, error)

	// RunNow runs a command that waits for no turn, or waits while this process does
	// so already.
	RunNow(ctx context.Context, entry sessions.Entry) error

	// FollowUp puts a message that follows from a command into the inbox. It reports
	// whether there is one.
	FollowUp(ctx context.Context, tx port.Tx, r command.Request, reply command.Reply) (bool, error)
}

// Settings are what may change while the process works.
type Settings struct {
	Budget        spend.Budget
	Tiers         map[string]spend.Tier
	SystemPrompt  string
	ContextTokens int // budget of the message array
	MaxRounds     int // requests to the model in a turn before a person is asked
	TurnTimeout   time.Duration
}

// Config is what Turns works with.
type Config struct {
	Storage    port.Storage
	Queue      queue.Queue
	Access     *access.Access
	Outbox     *outbox.Outbox
	Background *background.Group
	Commands   Commands
	Live       func() Settings // as they are now

	Assistants map[assistant.Name]assistant.Assistant
	Tools      Tools     // may be nil
	Worktrees  Worktrees // may be nil
	Memory     Memory    // may be nil
	Learner    Learner   // may be nil
	Files      Files     // may be nil: text files only are read

	Mode           approval.Mode // of conversations that chose none
	Confined       bool          // programs of assistants cannot write outside of what they work on
	SecondApprover bool          // approvals need somebody else than the one who asked
	Redact         func(string) string
	RedactPart     func(string) string // of a text that is still being written

	// Takers returns the other processes that may be offered conversations; see Elsewhere.
	// Nil if there can be none.
	Takers func() []string

	Slots       int // conversations worked on at once
	MaxAttempts int // tries of a turn before its error is final
	LeaseTTL    time.Duration
	RenewEvery  time.Duration // also how soon a stop on another replica arrives
	Now         func() time.Time

	Log     *slog.Logger
	Metrics *metrics.Metrics // may be nil
}

// Turns works on conversations. It is safe for concurrent use.
type Turns struct {
	config     Config
	access     *access.Access
	outbox     *outbox.Outbox
	owner      string // this process, as a holder of leases
	slots      *slots
	running    running
	windows    *windowCache
	fits       fits
	decided    decided
	asking     bool // something here can ask a person
	background *background.Group
	holders    sync.Map // *worker -> context.CancelCauseFunc: who works under a lease
}

// New returns Turns. It starts nothing.
func New(c Config) *Turns {
	o := &Turns{
		config: c, access: c.Access, outbox: c.Outbox, background: c.Background, owner: uuid.Must(uuid.NewV7()).String(),
		slots: newSlots(c.Slots), windows: newWindowCache(c.Slots*4, windowsMost),
	}
	o.asking = c.Tools != nil || c.Worktrees != nil
	for _, a := range c.Assistants {
		if _, is := a.(assistant.Agent); is {
			o.asking = true
		}
	}
	o.running.turns = make(map[string]*turnHandle)
	return o
}

// asks reports whether a turn can have asked a person something.
func (o *Turns) asks() bool { return o.asking || !o.config.Live().Budget.IsZero() }

// ForgetSession drops what is remembered of a session's messages. It is called
// when some of them were taken out of the message array.
func (o *Turns) ForgetSession(id string) { o.windows.forget(id) }

// RunningTurns returns how many turns run in this process.
func (o *Turns) RunningTurns() int { return o.running.count() }

// Stalled returns how many turns of this process have given no sign of life for 3 minutes and
// wait for no person.
func (o *Turns) Stalled() metrics.Stalled { return o.running.stalled() }

// CutAll ends all turns of this process.
func (o *Turns) CutAll(cause error) { o.running.cutAll(cause) }

// CloseSlots refuses all who wait for a slot and all who come: nothing begins any more.
func (o *Turns) CloseSlots() { o.slots.close() }

// Grow adds n slots. A negative n takes some away, those in use as they are given back.
func (o *Turns) Grow(n int) { o.slots.grow(n) }

// Owner returns the name of this process as a holder of leases.
func (o *Turns) Owner() string { return o.owner }

// LeasesLost ends the workers of this process without settling anything: others took
// it for dead and work on their conversations.
func (o *Turns) LeasesLost() {
	o.holders.Range(func(_, cancel any) bool {
		if cancel, ok := cancel.(context.CancelCauseFunc); ok {
			cancel(fmt.Errorf("%w: this process was taken for dead", sessions.ErrLeaseLost))
		}
		return true
	})
}
