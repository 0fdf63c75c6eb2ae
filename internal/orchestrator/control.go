package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// followUp begins the event ids of messages that the program put into an inbox
// itself, because a command or a button said so.
const followUp = "then:"

// startControl runs a control command in the background. If too many run
// already, the sweep takes it up.
func (o *Orchestrator) startControl(entry sessions.Entry) {
	select {
	case o.control <- struct{}{}:
	default:
		return
	}
	started := o.spawn(func(ctx context.Context) {
		defer func() { <-o.control }()
		defer o.recoverPanic(ctx, "control", nil)
		if err := o.runOnce(ctx, entry); err != nil {
			o.config.Log.ErrorContext(ctx, "Control command failed; it is taken up again",
				"conversation", entry.In.Conversation, "entry", entry.ID, "err", err)
		}
	})
	if !started {
		<-o.control
	}
}

// runOnce runs a control command, or waits while this process does so already.
func (o *Orchestrator) runOnce(ctx context.Context, entry sessions.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	done := make(chan struct{})
	if other, runs := o.commanded.LoadOrStore(entry.ID, done); runs {
		select {
		case <-other.(chan struct{}):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(done)
	defer o.commanded.Delete(entry.ID)
	return o.runControl(ctx, entry)
}

// laneOf returns the lane of a command; AtOnce for a name that none has.
func (o *Orchestrator) laneOf(name string) command.Lane {
	c, _ := o.commands.Find(name)
	return c.Lane
}

// nextAhead returns the oldest command that has not run yet and that an entry with a
// sequence number waits for.
func (o *Orchestrator) nextAhead(ctx context.Context, tx Tx, conversationID string, seq int64) (sessions.Entry, bool, error) {
	waiting, err := tx.ControlBefore(ctx, conversationID, seq)
	for _, e := range waiting {
		if call, ok := command.Parse(e.In.Text); ok && e.In.Kind == messages.KindMessage && o.laneOf(call.Name) == command.Ahead {
			return e, true, err
		}
	}
	return sessions.Entry{}, false, err
}

// runControl runs the command and brings its answer out. The answer is stored
// in the transaction that settles the entry, so that it is given once.
func (o *Orchestrator) runControl(ctx context.Context, entry sessions.Entry) error {
	r := command.Request{Entry: entry}
	over := false
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		current, err := tx.Entry(ctx, entry.ID)
		if over = err == nil && current.State != sessions.EntryWaiting; err != nil || over {
			return err // somebody else was faster
		}
		v, err := o.authorize(ctx, tx, entry.In)
		if err != nil {
			return err
		}
		r.Role = v.role
		r.Conv, err = tx.Conversation(ctx, entry.ConversationID)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a command: %w", err)
	}
	if over {
		return nil
	}
	if ok, err := o.admitted(ctx, entry.In); !ok {
		return o.turnAway(ctx, entry, err)
	}
	r.Call, _ = command.Parse(entry.In.Text)
	reply := o.reply(ctx, r)
	defer o.outbox.MarkEnd(entry, true)
	if reply.Note != "" {
		o.outbox.Whisper(ctx, entry.In, reply.Note)
	}
	var (
		open          []messages.Delivery
		next, settled bool
	)
	err = o.config.Storage.InTx(ctx, func(tx Tx) error {
		open, next, settled = nil, false, false
		if _, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
			return err
		}
		current, err := tx.Entry(ctx, entry.ID)
		if err != nil || current.State != sessions.EntryWaiting {
			return err // somebody else was faster
		}
		done := sessions.EntryDone
		if err := tx.UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{State: &done}); err != nil {
			return err
		}
		if next, err = o.addThen(ctx, tx, r, reply); err != nil {
			return err
		}
		open, err = o.outbox.AddReply(ctx, tx, r.Conv, entry, reply)
		settled = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("settle a command: %w", err)
	}
	if next {
		o.spawn(func(ctx context.Context) { _ = o.Ring(ctx, r.Conv.ID) }) // else its job rings
	}
	if err := o.outbox.SendHeld(ctx, r.Conv.Key, open); err != nil || !settled || reply.Unkept == "" {
		return err
	}
	o.outbox.SendUnkept(ctx, entry.In, reply.Unkept)
	return nil
}

// reply answers a command or a button, errors included.
func (o *Orchestrator) reply(ctx context.Context, r command.Request) command.Reply {
	if r.Role == sessions.Stranger {
		return command.Reply{Text: "You are not allowed to talk to this bot any more."}
	}
	answer := o.commands.Unknown
	action := r.Entry.In.Kind == messages.KindAction
	if action {
		answer = o.commands.Press
	} else if c, ok := o.commands.Find(r.Call.Name); ok {
		answer = c.Run
	}
	reply, err := answer(ctx, r)
	if err == nil {
		return reply
	}
	o.config.Log.InfoContext(ctx, "A command failed", "command", r.Call.Name, "entry", r.Entry.ID, "err", err)
	if action {
		if _, ok := o.adapters[r.Conv.Key.Platform].(platform.Whisperer); ok {
			return command.Reply{Note: fault.Public(err)}
		}
	}
	return command.Reply{Text: "✖ " + fault.Public(err)}
}

// addThen puts a message that follows from a command into the inbox, in the name
// of the person who gave it. It reports whether there is one.
func (o *Orchestrator) addThen(ctx context.Context, tx Tx, r command.Request, reply command.Reply) (bool, error) {
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
	in.Event = messages.EventID(followUp + r.Entry.ID)
	in.Kind, in.Action, in.Trigger, in.Raw, in.Aliases = messages.KindMessage, "", "", nil, nil
	in.Whispered, in.Opening, in.Queued = false, "", false
	entry := sessions.Entry{
		ID: uuid.Must(uuid.NewV7()).String(), ConversationID: r.Conv.ID,
		Lane: sessions.LaneTurn, State: sessions.EntryWaiting, In: in, AcceptedAt: time.Now(),
	}
	if _, err := tx.InsertEntry(ctx, &entry); err != nil {
		return false, err
	}
	return true, o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: r.Conv.ID})
}
