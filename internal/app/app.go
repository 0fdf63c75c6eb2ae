// Package app is the composition root: it builds everything from a Config, runs
// it and stops it in order. It is the only package that knows all others, and
// it can be started more than once in one process.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"remote-agent/internal/chat"
	"remote-agent/internal/codebase"
	"remote-agent/internal/config"
	"remote-agent/internal/egress"
	"remote-agent/internal/fault"
	"remote-agent/internal/files"
	"remote-agent/internal/live"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/people"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/queue"
	"remote-agent/internal/redact"
	"remote-agent/internal/resource"
	"remote-agent/internal/store"
	"remote-agent/internal/transcribe"
	"remote-agent/internal/web"
	"remote-agent/internal/work"
)

// Env is what the process has besides its configuration.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Console        bool // chat on Stdin and Stdout
	Terminal       bool // a person is at the console: a line editor, growing answers
	Version        string
	Log            *slog.Logger

	// Lookup finds a variable of the process environment, for the programs that
	// assistants run; nil: there is none. EnvFile is the file that options were
	// read from, which those programs must not see; may be empty.
	Lookup  func(name string) (string, bool)
	EnvFile string

	// SandboxWithout names parts of the system that the sandbox does not use, as on
	// one that lacks them; see sandbox.Config. Tests set it.
	SandboxWithout []string

	// Resolve and Dial replace the resolver and the dialer of the programs' way to
	// the network; see egress.Config. Tests set them.
	Resolve egress.Resolver
	Dial    egress.Dialer

	// Now is the time by which memories age and standing tasks run; nil: the time.
	// Tests set it.
	Now func() time.Time

	// Trace, if not nil, is told of every statement that the database is given, and
	// of "begin", "commit" and "rollback". It is called by many goroutines at once.
	// Tests count with it.
	Trace func(statement string)

	// Listeners, if any, are what HTTP listens on in the place of LISTEN_ADDR; see
	// web.Inherited. Run closes them.
	Listeners []net.Listener

	// Chat, if not nil, is what happens at the console in the place of a chat. Run
	// returns when it does.
	Chat func(ctx context.Context, b console.Backend) error

	// LogOnly is set where Stderr takes the log for programs to read, as JSON: without
	// a Terminal, what is said at the start is logged as well, a record for each line.
	LogOnly bool

	// Quiet leaves out what is said at the start.
	Quiet bool

	// Screen, if not nil, is given a writer as soon as the console has taken over the
	// terminal: what is written there appears above the typed line. Interrupt ends the
	// program as SIGINT does; nil if the console cannot.
	Screen    func(w io.Writer)
	Interrupt func()

	// Catch, if not nil, has handle called by SIGINT, which else ends the program, until
	// release is called: on a terminal whose keys the console does not read by itself.
	Catch func(handle func()) (release func())

	// Hangup tells, by a value, that the configuration is to be read again with
	// Reload; nil never does. SetLogLevel changes what Log writes; may be nil.
	Hangup      <-chan os.Signal
	Reload      func() (config.Config, error)
	SetLogLevel func(level slog.Level)

	// Source is where the configuration was read from, for who changes it; nil: nobody can.
	Source *config.Source

	// Restarts is set where Run may return ErrRestart, because whoever called it runs it
	// again then.
	Restarts bool

	// daemon is the one that does a command; nil if the process was called for it.
	daemon *daemon

	// Rush, if not nil, is called when a crowd says something at once, and what it returns
	// when that is stored, after three seconds at the latest.
	Rush func() (over func())

	// Started, if not nil, is called once everything runs.
	Started func(Info)

	// Beside, if not nil, runs from then on until ctx ends, when it has to return.
	Beside func(ctx context.Context)
}

// Info tells what is running.
type Info struct {
	Addr string // where HTTP listens
}

// ErrRestart is what Run returns after an orderly stop to be run again, with the
// configuration as it is then.
var ErrRestart = errors.New("the configuration has changed in a way that needs a restart")

// daemon is everything that runs.
type daemon struct {
	config  config.Config // as it was at the start
	live    atomic.Pointer[config.Config]
	env     Env
	log     *slog.Logger
	store   *store.Store
	unlock  func() error // gives DATA_DIR up; nil where the database does it
	queue   queue.Queue
	metrics *metrics.Metrics

	platforms   platforms
	roster      *roster
	redact      *redact.Redactor
	chores      background.Group // what the pages have done beside their requests
	programs    *programs
	tools       *toolSets
	notices     notices
	space       *codebase.Workspace // nil without git
	work        *work.Service
	people      *people.Service
	memory      remembering
	files       *files.Store
	intake      *files.Intake
	transcriber *transcribe.Client // nil without a transcription API
	chat        *chat.Handler
	core        *orchestrator.Orchestrator
	leases      leases
	web         *web.Server
	changes     *live.Hub     // what tells open pages of changes
	relay       *live.Relay   // tells other replicas of them
	plan        resource.Plan // what of the configuration fits into this machine

	retakes    retakes
	restarting atomic.Bool

	piped error // why not all that was piped in was answered, if the daemon ended with it; read after run
}

