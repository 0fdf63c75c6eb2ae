package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// maxSchedules is how many standing tasks one sweep looks at, and a list shows.
const maxSchedules = 100

// runSchedule switches the standing task of the conversation's profile on or off,
// or shows it.
func (o *Orchestrator) runSchedule(ctx context.Context, r command.Request) (command.Reply, error) {
	what := "show"
	if len(r.Call.Args) > 0 {
		what = strings.ToLower(strings.Join(r.Call.Args, " "))
	}
	switch what {
	case "show":
		return o.showSchedule(ctx, r)
	case "on":
		return o.scheduleOn(ctx, r)
	case "off":
		return o.scheduleOff(ctx, r)
	case "list":
		return o.listSchedules(ctx, r)
	}
	prefix := o.prefix(r.Conv.Key.Platform)
	return command.Reply{}, fault.Newf(fault.Invalid, "`%[1]sschedule` shows the standing task here, `%[1]sschedule on` and `off` switch it, `%[1]sschedule list` shows all.", prefix)
}

func (o *Orchestrator) scheduleOn(ctx context.Context, r command.Request) (command.Reply, error) {
	var (
		p   *profile.Profile
		s   sessions.Schedule
		was bool
	)
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		conv, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if p, err = profileByID(ctx, tx, conv.AgentID); err != nil {
			return err
		}
		if err := mayStand(p, o.prefix(conv.Key.Platform)); err != nil {
			return err
		}
		if s, was, err = tx.Schedule(ctx, conv.ID); err != nil || was {
			return err
		}
		now := o.config.Now()
		s = sessions.Schedule{
			AgentID: p.ID, ConversationID: conv.ID, CreatedBy: r.Actor(), Origin: originOf(r.Entry.In),
			CreatedAt: now, NextAt: now.Add(p.Every()),
		}
		if err := tx.SaveSchedule(ctx, &s); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "schedule.on", ConversationID: conv.ID, Target: p.Title()})
	})
	if err != nil {
		return command.Reply{}, err
	}
	if was {
		return command.Reply{Text: fmt.Sprintf("The standing task of **%s** is on already, by %s; the next run is at %s.", p.Title(), s.CreatedBy, wording.Moment(s.NextAt))}, nil
	}
	return command.Reply{Text: fmt.Sprintf("⏰ **%s** does its standing task here %s, in your name; the first time at %s. `%sschedule off` ends it.",
		p.Title(), p.Often(), wording.Moment(s.NextAt), o.prefix(r.Conv.Key.Platform))}, nil
}

// mayStand says why a profile has no standing task to switch on.
func mayStand(p *profile.Profile, prefix string) error {
	switch {
	case p == nil:
		return fault.Newf(fault.Invalid, "No profile is used here; `%sagent <name>` chooses one, and its standing task can run here.", prefix)
	case p.Interval <= 0:
		return fault.Newf(fault.Invalid, "The profile %s has no standing task: its interval is 0. An operator can set one with `bot agent edit %s`.", p.Title(), p.Title())
	case len(p.Objectives) == 0:
		return fault.Newf(fault.Invalid, "The profile %s has no objectives, so there is nothing to do. An operator can write some with `bot agent edit %s`.", p.Title(), p.Title())
	}
	return nil
}

// originOf is what a run keeps of the message that switched the task on: who, and
// where.
func originOf(in messages.Inbound) messages.Inbound {
	in.Kind, in.Message, in.Text, in.Action, in.Trigger, in.Opening = messages.KindMessage, "", "", "", "", ""
	in.Aliases, in.Quotes, in.Attachments, in.Raw = nil, nil, nil, nil
	in.Whispered, in.Queued = false, false
	return in
}

func (o *Orchestrator) scheduleOff(ctx context.Context, r command.Request) (command.Reply, error) {
	ended := false
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		conv, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if ended, err = tx.EndSchedule(ctx, conv.ID); err != nil || !ended {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "schedule.off", ConversationID: conv.ID})
	})
	if err != nil {
		return command.Reply{}, err
	}
	if !ended {
		return command.Reply{Text: "No standing task is on here."}, nil
	}
	return command.Reply{Text: "The standing task is off. A run that has begun still finishes."}, nil
}

