// Package inbox takes in what platforms tell: it stores events before they are
// acknowledged, says who may, bounds what strangers and crowds cost, sorts messages
// into lanes and has somebody work on them.
package inbox

import (
	"log/slog"
	"sync"
	"time"

	"remote-agent/internal/orchestrator/turn"

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
)

// Config is what an Inbox works with.
type Config struct {
	Storage    port.Storage
	Queue      queue.Queue
	Access     *access.Access
	Outbox     *outbox.Outbox
	Control    *control.Control
	Turns      *turn.Turns
	Background *background.Group
	Rush       *background.Rush

	Commands interface {
		Find(name string) (command.Command, bool)
	}

	Halted func() bool      // as this process last saw it
	Now    func() time.Time // the clock of standing tasks

	Assistants  map[assistant.Name]assistant.Assistant
	Default     assistant.Name          // of new conversations
	Placeholder map[assistant.Name]bool // their conversations are archived and begun anew
	MaxWaiting  func() int              // messages of one person that may wait on a platform
	Pairing     bool                    // owners are asked about strangers who write in private

	Log     *slog.Logger
	Metrics *metrics.Metrics // may be nil
}

// Inbox accepts events. It implements platform.Sink and is safe for concurrent use.
type Inbox struct {
	Config
	strangers map[messages.Platform]*strangers
	together  together
	seen      *seen
	due       sync.Mutex // held while standing tasks are looked for
	pairing   sync.Mutex // held while it is found out whether owners can be asked about a stranger
	nobody    moment     // when none could be, last
}

// New returns an Inbox.
func New(c Config) *Inbox {
	i := &Inbox{Config: c, strangers: make(map[messages.Platform]*strangers, len(c.Outbox.Adapters)), seen: newSeen()}
	for p := range c.Outbox.Adapters {
		i.strangers[p] = newStrangers()
	}
	return i
}
