// Package bench measures the program from outside: it runs the real daemon in a
// child process between an emulated Telegram and an emulated model, both without
// delay, so that its figures are what the program itself adds and uses.
//
// The emulators and the load run in the calling process; time of the processor
// and memory are those of the child alone. Both share the machine, so a machine
// with few cores measures the emulators' appetite too. Nothing is judged here:
// the aims are printed beside the figures.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
)

// Bounds of a run, so that a bot that hangs ends it.
const (
	patience = 30 * time.Second // for one answer, one start or one stop
	longest  = 10 * time.Minute // for everything
)

// idleFor is how long the bot is left alone before its idle memory is read.
const idleFor = 1500 * time.Millisecond

// Options say what to measure. Zero values mean the defaults.
type Options struct {
	// Command starts the bot: the path of the program and its arguments. It must
	// run the daemon with the environment it is given and stop in order when its
	// standard input ends. Required.
	Command []string

	// Profile is arguments that Command gets as well in the process that polls.
	Profile []string

	// Relay starts Relay in the same way, in the same environment and BENCH_JOURNAL:
	// the floor that the bot is compared with. Without it there are no floors.
	Relay []string

	// Environ is added to the environment that is made for the bot.
	Environ []string

	// Dir is where a directory for the data is made and removed afterwards. The
	// default is the system's folder for temporary files.
	Dir string

	// DatabaseURL is a database for this run alone; empty is SQLite in Dir. What
	// the run stores there stays there.
	DatabaseURL string

	// Reach says why DatabaseURL cannot be used, before anything is measured; nil: nobody asks.
	Reach func(ctx context.Context) error

	// Replicas is how many processes share the database while all chats write at once;
	// more than one need DatabaseURL. Default 1.
	Replicas int

	Turns     int   // turns with all chats at once; default 4000
	Chats     int   // how many chats write at once; default 32
	Samples   int   // turns of each measurement of one chat; default 200
	Histories []int // earlier turns of a chat, for the figures over its history; default 1, 100, 500

	Progress io.Writer // gets a line for each step; may be nil
}

// Errors about options, which name what is wrong.
var errOptions = errors.New("bench")

// IsUsage reports whether an error of Run says that the options have to be changed.
func IsUsage(err error) bool { return errors.Is(err, errOptions) }

