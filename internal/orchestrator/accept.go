package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

var _ platform.Sink = (*Orchestrator)(nil)

// accepted is what became of an event within the transaction of Accept, and
// what is to be done once it is committed.
type accepted struct {
	entry  sessions.Entry
	fresh  bool
	worker *worker                // this process got the conversation, and holds a slot for it
	waits  bool                   // somebody else works on the conversation, or no slot is free
	refuse bool                   // tell the sender once that the bot is private
	closed *sessions.Conversation // what it is about was closed
	notice *messages.Delivery     // tells at once that the service is halted, or that too much waits

	behind   bool // something of the same person waits already, which has the mark
	overflow bool // refused, because too much of the same person waits
}

// Accept implements platform.Sink: one transaction for all events, then the work
// starts in this process where a slot is free. It is safe to repeat: an event
// that is stored already changes nothing.
func (o *Orchestrator) Accept(ctx context.Context, events ...messages.Inbound) error {
	begin := time.Now()
	events, err := o.screen(ctx, events)
	if err != nil || len(events) == 0 {
		return err
	}
	events = lockOrder(events)
	plan, err := o.acceptAll(ctx, events, true)
	if _, is := errors.AsType[*beginError](err); is && ctx.Err() == nil {
		o.config.Log.WarnContext(ctx, "Could not begin a turn at once; its message is stored first", "err", err)
		plan, err = o.acceptAll(ctx, events, false)
	}
	if err != nil {
		return err
	}
	for _, a := range plan {
		o.afterAccept(ctx, a)
		o.countAccepted(a)
	}
	o.config.Metrics.Acknowledged(string(events[0].Conversation.Platform), time.Since(begin))
	return nil
}

// beginError says that messages could be stored, but a turn not be begun with
// them.
type beginError struct{ err error }

func (e *beginError) Error() string { return e.err.Error() }
func (e *beginError) Unwrap() error { return e.err }

// acceptAll stores events in one transaction and returns what became of each. With
// atOnce it begins the turns of those that can begin.
func (o *Orchestrator) acceptAll(ctx context.Context, events []messages.Inbound, atOnce bool) ([]accepted, error) {
	var plan []accepted
	giveBack := func() {
		for _, a := range plan {
			o.giveBack(a)
		}
		plan = plan[:0]
	}
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		giveBack() // of an earlier run of this function
		for _, in := range events {
			a, err := o.acceptOne(ctx, tx, in, atOnce)
			plan = append(plan, a)
			if err != nil {
				return fmt.Errorf("accept event %s: %w", in.Event, err)
			}
		}
		return nil
	})
	if err != nil {
		giveBack()
	}
	return plan, err
}

// giveBack undoes in this process what a transaction that came to nothing took.
func (o *Orchestrator) giveBack(a accepted) {
	if a.worker != nil {
		o.slots.release()
		o.forget(a.worker.begun)
	}
	o.outbox.WillNotMark(a.entry)
}

// lockOrder sorts events so that conversations are locked in one order
// everywhere, and two replicas do not wait for each other. Within a conversation
// the order stays. Events around a migration concern two conversations and keep
// their order; a deadlock that comes of it is repeated by the store.
func lockOrder(events []messages.Inbound) []messages.Inbound {
	if slices.ContainsFunc(events, func(in messages.Inbound) bool { return in.Kind == messages.KindMigrated }) {
		return events
	}
	return slices.SortedStableFunc(slices.Values(events), func(a, b messages.Inbound) int {
		return cmp.Compare(a.Conversation.String(), b.Conversation.String())
	})
}

// countAccepted keeps the figures of received and repeated events.
func (o *Orchestrator) countAccepted(a accepted) {
	p, kind := string(a.entry.In.Conversation.Platform), string(a.entry.In.Kind)
	if a.fresh {
		o.config.Metrics.Received(p, kind)
	} else {
		o.config.Metrics.Deduplicated(p, kind)
	}
}

