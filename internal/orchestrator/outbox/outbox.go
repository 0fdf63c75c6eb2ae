// Package outbox brings out what was stored to be sent: it makes deliveries,
// places and edits their messages, tries again what a platform refuses for now, and
// puts marks on messages.
//
// A delivery is on record before it is sent. Where it became which message is
// recorded by whoever had it sent: in a transaction of theirs, or through Record.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// Hold is how long a delivery that was stored to be sent at once belongs to the
// process that stored it, before the conversation's worker may send it.
const Hold = 30 * time.Second

// bestEffort is how long a call may take that nothing depends on.
const bestEffort = 30 * time.Second

// marksAtOnce is how many messages are told at once that they wait: answers go first.
const marksAtOnce = 8

// sending has no last try: an answer waits as long as its platform is away.
var sending = fault.Policy{Longest: 5 * time.Minute, Uncertain: true, Unauthorized: time.Minute}

// Config is what an Outbox works with.
type Config struct {
	Storage    port.Storage
	Adapters   map[messages.Platform]platform.Adapter
	Background *background.Group
	Rush       *background.Rush
	Log        *slog.Logger
	Metrics    *metrics.Metrics // may be nil

	// Owners returns the chats in which owners can be told something.
	Owners func(ctx context.Context, tx port.Tx) ([]sessions.Conversation, error)

	// Pages is the address of the pages in the browser; empty if people do not reach them
	// from where they are.
	Pages string
}

// Outbox sends deliveries. It is safe for concurrent use.
type Outbox struct {
	Config
	marks    sync.Map      // entry id -> *marking: this process is about to mark the message
	changing sync.Map      // entry id -> chan struct{}: closed when the last change of its mark that was asked for is made
	marking  chan struct{} // is full while as many messages are marked at once as may be
	refusals map[messages.Platform]*refusals
	unheard  *platform.Recent[string, time.Time] // conversation and person -> when they were told that nothing can be posted
}

// New returns an Outbox. It starts nothing.
func New(c Config) *Outbox {
	o := &Outbox{
		Config: c, marking: make(chan struct{}, marksAtOnce), refusals: make(map[messages.Platform]*refusals, len(c.Adapters)),
		unheard: platform.NewRecent[string, time.Time](maxTold),
	}
	for p := range c.Adapters {
		o.refusals[p] = newRefusals()
	}
	return o
}

// Caps returns what a platform can; nothing if it is not configured.
func (o *Outbox) Caps(p messages.Platform) platform.Capabilities {
	if a := o.Adapters[p]; a != nil {
		return a.Capabilities()
	}
	return platform.Capabilities{}
}

// Prefix returns what stands before a command's name in a conversation.
func (o *Outbox) Prefix(key messages.ConversationKey) string {
	return platform.CommandPrefix(o.Adapters[key.Platform], key)
}

// Open returns a link to a page in the browser, with a space before it; nothing if there
// is none.
func (o *Outbox) Open(path string) string { return command.OpenLink(o.Pages, path) }

// ShowsProgress reports whether a platform has a message that shows a turn until it
// ends. Where sends are idempotent and nothing is streamed there is nothing to show
// before the answer, and nothing to fear of sending it.
func (o *Outbox) ShowsProgress(p messages.Platform) bool {
	if _, ok := o.Adapters[p].(platform.Editor); !ok {
		return false
	}
	caps := o.Caps(p)
	return !caps.IdempotentSend || caps.Streaming
}