func (o Options) withDefaults() (Options, error) {
	if len(o.Command) == 0 {
		return o, errors.New("bench: no command")
	}
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	o.Replicas = orDefault(o.Replicas, 1)
	if o.Replicas < 1 || o.Replicas > 32 || o.Replicas > 1 && o.DatabaseURL == "" {
		return o, fmt.Errorf("%w: 1 to 32 replicas, and more than one need a PostgreSQL database: add --database-url", errOptions)
	}
	if o.DatabaseURL != "" && !strings.HasPrefix(o.DatabaseURL, "postgres") {
		return o, fmt.Errorf("%w: a database is postgres://user:password@host/name", errOptions)
	}
	o.Turns = orDefault(o.Turns, 4000)
	o.Chats = orDefault(o.Chats, 32)
	o.Samples = orDefault(o.Samples, 200)
	if len(o.Histories) == 0 {
		o.Histories = []int{1, 100, 500}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Turns < 0 || o.Chats < 0 || o.Samples < 0 || o.Chats > 1000 {
		return o, fmt.Errorf("%w: turns, chats and samples must be positive, and chats at most 1000", errOptions)
	}
	for _, h := range o.Histories {
		if h < 0 || h > 100_000 {
			return o, fmt.Errorf("%w: a history must be between 0 and 100000 turns", errOptions)
		}
	}
	return o, nil
}

func orDefault(n, def int) int {
	return cmp.Or(n, def)
}

// run is one measurement in progress.
type run struct {
	opts    Options
	dir     string
	subject string // begins what is said of a step; empty for the bot itself
	world   *world
	bot     *child
	beside  []*child // the other replicas
	report  Report
}

// Run measures and returns what it found. It takes about a minute with the
// defaults on two cores, and never longer than ten minutes.
func Run(ctx context.Context, opts Options) (Report, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Report{}, err
	}
	if opts.DatabaseURL != "" && opts.Reach != nil {
		if err := opts.Reach(ctx); err != nil {
			return Report{}, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longest, errors.New("bench: took too long"))
	defer cancel()
	// The load shares the machine with the bot and should take little of it.
	defer debug.SetGCPercent(debug.SetGCPercent(800))

	dir, err := os.MkdirTemp(opts.Dir, "bot-bench-")
	if err != nil {
		return Report{}, fmt.Errorf("%w: make a directory for the data: %w", errOptions, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	r := &run{opts: opts, dir: dir}
	if r.world, err = newWorld(); err != nil {
		return Report{}, err
	}
	defer r.world.close()
	defer func() {
		for _, bot := range append(r.beside, r.bot) {
			bot.kill()
		}
	}()

	r.report.Machine = describeMachine()
	r.report.Setup = Setup{Database: "SQLite, synchronous=FULL", Turns: opts.Turns, Chats: opts.Chats, Samples: opts.Samples, Replicas: opts.Replicas}
	if opts.DatabaseURL != "" {
		r.report.Setup.Database = postgres
	}
	for _, step := range []func(context.Context) error{
		r.probeDisk, r.measureFloors, r.measureStart, r.measureIdle, r.measureOneAtATime, r.addReplicas, r.measureMany,
		r.measureHistories, r.finish, r.compare,
	} {
		if err := step(ctx); err != nil {
			return r.report, err
		}
	}
	return r.report, nil
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.opts.Progress, r.subject+format+"\n", args...) // somebody who watches, or nobody
}

func (r *run) probeDisk(context.Context) error {
	r.say("disk: durable appends of 4 KiB")
	rate, err := fsyncRate(r.dir, 500*time.Millisecond)
	r.report.Machine.FsyncsPerSecond = rate
	return err
}

// measureStart starts the bot on an empty database and then again on the same
// one; the bot of the last start goes on to be measured.
func (r *run) measureStart(ctx context.Context) error {
	r.say("start: four times")
	first, err := r.startBot(ctx)
	if err != nil {
		return err
	}
	r.report.Start.Empty = first
	var again []time.Duration
	for range 3 {
		if err := r.bot.stop(ctx); err != nil {
			return err
		}
		took, err := r.startBot(ctx)
		if err != nil {
			return err
		}
		again = append(again, took)
	}
	r.report.Start.Again = percentile(again, 0.5)
	return nil
}

// startBot starts the bot and returns how long it took until its first poll.
func (r *run) startBot(ctx context.Context) (time.Duration, error) {
	polled := r.world.clock.nextPoll()
	begin := time.Now()
	bot, err := startChild(slices.Concat(r.opts.Command, r.opts.Profile), r.environ("data"))
	if err != nil {
		return 0, err
	}
	r.bot = bot
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case at := <-polled:
		return at.Sub(begin), nil
	case <-bot.done:
		return 0, fmt.Errorf("bench: the bot did not start: %w\n%s", bot.err, bot.output.String())
	case <-timer.C:
		return 0, fmt.Errorf("bench: the bot did not poll within %s\n%s", patience, bot.output.String())
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// environ is everything that a bot is told whose files are in a folder of that name.
// Nothing of the operator's own configuration gets into it.
func (r *run) environ(folder string) []string {
	return append([]string{
		"LISTEN_ADDR=127.0.0.1:0",
		"DATA_DIR=" + filepath.Join(r.dir, folder),
		"DATABASE_URL=" + r.opts.DatabaseURL,
		envModelKey + "=" + apiKey,
		envModelURL + "=" + r.world.aiURL(),
		"OPENAI_MODEL=emulated",
		"MEMORY_LEARNING=off", // the emulated model only answers
		envTelegramToken + "=" + r.world.token,
		envTelegramURL + "=" + r.world.telegramURL(),
		"TELEGRAM_ALLOWED_USER_IDS=*",
		"TELEGRAM_SEND_RATE=0",
		"TELEGRAM_CHAT_SEND_RATE=0",
		"MAX_CONCURRENT_CONVERSATIONS=64",
		"LOG_LEVEL=warn",
	}, r.opts.Environ...)
}

func (r *run) measureIdle(ctx context.Context) error {
	r.say("idle: %s", idleFor)
	if err := emulator.Sleep(ctx, idleFor); err != nil {
		return err
	}
	r.report.Memory.Idle = r.bot.memory().resident
	return nil
}

// measureOneAtATime lets one chat at a time write, each with a few turns only,
// so that histories stay short.
func (r *run) measureOneAtATime(ctx context.Context) error {
	r.say("one at a time: %d turns", r.opts.Samples)
	const each = 20
	chats := r.world.newChats((r.opts.Samples + each - 1) / each)
	if _, err := r.world.sequence(ctx, r.world.newChats(1), 20); err != nil { // warms up
		return err
	}
	latency, err := r.measureLatency(ctx, chats, each)
	r.report.OneAtATime = latency
	return err
}

// measureLatency measures turns of chats, one chat after the other.
func (r *run) measureLatency(ctx context.Context, chats []*chat, each int) (Latency, error) {
	before := r.cpu()
	stamps, err := r.world.sequence(ctx, chats, each)
	if err != nil {
		return Latency{}, fmt.Errorf("%w\n%s", err, r.bot.output.String())
	}
	return latencyOf(stamps, r.cpu().since(before)), nil
}

// addReplicas starts the other processes. One of all polls Telegram.
func (r *run) addReplicas(ctx context.Context) error {
	for n := 2; n <= r.opts.Replicas; n++ {
		r.say("replica %d", n)
		bot, err := startChild(r.opts.Command, r.environ("data"+strconv.Itoa(n)))
		if err != nil {
			return err
		}
		r.beside = append(r.beside, bot)
	}
	if len(r.beside) == 0 {
		return nil
	}
	return emulator.Sleep(ctx, idleFor) // until they listen for jobs
}

// cpu is the time of the processor that all replicas have used.
func (r *run) cpu() processTime {
	all := r.bot.cpu()
	for _, bot := range r.beside {
		more := bot.cpu()
		all = processTime{used: all.used + more.used, known: all.known && more.known}
	}
	return all
}

// measureMany lets many chats write at once, each as soon as it has its answer.
func (r *run) measureMany(ctx context.Context) error {
	turns := r.opts.Turns
	r.say("at once: %d chats, %d turns", r.opts.Chats, turns)
	if _, err := r.world.crowd(ctx, r.opts.Chats, 5*r.opts.Chats); err != nil { // warms up
		return fmt.Errorf("%w\n%s", err, r.bot.output.String())
	}
	before, calls, begin := r.cpu(), r.world.calls(), time.Now()
	took, err := r.world.crowd(ctx, r.opts.Chats, turns)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, r.bot.output.String())
	}
	elapsed := time.Since(begin)
	r.report.AtOnce = Throughput{
		Turns: turns, Seconds: elapsed.Seconds(), TurnsPerSecond: float64(turns) / elapsed.Seconds(),
		P50: percentile(took, 0.5), P95: percentile(took, 0.95),
		CPUPerTurn:   r.cpu().since(before).perTurn(turns),
		CallsPerTurn: float64(r.world.calls()-calls) / float64(turns),
	}
	r.report.Memory.PeakAtOnce = r.bot.memory().peak
	return nil
}

// measureHistories grows chats by really writing in them, then measures at that
// length. A chat gives few samples, so that its length hardly changes.
func (r *run) measureHistories(ctx context.Context) error {
	for _, h := range r.opts.Histories {
		each := max(1, h/10)
		chats := r.world.newChats((r.opts.Samples + each - 1) / each)
		r.say("history of %d turns: %d chats", h, len(chats))
		if h > 0 {
			if err := r.world.together(ctx, chats, h); err != nil {
				return fmt.Errorf("%w\n%s", err, r.bot.output.String())
			}
		}
		latency, err := r.measureLatency(ctx, chats, each)
		if err != nil {
			return err
		}
		r.report.Histories = append(r.report.Histories, History{Turns: h, Latency: latency})
	}
	return nil
}

func (r *run) finish(ctx context.Context) error {
	r.report.Memory.Peak = r.bot.memory().peak
	for _, bot := range append(r.beside, r.bot) {
		if err := bot.stop(ctx); err != nil {
			return err
		}
	}
	return r.world.check()
}

func describeMachine() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Processor: processorName(), Go: runtime.Version()}
}
