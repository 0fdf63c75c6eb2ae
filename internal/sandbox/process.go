package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// End says who ended a program.
type End string

// The ends of a program.
const (
	EndedItself    End = ""          // it exited, or died of a signal that was not ours
	EndedTimeout   End = "timeout"   // Spec.Timeout, or the deadline of the context
	EndedCanceled  End = "canceled"  // the context, or Stop
	EndedMemory    End = "memory"    // Limits.Memory
	EndedProcesses End = "processes" // Limits.Processes, where the kernel does not enforce it
	EndedDisk      End = "disk"      // Limits.FreeDisk
)

// Result is how a program ended.
type Result struct {
	Code     int           // exit code; -1 if it died of a signal
	Signal   string        // name of the signal it died of, such as "killed"
	Ended    End           // who ended it
	Over     string        // for people, as in "it used more than 4 GiB of memory"; empty if it kept within the limits
	Duration time.Duration // since Start
	CPU      time.Duration // processor time of the program and the children it waited for
	MaxRSS   int64         // bytes; the largest process of them
}

// Process is one program. Its methods are safe for concurrent use, except that
// the pipes are asked for before Start.
type Process struct {
	runner *Runner
	ctx    context.Context
	spec   Spec

	mu      sync.Mutex
	started bool
	files   []*os.File // the child's ends of pipes, closed after Start
	ours    []*os.File // our ends, closed if Start fails

	begin  time.Time
	dir    string // private
	tree   tree
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
	result Result
	err    error
}

// tree is a started program with all of its children.
type tree interface {
	// terminate asks all processes to end.
	terminate()
	// kill ends all processes. It does not wait.
	kill()
	// wait returns when the program has ended, no process is left, and all output
	// was written. It is called once.
	wait() (Result, error)
}

// Command prepares a program. Nothing is started or created before Start. When
// ctx ends, the program is ended. The error is fault.Invalid, fault.NotFound or
// fault.Forbidden if the Spec cannot be done.
func (r *Runner) Command(ctx context.Context, s Spec) (*Process, error) {
	if err := s.check(r.cfg); err != nil {
		return nil, err
	}
	if err := s.checkNetwork(r.cfg.Mode, r.level); err != nil {
		return nil, err
	}
	if r.level.View {
		if err := intact(s.Sealed); err != nil {
			return nil, err
		}
	}
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	s.Limits = s.Limits.or(r.cfg.Limits).or(defaultLimits())
	return &Process{runner: r, ctx: ctx, spec: s, stop: make(chan struct{}), done: make(chan struct{})}, nil
}

// Run starts the program and waits for its end.
func (p *Process) Run() (Result, error) {
	if err := p.Start(); err != nil {
		return Result{}, err
	}
	return p.Wait()
}

// StdinPipe returns a pipe to the program's standard input. The caller closes it.
func (p *Process) StdinPipe() (io.WriteCloser, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "making a pipe")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spec.Stdin = r
	p.files, p.ours = append(p.files, r), append(p.ours, w)
	return w, nil
}

// StdoutPipe returns a pipe from the program's standard output. It ends when the
// whole tree has ended, and can be read after that. The caller closes it.
func (p *Process) StdoutPipe() (io.ReadCloser, error) { return p.outPipe(&p.spec.Stdout) }

// StderrPipe is StdoutPipe for the standard error output.
func (p *Process) StderrPipe() (io.ReadCloser, error) { return p.outPipe(&p.spec.Stderr) }

func (p *Process) outPipe(to *io.Writer) (io.ReadCloser, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "making a pipe")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = w
	p.files, p.ours = append(p.files, w), append(p.ours, r)
	return r, nil
}

// Start starts the program. It returns when the program runs, or with the reason
// why it does not: fault.NotFound if there is no such program, fault.Forbidden if
// it cannot be executed, fault.Unavailable if the sandbox could not be set up.
// After success everything is cleaned up by itself when the program ends.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return fault.New(fault.Invalid, "A program is started only once.")
	}
	p.started, p.begin = true, time.Now()
	err := p.launch()
	for _, f := range p.files {
		_ = f.Close()
	}
	if err == nil {
		go p.supervise() // ends with the program; Wait waits for it
		return nil
	}
	for _, f := range p.ours {
		_ = f.Close()
	}
	if p.dir != "" {
		p.removeDir()
	}
	p.err = err
	close(p.done)
	return err
}

// launch makes the private directory and starts the program.
func (p *Process) launch() error {
	if err := p.ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Canceled, "starting a program")
	}
	dir, err := p.runner.runDir()
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "making the private directory of a program")
	}
	p.dir = dir
	p.tree, err = p.runner.launch(p.ctx, p.spec, dir)
	return err
}

// supervise ends the program when it is time, and cleans up.
func (p *Process) supervise() {
	type outcome struct {
		result Result
		err    error
	}
	waited := make(chan outcome, 1)
	go func() { // ends with the program
		result, err := p.tree.wait()
		waited <- outcome{result, err}
	}()
	var expired <-chan time.Time
	if p.spec.Timeout > 0 {
		timer := time.NewTimer(p.spec.Timeout - time.Since(p.begin))
		defer timer.Stop()
		expired = timer.C
	}
	var o outcome
	ended := EndedItself
	select {
	case o = <-waited:
	case <-expired:
		ended = EndedTimeout
	case <-p.stop:
		ended = EndedCanceled
	case <-p.ctx.Done():
		ended = EndedCanceled
		if errors.Is(p.ctx.Err(), context.DeadlineExceeded) {
			ended = EndedTimeout
		}
	}
	if ended != EndedItself {
		p.tree.terminate()
		grace := time.NewTimer(p.spec.Grace)
		defer grace.Stop()
		select {
		case o = <-waited:
		case <-grace.C:
			p.tree.kill()
			o = <-waited
		}
		o.result.Ended = ended
	}
	o.result.Duration, o.result.Over = time.Since(p.begin), p.spec.Limits.over(o.result.Ended)
	p.result, p.err = o.result, o.err
	p.removeDir()
	close(p.done)
}

// removeDir removes the private directory. What stays is left to the next New.
func (p *Process) removeDir() {
	if err := removeTree(p.dir); err != nil {
		p.runner.log.Warn("a private directory of the sandbox stays", "path", p.dir, "err", err)
	}
}

// Stop ends the program and its tree as the end of the context does. It does not
// wait and may be called at any time and again.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Done is closed when the program and its tree have ended, and never if Start was
// not called.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns how the program ended. An exit code, a signal or
// a timeout is no error: an error means that the sandbox itself failed, and then
// the program may have run. If Stdin is a reader that blocks forever, Wait leaves
// it behind; use StdinPipe then.
func (p *Process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

// waitDelay is how long output is still read after the end of the program. Only a
// process that got away can hold it open longer.
const waitDelay = time.Second

// wire connects the streams of a Spec.
func wire(cmd *exec.Cmd, s Spec) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	cmd.WaitDelay = waitDelay
}

// homeOf returns the home directory of a program with the private directory dir.
func homeOf(s Spec, dir string) string {
	return cmp.Or(s.Home, filepath.Join(dir, "home"))
}