// Keep implements platform.Sink.
func (o *Orchestrator) Keep(ctx context.Context, raw messages.RawEvent) error {
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		_, err := tx.KeepRaw(ctx, raw)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep raw event: %w", err)
	}
	o.config.Metrics.KeptRaw(string(raw.Platform))
	o.config.Log.WarnContext(ctx, "Kept an event that was not understood",
		"platform", raw.Platform, "event", raw.Event, "reason", raw.Reason)
	return nil
}

func (o *Orchestrator) acceptOne(ctx context.Context, tx Tx, in messages.Inbound, atOnce bool) (accepted, error) {
	a := accepted{entry: sessions.Entry{
		ID:         uuid.Must(uuid.NewV7()).String(),
		Lane:       sessions.LaneTurn,
		State:      sessions.EntryIgnored,
		In:         in,
		AcceptedAt: time.Now(),
	}}
	switch in.Kind {
	case messages.KindMigrated:
		return o.acceptMigration(ctx, tx, a)
	case messages.KindGone:
		return o.store(ctx, tx, a)
	case messages.KindClosed:
		return o.acceptClosed(ctx, tx, a)
	case messages.KindMessage, messages.KindEdit, messages.KindAction:
	default:
		return a, fault.Newf(fault.Invalid, "unknown kind of event %q", in.Kind)
	}
	if fresh, err := o.firstOfGesture(ctx, tx, in); err != nil || !fresh {
		return a, err
	}
	verdict, err := o.authorize(ctx, tx, in)
	if err != nil {
		return a, err
	}
	if verdict.role == sessions.Stranger {
		return o.acceptStranger(ctx, tx, a)
	}
	if verdict.claimed {
		a.entry.In.Text = "/start"
	}
	if in.Kind == messages.KindEdit {
		return o.acceptEdit(ctx, tx, a)
	}
	return o.acceptMessage(ctx, tx, a, verdict, atOnce)
}

// firstOfGesture reports whether in is the first event of what a person did. A
// platform may tell of one gesture in several events; each claims the names that
// it shares with the others.
func (o *Orchestrator) firstOfGesture(ctx context.Context, tx Tx, in messages.Inbound) (bool, error) {
	if len(in.Aliases) == 0 {
		return true, nil
	}
	if seen, err := tx.HasEntry(ctx, in); err != nil || seen {
		return false, err
	}
	for _, name := range in.Aliases {
		alias := sessions.Entry{State: sessions.EntryIgnored, In: messages.Inbound{
			Account: in.Account, Event: name, Kind: in.Kind, Conversation: in.Conversation, SentAt: in.SentAt,
		}}
		if fresh, err := tx.InsertEntry(ctx, &alias); err != nil || !fresh {
			return false, err
		}
	}
	return true, nil
}

// store inserts the entry as it is, for events that cause no work.
func (o *Orchestrator) store(ctx context.Context, tx Tx, a accepted) (accepted, error) {
	var err error
	a.fresh, err = tx.InsertEntry(ctx, &a.entry)
	return a, err
}

// acceptStranger records that somebody without access wrote. What they wrote is
// not kept.
func (o *Orchestrator) acceptStranger(ctx context.Context, tx Tx, a accepted) (accepted, error) {
	in := a.entry.In
	a.entry.State = sessions.EntryRefused
	withoutText(&a.entry.In)
	a, err := o.store(ctx, tx, a)
	if err != nil || !a.fresh || in.Kind != messages.KindMessage || (!in.Private && !o.canWhisper(in)) {
		return a, err // nobody else is to read a refusal
	}
	a.refuse, err = o.outbox.RefusalDue(ctx, tx, in)
	return a, err
}

// acceptEdit replaces a message whose turn has not started. A later edit is
// kept in the record, without its text, and changes nothing.
func (o *Orchestrator) acceptEdit(ctx context.Context, tx Tx, a accepted) (accepted, error) {
	conv, err := tx.FindConversation(ctx, a.entry.In.Conversation)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return a, err
	}
	in := a.entry.In
	withoutText(&a.entry.In) // the message that it changes has it, or was answered before
	a, err = o.store(ctx, tx, a)
	if err != nil || !a.fresh || conv.ID == "" {
		return a, err
	}
	in.Kind = messages.KindMessage
	_, err = tx.ReplaceWaiting(ctx, conv.ID, in.Message, in)
	return a, err
}

