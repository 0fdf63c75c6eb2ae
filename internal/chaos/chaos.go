// Package chaos runs the whole program as an operator would, in processes of its own
// between emulated platforms and an emulated model, and lets happen to it what happens:
// it is killed at every moment, its database goes away, calls fail in every way,
// events come twice, late and in another order. In the end it compares what people see
// with what they said.
//
// Everything is in a temporary directory and on the loopback interface. What is said
// and what goes wrong is drawn from a seed; when exactly each thing happens depends on
// the machine.
package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/chaos/ledger"
	"remote-agent/internal/emulator"
)

// Options say what to do. Zero values mean the defaults.
type Options struct {
	// Command runs the daemon with the environment that it is given, until SIGTERM.
	// With Profiles it gets --pprof-addr. Required.
	Command []string

	// Environ is what a process needs of the system's environment; With are options of
	// the program, as NAME=VALUE, that go before those that are made for the run.
	Environ, With []string

	Platform string        // telegram, slack, slack-http, github; required
	Database string        // "sqlite" (default), "postgres" for a throwaway server, or the URL of one
	Replicas int           // default 1; more need PostgreSQL
	For      time.Duration // how long things go wrong; zero with Kills is until those are done
	Kills    int           // ends that early; zero is no bound
	KillEach time.Duration // pause between kills; zero draws 50 to 1,800 ms after each start
	Seed     uint64
	Rate     float64 // messages a second; default 6
	Chats    int     // in which people talk at the same time; default 40, 12 on GitHub
	Burst    int     // as many further people each say one message, 10 s after the start
	Faults   float64 // share of calls that fail; negative is none, zero the default of 0.05
	Calm     bool    // nothing goes wrong: a soak
	JustKill bool    // nothing but kills, each 50 to 1,800 ms after a start, and calls that fail
	OnKill   string  // is run before each of these kills, while the process stands still, with its DATA_DIR as argument
	Profiles string  // a folder for Go's profiles of the first process; for Calm
	Patience time.Duration

	Progress io.Writer // gets a line now and then; may be nil
}

// Errors about options, which name what is wrong.
var errOptions = errors.New("chaos")

// IsUsage reports whether an error of Run says that the options have to be changed.
func IsUsage(err error) bool { return errors.Is(err, errOptions) }

func (o Options) withDefaults() (Options, error) {
	o.Database = cmp.Or(o.Database, "sqlite")
	if o.Chats == 0 {
		o.Chats = 40
		if o.Platform == "github" {
			o.Chats = 12
		}
	}
	o.Rate = cmp.Or(o.Rate, 6)
	o.Faults = cmp.Or(o.Faults, 0.05)
	if o.Calm {
		o.Faults = -1
	}
	o.Replicas = max(o.Replicas, 1)
	o.Patience = cmp.Or(o.Patience, 2*time.Minute)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	switch {
	case len(o.Command) == 0:
		return o, errors.New("chaos: no command")
	case platforms[o.Platform] == nil:
		return o, fmt.Errorf("%w: there is no platform %q: telegram, slack, slack-http, github", errOptions, o.Platform)
	case o.Replicas > 1 && o.Database == "sqlite":
		return o, fmt.Errorf("%w: replicas need PostgreSQL: add --database postgres", errOptions)
	case o.OnKill != "" && (!o.JustKill || o.Replicas > 1):
		return o, fmt.Errorf("%w: a command before each kill needs --just-kill and one replica", errOptions)
	case o.For <= 0 && o.Kills <= 0:
		return o, fmt.Errorf("%w: say for how long, or how many kills", errOptions)
	case o.Profiles != "" && !o.Calm:
		return o, fmt.Errorf("%w: profiles are of a soak: add --soak", errOptions)
	case o.Calm && o.For <= 0:
		return o, fmt.Errorf("%w: say for how long the soak is", errOptions)
	case o.Rate < 0 || o.Rate > 1000 || o.Chats < 1 || o.Chats > 10_000 || o.Replicas > 16 || o.Burst < 0 || o.Burst > 50_000 || o.Faults > 0.5:
		return o, fmt.Errorf("%w: at most 1,000 messages a second, 10,000 chats, 50,000 people at once, 16 replicas and half of the calls", errOptions)
	}
	return o, nil
}

