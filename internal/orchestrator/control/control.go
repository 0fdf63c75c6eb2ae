// Package control runs commands that wait for no turn: at once, in the background,
// each settled once under the lock of its conversation. If a crash leaves one over,
// the sweep starts it again.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// Commands are the chat commands. Everything in it is safe for concurrent use.
type Commands interface {
	// Find returns the command that has a canonical name or alias.
	Find(name string) (command.Command, bool)

	// Unknown answers a call whose name Find does not know, and neither the
	// codebase of the conversation.
	Unknown(ctx context.Context, r command.Request) (command.Reply, error)

	// Plain answers what is no command and was said while a question waited.
	Plain(ctx context.Context, r command.Request) (command.Reply, error)

	// Press answers a button: r.Entry.In.Action is its id.
	Press(ctx context.Context, r command.Request) (command.Reply, error)
}

// Config is what a Control works with.
type Config struct {
	Storage    port.Storage
	Queue      queue.Queue
	Access     *access.Access
	Outbox     *outbox.Outbox
	Commands   Commands
	Background *background.Group
	Ring       func(ctx context.Context, conversationID string) error // has somebody work on a conversation
	Default    string                                                 // assistant of new conversations
	Log        *slog.Logger
}

// Control runs commands. It is safe for concurrent use.
type Control struct {
	Config
	slots chan struct{} // limits how many run
	told  sync.Map      // event id -> chan command.Reply: somebody awaits the answer; see Await
	runs  sync.Map      // entry id -> chan struct{}: this process runs the command; closed at its end
}

// New returns a Control.
func New(c Config) *Control { return &Control{Config: c, slots: make(chan struct{}, 32)} }

// Busy reports whether commands run.
func (c *Control) Busy() bool { return len(c.slots) > 0 }

// Start runs a control command in the background. If too many run
// already, the sweep takes it up.
func (c *Control) Start(entry sessions.Entry) {
	select {
	case c.slots <- struct{}{}:
	default:
		return
	}
	started := c.Background.Go(func(ctx context.Context) {
		defer func() { <-c.slots }()
		defer background.Recover(ctx, c.Log, "control", nil)
		switch err := c.RunNow(ctx, entry); {
		case err == nil:
		case errors.Is(err, background.ErrShutdown):
			c.Log.InfoContext(ctx, "a command is left to the next process", "conversation", entry.In.Conversation, "entry", entry.ID)
		default:
			c.Log.ErrorContext(ctx, "control command failed; it is taken up again",
				"conversation", entry.In.Conversation, "entry", entry.ID, "err", err)
		}
	})
	if !started {
		<-c.slots
	}
}