// acceptMigration moves a conversation to the id its platform now uses.
func (o *Orchestrator) acceptMigration(ctx context.Context, tx Tx, a accepted) (accepted, error) {
	a, err := o.store(ctx, tx, a)
	if err != nil || !a.fresh {
		return a, err
	}
	return a, (&outbox.Move{From: a.entry.In.Conversation, To: a.entry.In.MigratedTo}).Apply(ctx, tx)
}

// acceptMessage puts a message into the inbox of its conversation. It claims the
// conversation if it is free and so is a slot, and begins the turn at once if
// nothing else is to be done there.
func (o *Orchestrator) acceptMessage(ctx context.Context, tx Tx, a accepted, v verdict, atOnce bool) (accepted, error) {
	conv, err := o.conversation(ctx, tx, &a)
	if err != nil {
		return a, err
	}
	a.entry.ConversationID = conv.ID
	a.entry.State = sessions.EntryWaiting
	if a.entry.Lane, err = o.lane(ctx, tx, conv, a.entry.In); err != nil {
		return a, err
	}
	if opening := a.entry.In.Opening; opening != "" && a.entry.Lane == sessions.LaneTurn {
		if seen, err := tx.HasEntry(ctx, a.entry.In); err != nil || seen {
			return a, err
		}
		if err := outbox.AddNotice(ctx, tx, conv.ID, "", opening); err != nil {
			return a, err
		}
	}
	if v.state.Halted() && a.entry.Lane == sessions.LaneTurn {
		return o.acceptHalted(ctx, tx, conv, a, v.state)
	}
	var open sessions.OpenWork
	if !conv.Leased && a.entry.Lane == sessions.LaneTurn {
		if open, err = tx.OpenWork(ctx, conv.ID); err != nil {
			return a, err
		}
	}
	parked := open.NextAt.After(time.Now()) // the head waits for a decision or a moment, and so does what comes behind it
	slot := a.entry.Lane == sessions.LaneTurn && !conv.Leased && !parked && o.slots.try()
	a.waits = a.entry.Lane == sessions.LaneTurn && !slot
	unmarked := a.entry.In.Schedule != 0 // there is no message that could have a mark
	if a.waits && !unmarked {
		if a, err = o.crowd(ctx, tx, a); err != nil || a.overflow {
			return a, err
		}
		unmarked = a.behind
	}
	a.entry.In.Queued = a.waits && !unmarked
	if slot {
		return o.admit(ctx, tx, a, conv, open, v, atOnce)
	}
	a, err = o.store(ctx, tx, a)
	if err != nil || !a.fresh || a.entry.Lane == sessions.LaneControl {
		a.waits = false
		return a, err
	}
	if !unmarked {
		o.outbox.WillMark(a.entry)
	}
	if !conv.Leased && !parked { // else its holder, or who wakes it, looks into the inbox, under the row's lock, before it leaves
		if err := o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: conv.ID}); err != nil {
			return a, err
		}
	}
	if a.waits = !unmarked; unmarked {
		return a, nil
	}
	return a, o.outbox.AddWaiting(ctx, tx, a.entry)
}

