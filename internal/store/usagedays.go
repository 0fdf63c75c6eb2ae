package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/spend"
)

// What was used on a day that is over is kept once more, summed up (spend.Day), so that
// sums of years need not read each record. Whatever changes a record of the day takes its
// row away, by triggers: then the records are read until the day is summed up again.

const (
	dayMillis = int64(24 * time.Hour / time.Millisecond)

	// usageSettles is how long after its end a day is left alone: a turn may have begun
	// in it and still be at work.
	usageSettles = time.Hour

	// usageDays is how many days before now are summed up. What is older is only there if
	// somebody moved clocks.
	usageDays = 3660
)

// UsageBy returns the sums of the records that f chooses, by person, codebase,
// model, day or conversation: the dearest first, days the newest first, up to
// limit; 0 is all. The sums are exact, and so is that of all. A turn that used two
// models counts for both of them. What was deleted since, and turns without a
// codebase, have an empty key.
func (t *Spending) UsageBy(ctx context.Context, by spend.By, f UsageFilter, limit int) (groups []spend.Group, all spend.Sum, err error) {
	if _, err := spend.ParseBy(string(by)); err != nil {
		return nil, all, err
	}
	tally := spend.NewTally(by, f)
	if f.EntryID != "" || f.ConversationID != "" || f.SessionID != "" {
		err = t.tallyRecords(ctx, tally, f) // which an index finds
	} else {
		err = t.tallyDays(ctx, tally, by, f)
	}
	if err != nil {
		return nil, all, fmt.Errorf("sum usage by %s: %w", by, err)
	}
	groups = tally.Groups(limit)
	return groups, tally.Sum(), t.nameGroups(ctx, by, groups)
}

const (
	usageBeginsSQL = `SELECT min(at_ms) FROM usage_records`
	usageEndsSQL   = `SELECT max(at_ms) FROM usage_records`
	usageDaysSQL   = `SELECT day, body FROM usage_days WHERE format = $1 AND day >= $2 AND day < $3 ORDER BY day`
	usagePartsSQL  = `
		SELECT d.day, p.body FROM usage_days d LEFT JOIN usage_day_parts p ON p.day = d.day AND p.part = $4
		WHERE d.format = $1 AND d.day >= $2 AND d.day < $3 ORDER BY d.day`
)

// usageSpan returns when the first record is of, and the first moment behind the last one.
func (t *Spending) usageSpan(ctx context.Context) (first, end int64, there bool, err error) {
	var from, until *int64
	if _, err := t.tx.one(ctx, []any{&from}, usageBeginsSQL); err != nil || from == nil {
		return 0, 0, false, wrap(err, "look for the first usage")
	}
	if _, err := t.tx.one(ctx, []any{&until}, usageEndsSQL); err != nil || until == nil {
		return 0, 0, false, wrap(err, "look for the last usage")
	}
	return *from, *until + 1, true, nil
}

// tallyDays adds the days that are summed up, and the records of all others. Where a summed
// up day has not the part that answers the question, nothing of it was used that day.
func (t *Spending) tallyDays(ctx context.Context, tally *spend.Tally, by spend.By, f UsageFilter) error {
	first, end, there, err := t.usageSpan(ctx)
	if err != nil || !there {
		return err
	}
	begin := min(first, first/dayMillis*dayMillis)
	if !f.Since.IsZero() {
		begin = max(begin, f.Since.UnixMilli())
	}
	until := (end + dayMillis - 1) / dayMillis * dayMillis
	if !f.Until.IsZero() {
		until = min(until, f.Until.UnixMilli())
	}
	query, args := usageDaysSQL, []any{spend.DayFormat, (begin + dayMillis - 1) / dayMillis, until / dayMillis}
	if part := spend.Part(by, f); part != "" {
		query, args = usagePartsSQL, append(args, part)
	}
	var rest [][2]int64 // from, until
	next := begin
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var day int64
		var body []byte
		if err := scan(&day, &body); err != nil {
			return err
		}
		if body == nil || tally.Add(day, body) == nil { // or it is damaged, and its records are read
			if day*dayMillis > next {
				rest = append(rest, [2]int64{next, day * dayMillis})
			}
			next = (day + 1) * dayMillis
		}
		return nil
	}, query, args...)
	if err != nil {
		return err
	}
	if next < until {
		rest = append(rest, [2]int64{next, until})
	}
	for _, r := range rest {
		f.Since, f.Until = time.UnixMilli(r[0]), time.UnixMilli(r[1])
		if err := t.tallyRecords(ctx, tally, f); err != nil {
			return err
		}
	}
	return nil
}

