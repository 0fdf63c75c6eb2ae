package console

import (
	"context"
	"io"
	"slices"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Backend is where people at a console talk to: the adapter of this process, or that
// of another one.
type Backend interface {
	// Say stores a message and returns its id. It does not wait for the answer.
	Say(ctx context.Context, conversation string, m Message) (messages.MessageID, error)

	// Watch returns what is shown in a conversation from now on. The caller closes it.
	Watch(ctx context.Context, conversation string) (Watcher, error)

	// State tells what is under way in a conversation.
	State(ctx context.Context, conversation string) (State, error)

	// Commands returns the names of all commands, without a prefix.
	Commands(ctx context.Context) ([]string, error)
}

// Message is something to say.
type Message struct {
	Text  string                `json:"text"`
	Files []messages.Attachment `json:"files,omitempty"` // Source is an absolute path
}

// State is what is under way in a conversation.
type State struct {
	Busy      bool     `json:"busy"`      // something is being done, or waits its turn
	Questions []string `json:"questions"` // what waits for a person, by name

	// Shown is the number of the newest event that there was when the rest of this was
	// true. Who watches and has not seen it yet will.
	Shown int64 `json:"shown"`
}

// Event is something to show: a text of a message, or the mark on one.
type Event struct {
	Message string        `json:"message"`
	Text    string        `json:"text,omitempty"` // in Markdown
	Final   bool          `json:"final,omitempty"`
	Aside   bool          `json:"aside,omitempty"` // it is no answer; see platform.Edit
	Mark    platform.Mark `json:"mark,omitempty"`  // on a message of the person; then there is no text
	Number  int64         `json:"number"`          // counts the events of a conversation in this process
}

// Watcher hands out events in their order. Of texts that grow only the latest.
type Watcher interface {
	// Next waits for an event. io.EOF means that there are no more.
	Next(ctx context.Context) (Event, error)
	Close() error
}

// maxQueued is how many events wait for a watcher that does not read; one that is as
// far behind is ended.
const maxQueued = 4096

// watcher implements Watcher in this process.
type watcher struct {
	adapter      *Adapter
	conversation string
	queue        []Event       // guarded by Adapter.mu
	news         chan struct{} // holds a value if there may be something in queue
	over         bool          // guarded by Adapter.mu
}

// Watch implements Backend.
func (a *Adapter) Watch(_ context.Context, conversation string) (Watcher, error) {
	w := &watcher{adapter: a, conversation: conversation, news: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers[w] = struct{}{}
	return w, nil
}

// publish queues an event for who watches the conversation.
func (a *Adapter) publish(conversation string, e Event) {
	e.Number = a.shown.Change(conversation, func(before int64) int64 { return before + 1 })
	for w := range a.watchers {
		if w.conversation != conversation {
			continue
		}
		grows := func(old Event) bool { return old.Message == e.Message && old.Mark == "" && !old.Final }
		if i := slices.IndexFunc(w.queue, grows); i >= 0 && e.Mark == "" {
			w.queue = slices.Delete(w.queue, i, i+1)
		}
		w.queue = append(w.queue, e)
		if len(w.queue) > maxQueued {
			w.over, w.queue = true, nil
			delete(a.watchers, w)
		}
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// Next implements Watcher.
func (w *watcher) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := w.take(); ok || err != nil {
			return e, err
		}
		select {
		case <-w.news:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// take returns the next event if there is one.
func (w *watcher) take() (e Event, ok bool, err error) {
	w.adapter.mu.Lock()
	defer w.adapter.mu.Unlock()
	if w.over {
		return Event{}, false, io.EOF
	}
	if len(w.queue) == 0 {
		return Event{}, false, nil
	}
	e, w.queue = w.queue[0], w.queue[1:]
	return e, true, nil
}

// Close implements Watcher.
func (w *watcher) Close() error {
	w.adapter.mu.Lock()
	defer w.adapter.mu.Unlock()
	delete(w.adapter.watchers, w)
	return nil
}