func (o *Orchestrator) showSchedule(ctx context.Context, r command.Request) (command.Reply, error) {
	var line string
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		line = ""
		s, ok, err := tx.Schedule(ctx, r.Conv.ID)
		if err != nil || !ok {
			return err
		}
		line, err = o.scheduleLine(ctx, tx, s)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	prefix := o.prefix(r.Conv.Key.Platform)
	if line == "" {
		return command.Reply{Text: fmt.Sprintf("No standing task is on here. `%sschedule on` has the profile that is used here do its own.", prefix)}, nil
	}
	return command.Reply{Text: fmt.Sprintf("⏰ %s. `%sschedule off` ends it.", line, prefix)}, nil
}

// listSchedules shows all standing tasks to an owner; to anybody else those that
// they switched on themselves.
func (o *Orchestrator) listSchedules(ctx context.Context, r command.Request) (command.Reply, error) {
	var lines []string
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		lines = nil
		all, err := tx.Schedules(ctx, maxSchedules)
		if err != nil {
			return err
		}
		for _, s := range all {
			if r.Role != sessions.Owner && s.CreatedBy != r.Actor() && s.ConversationID != r.Conv.ID {
				continue
			}
			line, err := o.scheduleLine(ctx, tx, s)
			if err != nil {
				return err
			}
			where := "here"
			if s.ConversationID != r.Conv.ID {
				conv, err := tx.Conversation(ctx, s.ConversationID)
				if err != nil {
					return err
				}
				where = "in " + conv.Key.String()
			}
			lines = append(lines, fmt.Sprintf("- %s, %s", where, line))
		}
		return nil
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(lines) == 0 {
		return command.Reply{Text: "No standing task is on."}, nil
	}
	return command.Reply{Text: "Standing tasks:\n\n" + strings.Join(lines, "\n")}, nil
}

func (o *Orchestrator) scheduleLine(ctx context.Context, tx Tx, s sessions.Schedule) (string, error) {
	p, err := tx.Agent(ctx, s.AgentID)
	if err != nil {
		return "", err
	}
	when := "next at " + wording.Moment(s.NextAt)
	if p.Interval <= 0 {
		when = "resting, because the profile has no interval any more"
	}
	return fmt.Sprintf("**%s** %s, by %s since %s, %s so far, %s", p.Title(), p.Often(), s.CreatedBy, wording.Moment(s.CreatedAt),
		wording.Count(int(s.Runs), "run", "runs"), when), nil
}

// startDue runs runDue in the background, so that a platform that is slow to say
// who may keeps no sweep from ringing; one at a time.
func (o *Orchestrator) startDue() {
	if o.Halted().Halted() || !o.due.TryLock() {
		return
	}
	started := o.spawn(func(ctx context.Context) {
		defer o.due.Unlock()
		defer o.recoverPanic(ctx, "standing tasks", nil)
		o.runDue(ctx)
	})
	if !started {
		o.due.Unlock()
	}
}

// runDue puts the standing tasks that are due into the inboxes of their
// conversations. What goes wrong with one of them does not keep the others.
func (o *Orchestrator) runDue(ctx context.Context) {
	var due []sessions.Schedule
	now := o.config.Now()
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		due, err = tx.DueSchedules(ctx, now, maxSchedules)
		return err
	})
	if err != nil {
		o.config.Log.WarnContext(ctx, "Could not look for standing tasks", "err", err)
		return
	}
	for _, s := range due {
		if err := o.runTask(ctx, s, now); err != nil && ctx.Err() == nil {
			o.config.Log.WarnContext(ctx, "Could not begin a standing task; the next sweep tries again", "conversation_id", s.ConversationID, "err", err)
		}
	}
}

