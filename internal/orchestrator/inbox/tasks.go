package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// maxTasks is how many standing tasks one sweep looks at.
const maxTasks = 100

// StartDue runs runDue in the background, so that a platform that is slow to say
// who may keeps no sweep from ringing; one at a time.
func (i *Inbox) StartDue() {
	if i.Halted() || !i.due.TryLock() {
		return
	}
	started := i.Background.Go(func(ctx context.Context) {
		defer i.due.Unlock()
		defer background.Recover(ctx, i.Log, "standing tasks", nil)
		i.runDue(ctx)
	})
	if !started {
		i.due.Unlock()
	}
}

// runDue puts the standing tasks that are due into the inboxes of their
// conversations. What goes wrong with one of them does not keep the others.
func (i *Inbox) runDue(ctx context.Context) {
	var due []sessions.Schedule
	now := i.Now()
	err := i.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		due, err = tx.Tasks().DueSchedules(ctx, now, maxTasks)
		return err
	})
	if err != nil {
		i.Log.WarnContext(ctx, "could not look for standing tasks", "err", err)
		return
	}
	for _, s := range due {
		if err := i.runTask(ctx, s, now); err != nil && ctx.Err() == nil {
			i.Log.WarnContext(ctx, "could not begin a standing task; the next sweep tries again", "conversation_id", s.ConversationID, "err", err)
		}
	}
}

// runTask makes a message of a due standing task, from whoever switched it on: with
// their rights as they are now. However many runs were missed, it is one; while the
// last one still waits or works, or has said that the budget is used up, it is none. One that is
// to run much later than it should gets its time back. Sweeps on several replicas meet at the
// lock of the conversation, and only the first finds the task still due.
func (i *Inbox) runTask(ctx context.Context, s sessions.Schedule, now time.Time) error {
	in := s.Origin.Origin()
	allowed, err := i.Access.Admitted(ctx, in)
	if err != nil {
		return fmt.Errorf("ask the platform who may: %w", err) // it stays due
	}
	var (
		a     accepted
		ended bool
	)
	giveBack := func(failed error) {
		i.giveBack(a, failed)
		a = accepted{}
	}
	err = i.Storage.InTx(ctx, func(tx port.Tx) error {
		giveBack(nil) // of an earlier run of this function
		ended = false
		conv, p, ok, err := i.stillDue(ctx, tx, s)
		if err != nil || !ok {
			return err
		}
		in.Conversation = conv.Key // it may have moved
		verdict, err := i.Access.Authorize(ctx, tx, in)
		if err != nil {
			return err
		}
		if ended = !allowed || verdict.Role == sessions.Stranger; ended {
			return i.endTask(ctx, tx, s, p)
		}
		next := s.NextAt.Add((now.Sub(s.NextAt)/p.Every() + 1) * p.Every())
		skip := s.NextAt.After(now) // a clock that was wrong had set it
		if !skip {
			skip, err = i.skips(ctx, tx, s)
		}
		if err != nil || skip {
			if err == nil {
				_, err = tx.Tasks().AdvanceSchedule(ctx, s, now, next, "")
			}
			return err
		}
		in.Event = messages.EventID(fmt.Sprintf("schedule:%d:%d", s.ID, s.NextAt.UnixMilli()))
		in.Text, in.SentAt, in.Schedule = p.Task(), now, s.ID
		a.entry = sessions.Entry{ID: uuid.Must(uuid.NewV7()).String(), Lane: sessions.LaneTurn, State: sessions.EntryWaiting, In: in, AcceptedAt: time.Now()}
		if a, err = i.acceptMessage(ctx, tx, a, verdict, false); err != nil {
			return err
		}
		if err := i.wakeUp(ctx, tx, []accepted{a}); err != nil {
			return err
		}
		run := a.entry.ID
		if !a.fresh {
			run = "" // this very run was in the inbox before a copy was restored
		}
		current, ok, err := tx.Tasks().Schedule(ctx, a.entry.ConversationID) // the chat may have got a new row
		if err != nil || !ok {
			return err
		}
		_, err = tx.Tasks().AdvanceSchedule(ctx, current, now, next, run)
		return err
	})
	if err != nil {
		giveBack(err)
		return err
	}
	switch {
	case ended:
		return i.Turns.Ring(ctx, s.ConversationID) // brings the notice; else the sweep does
	case a.entry.ID != "":
		i.afterAccept(ctx, a)
	}
	return nil
}

// stillDue locks the conversation of a standing task and reports whether the task
// is still as it was read.
func (i *Inbox) stillDue(ctx context.Context, tx port.Tx, s sessions.Schedule) (conv sessions.Conversation, p profile.Profile, ok bool, err error) {
	if conv, err = tx.Conversations().Conversation(ctx, s.ConversationID); err != nil {
		return conv, p, false, gone(err)
	}
	if conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, conv.Key, conv.Assistant); err != nil { // locks it
		return conv, p, false, err
	}
	current, on, err := tx.Tasks().Schedule(ctx, s.ConversationID)
	if err != nil || !on || current.ID != s.ID || !current.NextAt.Equal(s.NextAt) {
		return conv, p, false, err
	}
	p, err = tx.Profiles().Agent(ctx, s.AgentID)
	return conv, p, err == nil && p.Interval > 0 && conv.ID == s.ConversationID, gone(err)
}

// gone takes the error away that says that something was deleted in the meantime.
func gone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// skips reports whether a standing task that is due does not run: its last run is not over,
// or was the last one for this day.
func (i *Inbox) skips(ctx context.Context, tx port.Tx, s sessions.Schedule) (bool, error) {
	if s.EntryID == "" {
		return false, nil
	}
	last, err := tx.Inbox().Entry(ctx, s.EntryID)
	if err != nil {
		return false, gone(err)
	}
	if last.State == sessions.EntryWaiting || last.State == sessions.EntryRunning {
		return true, nil
	}
	return i.Turns.Paused(ctx, tx, last)
}

// endTask switches a standing task off whose creator may not use the bot any more,
// and says so where it ran.
func (i *Inbox) endTask(ctx context.Context, tx port.Tx, s sessions.Schedule, p profile.Profile) error {
	if _, err := tx.Tasks().EndSchedule(ctx, s.ConversationID); err != nil {
		return err
	}
	text := fmt.Sprintf("⏰ The standing task of **%s** is off: %s, who turned it on, can no longer use this bot. Someone else can turn it on again.",
		p.Title(), wording.Who(s.Origin.Sender.Name, s.CreatedBy))
	if err := outbox.AddNotice(ctx, tx, s.ConversationID, "", text); err != nil {
		return err
	}
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: "system", Action: "schedule.revoked", ConversationID: s.ConversationID, Target: p.Title(), Detail: fmt.Sprintf(`{"created_by":%q}`, s.CreatedBy),
	})
}
