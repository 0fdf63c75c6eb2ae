package platform

import "sync/atomic"

// Receiving is implemented by adapters that fetch what people say, by asking or over a
// connection of their own: a platform that answers calls need not be one that is heard.
type Receiving interface {
	Adapter

	// Receiving returns why nothing comes in at this moment, or nil, also where this
	// process does not receive at all.
	Receiving() error
}

// Hearing is what an adapter notes for Receiving. It is safe for concurrent use; the zero
// value has nothing to say.
type Hearing struct{ trouble atomic.Pointer[error] }

// Note says how the last try to receive ended; nil: well.
func (h *Hearing) Note(err error) {
	if err == nil {
		h.trouble.Store(nil)
		return
	}
	h.trouble.Store(&err)
}

// Trouble returns what was noted last.
func (h *Hearing) Trouble() error {
	if err := h.trouble.Load(); err != nil {
		return *err
	}
	return nil
}
