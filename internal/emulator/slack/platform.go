package slack

import (
	"fmt"
	"sync"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

type (
	core   = platformapi.Core[Call, apiError]
	fields = platformapi.Fields
)

// platform is what the parts of a Server share: the options, one lock, the ids
// and timestamps, which are nowhere the same, and who is told of changes.
type platform struct {
	*core

	opts Options

	// mu guards all that follows, and all that changes in the parts and the
	// workspaces.
	mu      sync.Mutex
	lastTS  int64 // microseconds
	lastID  int
	changes []Change // for OnChange, after the lock is given back
}

// ChangeKind says what happened to a message.
type ChangeKind string

// The kinds of changes.
const (
	ChangeReceived  ChangeKind = "received" // a person sent it
	ChangeSent      ChangeKind = "sent"     // the bot sent it
	ChangeEphemeral ChangeKind = "ephemeral"
	ChangeEdited    ChangeKind = "edited"
	ChangeStreamed  ChangeKind = "streamed" // text was appended to it
	ChangeDeleted   ChangeKind = "deleted"
	ChangeReacted   ChangeKind = "reacted"
)

// Change is one change of what people see.
type Change struct {
	Kind    ChangeKind
	Message Message // as it is after the change
	At      time.Time
}

// unlock gives the lock back and tells everyone who watches about the changes.
func (p *platform) unlock() { platformapi.Unlock(&p.Server, &p.mu, &p.changes, p.opts.OnChange) }

// change notes a change. The lock must be held.
func (p *platform) change(kind ChangeKind, m *Message) {
	if p.opts.OnChange != nil {
		p.changes = append(p.changes, Change{Kind: kind, Message: *m, At: p.opts.Now()})
	}
}

// id returns a new id with a prefix. The lock must be held.
func (p *platform) id(prefix string) string {
	p.lastID++
	return fmt.Sprintf("%s%08d", prefix, p.lastID)
}

// ts returns the next message timestamp: unique, and larger than all before. The
// lock must be held.
func (p *platform) ts() string {
	p.lastTS = max(p.lastTS+1, p.opts.Now().UnixMicro())
	return tsAt(time.UnixMicro(p.lastTS))
}

// tsAt returns a time as a timestamp.
func tsAt(at time.Time) string {
	micros := at.UnixMicro()
	return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)
}
