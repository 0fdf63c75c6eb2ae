package orchestrator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// TestStandingTaskOfSomebodyWhomThePlatformTurnsAway ends, and says so.
func TestStandingTaskOfSomebodyWhomThePlatformTurnsAway(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var no atomic.Bool
		w.Chat.Admits = func(context.Context, messages.Inbound) (bool, error) { return !no.Load(), nil }
		standing(w)
		no.Store(true)
		w.Away(61 * time.Minute)
		w.Pass(30 * time.Second)
		w.Chat.Find("⏰ The standing task of **watch** is off: Ann, who turned it on, can no longer use this bot.")
		if n := w.Value(`SELECT count(*) FROM agent_schedules`); n != "0" {
			t.Errorf("%s tasks stand", n)
		}
	})
}

// TestStandingTaskDoesNotCatchUpWithItself: while one run works, none is put behind it.
func TestStandingTaskDoesNotCatchUpWithItself(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standingEvery(w, 60)
		w.Model.On("Look at the clock", ot.Later(150*time.Second, ot.Say("It is late.")))
		w.Pass(190 * time.Second)
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%"schedule":%'`); n != "1" {
			t.Errorf("%s runs were begun in the time that the first one took", n)
		}
		w.Pass(time.Minute)
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%"schedule":%'`); n != "2" {
			t.Errorf("%s runs, want the second one when the first is over", n)
		}
	})
}

// TestStandingTaskBeginsAtOnce where there is a slot: it waits for no other sweep, and for no lease
// to run out.
func TestStandingTaskBeginsAtOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standingEvery(w, 60)
		var began time.Time
		w.Model.On("Look at the clock", ot.Then(func() { began = time.Now() }, ot.Say("It is late.")))
		w.Pass(90 * time.Second)
		accepted := w.Value(`SELECT max(accepted_ms) FROM inbound_events`)
		if got := fmt.Sprint(began.UnixMilli()); got != accepted {
			t.Errorf("it was put into the inbox at %s and began at %s", accepted, got)
		}
	})
}

// TestStandingTaskDoesNotQueueBehindItself: while a run waits for another turn, none is put behind
// it.
func TestStandingTaskDoesNotQueueBehindItself(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standingEvery(w, 60)
		w.Model.On("hello", ot.Later(200*time.Second, ot.Say("Hello.")))
		w.Chat.Say("hello")
		w.Pass(190 * time.Second)
		if marks := w.Chat.Marks(messages.Inbound{}); len(marks) > 0 {
			t.Errorf("of a message that nobody wrote the marks %q are shown", marks)
		}
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%"schedule":%'`); n != "1" {
			t.Errorf("%s runs wait", n)
		}
	})
}

// TestStandingTaskWaitsForTheEndOfAHalt: nothing is put into an inbox meanwhile.
func TestStandingTaskWaitsForTheEndOfAHalt(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standing(w)
		halt(w)
		w.Away(61 * time.Minute)
		w.Pass(30 * time.Second)
		const runs = `SELECT count(*) FROM inbound_events WHERE data LIKE '%"schedule":%'`
		if n := w.Value(runs); n != "0" {
			t.Errorf("%s runs wait for the end of the halt", n)
		}
		resume(w)
		w.Pass(30 * time.Second)
		if n := w.Value(runs); n != "1" {
			t.Errorf("%s runs, want one after the halt", n)
		}
	})
}

// TestStandingTaskOfAChatThatRemovedTheBot ends, also in a topic: nobody would read what it says.
func TestStandingTaskOfAChatThatRemovedTheBot(t *testing.T) {
	t.Parallel()
	for name, room := range map[string]string{"the chat": ot.Room, "its topics": ot.Room[:len(ot.Room)-1]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				standing(w)
				w.Chat.Do(ot.In(room), ot.With(func(in *messages.Inbound) { in.Kind, in.Below = messages.KindGone, room }))
				w.Pass(3 * time.Hour)
				if n := len(w.Model.Requests()); n > 0 {
					t.Errorf("it ran %d times", n)
				}
				if got := w.Rows(`SELECT actor FROM audit_log WHERE action = 'schedule.off'`); len(got) != 1 || got[0] != "system" {
					t.Errorf("on record is %q", got)
				}
			})
		})
	}
}

// TestStandingTaskOfAChatThatTakesNoMessages ends with its first run there: platforms do not
// tell of each such chat, and of none of the topics in one.
func TestStandingTaskOfAChatThatTakesNoMessages(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standing(w)
		w.Model.On("Look at the clock", ot.Later(10*time.Second, ot.Say("It is late.")))
		w.Chat.ReactBy(func(ot.Asked) ot.Reaction { return ot.Reaction{Err: fault.New(fault.Gone, "The chat is gone.")} })
		w.Pass(3 * time.Hour)
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("it ran %d times", n)
		}
		if got := w.Rows(`SELECT actor FROM audit_log WHERE action = 'schedule.off'`); len(got) != 1 || got[0] != "system" {
			t.Errorf("on record is %q", got)
		}
	})
}

