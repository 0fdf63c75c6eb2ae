package orchestrator_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// brittle is an assistant that cannot say its model while it is broken: the transaction
// that begins a turn with it panics.
type brittle struct {
	assistant.Assistant
	broken *atomic.Bool
}

func (b brittle) Model() string {
	if b.broken.Load() {
		panic("the assistant is broken")
	}
	return b.Assistant.Model()
}

// breaking has the processes of a world have one slot, and an assistant that breaks.
func breaking(w *ot.World) *atomic.Bool {
	broken := new(atomic.Bool)
	w.Configure = func(c *orchestrator.Config, _ *store.Store) {
		c.Slots = 1
		c.Assistants[ot.ModelName] = brittle{c.Assistants[ot.ModelName], broken}
	}
	return broken
}

// TestTurnWhoseBeginningPanics keeps no slot: neither where its message is accepted, nor where
// a sweep, a start or an offer has somebody look after it. It is answered once that is over.
func TestTurnWhoseBeginningPanics(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		broken := breaking(w)
		broken.Store(true)
		first := w.Start()
		w.Chat.Say("hello", ot.In("room 0"))
		w.Pass(2 * time.Minute)
		first.Stop()
		first = w.Start()
		w.Pass(2 * time.Minute)
		second := w.Replica()
		w.Chat.DeliverTo(first)
		w.Share(first, second)
		for n := range 40 {
			w.Chat.Say("hello", ot.In(fmt.Sprint("room ", 1+n)))
		}
		w.Pass(2 * time.Minute)
		first.Stop()
		if n := w.Offered(); n < 5 {
			t.Errorf("%d conversations were offered", n)
		}
		broken.Store(false)
		w.Pass(time.Minute)
		if n := answered(w, 41, 1); n != 41 {
			t.Errorf("%d of 41 rooms were answered once", n)
		}
	})
}

// TestTurnWhoseBeginningPanicsOnce is begun at once without what was read for its beginning: what is
// behind it finds the session that it has begun.
func TestTurnWhoseBeginningPanicsOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		broken := new(atomic.Bool)
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Slots = 1
			c.Assistants[ot.ModelName] = fragile{c.Assistants[ot.ModelName], broken}
		}
		w.Model.On("busy", ot.Later(5*time.Second, ot.Say("I was busy.")))
		w.Start()
		w.Chat.Say("busy", ot.In("elsewhere"))
		w.Settle()
		w.Chat.Say("hello")
		w.Chat.Say("and now")
		w.Settle()
		broken.Store(true)
		w.Pass(10 * time.Second)
		if broken.Load() {
			t.Error("nothing panicked")
		}
		w.Chat.Find("re: and now")
	})
}

// fragile is an assistant that breaks once.
type fragile struct {
	assistant.Assistant
	broken *atomic.Bool
}

func (f fragile) Model() string {
	if f.broken.CompareAndSwap(true, false) {
		panic("the assistant is broken")
	}
	return f.Assistant.Model()
}

// TestEventThatPanics keeps no slot of the events that are accepted with it.
func TestEventThatPanics(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots, c.Commands = 1, brittleCommands{c.Commands} }
		p := w.Start()
		hello := w.Chat.Say("hello")
		w.Settle()
		event := func(name messages.EventID, text, room string) messages.Inbound {
			in := hello
			in.Event, in.Message, in.Text, in.Conversation.ID = name, messages.MessageID(name), text, room
			return in
		}
		good, bad := event("good", "hello", "room a"), event("bad", "/broken", "room b")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("nothing panics")
				}
			}()
			_ = p.Engine.Accept(w.T.Context(), good, bad)
		}()
		if err := p.Engine.Accept(w.T.Context(), good); err != nil {
			t.Error(err)
		}
		w.Pass(time.Second)
		if n := len(w.Chat.Texts("room a")); n != 1 {
			t.Errorf("there are %d answers", n)
		}
	})
}

// brittleCommands panics over one.
type brittleCommands struct{ orchestrator.Commands }

func (c brittleCommands) Find(name string) (command.Command, bool) {
	if name == "broken" {
		panic("the command is broken")
	}
	return c.Commands.Find(name)
}
