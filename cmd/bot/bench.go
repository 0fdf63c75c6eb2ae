package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/bench"
	"remote-agent/internal/config"
	"remote-agent/internal/profiling"
	"remote-agent/internal/resident"
)

// benchCommand measures the program against the emulators. The program that is
// measured is this one, in a process of its own.
type benchCommand struct {
	Turns       int    `default:"4000"      help:"Turns with all chats in parallel."`
	Chats       int    `default:"32"        help:"Number of chats writing in parallel."`
	Samples     int    `default:"200"       help:"Turns per measurement of a single chat."`
	Histories   []int  `default:"1,100,500" help:"Chat histories to measure, in earlier turns."`
	Dir         string `help:"Folder for temporary data, and so the disk that is measured (default: the system's temporary folder)." placeholder:"DIR"`
	DatabaseURL string `help:"PostgreSQL database to measure instead of SQLite; existing data is left alone." name:"database-url" placeholder:"URL"`
	Replicas    int    `default:"1"         help:"Processes that share the database while all chats write; more than one need PostgreSQL."`
	JSON        bool   `help:"Print JSON."`
	Cpuprofile  string `help:"Write a CPU profile of the measured process to FILE."        placeholder:"FILE"`
	Memprofile  string `help:"Write an allocation profile of the measured process to FILE." placeholder:"FILE"`

	Child bool `hidden:"" help:"Be the measured process."`
	Relay bool `hidden:"" help:"Be the relay that the measured process is compared with."`
}

func (c benchCommand) Run(p *program) error {
	switch {
	case c.Child:
		return c.runChild(p)
	case c.Relay:
		ctx, cancel := p.untilInputEnds() // it stops like the measured process
		defer cancel()
		return bench.Relay(ctx, p.lookup)
	}
	if min(c.Turns, c.Chats, c.Samples, c.Replicas) < 1 {
		return fmt.Errorf("--chats, --samples, --replicas and --turns must be at least 1; %w", errUsage)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	profile, err := c.profile()
	if err != nil {
		return err
	}
	none, err := emptyEnvFile() // one here is not meant for the measured process
	if err != nil {
		return err
	}
	defer os.Remove(none) //nolint:errcheck // a temporary file
	report, err := bench.Run(p.ctx, bench.Options{
		Command: []string{self, "bench", "--child", "--env-file", none}, Profile: profile, Relay: []string{self, "bench", "--relay"},
		Environ: systemEnviron(p.environ),
		Dir:     c.Dir, DatabaseURL: c.DatabaseURL, Reach: func(ctx context.Context) error { return p.reach(ctx, none, c.DatabaseURL) }, Replicas: c.Replicas,
		Turns: c.Turns, Chats: c.Chats, Samples: c.Samples, Histories: c.Histories, Progress: p.stderr,
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return report.WriteJSON(p.stdout)
	}
	return report.WriteTable(p.stdout)
}

// reach says why the measured process could not use a database.
func (p *program) reach(ctx context.Context, envFile, url string) error {
	cfg, err := app.LoadConfig(config.Source{Environ: []string{"DATABASE_URL=" + url}, EnvFile: envFile})
	if err != nil {
		return err
	}
	return app.Reach(ctx, cfg, app.Env{Log: slog.New(slog.DiscardHandler)})
}

// profile is how the measured process is told to write profiles.
func (c benchCommand) profile() (flags []string, err error) {
	for flag, path := range map[string]string{"--cpuprofile": c.Cpuprofile, "--memprofile": c.Memprofile} {
		if path == "" {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600) //nolint:gosec // the operator named it
		if err != nil {
			return nil, fmt.Errorf("%s %s cannot be written; name a file in a folder that is there: %w", flag, path, errUsage)
		}
		if path, err = filepath.Abs(path); errors.Join(err, f.Close()) != nil {
			return nil, fmt.Errorf("name a profile: %w", err)
		}
		flags = append(flags, flag+"="+path)
	}
	return flags, nil
}

// emptyEnvFile makes a temporary file without options, and returns its name.
func emptyEnvFile() (string, error) {
	file, err := os.CreateTemp("", "bot-*.env")
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return "", fmt.Errorf("make an empty .env file: %w", err)
	}
	return file.Name(), nil
}

// systemEnviron is what a process needs of the environment that is not an option
// of this program, and what changes how the Go runtime works.
func systemEnviron(environ []string) []string {
	keep := []string{"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"}
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !slices.Contains(keep, strings.ToUpper(name))
	})
}

// runChild is the measured process: the daemon without a console, which stops
// when its input ends, with the profiles that were asked for.
func (c benchCommand) runChild(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	log, closeLog, err := p.newLogger(cfg, false)
	if err != nil {
		return err
	}
	defer closeLog()
	ctx, cancel := p.untilInputEnds()
	defer cancel()
	if c.Memprofile != "" {
		profiling.SampleMemory()
	}
	resident.ReleaseProgram()
	stopProfile, err := startCPUProfile(c.Cpuprofile)
	if err != nil {
		return err
	}
	return errors.Join(app.Run(ctx, cfg, p.env(log, false)), stopProfile(), writeAllocs(c.Memprofile))
}

// untilInputEnds returns a context that ends with the standard input, whatever
// its end.
func (p *program) untilInputEnds() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.ctx)
	go func() {
		_, _ = io.Copy(io.Discard, p.stdin) // any end of it is the end
		cancel()
	}()
	return ctx, cancel
}

// startCPUProfile profiles until stop is called, or does nothing without a path.
func startCPUProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path) //nolint:gosec // the operator named it
	if err != nil {
		return nil, fmt.Errorf("create the CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start the CPU profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// writeAllocs writes what was allocated since the start, if there is a path.
func writeAllocs(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path) //nolint:gosec // the operator named it
	if err != nil {
		return fmt.Errorf("create the profile of allocations: %w", err)
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