// Run runs the daemon until ctx is done, or until the console's input has ended
// and nothing else is connected. It returns nil after an orderly stop, unless not all
// of that input was answered. An error of kind fault.Invalid, fault.Unauthorized or
// fault.Conflict at start is for the operator to mend: its public text names the
// variable and the fix.
func Run(ctx context.Context, cfg config.Config, env Env) error {
	d := &daemon{config: cfg, env: env, log: env.Log, redact: newRedactor(cfg, env), notices: notices{env: env, log: env.Log}}
	if env.Reload != nil {
		d.retakes = make(retakes)
	}
	d.live.Store(&cfg)
	if err := d.open(ctx); err != nil {
		return errors.Join(err, d.close())
	}
	err := errors.Join(d.run(ctx), d.close())
	if err == nil && d.restarting.Load() && ctx.Err() == nil {
		return ErrRestart
	}
	return errors.Join(err, d.piped)
}

// open builds everything and checks what can be checked before anything runs.
func (d *daemon) open(ctx context.Context) error {
	if err := makeDataDir(d.config.DataDir); err != nil {
		return err
	}
	d.metrics = metrics.New(d.env.Version)
	d.programs = newPrograms(d.config, d.env)
	d.programs.observe = d.metrics.Egress
	d.plan = planResources(ctx, d.config, d.log)
	if err := d.lockFolder(ctx); err != nil {
		return err
	}
	var err error
	if d.roster, err = newRoster(d.programs, d.plan.Conversations, d.metrics); err != nil { // what it refuses leaves the database alone
		return err
	}
	d.metrics.NameModels(d.nameModel)
	if err := d.openStore(ctx); err != nil {
		return err
	}
	// The schema, git's version and what the sandbox can do here are found out at the
	// same time: none needs another, and two of them wait for other programs.
	if err := sideBySide(ctx, d.prepareStore, d.openWorkspace, d.programs.open); err != nil {
		return err
	}
	if err := d.buildAdapters(); err != nil {
		return err
	}
	if err := d.platforms.check(ctx); err != nil {
		return err
	}
	if err := d.buildCore(ctx); err != nil {
		return err
	}
	d.metrics.Measure((&figures{store: d.store, data: d.config.DataDir, backups: d.config.BackupDir, limits: d.budget, stalled: d.core.Stalled}).measure)
	d.web = web.New(web.Config{
		Addr: d.config.ListenAddr, Listeners: d.env.Listeners, Ready: d.ready, Metrics: d.metrics.Handler(), Hosts: hosts(d.config), Webhooks: d.platforms.webhooks(d.core, d.metrics), API: newAPI(d.config, d.env, d.store), Pages: d.pages(), Log: d.log,
		Grace: min(max(d.config.ShutdownGrace, time.Second), 10*time.Second), MaxConns: d.plan.Web,
	})
	if err := d.web.Listen(ctx); err != nil {
		return err
	}
	warnBackups(ctx, d.config, d.log)
	if d.web.Public() {
		d.log.WarnContext(ctx, "HTTP listens on more than this machine; put a TLS proxy in front", "addr", d.web.Addr())
	}
	return nil
}

// sideBySide runs steps at the same time, waits for all, and returns the error of
// the first one in order that has any.
func sideBySide(ctx context.Context, steps ...func(context.Context) error) error {
	errs := make([]error, len(steps))
	var group errgroup.Group
	for i, step := range steps {
		group.Go(func() error {
			errs[i] = step(ctx)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return cmp.Or(errs...)
}

// hosts are the names that the outside knows the service by.
func hosts(c config.Config) []string {
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{u.Host}
}

func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &fault.Error{Kind: fault.Invalid, Err: err,
			Public: fmt.Sprintf("DATA_DIR: cannot create %q; choose a folder that this user can write to.", dir)}
	}
	return nil
}

// close closes what open opened, the database last.
func (d *daemon) close() error {
	var errs []error
	if d.roster != nil {
		errs = append(errs, d.roster.close())
	}
	d.memory.close()
	if d.transcriber != nil {
		d.transcriber.Close()
	}
	if d.tools != nil {
		errs = append(errs, d.tools.close())
	}
	if d.programs != nil {
		errs = append(errs, d.programs.close())
	}
	if d.space != nil {
		errs = append(errs, d.space.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.unlock != nil {
		errs = append(errs, d.unlock())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
