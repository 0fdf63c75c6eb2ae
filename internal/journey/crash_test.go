//go:build unix

package journey_test

import (
	"cmp"
	"flag"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/heavytest"
	"remote-agent/internal/store/storetest"
)

var (
	killsFlag = flag.Int("kills", 0, "how often TestCrash kills the bot on SQLite, three tenths of it on PostgreSQL; 0 is 10, and 24 with TEST_HEAVY=1")
	seedFlag  = flag.Uint64("crash-seed", 0, "seed of TestCrash; 0 takes the clock")
)

// takeover is how soon a killed replica must be replaced on PostgreSQL and all be
// answered that has waited, also on a busy machine; it takes a second or two.
const takeover = 30 * time.Second

// TestCrash kills the bot at every named point and at random moments
// while people talk to it, starts it again, and compares what they see with what
// they said: nothing lost, nothing twice, everything in order.
func TestCrash(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // after 1970
	}
	kills := cmp.Or(*killsFlag, heavytest.Size(10, 24))
	t.Logf("-kills %d -crash-seed %d", kills, seed)
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		crashSQLite(t, seed, kills)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		crashPostgres(t, seed, kills)
	})
}

// crashSQLite kills one process after the other. Seven of ten die at a named
// point; of the others one may first catch up, so that no message is begun so
// often that it is given up, and one dies while it starts.
func crashSQLite(t *testing.T, seed uint64, kills int) {
	people := newPeople(2)
	w := newCrashWorld(t, "SQLite", "", seed, people)
	w.talk(seed, true)
	begin := time.Now()
	points := failpoint.Points()
	for i := range kills {
		if err := w.killOnce(i, points); err != nil {
			t.Fatalf("kill %d: %v", i+1, err)
		}
	}
	killing := time.Since(begin)
	last, err := w.launch("data", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.rest(); err != nil {
		t.Error(err)
	}
	t.Logf("SQLite: came to rest %s after the last kill", (time.Since(begin) - killing).Round(time.Millisecond))
	if err := last.ready(t.Context()); err != nil {
		t.Error(err)
	}
	w.orderly(last)
	w.report(w.checkLedger(), killing, time.Since(begin))
	if kills >= len(points) {
		w.checkPoints(points)
	}
}

// killOnce starts the bot and kills it in the way that is due.
func (w *crashWorld) killOnce(i int, points []failpoint.Point) error {
	way := i % (len(points) + 3)
	if way < len(points) {
		p, err := w.launch("data", w.point(points[way]))
		if err != nil {
			return err
		}
		return w.diesAt(p, points[way])
	}
	p, err := w.launch("data", "")
	if err != nil {
		return err
	}
	calls, pause := 1+w.rnd.IntN(60), time.Duration(w.rnd.IntN(8000))*time.Microsecond
	switch way - len(points) {
	case 0: // catches up
		if err := w.answered(p.started, false, time.Minute); err != nil {
			return err
		}
	case 1: // while it starts
		calls, pause = 0, time.Duration(w.rnd.IntN(80))*time.Millisecond
	}
	return w.killAfter(p, calls, pause)
}

// crashPostgres kills one of two replicas, in a few worlds at once, because each kill
// costs the starts of two processes.
func crashPostgres(t *testing.T, seed uint64, kills int) {
	const worlds = 3
	cycles := max(1, kills*3/10/worlds)
	var all [worlds]*crashWorld
	for i := range all {
		people := newPeople(2)
		name := fmt.Sprintf("PostgreSQL %d", i+1)
		all[i] = newCrashWorld(t, name, storetest.PostgresURL(t), seed+uint64(i)+1, people)
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() {
			w.talk(seed+uint64(i)+1, kills >= 100)
			if err := w.replicas(cycles, i); err != nil {
				t.Error(err)
			}
			w.quiet()
		})
	}
	wg.Wait()
	for _, w := range all {
		for _, p := range w.procs {
			if p.out.said(saysOtherPolls) {
				t.Errorf("%s polled while another replica did", p.name)
			}
		}
		w.report(w.checkLedger(), time.Since(begin), time.Since(begin))
	}
}

// replicas kills the replica that polls, again and again; the other one takes
// over and the dead one comes back beside it.
func (w *crashWorld) replicas(cycles, offset int) error {
	points := failpoint.Points()
	var other *process
	for i := range cycles {
		point := failpoint.Point("")
		at := ""
		if way := (3*offset + i + 1) % (len(points) + 2); way < len(points) {
			point = points[way]
			at = w.point(point)
		}
		victim, err := w.launch(fmt.Sprintf("data%d", i), at)
		if err != nil {
			return err
		}
		if err := victim.readyOrDead(w.t.Context()); err != nil {
			return err
		}
		if other != nil {
			w.orderly(other) // hands the poll over to the victim
		}
		if err := victim.receives(w.t.Context()); err != nil {
			return err
		}
		if other, err = w.launch(fmt.Sprintf("other%d", i), ""); err != nil {
			return err
		}
		if point != "" {
			err = w.diesAt(victim, point)
		} else {
			err = w.killAfter(victim, 20+w.rnd.IntN(100), time.Duration(w.rnd.IntN(8000))*time.Microsecond)
		}
		if err != nil {
			return err
		}
		if err := w.answered(victim.ended, false, takeover); err != nil {
			return fmt.Errorf("after the kill at %q: %w", at, err)
		}
		w.t.Logf("%s: after the kill at %q all was answered in %s", w.name, at, time.Since(victim.ended).Round(time.Millisecond))
	}
	if err := w.rest(); err != nil {
		return err
	}
	if err := other.ready(w.t.Context()); err != nil {
		return err
	}
	w.orderly(other)
	return nil
}

// orderly stops a process as a service manager does.
func (w *crashWorld) orderly(p *process) {
	if err := p.end(syscall.SIGTERM); err != nil {
		w.t.Error(err)
	} else if p.err != nil {
		w.t.Errorf("%s did not stop in order: %v", p.name, p.err)
	}
}

// checkPoints checks that every point killed somebody.
func (w *crashWorld) checkPoints(points []failpoint.Point) {
	hits := map[string]int{}
	for _, k := range w.kills {
		hits[k.where]++
	}
	for _, p := range points {
		if hits[string(p)] == 0 {
			w.t.Errorf("%s: nobody died at %q", w.name, p)
		}
	}
	w.t.Logf("%s: deaths by place: %v", w.name, hits)
}

// report logs what was done, in figures.
func (w *crashWorld) report(strays int, killing, all time.Duration) {
	asked, parts, commands, begun := 0, 0, 0, 0
	for _, c := range w.people.chats {
		asked += len(c.asks)
		commands += len(c.commands)
		for n, a := range c.asks {
			parts += len(paragraphs(c.index, n+1, a.kind))
			begun += c.begun[n+1]
		}
	}
	w.t.Logf("%s: %d kills in %s, %s in all; %d messages, %d commands, %d paragraphs; %d model requests; %d stray placeholders",
		w.name, len(w.kills), killing.Round(time.Millisecond), all.Round(time.Millisecond), asked, commands, parts, begun, strays)
}
