package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (sc *schedules) scheduleCommand() *command.Command {
	return &command.Command{
		Name:    "schedule",
		Usage:   "schedule [on|off|list]",
		Summary: "show or switch the profile's standing task",
		Example: "schedule on",
		Run:     sc.runSchedule,
	}
}

// maxSchedules is how many standing tasks a list shows.
const maxSchedules = 100

// runSchedule switches the standing task of the conversation's profile on or off,
// or shows it.
func (sc *schedules) runSchedule(ctx context.Context, r command.Request) (command.Reply, error) {
	what := "show"
	if len(r.Call.Args) > 0 {
		what = strings.ToLower(strings.Join(r.Call.Args, " "))
	}
	switch what {
	case "show":
		return sc.showSchedule(ctx, r)
	case "on":
		return sc.scheduleOn(ctx, r)
	case "off":
		return sc.scheduleOff(ctx, r)
	case "list":
		return sc.listSchedules(ctx, r)
	}
	prefix := sc.prefix(r.Conv.Key)
	return command.Reply{}, fault.Newf(fault.Invalid, "`%[1]sschedule` shows the standing task, `%[1]sschedule on` or `off` switches it, `%[1]sschedule list` shows all.", prefix)
}

func (sc *schedules) scheduleOn(ctx context.Context, r command.Request) (command.Reply, error) {
	var (
		p   *profile.Profile
		s   sessions.Schedule
		was bool
	)
	err := sc.store.InTx(ctx, func(tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if p, err = profileOf(ctx, tx, conv); err != nil {
			return err
		}
		if err := mayStand(p, sc.prefix(conv.Key)); err != nil {
			return err
		}
		if s, was, err = tx.Tasks().Schedule(ctx, conv.ID); err != nil || was {
			return err
		}
		now := sc.now()
		s = sessions.Schedule{
			AgentID: p.ID, ConversationID: conv.ID, CreatedBy: r.Actor(), Origin: r.Entry.In.Origin(),
			CreatedAt: now, NextAt: now.Add(p.Every()),
		}
		if err := tx.Tasks().SaveSchedule(ctx, &s); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "schedule.on", ConversationID: conv.ID, Target: p.Title()})
	})
	if err != nil {
		return command.Reply{}, err
	}
	if was {
		return command.Reply{Text: fmt.Sprintf("The standing task of **%s** is already on, started by %s; next run at %s.", p.Title(), wording.Who(s.Origin.Sender.Name, s.CreatedBy), wording.Moment(s.NextAt))}, nil
	}
	return command.Reply{Text: fmt.Sprintf("⏰ **%s** runs its standing task here %s on your behalf, first at %s. Turn it off with `%sschedule off`.",
		p.Title(), p.Often(), wording.Moment(s.NextAt), sc.prefix(r.Conv.Key))}, nil
}

// mayStand says why a profile has no standing task to switch on.
func mayStand(p *profile.Profile, prefix string) error {
	switch {
	case p == nil:
		return fault.Newf(fault.Invalid, "No profile selected. Use `%[1]sagent <name>`, then `%[1]sschedule on`.", prefix)
	case p.Interval <= 0:
		return fault.Newf(fault.Invalid, "The profile %s has no standing task because its interval is 0. An operator can set one with `bot agent edit %s`.", p.Title(), p.Title())
	case len(p.Objectives) == 0:
		return fault.Newf(fault.Invalid, "The profile %s has no objectives, so there is nothing to run. An operator can add some with `bot agent edit %s`.", p.Title(), p.Title())
	}
	return nil
}

func (sc *schedules) scheduleOff(ctx context.Context, r command.Request) (command.Reply, error) {
	ended, err := store.Within(ctx, sc.store.InTx, func(tx *store.Tx) (bool, error) {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return false, err
		}
		ended, err := tx.Tasks().EndSchedule(ctx, conv.ID)
		if err != nil || !ended {
			return false, err
		}
		return true, tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "schedule.off", ConversationID: conv.ID})
	})
	if err != nil {
		return command.Reply{}, err
	}
	if !ended {
		return command.Reply{Text: "No standing task is on here."}, nil
	}
	return command.Reply{Text: "The standing task is off. A run in progress still finishes."}, nil
}

func (sc *schedules) showSchedule(ctx context.Context, r command.Request) (command.Reply, error) {
	line, err := store.Within(ctx, sc.store.InRead, func(tx *store.Tx) (string, error) {
		s, ok, err := tx.Tasks().Schedule(ctx, r.Conv.ID)
		if err != nil || !ok {
			return "", err
		}
		return scheduleLine(ctx, tx, s, sc.now())
	})
	if err != nil {
		return command.Reply{}, err
	}
	prefix := sc.prefix(r.Conv.Key)
	if line == "" {
		return command.Reply{Text: fmt.Sprintf("No standing task is on here. `%sschedule on` starts the profile's own.", prefix)}, nil
	}
	return command.Reply{Text: fmt.Sprintf("⏰ %s. Turn it off with `%sschedule off`.", line, prefix)}, nil
}

// listSchedules shows all standing tasks to an owner; to anybody else those that
// they switched on themselves.
func (sc *schedules) listSchedules(ctx context.Context, r command.Request) (command.Reply, error) {
	lines, err := store.Within(ctx, sc.store.InRead, func(tx *store.Tx) (lines []string, err error) {
		var all []sessions.Schedule
		if r.Role == sessions.Owner {
			all, err = tx.Tasks().Schedules(ctx, maxSchedules+1)
		} else {
			all, err = tx.Tasks().SchedulesOf(ctx, r.Actor(), r.Conv.ID, maxSchedules+1)
		}
		if err != nil {
			return nil, err
		}
		for i, s := range all {
			if i == maxSchedules {
				return append(lines, fmt.Sprintf("\nThe next %d are shown.", maxSchedules)), nil
			}
			line, err := scheduleLine(ctx, tx, s, sc.now())
			if err != nil {
				return nil, err
			}
			where := "here"
			if s.ConversationID != r.Conv.ID {
				conv, err := tx.Conversations().Conversation(ctx, s.ConversationID)
				if err != nil {
					return nil, err
				}
				where = "in " + conv.Key.String()
			}
			lines = append(lines, fmt.Sprintf("- %s, %s", where, line))
		}
		return lines, nil
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(lines) == 0 {
		return command.Reply{Text: "No standing task is on."}, nil
	}
	return command.Reply{Text: "Standing tasks:\n\n" + strings.Join(lines, "\n")}, nil
}

func scheduleLine(ctx context.Context, tx *store.Tx, s sessions.Schedule, now time.Time) (string, error) {
	p, err := tx.Profiles().Agent(ctx, s.AgentID)
	if err != nil {
		return "", err
	}
	when := "next at " + wording.Moment(s.NextAt)
	if s.EntryID != "" {
		last, err := tx.Inbox().Entry(ctx, s.EntryID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
		if last.Pauses(spend.Today(now)) {
			when = "paused because the daily budget was used up, next try at " + wording.Moment(s.NextAt)
		}
	}
	if p.Interval <= 0 {
		when = "paused: the profile no longer has an interval"
	}
	return fmt.Sprintf("**%s** %s, by %s since %s, %s so far, %s", p.Title(), p.Often(), wording.Who(s.Origin.Sender.Name, s.CreatedBy), wording.Moment(s.CreatedAt),
		wording.Count(int(s.Runs), "run", "runs"), when), nil
}