// admit stores an entry for which there is a slot, and claims its conversation,
// whose row is locked and which nobody holds.
func (o *Orchestrator) admit(ctx context.Context, tx Tx, a accepted, conv sessions.Conversation, open sessions.OpenWork, v verdict, atOnce bool) (accepted, error) {
	w := o.newWorker(conv)
	first := a.entry
	first.Seq = conv.InboxSeq + 1
	atOnce = atOnce && !open.Waiting && !open.Control && !open.Deliveries && w.beginsAtOnce(first)
	admission := sessions.Admission{Owner: o.owner, TTL: o.config.LeaseTTL}
	if atOnce && w.o.outbox.ShowsProgress(w.conv.Key.Platform) {
		admission.Deliveries = 1
	}
	stored := a.entry
	if atOnce && open.Active {
		stored.State, stored.Attempts, stored.SessionID = sessions.EntryRunning, 1, open.Session.ID
	}
	var err error
	a.fresh, w.lease, w.conv.DeliverySeq, err = tx.AdmitEntry(ctx, &stored, admission)
	a.entry.ID, a.entry.Seq, a.entry.AcceptedAt = stored.ID, stored.Seq, stored.AcceptedAt
	if err != nil || !a.fresh {
		o.slots.release()
		return a, err
	}
	a.worker = w
	w.conv.InboxSeq, w.conv.Owner, w.conv.Epoch, w.conv.Leased = a.entry.Seq, w.lease.Owner, w.lease.Epoch, true
	if !atOnce {
		return a, nil
	}
	w.session, w.numbered, w.runs = &open, int(admission.Deliveries), stored.SessionID
	w.begun = o.expect(conv.ID) // before the commit, so that no stop falls between the two
	if w.begun.decision, err = w.begin(ctx, tx, a.entry, v); err != nil {
		return a, &beginError{err}
	}
	w.session, w.runs = nil, ""
	return a, nil
}

// lane says who handles a message: the conversation's worker, in order, or the
// control lane, at once. Unknown commands go there too: the answer is the
// nearest name.
func (o *Orchestrator) lane(ctx context.Context, tx Tx, conv sessions.Conversation, in messages.Inbound) (sessions.Lane, error) {
	if in.Kind == messages.KindAction {
		return sessions.LaneControl, nil
	}
	call, ok := command.Parse(in.Text)
	if !ok {
		return sessions.LaneTurn, nil
	}
	name := call.Invoked().Name
	if c, ok := o.commands.Find(call.Name); ok {
		if c.Lane == command.Job {
			return sessions.LaneTurn, nil
		}
		return sessions.LaneControl, nil
	}
	if _, ok := o.prompts[name]; ok {
		return sessions.LaneTurn, nil
	}
	if o.config.Workshop != nil {
		if ok, err := o.config.Workshop.Lookup(ctx, tx, conv, name); ok || err != nil {
			return sessions.LaneTurn, err
		}
	}
	return sessions.LaneControl, nil
}

// conversation returns the conversation of the entry, locked. One that began
// with a placeholder assistant is put aside as soon as a real one is
// configured: its row keeps its assistant, the chat gets a new row.
func (o *Orchestrator) conversation(ctx context.Context, tx Tx, a *accepted) (sessions.Conversation, error) {
	key := a.entry.In.Conversation
	fallback, err := o.fallback(ctx, tx, a.entry.In)
	if err != nil {
		return sessions.Conversation{}, err
	}
	conv, created, err := tx.GetOrCreateConversation(ctx, key, fallback)
	if err != nil || created || !o.outgrown(conv) || conv.Leased {
		return conv, err
	}
	if seen, err := tx.HasEntry(ctx, a.entry.In); err != nil || seen {
		return conv, err // a repeated event changes nothing
	}
	if idle, err := nothingOpen(ctx, tx, conv.ID); err != nil || !idle {
		return conv, err
	}
	archived := messages.ConversationKey{
		Platform: key.Platform,
		ID:       fmt.Sprintf("%s~%s~%s", key.ID, conv.Assistant, conv.ID[len(conv.ID)-12:]),
	}
	if err := tx.UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Key: &archived}); err != nil {
		return conv, err
	}
	err = tx.Audit(ctx, sessions.AuditEntry{
		Actor: "system", Action: "conversation.archive", ConversationID: conv.ID, Target: archived.String(),
	})
	if err != nil {
		return conv, err
	}
	next, _, err := tx.GetOrCreateConversation(ctx, key, fallback)
	if err != nil {
		return conv, err
	}
	if err := takeAlong(ctx, tx, conv, next); err != nil {
		return conv, err
	}
	next.AgentID = conv.AgentID
	a.entry.ConversationID = next.ID
	return next, outbox.AddNotice(ctx, tx, next.ID, "", fmt.Sprintf(
		"This chat began with the %s assistant. From here on %s answers, in a fresh conversation; the earlier one is kept.",
		conv.Assistant, fallback))
}

