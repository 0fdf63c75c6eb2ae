package telegram

import (
	"sync"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

type core = platformapi.Core[Call, apiError]

// platform is what the parts of a Server share: the options, one lock, and who is
// told of changes.
type platform struct {
	*core

	opts Options
	bot  User

	// mu guards all that follows, and all that changes in the parts.
	mu      sync.Mutex
	changes []Change // for OnChange, after the lock is given back
}

// ChangeKind says what happened to a message.
type ChangeKind string

// The kinds of changes.
const (
	ChangeReceived ChangeKind = "received" // a person sent it
	ChangeSent     ChangeKind = "sent"     // the bot sent it
	ChangeEdited   ChangeKind = "edited"
	ChangeDeleted  ChangeKind = "deleted"
	ChangeReacted  ChangeKind = "reacted"
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
