package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// sharing starts two processes that offer conversations to each other; what is said comes
// to the first one.
func sharing(w *ot.World) (first, second *ot.Process) {
	first, second = w.Start(), w.Replica()
	w.Share(first, second)
	w.Chat.DeliverTo(first)
	return first, second
}

// answered returns how many of the rooms have n answers.
func answered(w *ot.World, rooms, n int) (count int) {
	for room := range rooms {
		if len(w.Chat.Texts(fmt.Sprint("room ", room))) == n {
			count++
		}
	}
	return count
}

// TestReplicasShare has people write to one process, and two answer: each conversation
// stays with one of them.
func TestReplicasShare(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		first, second := sharing(w)
		const rooms = 120 // so many that chance, which deals them out, leaves the bounds once in 20,000 times
		for round := range 2 {
			for n := range rooms {
				w.Chat.Say("hello", ot.In(fmt.Sprint("room ", n)))
				w.Settle()
			}
			w.Pass(time.Second) // two processes may have waited for each other's writes
			if n := answered(w, rooms, round+1); n != rooms {
				t.Fatalf("in round %d, %d of %d rooms were answered once", round, n, rooms)
			}
		}
		if n := w.Offered(); n < rooms/2 || n > 2*rooms-rooms/2 || n%2 != 0 {
			t.Errorf("%d of %d messages were offered, want about half of them, and both of a room or none", n, 2*rooms)
		}
		if left := w.Value(`SELECT count(*) FROM remote_agent_conversations WHERE lease_owner IS NOT NULL`); left != "0" {
			t.Errorf("%s conversations are held still", left)
		}
		second.Stop()
		first.Stop()
	})
}

// TestLocalPlatformIsNotShared has nothing offered of a platform that only the process
// itself can answer on.
func TestLocalPlatformIsNotShared(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.Local = true
		sharing(w)
		for n := range 20 {
			w.Chat.Say("hello", ot.In(fmt.Sprint("room ", n)))
		}
		w.Pass(time.Second)
		if n := w.Offered(); n > 0 || answered(w, 20, 1) != 20 {
			t.Errorf("%d messages were offered, %d rooms answered", n, answered(w, 20, 1))
		}
	})
}

// TestOfferThatNobodyTakes has the process to which a conversation falls not hear of it,
// have no slot, or stop: the message is answered all the same, once.
func TestOfferThatNobodyTakes(t *testing.T) {
	t.Parallel()
	const rooms = 60
	for name, away := range map[string]func(w *ot.World, first, second *ot.Process){
		"Deaf":    func(w *ot.World, _, second *ot.Process) { w.Deaf(second, true) },
		"Stopped": func(_ *ot.World, _, second *ot.Process) { second.Stop() },
		"Killed":  func(w *ot.World, _, second *ot.Process) { w.Deaf(second, true); second.Kill() },
		"NoData":  func(_ *ot.World, _, second *ot.Process) { second.Fail(errUnavailable) },
		"Stops": func(w *ot.World, first, second *ot.Process) {
			w.Chat.DeliverTo(second)
			w.Share()
			w.Model.On("busy", ot.Later(20*time.Second, ot.Say("I was busy.")))
			w.Chat.Say("busy")
			w.Settle()
			second.Shutdown()
			w.Settle()
			w.Chat.DeliverTo(first)
			w.Share(first, second)
		},
		"Busy": func(w *ot.World, first, second *ot.Process) {
			w.Chat.DeliverTo(second)
			w.Share()
			w.Model.On("busy", ot.Hold("", ot.Say("I was busy.")))
			w.Chat.Say("busy")
			w.Settle()
			w.Chat.DeliverTo(first)
			w.Share(first, second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				first := w.Start()
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
				second := w.Replica()
				w.Chat.DeliverTo(first)
				w.Share(first, second)
				away(w, first, second)
				for n := range rooms {
					w.Chat.Say(fmt.Sprint("hello ", n), ot.In(fmt.Sprint("room ", n)))
				}
				w.Settle()
				if n := w.Offered(); name != "Stopped" && name != "Killed" && n < rooms/3 {
					t.Errorf("%d of %d messages were offered", n, rooms)
				}
				w.Pass(30 * time.Second)
				if n := answered(w, rooms, 1); n != rooms {
					t.Errorf("%d of %d rooms were answered once", n, rooms)
				}
			})
		})
	}
}