// fallback returns the assistant of a new conversation: that of the repository
// which it is about, if that is known and its assistant is there, else the
// default.
func (o *Orchestrator) fallback(ctx context.Context, tx Tx, in messages.Inbound) (string, error) {
	if in.Repository != nil {
		c, ok, err := tx.FindCodebase(ctx, strings.TrimSuffix(in.Repository.URL, ".git"))
		if err != nil {
			return "", err
		}
		if name := assistant.Name(c.Assistant); ok && o.config.Assistants[name] != nil && !o.config.Placeholder[name] {
			return c.Assistant, nil
		}
	}
	return string(o.config.Default), nil
}

// outgrown reports whether a conversation belongs to a placeholder assistant
// although a real one is configured.
func (o *Orchestrator) outgrown(conv sessions.Conversation) bool {
	for name := range o.config.Placeholder {
		if string(name) == conv.Assistant {
			return name != o.config.Default
		}
	}
	return false
}

// afterAccept starts what the transaction decided. Nothing here may be
// necessary: if the process dies now, the sweep finds the work.
func (o *Orchestrator) afterAccept(ctx context.Context, a accepted) {
	p := a.entry.In.Conversation.Platform
	if a.fresh && a.entry.State == sessions.EntryWaiting && (o.gate(p) != nil || o.outbox.MarksOutcomes(p)) {
		defer o.spawn(func(ctx context.Context) { o.arrive(ctx, a.entry, !a.behind) })
	}
	if a.notice != nil {
		o.spawn(func(ctx context.Context) { o.outbox.SendNotice(ctx, a.entry.In.Conversation, *a.notice) })
	}
	log := o.config.Log.With("conversation", a.entry.In.Conversation, "entry", a.entry.ID)
	switch {
	case !a.fresh:
		log.DebugContext(ctx, "Ignored a repeated event", "event", a.entry.In.Event)
	case a.closed != nil:
		conv := *a.closed
		o.spawn(func(ctx context.Context) { o.release(ctx, conv) })
	case a.worker != nil:
		if !o.spawn(func(ctx context.Context) { o.workOn(ctx, a.worker) }) {
			a.worker.handBack(ctx) // stopping: somebody else takes over
			o.slots.release()
			o.forget(a.worker.begun)
		}
	case a.entry.State == sessions.EntryRefused:
		o.refused(ctx, a)
	case a.entry.Lane == sessions.LaneControl && a.entry.State == sessions.EntryWaiting:
		o.startControl(a.entry)
	case a.waits && o.outbox.MarksOutcomes(a.entry.In.Conversation.Platform):
		o.outbox.Marked(a.entry) // it says that the message arrived, see arrive
	case a.waits:
		if !o.spawn(func(ctx context.Context) { o.outbox.ShowWaiting(ctx, a.entry) }) {
			o.outbox.Marked(a.entry)
		}
	}
}

// refused follows an entry that was refused as it came.
func (o *Orchestrator) refused(ctx context.Context, a accepted) {
	in := a.entry.In
	if a.overflow {
		o.config.Metrics.Overflowed(string(in.Conversation.Platform))
		return
	}
	o.config.Metrics.Refused(string(in.Conversation.Platform))
	if s := o.strangers[in.Conversation.Platform]; s != nil {
		s.recorded()
	}
	o.config.Log.InfoContext(ctx, "Refused a stranger", "conversation", in.Conversation, "entry", a.entry.ID, "sender", in.Sender.ID)
	if a.refuse {
		o.outbox.Refuse(in, fmt.Sprintf("This is a private bot. Ask its owner to let you in; your id here is `%s`.", in.Sender.ID))
	}
}
