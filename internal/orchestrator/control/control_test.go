package control

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// settled is a database in which a command is done.
type settled struct {
	port.Storage
	port.Tx
	sessions.InboxStore
}

func (s settled) InTx(_ context.Context, fn func(tx port.Tx) error) error { return fn(s) }
func (s settled) Inbox() sessions.InboxStore                              { return s }
func (settled) Entry(context.Context, string) (sessions.Entry, error) {
	return sessions.Entry{State: sessions.EntryDone}, nil
}

// noCommands fails the test if one is run.
type noCommands struct {
	Commands
	t *testing.T
}

func (n noCommands) Find(string) (command.Command, bool) {
	n.t.Error("it was run")
	return command.Command{}, false
}

// TestCommandThatIsDoneIsNotRun: whoever found it waiting a moment ago was overtaken.
func TestCommandThatIsDoneIsNotRun(t *testing.T) {
	t.Parallel()
	c := New(Config{Storage: settled{}, Access: new(access.Access), Commands: noCommands{t: t}, Log: slog.New(slog.DiscardHandler)})
	answer, _ := c.Await("e1")
	if err := c.RunNow(t.Context(), sessions.Entry{ID: "e", State: sessions.EntryWaiting, In: messages.Inbound{Event: "e1"}}); err != nil {
		t.Error(err)
	}
	select {
	case _, told := <-answer:
		if told {
			t.Error("an answer is told")
		}
	default:
		t.Error("somebody awaits its answer still")
	}
}

// TestWhatIsLeftToSay where the answer was told elsewhere: a plan, which waits there for a
// decision, and what follows from the command.
func TestWhatIsLeftToSay(t *testing.T) {
	t.Parallel()
	whole := command.Reply{Text: "told", Note: "alone", Unkept: "secret", Buttons: []messages.Button{{}}, Files: []command.File{{}}, Then: "/go"}
	if d := cmp.Diff(command.Reply{Then: "/go"}, leftToSay(whole)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	whole.Plan = new(plan.Plan)
	want := whole
	want.Note, want.Unkept = "", ""
	if d := cmp.Diff(want, leftToSay(whole)); d != "" {
		t.Errorf("of a plan (-want +got):\n%s", d)
	}
}

// kept is a database and a queue that keep what a command leaves to be done.
type kept struct {
	port.Tx
	sessions.InboxStore
	queue.Queue
	entries []sessions.Entry
	jobs    []queue.Job
}

func (k *kept) Inbox() sessions.InboxStore { return k }
func (k *kept) InsertEntry(_ context.Context, e *sessions.Entry) (bool, error) {
	k.entries = append(k.entries, *e)
	return true, nil
}

func (k *kept) Enqueue(_ context.Context, _ queue.Tx, jobs ...queue.Job) error {
	k.jobs = append(k.jobs, jobs...)
	return nil
}

// TestFollowUpIsAMessageOfItsOwn: it is of whoever gave the command, and has nothing of how the
// command, or what it repeats, came in.
func TestFollowUpIsAMessageOfItsOwn(t *testing.T) {
	t.Parallel()
	how := messages.Inbound{
		Event: "e1", Kind: messages.KindAction, Action: "a", Trigger: "t", Aliases: []messages.EventID{"x"}, Raw: []byte("{}"),
		Whispered: true, Opening: "Ann asked", Queued: true, Sender: messages.Sender{ID: "bob"}, Text: "pressed",
	}
	repeated := how
	repeated.Sender.ID, repeated.Text = "ann", "hello"
	for name, tt := range map[string]struct {
		reply command.Reply
		text  string
	}{
		"Then":  {command.Reply{Then: "/execute p-1"}, "/execute p-1"},
		"Again": {command.Reply{Again: &repeated}, "hello"},
	} {
		k := new(kept)
		r := command.Request{Entry: sessions.Entry{ID: "e", In: how}, Conv: sessions.Conversation{ID: "c"}}
		if is, err := New(Config{Queue: k}).FollowUp(t.Context(), k, r, tt.reply); !is || err != nil || len(k.entries) != 1 || len(k.jobs) != 1 {
			t.Fatalf("%s: %v, %v, %d entries and %d jobs", name, is, err, len(k.entries), len(k.jobs))
		}
		want := messages.Inbound{Event: command.FollowUpPrefix + "e", Kind: messages.KindMessage, Sender: messages.Sender{ID: "bob"}, Text: tt.text}
		if d := cmp.Diff(want, k.entries[0].In); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
