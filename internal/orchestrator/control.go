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

// controlHold is how long the process that runs a control command has its
// answer to itself, before a worker may bring it out.
const controlHold = 30 * time.Second

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
	defer o.ended(entry, true)
	if reply.Note != "" {
		o.whisper(ctx, entry.In, reply.Note)
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
		open, err = o.addControl(ctx, tx, r.Conv, entry, reply)
		settled = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("settle a command: %w", err)
	}
	if next {
		o.spawn(func(ctx context.Context) { _ = o.Ring(ctx, r.Conv.ID) }) // else its job rings
	}
	if err := o.bringControl(ctx, r.Conv.Key, open); err != nil || !settled || reply.Unkept == "" {
		return err
	}
	o.sendUnkept(ctx, entry.In, reply.Unkept)
	return nil
}

// sendUnkept sends a text to the sender of a command without a record of it.
func (o *Orchestrator) sendUnkept(ctx context.Context, in messages.Inbound, text string) {
	adapter := o.adapters[in.Conversation.Platform]
	if adapter == nil || !in.Private && !in.Whispered {
		return
	}
	out := messages.Outbound{Delivery: newDeliveryID(), Conversation: in.Conversation, Text: text}
	if in.Whispered {
		out.OnlyFor, out.ReplyTo = in.Sender.ID, in.Message
	}
	if _, err := adapter.Send(ctx, out); err != nil {
		o.config.Log.InfoContext(ctx, "Could not send what is not kept; the person has to ask again", "conversation", in.Conversation, "err", err)
	}
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

// whisper tells one person something, best effort.
func (o *Orchestrator) whisper(ctx context.Context, to messages.Inbound, text string) {
	w, ok := o.adapters[to.Conversation.Platform].(platform.Whisperer)
	if !ok {
		return
	}
	if err := w.Whisper(ctx, to, text); err != nil {
		o.config.Log.InfoContext(ctx, "Could not tell one person something", "conversation", to.Conversation, "err", err)
	}
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

// addControl stores the answer to a control command. For controlHold it belongs
// to this process.
func (o *Orchestrator) addControl(ctx context.Context, tx Tx, conv sessions.Conversation, entry sessions.Entry, reply command.Reply) ([]messages.Delivery, error) {
	w := &worker{o: o, conv: conv}
	var all []messages.Delivery
	for _, d := range reply.Edits {
		d.Control, d.Final, d.State = true, true, messages.DeliveryPlaced
		d.NextAt = time.Now().Add(controlHold)
		if err := tx.UpdateDelivery(ctx, d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if reply.Text == "" {
		return all, nil
	}
	reply = w.withoutFilesForAll(entry, reply)
	parts := w.split(reply.Text)
	for i, part := range parts {
		d := w.newDelivery(entry, part)
		d.Control = true
		if entry.In.Whispered {
			d.OnlyFor = entry.In.Sender.ID
		}
		if i == len(parts)-1 {
			d.Buttons = reply.Buttons
		}
		d.NextAt = time.Now().Add(controlHold)
		if err := tx.AddDelivery(ctx, &d); err != nil {
			return nil, err
		}
		d.State = messages.DeliveryPending // nothing was sent yet, as this process knows
		all = append(all, d)
	}
	if p := reply.Plan; p != nil {
		shown := *p
		shown.DeliveryID = string(all[len(all)-1].ID)
		if err := tx.SettlePlan(ctx, shown); err != nil {
			return nil, err
		}
	}
	return o.addFiles(ctx, tx, w, entry, reply.Files, all)
}

// withoutFilesForAll takes the files out of a reply that only one person may see
// where others read: no platform shows a file to one person. The text says so.
func (w *worker) withoutFilesForAll(entry sessions.Entry, reply command.Reply) command.Reply {
	if _, ok := w.adapter().(platform.Filer); !ok || !entry.In.Aside() {
		return reply
	}
	for _, f := range reply.Files {
		reply.Text += fmt.Sprintf("\n\n`%s` is not attached: everybody here would see it. Give the command in a direct message, or in the thread if all may see it.", f.Name)
	}
	reply.Files = nil
	return reply
}

// addFiles stores the files of a reply, where the platform can show them.
func (o *Orchestrator) addFiles(ctx context.Context, tx Tx, w *worker, entry sessions.Entry, files []command.File, all []messages.Delivery) ([]messages.Delivery, error) {
	if _, ok := w.adapter().(platform.Filer); !ok {
		return all, nil
	}
	for _, f := range files {
		d := w.newDelivery(entry, "")
		d.Control, d.FileName, d.File = true, f.Name, f.Data
		if entry.In.Whispered {
			d.OnlyFor = entry.In.Sender.ID
		}
		d.NextAt = time.Now().Add(controlHold)
		if err := tx.AddDelivery(ctx, &d); err != nil {
			return nil, err
		}
		if err := auditFile(ctx, tx, entry.In, d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// bringControl brings answers out that addControl stored. What has to wait is
// left to the conversation's worker.
func (o *Orchestrator) bringControl(ctx context.Context, key messages.ConversationKey, open []messages.Delivery) error {
	for _, d := range open {
		begun := d.Text
		record := func(ctx context.Context, d messages.Delivery) error {
			return o.config.Storage.InTx(ctx, func(tx Tx) error { return tx.RecordSending(ctx, d, begun) })
		}
		at, done, err := o.bring(ctx, key, &d, func(ctx context.Context, d messages.Delivery) error {
			if d.State != messages.DeliverySent && d.State != messages.DeliveryFailed && d.NextAt.Before(time.Now().Add(controlHold)) {
				d.NextAt = time.Now().Add(controlHold)
			}
			return record(ctx, d)
		})
		if err != nil {
			return err
		}
		key = at
		err = record(ctx, d)
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
		Text: text, Final: true, State: messages.DeliverySending,
	})
}
