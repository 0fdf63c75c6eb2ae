package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (co *costs) costCommand() *command.Command {
	return &command.Command{
		Name:    "cost",
		Usage:   "cost [week] [by model]",
		Summary: "show token usage and costs",
		Example: "cost week by model",
		Rank:    15,
		Reading: command.ReadingAnywhere,
		Run:     co.runCost,
	}
}

// runCost says what was used: in short, or summed by something in some time. An
// owner sees what all used, everybody else their own.
func (co *costs) runCost(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) > 0 {
		return co.runCostBy(ctx, r)
	}
	today := spend.Today(time.Now())
	var b strings.Builder
	err := co.store.InRead(ctx, func(tx *store.Tx) (err error) {
		b.Reset() // of an earlier run of this function
		b.WriteString("Used so far:\n\n")
		line := func(label string, f spend.Filter) {
			var sum spend.Sum
			if err == nil {
				sum, err = tx.Spending().SumUsage(ctx, f)
			}
			fmt.Fprintf(&b, "- %s: %s\n", label, costText(sum))
		}
		line("here, total", spend.Filter{ConversationID: r.Conv.ID})
		line("here, today", spend.Filter{ConversationID: r.Conv.ID, Since: today})
		if r.Conv.CodebaseID != "" {
			line("this repository, total", spend.Filter{CodebaseID: r.Conv.CodebaseID})
		}
		line("you, today", spend.Filter{Actor: r.Actor(), Since: today})
		if r.Role == sessions.Owner {
			line("everyone, today", spend.Filter{Since: today})
		}
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	fmt.Fprintf(&b, "\nCosts use the list prices of %s; days start at 00:00 UTC. For details: `%scost week by model`.", spend.List().Date, co.prefix(r.Conv.Key))
	if limits := budgetText(co.live().Budget); limits != "" {
		b.WriteString(" Limits: " + limits + ".")
	}
	return command.Reply{Text: b.String()}, nil
}

func budgetText(b spend.Budget) string {
	var parts []string
	for _, l := range []struct {
		what           string
		micros, tokens int64
	}{{"per turn", b.TurnMicros, b.TurnTokens}, {"per person and day", b.PersonMicros, b.PersonTokens}, {"per day", b.DayMicros, b.DayTokens}} {
		switch {
		case l.micros > 0:
			parts = append(parts, spend.Dollars(l.micros)+" "+l.what)
		case l.tokens > 0:
			parts = append(parts, spend.Tokens(l.tokens)+" tokens "+l.what+" (no price data)")
		}
	}
	return strings.Join(parts, ", ")
}

// maxGroups is how many sums one answer shows.
const maxGroups = 15

// runCostBy answers "/cost week by person". The words may stand in any order, and
// each has something that it means if it is left out.
func (co *costs) runCostBy(ctx context.Context, r command.Request) (command.Reply, error) {
	by, since, label, err := costArgs(r.Call.Args, time.Now())
	if err != nil {
		return command.Reply{}, err
	}
	everybody := r.Role == sessions.Owner
	f := spend.Filter{Since: since}
	if !everybody {
		f.Actor = r.Actor()
	}
	// Who else talks to the bot, and where, is not for a group to read.
	if names := by == spend.ByConversation || by == spend.ByPerson && everybody; names && !r.Entry.In.Private && !r.Entry.In.Whispered {
		return command.Reply{}, fault.Newf(fault.Invalid, "This would show people and conversations to others here. Use a private chat, or `bot costs --by %s` on the server.", by)
	}
	var groups []spend.Group
	var total spend.Sum
	err = co.store.InRead(ctx, func(tx *store.Tx) (err error) {
		groups, total, err = tx.Spending().UsageBy(ctx, by, f, maxGroups+1)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	whose := "by you"
	if everybody {
		whose = "by everyone"
	}
	if len(groups) == 0 {
		return command.Reply{Text: fmt.Sprintf("No usage %s, %s.", whose, label)}, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Used %s, %s, by %s:\n\n", whose, label, by)
	for _, g := range groups[:min(maxGroups, len(groups))] {
		fmt.Fprintf(&b, "- %s: %s\n", costName(g), costText(g.Sum))
	}
	if len(groups) > maxGroups {
		fmt.Fprintf(&b, "- and more; `bot costs --by %s` on the server prints all\n", by)
	}
	fmt.Fprintf(&b, "\nTotal: %s. Costs use the list prices of %s; days start at 00:00 UTC.", costText(total), spend.List().Date)
	return command.Reply{Text: b.String()}, nil
}

// costArgs reads what follows /cost.
func costArgs(args []string, now time.Time) (by spend.By, since time.Time, label string, err error) {
	by, label = spend.ByDay, ""
	for i, arg := range args {
		if strings.EqualFold(arg, "by") {
			continue
		}
		parsed, byErr := spend.ParseBy(arg)
		if byErr == nil {
			by = parsed
			continue
		}
		if i > 0 && strings.EqualFold(args[i-1], "by") {
			return by, since, "", byErr
		}
		if label != "" {
			return by, since, "", fault.New(fault.Invalid, "Use one period and one grouping: `/cost week by model`.")
		}
		if since, err = spend.ParseSince(arg, now); err != nil {
			return by, since, "", err
		}
		label = sinceText(since)
	}
	if label == "" {
		since = spend.Today(now).AddDate(0, 0, -6)
		label = sinceText(since)
	}
	return by, since, label, nil
}

func sinceText(since time.Time) string {
	switch {
	case since.IsZero():
		return "since the beginning"
	case since.Equal(spend.Today(since)):
		return "since " + since.Format(time.DateOnly)
	}
	return "since " + since.Format("2006-01-02 15:04 UTC")
}

// costText is a sum that says so if it has no price.
func costText(s spend.Sum) string {
	text := wording.Count(s.Turns, "turn", "turns") + ", " + s.String()
	if s.Micros == 0 && s.UnpricedToken > 0 {
		text += " (no price data)"
	}
	return text
}

func costName(g spend.Group) string {
	name := g.Name
	switch {
	case g.Key == "":
		return "(none or deleted)"
	case name == "":
		name = g.Key
	case strings.Contains(g.Key, "/"): // a person, whose name says nothing for sure
		name += " " + g.Key
	}
	return "`" + strings.ReplaceAll(wording.Head(strings.Join(strings.Fields(name), " "), 100), "`", "'") + "`"
}