// RunNow runs a control command, or waits while this process does so already.
func (c *Control) RunNow(ctx context.Context, entry sessions.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	done := make(chan struct{})
	if other, runs := c.runs.LoadOrStore(entry.ID, done); runs {
		select {
		case <-other.(chan struct{}):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(done)
	defer c.runs.Delete(entry.ID)
	return c.run(ctx, entry)
}

// run runs the command and brings its answer out. The answer is stored
// in the transaction that settles the entry, so that it is given once.
func (c *Control) run(ctx context.Context, entry sessions.Entry) error {
	if entry.In.Kind == messages.KindUnreadable {
		return c.setAside(ctx, entry)
	}
	if ok, err := c.Access.Admitted(ctx, entry.In); !ok {
		c.Dismiss(entry.In.Event)
		return c.Refuse(ctx, entry, err)
	}
	r, over, err := c.begin(ctx, entry) // who they are comes last: the platform can take long to answer
	if err != nil || over {
		c.Dismiss(entry.In.Event)
		return err
	}
	r.Call, _ = command.Parse(entry.In.Text)
	reply := c.reply(ctx, r)
	// Until it is settled, the next process runs the command again, and then what is stored is sent.
	ctx, end := platform.Leavable(ctx, c.Background.Stopping(), background.ErrShutdown)
	defer end()
	if reply.Plan == nil { // a plan is shown as it is
		prefix := c.Outbox.Prefix(r.Conv.Key)
		known := func(name string) bool { _, ok := c.Commands.Find(name); return ok }
		reply.Text, reply.Note = command.InPlace(reply.Text, prefix, known), command.InPlace(reply.Note, prefix, known)
	}
	answer, told := reply, c.take(entry.In.Event)
	if told != nil {
		defer close(told)
		reply = leftToSay(reply)
	}
	defer c.Outbox.MarkEnd(entry, true)
	if reply.Note != "" {
		c.Outbox.Whisper(ctx, entry.In, reply.Note)
	}
	open, settled, err := c.settle(ctx, r, reply)
	if err != nil {
		return err
	}
	if told != nil && settled {
		told <- answer // has room for the one
	}
	if err := c.Outbox.SendHeld(ctx, r.Conv.Key, open); err != nil || !settled || reply.Unkept == "" {
		return err
	}
	c.Outbox.SendUnkept(ctx, entry.In, reply.Unkept)
	return nil
}

// setAside settles what is damaged in the database, whoever sent it.
func (c *Control) setAside(ctx context.Context, entry sessions.Entry) error {
	r := command.Request{Entry: entry}
	err := c.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		r.Conv, err = tx.Conversations().Conversation(ctx, entry.ConversationID)
		return err
	})
	if err != nil {
		return fmt.Errorf("set aside a damaged command: %w", err)
	}
	r.Entry.In.Conversation = r.Conv.Key
	open, settled, err := c.settle(ctx, r, command.Reply{Text: outbox.TextUnreadable})
	if err != nil || !settled {
		return err
	}
	c.Outbox.MarkEnd(r.Entry, false)
	return c.Outbox.SendHeld(ctx, r.Conv.Key, open)
}

// begin returns who gives a command, and where; over is true if it was settled
// already.
func (c *Control) begin(ctx context.Context, entry sessions.Entry) (r command.Request, over bool, err error) {
	r.Entry = entry
	err = c.Storage.InTx(ctx, func(tx port.Tx) error {
		current, err := tx.Inbox().Entry(ctx, entry.ID)
		if over = err == nil && current.State != sessions.EntryWaiting; err != nil || over {
			return err // somebody else was faster
		}
		v, err := c.Access.Authorize(ctx, tx, entry.In)
		if err != nil {
			return err
		}
		r.Role = v.Role
		r.Conv, err = tx.Conversations().Conversation(ctx, entry.ConversationID)
		return err
	})
	if err != nil {
		return r, false, fmt.Errorf("begin a command: %w", err)
	}
	return r, over, nil
}

// settle settles a command with its answer, whose deliveries it returns. settled is
// false if somebody else was faster.
func (c *Control) settle(ctx context.Context, r command.Request, reply command.Reply) (open []messages.Delivery, settled bool, err error) {
	next, entry := false, r.Entry
	err = c.Storage.InTx(ctx, func(tx port.Tx) error {
		open, next, settled = nil, false, false
		if _, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
			return err
		}
		current, err := tx.Inbox().Entry(ctx, entry.ID)
		if err != nil || current.State != sessions.EntryWaiting {
			return err // somebody else was faster
		}
		update := sessions.EntryUpdate{State: new(sessions.EntryDone)}
		if entry.In.Kind == messages.KindUnreadable {
			update = sessions.EntryUpdate{State: new(sessions.EntryFailed), Error: new(outbox.ErrUnreadable)}
			if err := c.Outbox.TellUnreadable(ctx, tx, entry); err != nil {
				return err
			}
		}
		if err := tx.Inbox().UpdateEntry(ctx, entry.ID, update); err != nil {
			return err
		}
		if next, err = c.FollowUp(ctx, tx, r, reply); err != nil {
			return err
		}
		said := reply
		if reply.Once != "" && !next {
			said.Text = reply.Twice
		}
		open, err = c.Outbox.AddReply(ctx, tx, r.Conv, entry, said)
		settled = err == nil
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("settle a command: %w", err)
	}
	if next {
		c.Background.Go(func(ctx context.Context) { _ = c.Ring(ctx, r.Conv.ID) }) // else its job rings
	}
	return open, settled, nil
}

