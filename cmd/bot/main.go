// Command bot connects a team's chat platforms with AI assistants.
//
// This package is the command line, the signals and the exit code; everything
// else is built by package app.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"remote-agent/internal/app"
	"remote-agent/internal/bench"
	"remote-agent/internal/chaos"
	"remote-agent/internal/commandline"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/redact"
	"remote-agent/internal/resident"
	"remote-agent/internal/sandbox"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // the command line or the configuration has to be changed
)

// gcPercent trades a little CPU for memory: the daemon's live heap is small, and
// it shares a machine with the tools that assistants run.
const gcPercent = 50

func main() {
	sandbox.RunIfHelper() // this process may be the one that confines a program of an assistant
	ctx, signals, stop := awaitSignals()
	hangups, endHangups := hangups()
	runtime.MemProfileRate = 0 // its tables take a megabyte and more; see profiling.SampleMemory
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		app.LimitMemory()
	}
	started := resident.GiveRoom()
	code := run(ctx, os.Args[1:], process{
		environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		interrupt: signals.interrupt, catch: signals.catch, hangups: hangups, endHangups: endHangups,
		restart: startAgain, started: started,
	})
	stop()
	os.Exit(code)
}

// process is what the operating system gives the program.
type process struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	interrupt      func()                               // does what SIGINT does; may be nil
	catch          func(handle func()) (release func()) // has SIGINT do something else; may be nil
	hangups        <-chan os.Signal                     // gets a value for SIGHUP; nil: it ends the process
	endHangups     func()                               // has SIGHUP end the process again; may be nil
	restart        func() error                         // starts the program anew in the place of this one; nil if it cannot
	started        func()                               // ends what holds for the start only; may be nil
}

// program is what the subcommands work with.
type program struct {
	process

	ctx     context.Context // here because commands are run without one
	root    *cobra.Command  // everything that can be said
	called  string          // the command that was given
	source  config.Source
	levels  *levels  // of the logger
	jsonLog bool     // what is logged to stderr is JSON, and nothing else may be written there
	pprof   string   // where profiles are served; empty: nowhere
	secrets []string // of the loaded configuration, for the last error message
}

// load reads the configuration.
func (p *program) load() (config.Config, error) {
	cfg, err := app.LoadConfig(p.source)
	if err == nil {
		p.secrets = secrets(cfg, p.environ)
	}
	return cfg, err
}

// errUsage is at the end of errors about the command line; exitCode says what to see.
var errUsage = errors.New("see")

// run runs one command and returns the exit code.
func run(ctx context.Context, args []string, proc process) int {
	p := &program{process: proc, ctx: ctx}
	var command commandLine
	given := map[string]string{}
	p.root = commandline.New("bot", &command, p)
	p.root.Short = "Talk to AI assistants from the chats your team uses."
	out := &output{to: proc.stdout}
	p.root.SetOut(out)
	p.root.SetErr(proc.stderr)
	p.root.SetArgs(args)
	var misspelled error
	p.root.SetHelpFunc(func(c *cobra.Command, _ []string) { misspelled = printHelp(c) })
	for _, f := range config.Flags(app.Sections()...) {
		commandline.AddOption(p.root, f.Name, f.Help, f.Group, f.Placeholder, func(text string) error { given[f.Name] = text; return nil })
	}
	p.root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if c.HasParent() && c.Name() != "serve" && p.endHangups != nil {
			p.endHangups() // only the daemon reads its options again
		}
		p.source = config.Source{Flags: given, Environ: proc.environ, EnvFile: command.EnvFile}
	}
	found, err := p.root.ExecuteContextC(ctx)
	p.called = strings.TrimSuffix(found.CommandPath(), " help")
	if err == nil {
		err = cmp.Or(misspelled, out.err)
	}
	if _, ok := errors.AsType[commandline.UsageError](err); ok || bench.IsUsage(err) || chaos.IsUsage(err) {
		joint := ";"
		if strings.HasSuffix(err.Error(), "?") {
			joint = " Or"
		}
		err = fmt.Errorf("%w%s %w", err, joint, errUsage)
	}
	if f, ok := errors.AsType[*fault.Error](err); ctx.Err() != nil && errors.Is(err, context.Canceled) && (!ok || f.Kind != fault.Canceled) {
		err = &fault.Error{Kind: fault.Canceled, Public: "Stopped.", Err: err} // whatever could not be done because of it
	}
	return p.exitCode(err)
}

// exitCode says on stderr what went wrong, one line per problem, and returns the
// exit code for it.
func (p *program) exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	clean := redact.New(p.secrets...)
	say := func(line string) {
		line = strings.Join(strings.Fields(clean.String(line)), " ")
		_, _ = fmt.Fprintf(p.stderr, "bot: %s\n", line) // the exit code says it too
	}
	if problems, ok := config.AsProblems(err); ok {
		for _, problem := range problems {
			say(problem)
		}
		return exitUsage
	}
	switch {
	case errors.Is(err, errUnwell):
		return exitUnwell // the report says it
	case errors.Is(err, errUsage):
		say(err.Error() + " " + p.called + " --help")
		return exitUsage
	case forOperator(err):
		for line := range strings.Lines(fault.Explain(err)) {
			say(line)
		}
		return exitUsage
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Canceled && f.Public != "" {
		say(f.Public) // the person who stopped it needs no cause
		return exitFailed
	}
	say(err.Error())
	return exitFailed
}

// forOperator reports whether err goes away when the operator changes something:
// its kind says so, or the text to show names an option, as that of a database
// that cannot be reached does.
func forOperator(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Unauthorized, fault.Damaged:
		return true
	case fault.Canceled:
		return false
	default:
		public := fault.Public(err)
		return anOption(func(name string) bool { return strings.Contains(public, name) })
	}
}

// anOption reports whether there is an option of which match is true.
func anOption(match func(name string) bool) bool {
	for _, o := range config.Options(app.Sections()...) {
		if match(o.Name) {
			return true
		}
	}
	return false
}