// runTask makes a message of a due standing task, from whoever switched it on: with
// their rights as they are now. However many runs were missed, it is one; while the
// last one still waits or works, it is none. Sweeps on several replicas meet at the
// lock of the conversation, and only the first finds the task still due.
func (o *Orchestrator) runTask(ctx context.Context, s sessions.Schedule, now time.Time) error {
	in := originOf(s.Origin)
	allowed, err := o.admitted(ctx, in)
	if err != nil {
		return fmt.Errorf("ask the platform who may: %w", err) // it stays due
	}
	var (
		a     accepted
		ended bool
	)
	giveBack := func() {
		o.giveBack(a)
		a = accepted{}
	}
	err = o.config.Storage.InTx(ctx, func(tx Tx) error {
		giveBack() // of an earlier run of this function
		ended = false
		conv, p, ok, err := o.stillDue(ctx, tx, s)
		if err != nil || !ok {
			return err
		}
		in.Conversation = conv.Key // it may have moved
		verdict, err := o.authorize(ctx, tx, in)
		if err != nil {
			return err
		}
		if ended = !allowed || verdict.role == sessions.Stranger; ended {
			return o.endTask(ctx, tx, s, p)
		}
		next := s.NextAt.Add((now.Sub(s.NextAt)/p.Every() + 1) * p.Every())
		if busy, err := atWork(ctx, tx, s); err != nil || busy {
			if err == nil {
				_, err = tx.AdvanceSchedule(ctx, s, now, next, "")
			}
			return err
		}
		in.Event = messages.EventID(fmt.Sprintf("schedule:%d:%d", s.ID, s.NextAt.UnixMilli()))
		in.Text, in.SentAt, in.Schedule = p.Task(), now, s.ID
		a.entry = sessions.Entry{ID: uuid.Must(uuid.NewV7()).String(), Lane: sessions.LaneTurn, State: sessions.EntryWaiting, In: in, AcceptedAt: time.Now()}
		if a, err = o.acceptMessage(ctx, tx, a, verdict, false); err != nil {
			return err
		}
		run := a.entry.ID
		if !a.fresh {
			run = "" // this very run was in the inbox before a copy was restored
		}
		current, ok, err := tx.Schedule(ctx, a.entry.ConversationID) // the chat may have got a new row
		if err != nil || !ok {
			return err
		}
		_, err = tx.AdvanceSchedule(ctx, current, now, next, run)
		return err
	})
	if err != nil {
		giveBack()
		return err
	}
	switch {
	case ended:
		return o.Ring(ctx, s.ConversationID) // brings the notice; else the sweep does
	case a.entry.ID != "":
		o.afterAccept(ctx, a)
	}
	return nil
}

// stillDue locks the conversation of a standing task and reports whether the task
// is still as it was read.
func (o *Orchestrator) stillDue(ctx context.Context, tx Tx, s sessions.Schedule) (conv sessions.Conversation, p profile.Profile, ok bool, err error) {
	if conv, err = tx.Conversation(ctx, s.ConversationID); err != nil {
		return conv, p, false, gone(err)
	}
	if conv, _, err = tx.GetOrCreateConversation(ctx, conv.Key, conv.Assistant); err != nil { // locks it
		return conv, p, false, err
	}
	current, on, err := tx.Schedule(ctx, s.ConversationID)
	if err != nil || !on || current.ID != s.ID || !current.NextAt.Equal(s.NextAt) {
		return conv, p, false, err
	}
	p, err = tx.Agent(ctx, s.AgentID)
	return conv, p, err == nil && p.Interval > 0 && conv.ID == s.ConversationID, gone(err)
}

// gone takes the error away that says that something was deleted in the meantime.
func gone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// atWork reports whether the last run of a standing task is not over.
func atWork(ctx context.Context, tx Tx, s sessions.Schedule) (bool, error) {
	if s.EntryID == "" {
		return false, nil
	}
	last, err := tx.Entry(ctx, s.EntryID)
	if err != nil {
		return false, gone(err)
	}
	return last.State == sessions.EntryWaiting || last.State == sessions.EntryRunning, nil
}

// endTask switches a standing task off whose creator may not use the bot any more,
// and says so where it ran.
func (o *Orchestrator) endTask(ctx context.Context, tx Tx, s sessions.Schedule, p profile.Profile) error {
	if _, err := tx.EndSchedule(ctx, s.ConversationID); err != nil {
		return err
	}
	text := fmt.Sprintf("⏰ The standing task of **%s** is off: %s, who switched it on, may not use this bot any more. Somebody else can switch it on again.",
		p.Title(), s.CreatedBy)
	if err := addNotice(ctx, tx, s.ConversationID, "", text); err != nil {
		return err
	}
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: "system", Action: "schedule.revoked", ConversationID: s.ConversationID, Target: p.Title(), Detail: fmt.Sprintf(`{"created_by":%q}`, s.CreatedBy),
	})
}
