package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/orchestrator/turn"
	"remote-agent/internal/order"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

var _ platform.Sink = (*Inbox)(nil)

// accepted is what became of an event within the transaction of Accept, and
// what is to be done once it is committed.
type accepted struct {
	entry  sessions.Entry
	fresh  bool
	work   *turn.Work              // this process got the conversation, and holds a slot for it; else nil
	waits  bool                    // somebody else works on the conversation, or no slot is free
	answer string                  // tells a stranger that the bot is private; empty: nothing
	pairs  *messages.Inbound       // what a stranger wrote who is answered by pair
	closed *sessions.Conversation  // what it is about was closed
	left   []sessions.Conversation // the bot was removed from them
	notice *messages.Delivery      // tells at once that the service is halted, or that too much waits

	empty    bool // its conversation was made with it, and has nothing else
	behind   bool // something of the same person waits already, which has the mark
	rings    bool // somebody has to be woken up for it
	crowd    bool // one of many who come at once, and new: those who were here before go first
	overflow bool // refused, because too much of the same person waits
	loop     bool // refused, because it is one of a loop

	withdrawn *sessions.Entry // it became a command

	taker string // the process that is woken up for it; empty: whoever is free
}

// Accept implements platform.Sink: one transaction for all events, then the work
// starts in this process where a slot is free. It is safe to repeat: an event
// that is stored already changes nothing.
func (i *Inbox) Accept(ctx context.Context, events ...messages.Inbound) error {
	begin := time.Now()
	defer i.Rush.Enter(len(events))()
	plan, err := i.acceptNew(ctx, events)
	if err != nil || len(plan) == 0 {
		return err
	}
	for _, a := range plan {
		i.afterAccept(ctx, a)
		i.countAccepted(a)
	}
	i.Metrics.Acknowledged(string(plan[0].entry.In.Conversation.Platform), time.Since(begin))
	return nil
}

// acceptNew stores those of events that are new and returns what became of all.
func (i *Inbox) acceptNew(ctx context.Context, events []messages.Inbound) ([]accepted, error) {
	leave, err := i.seen.enter(ctx, events)
	if err != nil {
		return nil, err
	}
	defer leave()
	events, plan := i.seen.tell(events)
	if events, err = i.withAlbums(ctx, events); err != nil {
		return nil, err
	}
	if events, err = i.screen(ctx, events); err != nil || len(events) == 0 {
		return plan, err
	}
	stored, err := i.together.join(ctx, events, i.acceptThem)
	if err != nil {
		return nil, err
	}
	i.seen.stored(events)
	return append(plan, stored...), nil
}

// giveBack undoes in this process what a transaction that came to nothing took.
func (i *Inbox) giveBack(a accepted, failed error) {
	if a.work != nil {
		a.work.Drop(failed)
	}
	i.Outbox.WillNotMark(a.entry)
}

// acceptThem stores events and begins the turns that can begin, or if that fails,
// which must not lose a message, only stores them.
func (i *Inbox) acceptThem(ctx context.Context, events []messages.Inbound) ([]accepted, error) {
	plan, err := i.acceptAll(ctx, events, true)
	if _, is := errors.AsType[*turn.BeginError](err); is && ctx.Err() == nil {
		i.Log.WarnContext(ctx, "could not begin a turn at once; its message is stored first", "err", err)
		plan, err = i.acceptAll(ctx, events, false)
	}
	return plan, err
}

