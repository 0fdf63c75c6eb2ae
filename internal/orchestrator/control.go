package orchestrator

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// controlHold is how long the process that runs a control command has its
// answer to itself, before a worker may bring it out.
const controlHold = 30 * time.Second

// controlCommand is a command that does not wait behind the turn it is about.
// It is never sent to a model.
type controlCommand struct {
	name    string // canonical
	usage   string
	summary string
	hidden  bool // an alias
	menu    bool // shown in the platform's menu

	// run answers the command. It may run twice, after a crash.
	run func(ctx context.Context, o *Orchestrator, r request) (string, error)
}

// request is a control command to be run.
type request struct {
	entry sessions.Entry
	conv  sessions.Conversation
	call  command.Call
	role  sessions.Role
}

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
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		if err := o.runControl(ctx, entry); err != nil {
			o.config.Log.ErrorContext(ctx, "Control command failed; it is taken up again",
				"conversation", entry.In.Conversation, "entry", entry.ID, "err", err)
		}
	})
	if !started {
		<-o.control
	}
}

// runControl runs the command and brings its answer out. The answer is stored
// in the transaction that settles the entry, so that it is given once.
func (o *Orchestrator) runControl(ctx context.Context, entry sessions.Entry) error {
	r := request{entry: entry}
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		v, err := o.authorize(ctx, tx, entry.In)
		if err != nil {
			return err
		}
		r.role = v.role
		r.conv, err = tx.Conversation(ctx, entry.ConversationID)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a command: %w", err)
	}
	r.call, _ = command.Parse(entry.In.Text)
	text := "You are not allowed to talk to this bot any more."
	if r.role != sessions.Stranger {
		if text, err = o.answerCommand(ctx, r); err != nil {
			text = "✖ " + fault.Public(err)
			o.config.Log.WarnContext(ctx, "A command failed", "command", r.call.Name, "entry", entry.ID, "err", err)
		}
	}
	var open []messages.Delivery
	err = o.config.Storage.InTx(ctx, func(tx Tx) error {
		open = nil
		if _, _, err := tx.GetOrCreateConversation(ctx, r.conv.Key, r.conv.Assistant); err != nil { // locks it
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
		open, err = o.addControl(ctx, tx, r.conv, entry, text)
		return err
	})
	if err != nil {
		return fmt.Errorf("settle a command: %w", err)
	}
	return o.bringControl(ctx, r.conv.Key, open)
}

// answerCommand runs the command, or says what was probably meant.
func (o *Orchestrator) answerCommand(ctx context.Context, r request) (string, error) {
	if c, ok := o.commands[r.call.Name]; ok {
		return c.run(ctx, o, r)
	}
	prefix := o.prefix(r.conv.Key.Platform)
	text := fmt.Sprintf("There is no command `%s%s`.", prefix, r.call.Name)
	if near, ok := command.Nearest(r.call.Name, o.commandNames()); ok {
		return text + fmt.Sprintf(" Did you mean `%s%s`?", prefix, near), nil
	}
	return text + fmt.Sprintf(" `%shelp` lists what there is.", prefix), nil
}

// addControl stores the answer to a control command. For controlHold it belongs
// to this process.
func (o *Orchestrator) addControl(ctx context.Context, tx Tx, conv sessions.Conversation, entry sessions.Entry, text string) ([]messages.Delivery, error) {
	w := worker{o: o, conv: conv}
	var all []messages.Delivery
	for _, part := range w.split(text) {
		d := w.newDelivery(entry, part)
		d.Control = true
		d.State = messages.DeliverySending
		d.NextAt = time.Now().Add(controlHold)
		if err := tx.AddDelivery(ctx, &d); err != nil {
			return nil, err
		}
		d.State = messages.DeliveryPending // nothing was sent yet, as this process knows
		all = append(all, d)
	}
	return all, nil
}

// bringControl brings answers out that addControl stored. What has to wait is
// left to the conversation's worker.
func (o *Orchestrator) bringControl(ctx context.Context, key messages.ConversationKey, open []messages.Delivery) error {
	record := func(ctx context.Context, d messages.Delivery) error {
		if d.State != messages.DeliverySent && d.State != messages.DeliveryFailed && d.NextAt.Before(time.Now().Add(controlHold)) {
			d.NextAt = time.Now().Add(controlHold)
		}
		return o.config.Storage.InTx(ctx, func(tx Tx) error { return tx.UpdateDelivery(ctx, d) })
	}
	for _, d := range open {
		done, err := o.bring(ctx, key, &d, record)
		if err != nil {
			return err
		}
		err = o.config.Storage.InTx(ctx, func(tx Tx) error { return tx.UpdateDelivery(ctx, d) })
		if err != nil {
			return fmt.Errorf("record an answer: %w", err)
		}
		if !done {
			return nil
		}
	}
	return nil
}

// addNotice stores a notice that comes before whatever is answered next.
func addNotice(ctx context.Context, tx Tx, conversationID, entryID, text string) error {
	return tx.AddDelivery(ctx, &messages.Delivery{
		ID: newDeliveryID(), ConversationID: conversationID, EventID: entryID,
		Text: text, Final: true, State: messages.DeliveryPending,
	})
}

// noticeWaiting tells the sender of a message that it waits, where the platform
// has no marks for that.
func (o *Orchestrator) noticeWaiting(ctx context.Context, tx Tx, entry sessions.Entry) error {
	if _, ok := o.adapters[entry.In.Conversation.Platform].(platform.Marker); ok {
		return nil
	}
	d := messages.Delivery{
		ID: newDeliveryID(), ConversationID: entry.ConversationID, EventID: entry.ID, Control: true, Final: true,
		Text: "Your message waits its turn.", State: messages.DeliveryPending, NextAt: time.Now().Add(controlHold),
	}
	return tx.AddDelivery(ctx, &d)
}

// markQueued shows the sender that a message waits: by a mark, or by bringing
// out the notice that noticeWaiting stored.
func (o *Orchestrator) markQueued(ctx context.Context, entry sessions.Entry) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	key := entry.In.Conversation
	if marker, ok := o.adapters[key.Platform].(platform.Marker); ok {
		o.marks.Store(entry.ID, struct{}{})
		o.mark(ctx, marker, entry, platform.MarkQueued)
		return
	}
	var open []messages.Delivery
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		all, err := tx.EntryDeliveries(ctx, entry.ID)
		open = nil
		for _, d := range all {
			if d.Control && d.State == messages.DeliveryPending {
				open = append(open, d)
			}
		}
		return err
	})
	if err == nil {
		err = o.bringControl(ctx, key, open)
	}
	if err != nil {
		o.config.Log.InfoContext(ctx, "Could not tell that a message waits", "conversation", key, "err", err)
	}
}

// unmark takes the mark of a message away when its turn begins.
func (o *Orchestrator) unmark(entry sessions.Entry) {
	if _, marked := o.marks.LoadAndDelete(entry.ID); !marked {
		return
	}
	if marker, ok := o.adapters[entry.In.Conversation.Platform].(platform.Marker); ok {
		o.spawn(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			o.mark(ctx, marker, entry, platform.MarkNone)
		})
	}
}

func (o *Orchestrator) mark(ctx context.Context, marker platform.Marker, entry sessions.Entry, mark platform.Mark) {
	err := marker.Mark(ctx, messages.Ref{Conversation: entry.In.Conversation, Message: entry.In.Message}, mark)
	if err != nil {
		o.config.Log.DebugContext(ctx, "Could not mark a message", "conversation", entry.In.Conversation, "err", err)
	}
}