// TestStandingTaskThatChangesMeanwhile: while the platform is asked whether its creator may, it is
// switched off, or begun by another replica, or its profile is gone. Then it
// is not begun.
func TestStandingTaskThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	task := func(ctx context.Context, tx *store.Tx) (sessions.Schedule, error) {
		c, err := tx.Conversations().FindConversation(ctx, room(ot.Room))
		if err != nil {
			return sessions.Schedule{}, err
		}
		s, _, err := tx.Tasks().Schedule(ctx, c.ID)
		return s, err
	}
	for name, change := range map[string]func(ctx context.Context, tx *store.Tx, s sessions.Schedule) error{
		"Off": func(ctx context.Context, tx *store.Tx, s sessions.Schedule) error {
			_, err := tx.Tasks().EndSchedule(ctx, s.ConversationID)
			return err
		},
		"Begun": func(ctx context.Context, tx *store.Tx, s sessions.Schedule) error {
			_, err := tx.Tasks().AdvanceSchedule(ctx, s, time.Now(), time.Now().Add(time.Hour), "")
			return err
		},
		"Gone": func(ctx context.Context, tx *store.Tx, s sessions.Schedule) error {
			_, err := tx.Profiles().Delete(ctx, s.AgentID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				var due atomic.Bool
				w.Chat.Admits = func(context.Context, messages.Inbound) (bool, error) {
					if due.CompareAndSwap(true, false) {
						inTx(w, func(ctx context.Context, tx *store.Tx) error {
							s, err := task(ctx, tx)
							return errors.Join(err, change(ctx, tx, s))
						})
					}
					return true, nil
				}
				standing(w)
				w.Process().Stop()
				w.Pass(61 * time.Minute)
				due.Store(true)
				w.Start()
				w.Pass(30 * time.Second)
				if due.Load() {
					t.Error("it was not due")
				}
				if n := len(w.Model.Requests()); n != 0 {
					t.Errorf("it ran %d times", n)
				}
				if texts := strings.Join(w.Chat.Texts(ot.Room), "\n"); strings.Contains(texts, "standing task of") {
					t.Errorf("it says %s", texts)
				}
			})
		})
	}
}

// errRepeated is why a transaction was rolled back that runs again.
var errRepeated = errors.New("could not serialize access")

// repeating is a database that has each transaction run twice, as PostgreSQL may.
type repeating struct{ orchestrator.Storage }

func (s repeating) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	err := s.Storage.InTx(ctx, func(tx orchestrator.Tx) error { return cmp.Or(fn(tx), errRepeated) })
	if errors.Is(err, errRepeated) {
		err = s.Storage.InTx(ctx, fn)
	}
	return err
}

// run is how often these tasks run: an hour in which nothing happens takes a second of the
// test.
const run = 20 * time.Minute

// TestStandingTaskRestsWhereTheDaysBudgetIsUsedUp: it says so once, and goes on the next day.
func TestStandingTaskRestsWhereTheDaysBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Budget, c.Storage = spend.Budget{PersonTokens: 10}, repeating{c.Storage}
		}
		begins := spend.Today(time.Now()).AddDate(0, 0, 1)
		w.Pass(time.Until(begins.Add(5 * time.Minute))) // so that it runs at 0:25, 0:45 and so on
		standingEvery(w, int64(run.Seconds()))
		says := func(part string) (n int) {
			for _, text := range w.Chat.Texts(ot.Room) {
				n += strings.Count(text, part)
			}
			return n
		}
		w.Pass(time.Until(begins.Add(5 * run)))
		if answers, refusals := says("It is late."), says("budget is used up"); answers != 1 || refusals != 1 || says("The standing task is paused.") != 1 {
			t.Errorf("it answered %d times and was refused %d times", answers, refusals)
		}
		w.Chat.Say("/schedule")
		w.Pass(2 * time.Second)
		w.Chat.Find("paused because the daily budget was used up, next try at " + wording.Moment(begins.Add(5*run+5*time.Minute)))
		w.Away(time.Until(begins.Add(24*time.Hour - time.Minute)))
		w.Pass(50 * time.Second)
		if answers, refusals := says("It is late."), says("budget is used up"); answers != 1 || refusals != 1 {
			t.Errorf("on the same day, it answered %d times and was refused %d times", answers, refusals)
		}
		for _, next := range []struct {
			hours   time.Duration
			answers int
		}{{24*time.Hour + 4*time.Minute, 1}, {24*time.Hour + 6*time.Minute, 2}} {
			w.Pass(time.Until(begins.Add(next.hours)))
			if n := says("It is late."); n != next.answers {
				t.Errorf("%s after the first day had begun, it had answered %d times", next.hours, n)
			}
		}
	})
}