// acceptAll stores events in one transaction and returns what became of each, in
// their order. With atOnce it begins the turns of those that can begin.
func (i *Inbox) acceptAll(ctx context.Context, events []messages.Inbound, atOnce bool) ([]accepted, error) {
	plan := make([]accepted, len(events))
	giveBack := func(failed error) {
		for _, a := range plan {
			if a.entry.ID != "" {
				i.giveBack(a, failed)
			}
		}
		clear(plan)
	}
	over := false
	defer func() {
		if !over { // a panic
			giveBack(nil)
		}
	}()
	err := i.Storage.InTx(ctx, func(tx port.Tx) error {
		giveBack(nil) // of an earlier run of this function
		for _, wave := range waves(events) {
			err := tx.Abreast(ctx, len(wave), func(n int) (err error) {
				at := wave[n]
				if plan[at], err = i.acceptOne(ctx, tx, events[at], atOnce); err != nil {
					return fmt.Errorf("accept event %s: %w", events[at].Event, err)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return i.wakeUp(ctx, tx, plan)
	})
	over = true
	if err != nil {
		giveBack(err)
		return nil, err
	}
	return plan, nil
}

// waves sorts events into those that can be accepted abreast, as their places: of a
// conversation and of a person there is at most one in a wave, and the next one is in a
// later wave. Conversations are locked in one order everywhere, so that two replicas do
// not wait for each other; a deadlock between waves is repeated by the store, as is that of events around
// a migration or a removal, which concern several conversations and go one by one, in their order.
func waves(events []messages.Inbound) (list [][]int) {
	alone := slices.ContainsFunc(events, func(in messages.Inbound) bool {
		return in.Kind == messages.KindMigrated || in.Kind == messages.KindGone
	})
	type person struct {
		on messages.Platform
		id messages.UserID
	}
	talks, people := make(map[messages.ConversationKey]int), make(map[person]int)
	for at, in := range events {
		who := person{in.Home(), in.Sender.ID}
		wave := max(talks[in.Conversation], people[who])
		if alone {
			wave = at
		}
		if wave == len(list) {
			list = append(list, nil)
		}
		list[wave] = append(list[wave], at)
		talks[in.Conversation], people[who] = wave+1, wave+1
	}
	for _, wave := range list {
		order.By(wave, func(a, b int) int {
			return cmp.Compare(events[a].Conversation.String(), events[b].Conversation.String())
		})
	}
	return list
}

// countAccepted keeps the figures of received and repeated events. Of most deletions nothing
// is kept, so that none is known to be a repetition.
func (i *Inbox) countAccepted(a accepted) {
	p, kind := string(a.entry.In.Conversation.Platform), string(a.entry.In.Kind)
	if a.fresh || a.entry.In.Kind == messages.KindDeleted {
		i.Metrics.Received(p, kind)
	} else {
		i.Metrics.Deduplicated(p, kind)
	}
}

// Keep implements platform.Sink.
func (i *Inbox) Keep(ctx context.Context, raw messages.RawEvent) error {
	err := i.Storage.InTx(ctx, func(tx port.Tx) error {
		_, err := tx.Inbox().KeepRaw(ctx, raw)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep raw event: %w", err)
	}
	i.Metrics.KeptRaw(string(raw.Platform))
	i.Log.WarnContext(ctx, "kept an event that was not understood",
		"platform", raw.Platform, "event", raw.Event, "reason", raw.Reason)
	return nil
}

func (i *Inbox) acceptOne(ctx context.Context, tx port.Tx, in messages.Inbound, atOnce bool) (accepted, error) {
	a := accepted{entry: sessions.Entry{
		ID:         uuid.Must(uuid.NewV7()).String(),
		Lane:       sessions.LaneTurn,
		State:      sessions.EntryIgnored,
		In:         in,
		AcceptedAt: time.Now(),
	}}
	switch in.Kind {
	case messages.KindMigrated:
		return i.acceptMigration(ctx, tx, a)
	case messages.KindGone:
		return i.acceptGone(ctx, tx, a)
	case messages.KindClosed:
		return i.acceptClosed(ctx, tx, a)
	case messages.KindDeleted:
		return i.acceptDeleted(ctx, tx, a)
	case messages.KindMessage, messages.KindEdit, messages.KindAction:
	default:
		return a, fault.Newf(fault.Invalid, "unknown kind of event %q", in.Kind)
	}
	if fresh, err := i.firstOfGesture(ctx, tx, in); err != nil || !fresh {
		return a, err
	}
	verdict, err := i.Access.Authorize(ctx, tx, in)
	if err != nil {
		return a, err
	}
	if verdict.Role == sessions.Stranger {
		return i.acceptStranger(ctx, tx, a, verdict)
	}
	if verdict.Role == sessions.Owner && in.Private {
		i.nobody.never() // here is someone who can be asked about strangers
	}
	if verdict.Claimed {
		a.entry.In.Text = "/start"
	}
	if in.Kind == messages.KindEdit {
		return i.acceptEdit(ctx, tx, a, verdict)
	}
	if in.Unanswered {
		return i.acceptLoop(ctx, tx, a)
	}
	return i.acceptMessage(ctx, tx, a, verdict, atOnce)
}

// firstOfGesture reports whether in is the first event of what a person did. A
// platform may tell of one gesture in several events; each claims the names that
// it shares with the others.
func (i *Inbox) firstOfGesture(ctx context.Context, tx port.Tx, in messages.Inbound) (bool, error) {
	for _, name := range in.Aliases {
		if fresh, err := claim(ctx, tx, in, name); err != nil || !fresh {
			return false, err
		}
	}
	return true, nil
}

// claim stores a name that in shares with other events, and reports whether it is new.
func claim(ctx context.Context, tx port.Tx, in messages.Inbound, name messages.EventID) (bool, error) {
	return tx.Inbox().InsertEntry(ctx, &sessions.Entry{State: sessions.EntryIgnored, In: messages.Inbound{
		Account: in.Account, Event: name, Kind: in.Kind, Conversation: in.Conversation, SentAt: in.SentAt,
	}})
}

// store inserts the entry as it is, for events that cause no work.
func (i *Inbox) store(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	var err error
	a.fresh, err = tx.Inbox().InsertEntry(ctx, &a.entry)
	return a, err
}

// acceptStranger records that somebody without access wrote. What they wrote is
// not kept.
func (i *Inbox) acceptStranger(ctx context.Context, tx port.Tx, a accepted, v access.Verdict) (accepted, error) {
	in := a.entry.In
	a.entry.State = sessions.EntryRefused
	withoutText(&a.entry.In)
	a, err := i.store(ctx, tx, a)
	if err != nil || !a.fresh || in.Kind != messages.KindMessage || in.Sender.ID == "" || in.Outside() || (!in.Private && !i.Outbox.Caps(in.Conversation.Platform).OnlyFor) {
		return a, err // nobody else is to read a refusal
	}
	var pairs bool
	if a.answer, pairs, err = i.answerStranger(ctx, tx, in, v); pairs {
		a.pairs = &in
	}
	return a, err
}

// acceptMessage puts a message into the inbox of its conversation. It claims the
// conversation if it is free and so is a slot, and begins the turn at once if
// nothing else is to be done there; or has another process do so, to which the
// conversation falls.
func (i *Inbox) acceptMessage(ctx context.Context, tx port.Tx, a accepted, v access.Verdict, atOnce bool) (accepted, error) {
	conv, err := i.conversation(ctx, tx, &a)
	if err != nil {
		return a, err
	}
	if err := claimAlbum(ctx, tx, a.entry.In); err != nil {
		return a, err
	}
	a.entry.ConversationID = conv.ID
	a.entry.State = sessions.EntryWaiting
	if a.entry.Lane, err = i.lane(ctx, tx, conv, a.entry.In); err != nil {
		return a, err
	}
	if opening := a.entry.In.Opening; opening != "" && a.entry.Lane == sessions.LaneTurn {
		if seen, err := tx.Inbox().HasEntry(ctx, a.entry.In); err != nil || seen {
			return a, err
		}
		if err := outbox.AddNotice(ctx, tx, conv.ID, "", opening); err != nil {
			return a, err
		}
	}
	if v.State.Halted() && a.entry.Lane == sessions.LaneTurn {
		return i.acceptHalted(ctx, tx, conv, a, v.State)
	}
	if a.entry.In.Album != "" && a.entry.Lane == sessions.LaneTurn {
		return i.acceptAlbum(ctx, tx, conv, a)
	}
	var open sessions.OpenWork
	if !conv.Leased && !a.empty && a.entry.Lane == sessions.LaneTurn {
		if open, err = tx.Conversations().OpenWork(ctx, conv.ID); fault.Is(err, fault.Internal) {
			open.Waiting = true // until that can be read: a platform that delivers in order would deliver nothing behind it
		} else if err != nil {
			return a, err
		}
	}
	if a.entry.Lane == sessions.LaneTurn && (conv.Leased || open.Waiting) {
		if a.entry.Lane, err = i.answerLane(ctx, tx, conv, a.entry.In); err != nil {
			return a, err
		}
	}
	parked := open.NextAt.After(time.Now()) // the head waits for a decision or a moment, and so does what comes behind it
	free := a.entry.Lane == sessions.LaneTurn && !conv.Leased && !parked && !i.Rush.On()
	if free {
		a.taker = i.taker(conv)
	}
	switch {
	case a.taker != "" && !open.Waiting && i.Turns.HasRoom(): // else the taker may have none, either
		a, err = i.store(ctx, tx, a)
		a.rings = a.fresh
		return a, err
	case free && a.taker == "" && i.Turns.Reserve():
		a.fresh, a.work, err = i.Turns.Admit(ctx, tx, &a.entry, conv, open, v, atOnce)
		return a, err
	}
	// Else its holder, or who wakes it, looks into the inbox, under the row's lock, before it leaves.
	return i.acceptWaiting(ctx, tx, a, !conv.Leased && !parked)
}

// acceptWaiting puts a message into the inbox that is not begun at once: a command, or
// one that waits, whose sender is told so. Somebody is rung for it if nobody is at work
// there.
func (i *Inbox) acceptWaiting(ctx context.Context, tx port.Tx, a accepted, ring bool) (_ accepted, err error) {
	a.waits = a.entry.Lane == sessions.LaneTurn
	unmarked := a.entry.In.Schedule != 0 // there is no message that could have a mark
	if a.waits && !unmarked {
		if a, err = i.crowd(ctx, tx, a); err != nil || a.overflow {
			return a, err
		}
		unmarked = a.behind
	}
	a.entry.In.Queued = a.waits && !unmarked
	a, err = i.store(ctx, tx, a)
	if err != nil || !a.fresh || a.entry.Lane == sessions.LaneControl {
		a.waits = false
		return a, err
	}
	if !unmarked {
		i.Outbox.WillMark(a.entry)
	}
	if ring {
		a.rings, a.crowd = true, a.empty && i.Rush.Crowded()
	}
	if a.waits = !unmarked; unmarked {
		return a, nil
	}
	return a, i.Outbox.AddWaiting(ctx, tx, a.entry)
}

// acceptHalted puts a message into the inbox of a conversation while the service is
// halted: nothing is started and nobody is rung.
func (i *Inbox) acceptHalted(ctx context.Context, tx port.Tx, conv sessions.Conversation, a accepted, state sessions.ServiceState) (accepted, error) {
	var err error
	if a.entry.In.Schedule == 0 {
		if a, err = i.crowd(ctx, tx, a); err != nil || a.overflow {
			return a, err
		}
	}
	a, err = i.store(ctx, tx, a)
	if err != nil || !a.fresh {
		return a, err
	}
	a.notice, err = i.Outbox.AddHalted(ctx, tx, conv, a.entry, state, true)
	return a, err
}
