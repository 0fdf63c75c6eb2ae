// Package calls is what the emulated platforms share about the calls of the bot:
// the record of them, and the scripts of what goes wrong with them. What a call
// and a fault are is in the package of the platform.
package calls

import (
	"context"
	"errors"
	"net/http"
	"strconv"
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

// Faults are the scripts of a server: queues by the name of what is called, and a
// function for the calls that no queue is for. The zero value has none. It is safe
// for concurrent use.
type Faults[Call, Fault any] struct {
	mu     sync.Mutex
	queues map[string][]Fault
	decide func(Call) Fault
}

// Inject makes the next calls of a name fail, one fault for each call. More
// faults are added to the end.
func (f *Faults[Call, Fault]) Inject(name string, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queues == nil {
		f.queues = map[string][]Fault{}
	}
	f.queues[name] = append(f.queues[name], faults...)
}

// Decide asks decide about every call for which no fault is queued. Nil ends it.
// decide may be called concurrently.
func (f *Faults[Call, Fault]) Decide(decide func(Call) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = decide
}

// Clear takes back everything that was injected.
func (f *Faults[Call, Fault]) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues, f.decide = nil, nil
}

// Queued returns how many faults injected for a name are still to come.
func (f *Faults[Call, Fault]) Queued(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queues[name])
}

// Next returns the fault that is due for a call: of the first of the names that
// has one, else what the function decides, else none.
func (f *Faults[Call, Fault]) Next(c Call, names ...string) Fault {
	f.mu.Lock()
	decide := f.decide
	for _, name := range names {
		if queue := f.queues[name]; len(queue) > 0 {
			f.queues[name] = queue[1:]
			f.mu.Unlock()
			return queue[0]
		}
	}
	f.mu.Unlock()
	if decide == nil {
		var none Fault
		return none
	}
	return decide(c)
}

var errClosed = errors.New("the emulator was closed")

// Hold waits until the gate, if there is one, is open and then for d. It returns
// an error if ctx or closed, the channel of a server that ends, is done first.
func Hold(ctx context.Context, closed <-chan struct{}, gate *emulator.Gate, d time.Duration) error {
	if gate == nil && d <= 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waited := make(chan error, 1)
	// The canceled context ends this goroutine.
	go func() {
		if gate != nil {
			if err := gate.Pass(ctx); err != nil {
				waited <- err
				return
			}
		}
		waited <- emulator.Sleep(ctx, d)
	}()
	select {
	case err := <-waited:
		return err
	case <-closed:
		cancel(errClosed)
		return <-waited
	}
}

// CutShort sends half of an answer and breaks the connection. It does not return.
func CutShort(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
