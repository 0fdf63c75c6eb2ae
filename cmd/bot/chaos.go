package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"remote-agent/internal/chaos"
)

// chaosCommand tries the promises of the program: it runs it, in processes of its own,
// against the emulators and lets go wrong whatever can.
type chaosCommand struct {
	Minutes   float64       `default:"1" help:"Minutes to run over all platforms, fractions allowed; 0 with --kills runs until those are done."`
	Kills     int           `help:"Stop after this many kills on each platform (default: when the time is up)." placeholder:"N"`
	KillEvery time.Duration `help:"Pause between kills, such as 10s (default: 50 to 1,800 ms of life)." placeholder:"DURATION"`
	JustKill  bool          `help:"Nothing but kills goes wrong, at 50 to 1,800 ms of life, and calls that fail."`
	OnKill    string        `help:"With --just-kill: run FILE before each kill, while the process stands still; its DATA_DIR is the argument." placeholder:"FILE"`
	Seed      int           `help:"Repeat a run: the same messages, and the same things go wrong (default: a new one)." placeholder:"N"`
	Platform  string        `default:"all" enum:"all,telegram,slack,slack-http,github" help:"One of telegram, slack (Socket Mode), slack-http, github, all."`
	Database  string        `default:"sqlite" help:"sqlite, postgres for a throwaway server, or the URL of a PostgreSQL server, where a database is made for the run and dropped." placeholder:"sqlite|postgres|URL"`
	Replicas  int           `default:"1" help:"Number of processes; more than one needs PostgreSQL."`
	Rate      float64       `default:"6" help:"Messages per second."`
	Chats     int           `help:"Chats at the same time (default: 40, on GitHub 12)."`
	Burst     int           `help:"Additional people who each send one message, 10 s after the start."`
	Faults    float64       `default:"0.05" help:"Share of platform and model calls that fail; 0 for none."`
	With      []string      `help:"Options of the program for the run." placeholder:"NAME=VALUE" sep:"none"`
	Soak      bool          `help:"Inject no faults; report how memory, goroutines and descriptors change."`
	Profiles  string        `help:"With --soak: write Go's profiles of the first process into DIR: processor of the first 15 s, memory when it has settled and at the end." placeholder:"DIR"`
	JSON      bool          `help:"Print JSON, an object for each platform."`
}

// errPromise says that the program did not do what it promises.
var errPromise = errors.New("a promise was broken")

func (c chaosCommand) Run(p *program) error {
	if c.Minutes < 0 || c.Minutes == 0 && c.Kills == 0 || c.Minutes > 7*24*60 {
		return fmt.Errorf("--minutes must be above 0, or --kills; %w", errUsage)
	}
	if c.Kills < 0 || c.KillEvery < 0 || c.Replicas < 1 || c.Rate <= 0 || c.Chats < 0 || c.Faults < 0 || c.Seed < 0 {
		return fmt.Errorf("flags of bot chaos cannot be negative, and --replicas and --rate not zero; %w", errUsage)
	}
	for _, w := range c.With {
		if !strings.HasPrefix(w, "GO") && !anOption(func(name string) bool { return strings.HasPrefix(strings.Replace(w, "_FILE=", "=", 1), name+"=") }) {
			return fmt.Errorf("--with is NAME=VALUE with an option of bot serve, not %q; %w", w, errUsage)
		}
	}
	command, err := c.daemon()
	if err != nil {
		return err
	}
	defer os.Remove(command[len(command)-1]) //nolint:errcheck // a temporary file
	platforms := []string{c.Platform}
	if c.Platform == "all" {
		platforms = []string{"telegram", "slack", "slack-http", "github"}
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.IntN(1<<31-1) //nolint:gosec // to be repeated, not to be secret
	}
	c.Faults = cmp.Or(c.Faults, -1)
	broken := false
	for _, platform := range platforms {
		report, err := chaos.Run(p.ctx, chaos.Options{
			Command: command, Environ: systemEnviron(p.environ), With: c.With, Platform: platform, Database: c.Database, Replicas: c.Replicas,
			For: time.Duration(c.Minutes * float64(time.Minute) / float64(len(platforms))), Kills: c.Kills, KillEach: c.KillEvery, JustKill: c.JustKill, OnKill: c.OnKill,
			Seed: uint64(c.Seed), Rate: c.Rate, Chats: c.Chats, Burst: c.Burst, Faults: c.Faults, Calm: c.Soak, Profiles: c.Profiles, Progress: p.stderr,
		})
		if err != nil {
			if report.Kept != "" {
				err = fmt.Errorf("seed %d: %w; data and logs are in %s", c.Seed, err, report.Kept)
			}
			return err
		}
		if c.JSON {
			err = report.WriteJSON(p.stdout)
		} else {
			err = report.WriteTable(p.stdout)
		}
		if err != nil {
			return err
		}
		broken = broken || report.Broken()
	}
	if broken {
		return fmt.Errorf("%w; bot chaos --seed %d with the same flags repeats the run", errPromise, c.Seed)
	}
	return nil
}

// daemon is the command line of the program under test. A .env file here is not meant
// for it, so it gets an empty one.
func (chaosCommand) daemon() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	none, err := emptyEnvFile()
	return []string{self, "serve", "--no-console", "--env-file", none}, err
}
