package app

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/export"
	"remote-agent/internal/fault"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
)

// CostQuery says what sums of usage to print.
type CostQuery struct {
	By           string // see spend.ParseBy
	Since, Until string // see spend.ParseSince and spend.ParseUntil
	CSV, JSON    bool
}

const (
	sumUsageEvery = time.Hour
	sumUsagePause = 20 * time.Millisecond // between days: turns go on meanwhile
)

// sumUsage sums up what was used on days that are over, now and then, so that sums of
// years are there at once. Two replicas that do it at a time do the same.
func (c caretaker) sumUsage(ctx context.Context) {
	for wait := time.Minute; sleep(ctx, wait); wait = sumUsageEvery { // not while everybody starts
		if err := sumUsage(ctx, c.store, time.Now()); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "could not sum up what was used; sums of costs take longer until that is done", "err", err)
		}
	}
}

func sumUsage(ctx context.Context, s *store.Store, now time.Time) error {
	days, err := s.UsageToSum(ctx, now)
	for _, day := range days {
		if err := s.SumUsageDay(ctx, day); err != nil {
			return err
		}
		if !sleep(ctx, sumUsagePause) {
			return nil
		}
	}
	return err
}

// Costs prints what turns used, by person, codebase, model, day or conversation.
func Costs(ctx context.Context, cfg config.Config, env Env, q CostQuery) error {
	by, err := spend.ParseBy(q.By)
	if err != nil {
		return err
	}
	now := time.Now()
	var f spend.Filter
	if f.Since, err = spend.ParseSince(q.Since, now); err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Public: "--since: " + fault.Public(err), Err: err}
	}
	if f.Until, err = spend.ParseUntil(q.Until, now); err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Public: "--until: " + fault.Public(err), Err: err}
	}
	switch {
	case !f.Until.IsZero() && !f.Until.After(f.Since):
		return fault.New(fault.Invalid, "--until is before --since.")
	case q.CSV && q.JSON:
		return fault.New(fault.Invalid, "Choose --csv or --json, not both.")
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		var groups []spend.Group
		var total spend.Sum
		err := s.InRead(ctx, func(tx *store.Tx) (err error) {
			groups, total, err = tx.Spending().UsageBy(ctx, by, f, 0)
			return err
		})
		switch {
		case err != nil:
			return err
		case q.CSV:
			return export.CostsCSV(env.Stdout, by, groups)
		case q.JSON:
			return export.CostsJSON(env.Stdout, by, groups)
		}
		sayCosts(env, by, groups, total)
		return nil
	})
}

func sayCosts(env Env, by spend.By, groups []spend.Group, total spend.Sum) {
	if len(groups) == 0 {
		say(env.Stdout, "no usage in that period\n")
		return
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	column := string(by)
	if by == spend.ByCodebase {
		column = "repository" // as people call it
	}
	say(w, "turns\ttokens in\ttokens out\tcost\tno price\t  %s\n", column)
	row := func(name string, s spend.Sum) {
		say(w, "%d\t%d\t%d\t%s\t%d\t  %s\n", s.Turns, s.InputTokens, s.OutputTokens, s.Exact(), s.UnpricedToken, name)
	}
	for _, g := range groups {
		row(groupName(g), g.Sum)
	}
	row("total", total)
	_ = w.Flush() // a closed terminal
	say(env.Stdout, "costs use the list prices of %s, as known when each turn ended", spend.List().Date)
	if total.UnpricedToken > 0 {
		say(env.Stdout, "; tokens under \"no price\" are not included")
	}
	say(env.Stdout, "\n")
}

func groupName(g spend.Group) string {
	switch {
	case g.Key == "":
		return "(none or deleted)"
	case g.Name == "":
		return transcript.Line(g.Key, 200)
	}
	return fmt.Sprintf("%s  %s", transcript.Line(g.Name, 60), g.Key)
}