// TestStandingTaskGoesOnWhereTheBudgetIsRaised, with its next run, at a reload and at a
// start, and rests on where that is not enough.
func TestStandingTaskGoesOnWhereTheBudgetIsRaised(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		budget := spend.Budget{PersonTokens: 10}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Budget = budget }
		begins := spend.Today(time.Now()).AddDate(0, 0, 1)
		w.Pass(time.Until(begins.Add(5 * time.Minute))) // so that it runs at 0:25, 0:45 and so on
		standingEvery(w, int64(run.Seconds()))
		says := func(answers, refusals int) {
			t.Helper()
			text := strings.Join(w.Chat.Texts(ot.Room), "\n")
			if a, r := strings.Count(text, "It is late."), strings.Count(text, "budget is used up"); a != answers || r != refusals {
				t.Errorf("it answered %d times and was refused %d times; want %d and %d", a, r, answers, refusals)
			}
		}
		w.Pass(time.Until(begins.Add(3 * run)))
		says(1, 1)
		reload := func(tokens int64) {
			live := *w.Process().Engine.Live()
			live.Budget = spend.Budget{PersonTokens: tokens}
			w.Process().Engine.Reload(w.T.Context(), live)
		}
		reload(11)
		w.Pass(2 * run)
		says(1, 1)
		reload(25)
		w.Pass(time.Until(begins.Add(5*run + 4*time.Minute)))
		says(1, 1)
		w.Pass(2 * time.Minute)
		says(2, 1)
		w.Pass(2 * run)
		says(2, 2)
		budget = spend.Budget{}
		w.Away(time.Minute)
		w.Pass(run)
		says(3, 2)
	})
}

// TestStandingTaskThatRestedOnceRunsOnTime: at the times of its day at which it ran before,
// and a start between them has it run no more often.
func TestStandingTaskThatRestedOnceRunsOnTime(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Budget = spend.Budget{PersonTokens: 100} }
		w.Model.On("spend", ot.Bill(assistant.Usage{InputTokens: 200}, fault.New(fault.Invalid, "Spent.")))
		begins := spend.Today(time.Now()).AddDate(0, 0, 1)
		w.Pass(time.Until(begins.Add(23*time.Hour + 5*time.Minute)))
		standingEvery(w, int64(run.Seconds()))
		w.Chat.Say("spend")
		w.Pass(time.Until(begins.Add(25*time.Hour + time.Minute))) // it rests from 23:25 on, and answers at 0:05, 0:25 and 0:45
		answers := strings.Count(strings.Join(w.Chat.Texts(ot.Room), "\n"), "It is late.")
		w.Away(time.Minute)
		w.Pass(2 * time.Minute)
		if n := strings.Count(strings.Join(w.Chat.Texts(ot.Room), "\n"), "It is late."); answers != 3 || n != 3 {
			t.Errorf("a restart had it run: it answered %d times before and %d after", answers, n)
		}
	})
}

// TestStandingTaskWakesWhomItFallsTo has a run of a standing task be offered as a message is,
// rather than wait for a sweep.
func TestStandingTaskWakesWhomItFallsTo(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var shared atomic.Bool
		others := make([]string, 10_000) // so many that it falls to one of them
		for n := range others {
			others[n] = fmt.Sprint("process ", n)
		}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Takers = func() []string {
				if shared.Load() {
					return others
				}
				return nil
			}
		}
		standing(w)
		shared.Store(true)
		w.Pass(61 * time.Minute)
		if n := w.Offered(); n != 1 {
			t.Errorf("its run was offered %d times", n)
		}
		w.Chat.Find("It is late.")
	})
}

// TestStandingTaskAfterAWrongClock goes on at its times: while the machine's clock was days ahead,
// the next run was set for a day that nobody would have waited for.
func TestStandingTaskAfterAWrongClock(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var ahead atomic.Int64
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		}
		standingEvery(w, 600)
		const runs = `SELECT count(*) FROM inbound_events WHERE data LIKE '%"schedule":%'`
		ahead.Store(int64(48 * time.Hour))
		w.Pass(time.Minute)
		if n := w.Value(runs); n != "1" {
			t.Fatalf("%s runs when the clock went forward, want one for all that were missed", n)
		}
		ahead.Store(0)
		w.Pass(time.Minute)
		if n := w.Value(runs); n != "1" {
			t.Errorf("%s runs when the clock was right again, want none for that", n)
		}
		w.Pass(time.Hour)
		if n := w.Value(runs); n != "6" && n != "7" {
			t.Errorf("%s runs an hour later, want one more every ten minutes", n)
		}
	})
}
