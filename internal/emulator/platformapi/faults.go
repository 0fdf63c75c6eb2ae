package platformapi

import (
	"context"
	"sync"
	"time"

	"remote-agent/internal/emulator"
)

// Ending says how the answer to a call that was carried out gets lost.
type Ending int

// The endings.
const (
	Normal    Ending = iota
	Before           // connection broken, nothing was done
	After            // connection broken, the effect has happened
	Short            // half an answer, then the connection breaks
	Truncated        // a complete HTTP answer with half of its JSON
	Garbage          // 200 with something that is not JSON
)

// Fault is something that goes wrong with one call; E is how a platform refuses.
// The zero value lets the call pass.
type Fault[E any] struct {
	Refuse  *E // instead of carrying the call out
	Instead *E // answered after the call was carried out
	Delay   time.Duration
	Gate    *emulator.Gate // before the call is carried out
	Stall   *emulator.Gate // after it was
	End     Ending
}

// After returns f with a delay in front of it.
func (f Fault[E]) After(d time.Duration) Fault[E] { f.Delay = d; return f }

func (f Fault[E]) broken() bool {
	return f.Refuse != nil || f.Instead != nil || f.Stall != nil || f.End != Normal
}

// faults are the scripts of a server: queues by the name of what is called, and a
// function for the calls that no queue is for.
type faults[Call, E any] struct {
	mu     sync.Mutex
	queues map[string][]Fault[E]
	decide func(Call) Fault[E]
}

// Inject makes the next calls of a name fail, one fault for each call. More
// faults are added to the end.
func (c *Core[Call, E]) Inject(name string, list ...Fault[E]) {
	f, name := &c.faults, c.config.Canonical(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queues == nil {
		f.queues = map[string][]Fault[E]{}
	}
	f.queues[name] = append(f.queues[name], list...)
}

// InjectFunc asks decide about every call for which no fault is queued. Nil ends
// it. decide may be called concurrently.
func (c *Core[Call, E]) InjectFunc(decide func(Call) Fault[E]) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.decide = decide
}

// ClearFaults takes back everything that was injected.
func (c *Core[Call, E]) ClearFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.queues, c.faults.decide = nil, nil
}

// QueuedFaults returns how many faults injected for a name are still to come.
func (c *Core[Call, E]) QueuedFaults(name string) int {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	return len(c.faults.queues[c.config.Canonical(name)])
}

// Due returns the fault that is due for a call: of the first of the names that has
// one, else what the function decides, else none.
func (c *Core[Call, E]) Due(call Call) Fault[E] {
	f := &c.faults
	f.mu.Lock()
	decide := f.decide
	for _, name := range c.config.Faults(call) {
		if queue := f.queues[name]; len(queue) > 0 {
			f.queues[name] = queue[1:]
			f.mu.Unlock()
			return queue[0]
		}
	}
	f.mu.Unlock()
	if decide == nil {
		return Fault[E]{}
	}
	return decide(call)
}

// Hold waits until the gate, if there is one, is open and then for d. It returns an
// error if the client or the server goes away first.
func (c *Server) Hold(ctx context.Context, gate *emulator.Gate, d time.Duration) error {
	if gate == nil && d <= 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)() //nolint:contextcheck // joins the server's end to the call's
	if gate != nil {
		if err := gate.Pass(ctx); err != nil {
			return err
		}
	}
	return emulator.Sleep(ctx, d)
}