// TestLimitOfWhatIsOffered has all processes busy: what one person says in many conversations
// is bounded, whichever process it falls to.
func TestLimitOfWhatIsOffered(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxWaiting, c.Slots = 1, 1 }
		w.Model.On("busy", ot.Hold("", ot.Say("I was busy.")))
		first, second := w.Start(), w.Replica()
		for n, p := range []*ot.Process{second, first} {
			w.Chat.DeliverTo(p)
			w.Chat.Say("busy", ot.In(fmt.Sprint("busy ", n)))
			w.Settle()
		}
		w.Share(first, second)
		for n := range 40 {
			w.Chat.Say("hello", ot.In(fmt.Sprint("room ", n)))
		}
		w.Pass(time.Second)
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE lane = 'turn' AND state = 'waiting'`); n != "10" {
			t.Errorf("%s messages wait, and 10 may", n)
		}
	})
}

// TestOfferWhoseClaimFails has the process to which conversations fall fail to claim them, or
// not know whether it did: it keeps neither slot nor lease, and somebody looks after them at
// once, not with a sweep or when the lease has run out.
func TestOfferWhoseClaimFails(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(second *ot.Process, once *atomic.Bool){
		"Failed":  func(_ *ot.Process, once *atomic.Bool) { once.Store(true) },
		"Unknown": func(second *ot.Process, _ *atomic.Bool) { second.Lose() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				first := w.Start()
				var once atomic.Bool
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots, c.Storage = 1, failing{c.Storage, &once} }
				second := w.Replica()
				w.Chat.DeliverTo(first)
				w.Share(first, second)
				for n := range 10 {
					if n > 0 {
						w.Pass(6 * time.Second)
					}
					fails(second, &once)
					w.Chat.Say("hello", ot.In(fmt.Sprint("room ", n)))
					w.Pass(2 * time.Second)
					if got := answered(w, n+1, 1); got != n+1 {
						t.Fatalf("%d of %d rooms were answered", got, n+1)
					}
				}
			})
		})
	}
}

// TestOfferThatComesEarly has a process hear of a conversation before it works: it keeps no lease.
func TestOfferThatComesEarly(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("busy", ot.Hold("", ot.Say("I was busy.")))
		w.Start()
		w.Chat.Say("busy")
		w.Chat.Say("hello", ot.In("room 0"))
		w.Settle()
		id := w.Value(`SELECT id FROM remote_agent_conversations WHERE platform_conversation_id = 'room 0'`)
		w.Early = func(p *ot.Process) { p.Engine.Offered(w.T.Context(), []string{id}) }
		w.Replica()
		w.Pass(2 * time.Second)
		if n := answered(w, 1, 1); n != 1 {
			t.Errorf("it is not answered: %q", w.Chat.Texts("room 0"))
		}
	})
}

// failing is a database in which a claim fails that is told to.
type failing struct {
	orchestrator.Storage
	once *atomic.Bool
}

func (s failing) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.Storage.InTx(ctx, func(tx orchestrator.Tx) error { return fn(failingTx{tx, s.once}) })
}

type failingTx struct {
	orchestrator.Tx
	once *atomic.Bool
}

func (t failingTx) Leases() commit.LeaseStore { return failingLeases{t.Tx.Leases(), t.once} }

type failingLeases struct {
	commit.LeaseStore
	once *atomic.Bool
}

func (l failingLeases) ClaimLease(ctx context.Context, id, owner string, ttl time.Duration) (sessions.Lease, sessions.Conversation, bool, error) {
	if l.once.CompareAndSwap(true, false) {
		return sessions.Lease{}, sessions.Conversation{}, false, errUnavailable
	}
	return l.LeaseStore.ClaimLease(ctx, id, owner, ttl)
}

// whereFiles answers /diff, which no World has, with the process that was asked, and says which
// one has made a fork.
type whereFiles struct {
	orchestrator.Commands
	process string
}

func (f whereFiles) Find(name string) (command.Command, bool) {
	if name == "fork" {
		c, ok := f.Commands.Find(name)
		run := c.Run
		c.Run = func(ctx context.Context, r command.Request) (command.Reply, error) {
			reply, err := run(ctx, r)
			reply.Text += " By " + f.process + "."
			return reply, err
		}
		return c, ok
	}
	if name != "diff" {
		return f.Commands.Find(name)
	}
	return command.Command{Name: name, Files: true, Run: func(context.Context, command.Request) (command.Reply, error) {
		return command.Reply{Text: "The files of " + f.process + "."}, nil
	}}, true
}

// TestCommandsAboutFilesGoWhereTheyAre: a conversation's files are where its turns run, and
// the process that receives what people write may be another one.
func TestCommandsAboutFilesGoWhereTheyAre(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		started := 0
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			started++
			c.Commands = whereFiles{c.Commands, fmt.Sprint("process ", started)}
		}
		first, second := sharing(w)
		const rooms = 12
		works := map[string]string{} // room -> process
		w.Model.On("wait", ot.Hold("", ot.Say("Done.")))
		for n := range rooms {
			at := fmt.Sprint("room ", n)
			w.Chat.Say("wait", ot.In(at))
			w.Pass(time.Second)
			owner := w.Value(`SELECT lease_owner FROM remote_agent_conversations WHERE platform_conversation_id = '` + at + `'`)
			switch owner {
			case first.Engine.Owner():
				works[at] = "process 1"
			case second.Engine.Owner():
				works[at] = "process 2"
			}
			w.Chat.Say("/diff", ot.In(at)) // at once where it works, else behind the turn
			w.Pass(time.Second)
			if shown := slices.Contains(w.Chat.Texts(at), "The files of process 1."); shown != (works[at] == "process 1") {
				t.Errorf("%s works on %q, during the turn: %q", works[at], at, w.Chat.Texts(at))
			}
			w.Model.Release()
			w.Pass(time.Second)
			w.Chat.Say("/diff", ot.In(at))
			w.Pass(time.Second)
			said := strings.Join(w.Chat.Texts(at), "\n")
			if want := "The files of " + works[at] + "."; strings.Count(said, want) != 2 || strings.Count(said, "The files of") != 2 {
				t.Errorf("%s works on %q: %q", works[at], at, said)
			}
		}
		if len(w.Open()) > 0 {
			t.Errorf("still open: %q", w.Open())
		}
	})
}

// TestForkIsMadeWhereItsFilesAre, and stays there: they were copied from those of the
// conversation that it began in, whichever process receives what people write.
func TestForkIsMadeWhereItsFilesAre(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		started, opened := 0, 0
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			started++
			c.Commands = whereFiles{c.Commands, fmt.Sprint("process ", started)}
		}
		w.Chat.Opens = func(platform.Opening) (string, error) {
			opened++
			return fmt.Sprint("fork ", opened), nil
		}
		first, second := sharing(w)
		w.Model.On("wait", ot.Hold("", ot.Say("Done.")))
		works := func(at string) string {
			t.Helper()
			w.Chat.Say("wait", ot.In(at))
			w.Pass(time.Second)
			owner := w.Value(`SELECT lease_owner FROM remote_agent_conversations WHERE platform_conversation_id = '` + at + `'`)
			w.Model.Release()
			w.Pass(time.Second)
			return map[string]string{first.Engine.Owner(): "process 1", second.Engine.Owner(): "process 2"}[owner]
		}
		count := map[string]int{}
		for n := range 12 {
			at := fmt.Sprint("room ", n)
			process := works(at)
			count[process]++
			w.Chat.Say("/fork thread", ot.In(at))
			w.Pass(time.Second)
			if said := strings.Join(w.Chat.Texts(at), "\n"); !strings.Contains(said, "🍴 [A new thread]") || !strings.Contains(said, "By "+process+".") {
				t.Errorf("%s works on %s, where /fork says %q", process, at, said)
			}
			if got := works(fmt.Sprint("fork ", n+1)); got != process {
				t.Errorf("%s works on %s, and %s on its fork", process, at, got)
			}
		}
		if len(count) != 2 || len(w.Open()) > 0 {
			t.Errorf("the processes work on %v; still open: %q", count, w.Open())
		}
	})
}