// reply answers a command or a button, errors included.
func (c *Control) reply(ctx context.Context, r command.Request) command.Reply {
	if r.Role == sessions.Stranger {
		return command.Reply{Text: "You can no longer use this bot."}
	}
	answer := c.Commands.Unknown
	action := r.Entry.In.Kind == messages.KindAction
	if action {
		answer = c.Commands.Press
	} else if found, ok := c.Commands.Find(r.Call.Name); ok && found.Run != nil {
		answer = found.Run
		if found.Past && r.Entry.In.Begins() {
			answer = c.nothingBefore
		}
	} else if r.Call.Name == "" {
		answer = c.Commands.Plain
	}
	reply, err := answer(ctx, r)
	if err == nil {
		return reply
	}
	c.Log.InfoContext(ctx, "a command failed", "command", r.Call.Name, "entry", r.Entry.ID, "err", err)
	if action {
		if _, ok := c.Outbox.Adapters[r.Conv.Key.Platform].(platform.Whisperer); ok {
			return command.Reply{Note: fault.Public(err)}
		}
	}
	return command.Reply{Text: "✖ " + fault.Public(err)}
}

// nothingBefore answers a command about what came before it where it would begin a
// conversation: the sender means one that is already there.
func (c *Control) nothingBefore(_ context.Context, r command.Request) (command.Reply, error) {
	return command.Reply{Text: fmt.Sprintf("Nothing was done: a slash command begins a conversation of its own here. "+
		"For an earlier one, mention the bot in its thread and write `%s` behind it.", r.Call.Name)}, nil
}

// FollowUp puts a message that follows from a command into the inbox, in the name
// of the person who gave it. It reports whether there is one.
func (c *Control) FollowUp(ctx context.Context, tx port.Tx, r command.Request, reply command.Reply) (bool, error) {
	in := r.Entry.In
	switch {
	case reply.Again != nil:
		in = *reply.Again
		in.Sender = r.Entry.In.Sender
	case reply.Then != "":
		in.Text = reply.Then
	default:
		return false, nil
	}
	in.Event = messages.EventID(command.FollowUpPrefix + r.Entry.ID)
	if reply.Once != "" {
		in.Event = messages.EventID(command.FollowUpPrefix + reply.Once)
	}
	in.Kind, in.Action, in.Trigger, in.Raw, in.Aliases = messages.KindMessage, "", "", nil, nil
	in.Whispered, in.Opening, in.Queued = false, "", false
	entry := sessions.Entry{
		ID: uuid.Must(uuid.NewV7()).String(), ConversationID: r.Conv.ID,
		Lane: sessions.LaneTurn, State: sessions.EntryWaiting, In: in, AcceptedAt: time.Now(),
	}
	if fresh, err := tx.Inbox().InsertEntry(ctx, &entry); err != nil || !fresh {
		return false, err
	}
	return true, c.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: r.Conv.ID})
}

// Refuse refuses an entry whose sender may not use the bot, unless its turn
// has begun: then the turn has asked the gatekeeper itself.
func (c *Control) Refuse(ctx context.Context, entry sessions.Entry, why error) error {
	refuse := false
	err := c.Storage.InTx(ctx, func(tx port.Tx) error {
		refuse = false
		if _, _, err := tx.Conversations().GetOrCreateConversation(ctx, entry.In.Conversation, c.Default); err != nil { // locks it
			return err
		}
		current, err := tx.Inbox().Entry(ctx, entry.ID)
		if err != nil || current.State != sessions.EntryWaiting {
			return err
		}
		state, reason := sessions.EntryRefused, "not admitted"
		if why != nil {
			reason = why.Error()
		}
		if err := tx.Inbox().UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{State: &state, Error: &reason}); err != nil {
			return err
		}
		refuse, err = c.Outbox.RefusalDue(ctx, tx, entry.In, true)
		return err
	})
	if err == nil && refuse {
		c.Outbox.RefuseUnadmitted(entry.In, why)
	}
	return err
}

// Find returns the command that has a canonical name or alias.
func (c *Control) Find(name string) (command.Command, bool) { return c.Commands.Find(name) }

// Unknown implements turn.Commands.
func (c *Control) Unknown(ctx context.Context, r command.Request) (command.Reply, error) {
	return c.Commands.Unknown(ctx, r)
}
