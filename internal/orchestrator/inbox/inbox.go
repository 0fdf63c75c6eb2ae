// Package inbox takes in what platforms tell: it stores events before they are
// acknowledged, says who may, bounds what strangers and crowds cost, sorts messages
// into lanes and has somebody work on them.
package inbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/control"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// Turns works on conversations.
type Turns interface {
	// Reserve takes a free slot, unless somebody waits for one.
	Reserve() bool

	// Admit stores an entry, for which a slot was reserved, and claims its
	// conversation, whose row is locked and which nobody holds. With atOnce it begins
	// the turn if nothing else is to be done there; a failure of that is a BeginError.
	// The slot is the work's from now on; without work it is free again.
	Admit(ctx context.Context, tx port.Tx, e *sessions.Entry, conv sessions.Conversation, open sessions.OpenWork, v access.Verdict, atOnce bool) (fresh bool, w Work, err error)
}

// Work is a conversation that this process holds, with a slot.
type Work interface {
	// Start works on it in the background. While the process stops it hands it back
	// instead: somebody else takes over.
	Start(ctx context.Context)

	// Drop gives back in this process what a transaction that came to nothing took.
	Drop()
}

// BeginError says that a message could be stored, but a turn not be begun with it.
type BeginError struct{ Err error }

func (e *BeginError) Error() string { return e.Err.Error() }
func (e *BeginError) Unwrap() error { return e.Err }

// Config is what an Inbox works with.
type Config struct {
	Storage    port.Storage
	Queue      queue.Queue
	Access     *access.Access
	Outbox     *outbox.Outbox
	Control    *control.Control
	Turns      Turns
	Background *background.Group

	Commands interface {
		Find(name string) (command.Command, bool)
	}
	// Lookup reports whether the codebase of a conversation has a prompt command of
	// that canonical name. It reads the database only. Nil knows none.
	Lookup func(ctx context.Context, tx port.Tx, conv sessions.Conversation, name string) (bool, error)

	// Release frees what a closed conversation holds, if nothing runs or waits there.
	Release func(ctx context.Context, conv sessions.Conversation)

	Ring   func(ctx context.Context, conversationID string) error // has somebody work on a conversation
	Halted func() bool                                            // as this process last saw it
	Now    func() time.Time                                       // the clock of standing tasks

	Assistants  map[assistant.Name]assistant.Assistant
	Default     assistant.Name          // of new conversations
	Placeholder map[assistant.Name]bool // their conversations are archived and begun anew
	MaxWaiting  func() int              // messages of one person that may wait on a platform

	Log     *slog.Logger
	Metrics *metrics.Metrics // may be nil
}

// Inbox accepts events. It implements platform.Sink and is safe for concurrent use.
type Inbox struct {
	Config
	strangers map[messages.Platform]*strangers
	due       sync.Mutex // held while standing tasks are looked for
}

// New returns an Inbox.
func New(c Config) *Inbox {
	i := &Inbox{Config: c, strangers: make(map[messages.Platform]*strangers, len(c.Outbox.Adapters))}
	for p := range c.Outbox.Adapters {
		i.strangers[p] = newStrangers()
	}
	return i
}