// Run does it and returns what became of every message. An error means that the run
// itself failed; a broken promise is in the report.
func Run(ctx context.Context, opts Options) (Report, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Report{}, err
	}
	// The emulators share the machine with the bot and should take little of it.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	dir, err := os.MkdirTemp("", "bot-chaos-")
	if err != nil {
		return Report{}, fmt.Errorf("make a directory for the data: %w", err)
	}
	keep := false
	defer func() {
		if !keep {
			_ = os.RemoveAll(dir) // a temporary directory
		}
	}()
	db, err := openDatabase(ctx, opts.Database, dir)
	if err != nil {
		return Report{}, err
	}
	defer db.close() //nolint:contextcheck // also when the run was called off
	r := &run{
		opts: opts, dir: dir, db: db, begin: time.Now(), book: &ledger.Book{},
		moments: newMoments(), dice: dice(opts.Seed), rnd: rand.New(rand.NewPCG(opts.Seed, 1)), //nolint:gosec // to be repeated, not to be secret
	}
	r.report.Options, r.report.Done, r.report.Skipped = opts, map[string]int{}, map[string]string{}
	r.report.Platform, r.report.Seed, r.report.Replicas = opts.Platform, opts.Seed, opts.Replicas
	if err := r.build(); err != nil { //nolint:contextcheck // what it starts is ended by close
		return Report{}, err
	}
	defer r.close()
	err = r.do(ctx)
	if keep = ctx.Err() == nil && (err != nil || r.report.Broken()); keep {
		r.report.Kept = dir
	}
	return r.report, err
}

// run is one run in progress.
type run struct {
	opts  Options
	dir   string
	db    *database
	begin time.Time
	book  *ledger.Book
	dice  dice
	rnd   *rand.Rand // of the goroutine that makes trouble

	model    *model
	platform platform
	relay    *relay
	moments  *moments
	talk     *talk
	bots     []*bot
	lastKill time.Time
	ahead    atomic.Int64 // how far the platform's clock is, in nanoseconds

	noting sync.Mutex // guards both below, and what several goroutines note in report
	sends  []time.Time
	doubts []span
	report Report
}

// build starts the emulators and says where the bots are.
func (r *run) build() (err error) {
	if r.model, err = newModel(r); err != nil {
		return err
	}
	if r.platform, err = platforms[r.opts.Platform](r); err != nil {
		r.model.server.Close()
		return err
	}
	if r.relay, err = newRelay(); err != nil {
		r.platform.close()
		r.model.server.Close()
		return err
	}
	for i := range r.opts.Replicas {
		b := &bot{run: r, name: fmt.Sprintf("replica %d", i+1), data: filepath.Join(r.dir, fmt.Sprint("data", i))}
		if b.addr, err = emulator.FreeAddr(); err != nil {
			r.close()
			return err
		}
		if r.opts.Profiles != "" && i == 0 {
			if b.profiles, err = emulator.FreeAddr(); err != nil {
				r.close()
				return err
			}
		}
		r.bots = append(r.bots, b)
	}
	to := r.relay.url()
	if len(r.bots) == 1 { // what stands between would take what the bot is to have
		to = "http://" + r.bots[0].addr
	}
	r.platform.hook(to)
	r.talk = newTalk(r)
	return nil
}

func (r *run) close() {
	for _, b := range r.bots {
		b.kill()
	}
	r.relay.close()
	r.platform.close()
	r.model.server.Close()
}

// do lets people talk and things go wrong, waits until all is answered, and judges.
func (r *run) do(ctx context.Context) error {
	for _, b := range r.bots {
		if err := b.start(); err != nil { //nolint:contextcheck // as above
			return err
		}
	}
	for _, b := range r.bots {
		if err := b.ready(ctx); err != nil {
			return err
		}
	}
	if err := r.platform.introduce(ctx); err != nil {
		return err
	}
	r.say("seed %d: %s", r.opts.Seed, r.opts.describe())
	until, stop := context.WithCancel(ctx)
	defer stop()
	if r.opts.For > 0 {
		until, stop = context.WithTimeout(ctx, r.opts.For)
		defer stop()
	}
	talking := make(chan struct{})
	go func() { defer close(talking); r.talk.people(until) }()
	err := r.trouble(until)
	stop()
	<-talking
	r.talk.faults.Store(false)
	if err == nil && ctx.Err() == nil {
		err = r.rest(ctx)
	}
	r.report.Took = time.Since(r.begin)
	r.judge()
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// rest waits until all that was accepted is answered, and then whether anything is
// said again: by the same process, while it stops, and by the next one.
func (r *run) rest(ctx context.Context) error {
	for _, b := range r.bots {
		if err := b.revive(); err != nil { //nolint:contextcheck // a process outlives the context
			return err
		}
	}
	patient, cancel := context.WithTimeout(ctx, r.opts.Patience)
	defer cancel()
	r.talk.settle(patient)
	if err := emulator.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	for _, again := range []bool{true, false} {
		for _, b := range r.bots {
			if err := b.stop(); err != nil {
				return err
			}
		}
		if !again {
			break
		}
		for _, b := range r.bots {
			if err := b.start(); err != nil { //nolint:contextcheck // as above
				return err
			}
			if err := b.ready(ctx); err != nil {
				return err
			}
		}
		if err := emulator.Sleep(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.opts.Progress, "%5.0f s  "+format+"\n", append([]any{time.Since(r.begin).Seconds()}, args...)...) // somebody who watches, or nobody
}