// tallyRecords adds the records that f chooses, day by day.
func (t *Spending) tallyRecords(ctx context.Context, tally *spend.Tally, f UsageFilter) error {
	var day *spend.Day
	var number int64
	add := func() error {
		if day == nil {
			return nil
		}
		return tally.Add(number, day.Encode())
	}
	query, args := usesSQL(f)
	err := t.eachUse(ctx, func(of int64, u spend.Use) error {
		if day == nil || of != number {
			if err := add(); err != nil {
				return err
			}
			day, number = &spend.Day{}, of
		}
		day.Add(u)
		return nil
	}, query, args...)
	if err != nil {
		return err
	}
	return add()
}

// usesSQL reads the records that f chooses in the order of their days.
func usesSQL(f UsageFilter) (query string, args []any) {
	where, args := usageWhere(f)
	return `SELECT at_ms / 86400000, event_id, EXISTS (SELECT 1 FROM usage_spread x WHERE x.event_id = usage_records.event_id),
		actor, conversation_id, codebase_id, CASE WHEN model = '' THEN '(' || ai_assistant_type || ')' ELSE model END,
		input_tokens, output_tokens, cost_micros FROM usage_records` + where + ` ORDER BY at_ms`, args
}

// eachUse calls visit for what usesSQL reads, with the days since 1970.
func (t *Spending) eachUse(ctx context.Context, visit func(day int64, u spend.Use) error, query string, args ...any) error {
	return t.tx.each(ctx, func(scan func(...any) error) error {
		var day int64
		var u spend.Use
		var micros *int64
		err := scan(&day, text{&u.EntryID}, &u.Spread, &u.Actor, text{&u.ConversationID}, text{&u.CodebaseID}, &u.Model, &u.Input, &u.Output, &micros)
		if err != nil {
			return err
		}
		if micros != nil {
			u.Micros, u.Known = *micros, true
		}
		return visit(day, u)
	}, query, args...)
}

// UsageToSum returns the days, since 1970, that are over at a time and not summed up, the
// newest first.
func (s *Store) UsageToSum(ctx context.Context, now time.Time) (days []int64, err error) {
	err = s.InRead(ctx, func(t *Tx) error {
		first, _, there, err := t.Spending().usageSpan(ctx)
		if err != nil || !there {
			return err
		}
		end := now.Add(-usageSettles).UnixMilli() / dayMillis
		begin := max(first/dayMillis, end-usageDays, 1)
		summed := make(map[int64]bool)
		err = t.each(ctx, func(scan func(...any) error) error {
			var day int64
			err := scan(&day)
			summed[day] = true
			return err
		}, `SELECT day FROM usage_days WHERE format = $1 AND day >= $2`, spend.DayFormat, begin)
		for day := end - 1; day >= begin; day-- {
			if !summed[day] {
				days = append(days, day)
			}
		}
		return err
	})
	return days, wrap(err, "look which days of usage are not summed up")
}

// usageLock is the first key of the advisory locks by which PostgreSQL keeps those who
// record usage of a day and who sums it up apart; the triggers of migration 00040 know it.
const usageLock = 0x75_73_65

// SumUsageDay sums a day up that is over. Where somebody changes its records at this moment
// it leaves the day to the next time.
func (s *Store) SumUsageDay(ctx context.Context, day int64) error {
	err := s.InTx(ctx, func(t *Tx) error {
		if t.pg != nil {
			mine := false
			if _, err := t.one(ctx, []any{&mine}, `SELECT pg_try_advisory_xact_lock($1::int, $2::int)`, usageLock, day%64); err != nil || !mine {
				return err
			}
		}
		var all spend.Day
		parts := make(map[string]*spend.Day)
		query, args := usesSQL(UsageFilter{Since: time.UnixMilli(day * dayMillis), Until: time.UnixMilli((day + 1) * dayMillis)})
		err := t.Spending().eachUse(ctx, func(_ int64, u spend.Use) error {
			all.Add(u)
			for name, part := range u.Parts() {
				if parts[name] == nil {
					parts[name] = &spend.Day{}
				}
				parts[name].Add(part)
			}
			return nil
		}, query, args...)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM usage_day_parts WHERE day = $1`, day); err != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO usage_days (day, format, body) VALUES ($1, $2, $3)
			ON CONFLICT (day) DO UPDATE SET format = excluded.format, body = excluded.body`, day, spend.DayFormat, all.Encode())
		for name, part := range parts {
			if err == nil {
				err = t.later(ctx, `INSERT INTO usage_day_parts (day, part, body) VALUES ($1, $2, $3)`, day, name, part.Encode())
			}
		}
		return err
	})
	return wrap(err, "sum up a day of usage")
}
