package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"remote-agent/internal/app"
	"remote-agent/internal/profiling"
	"remote-agent/internal/resident"
	"remote-agent/internal/terminal"
	"remote-agent/internal/web"
)

// startCommand is "bot" without a command: the daemon, with a console for the
// person at the terminal or for text that is piped in.
type startCommand struct{}

func (startCommand) Run(p *program) error {
	p.endWithTerminal()
	return p.serve(bothTerminals(p.process) || isPiped(p.stdin))
}

// endWithTerminal has a hangup end the program if the terminal that it was started at has
// gone: nothing else would, where its output goes to a file or another program.
func (p *program) endWithTerminal() {
	if !isTerminal(p.stdin) || p.interrupt == nil {
		return
	}
	all, others := p.hangups, make(chan os.Signal, 1)
	p.hangups = others
	go func() {
		for {
			select {
			case <-p.ctx.Done():
				return
			case hangup := <-all:
				if !isTerminal(p.stdin) {
					p.interrupt()
					return
				}
				select {
				case others <- hangup:
				default: // one is on its way
				}
			}
		}
	}()
}

// serveCommand is the daemon. It reads only a terminal: what a service manager
// connects to its input is not meant for it.
type serveCommand struct {
	NoConsole bool   `help:"Do not open a chat in the terminal."`
	PprofAddr string `help:"Serve Go's profiles under /debug/pprof/ on this loopback address, such as 127.0.0.1:6060 (default: off)." placeholder:"HOST:PORT"`
}

func (c serveCommand) Run(p *program) error {
	if c.PprofAddr != "" {
		at, stop, err := profiling.Listen(p.ctx, c.PprofAddr)
		if err != nil {
			return err
		}
		defer stop() //nolint:errcheck // the process ends
		p.pprof = "http://" + at + "/debug/pprof/"
	}
	return p.serve(!c.NoConsole && bothTerminals(p.process))
}

func (p *program) serve(console bool) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	screen := &screenWriter{to: p.stderr}
	p.stderr = screen // a console takes it over
	log, closeLog, err := p.newLogger(cfg, console)
	if err != nil {
		return err
	}
	defer closeLog()
	switch {
	case p.pprof != "" && p.jsonLog:
		log.InfoContext(p.ctx, "profiles are served", "url", p.pprof)
	case p.pprof != "":
		_, _ = fmt.Fprintf(p.stderr, "Profiles are at %s\n", p.pprof) // a closed terminal
	}
	for _, warning := range cfg.Warnings {
		log.WarnContext(p.ctx, "configuration", "warning", warning)
	}
	env := p.env(log, console)
	env.Screen = screen.redirect
	if env.Listeners, err = web.Inherited(env.Lookup); err != nil {
		return err
	}
	resident.ReleaseProgram() // nothing of what reads the command line comes again
	env.Hangup, env.Reload, env.SetLogLevel = p.hangups, p.load, p.levels.set
	env.Restarts, env.Source = p.restart != nil, &p.source
	err = app.Run(p.ctx, cfg, env)
	switch {
	case errors.Is(err, app.ErrRestart):
		closeLog()
		return p.restart()
	case p.ctx.Err() != nil && errors.Is(err, context.Canceled) && (!console || bothTerminals(p.process)): // nobody waits for answers
		log.InfoContext(p.ctx, "stopped before the start was complete", "err", err)
		return nil
	}
	return err
}

func bothTerminals(proc process) bool {
	return isTerminal(proc.stdin) && isTerminal(proc.stdout)
}

func isTerminal(stream any) bool {
	if s, ok := stream.(*screenWriter); ok {
		return s.terminal()
	}
	return terminal.IsTerminal(stream)
}

// terminalOut returns the terminal that stdout is, if it is one.
func (p *program) terminalOut() (terminal.Config, bool) {
	out, ok := p.stdout.(*os.File)
	if !ok || !isTerminal(out) {
		return terminal.Config{}, false
	}
	return terminal.Of(out, out, p.lookup), true
}

// screenWriter writes to stderr until a console has the terminal, and then above what
// is typed there. A stderr that goes elsewhere stays where it is.
type screenWriter struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write implements io.Writer.
func (s *screenWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	to := s.to
	s.mu.Unlock()
	return to.Write(p)
}

func (s *screenWriter) redirect(to io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if terminal.IsTerminal(s.to) {
		s.to = to
	}
}

func (s *screenWriter) terminal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return terminal.IsTerminal(s.to)
}

// isPiped reports whether somebody connected text to the input: a pipe or a
// file, not /dev/null.
func isPiped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	return info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular()
}
