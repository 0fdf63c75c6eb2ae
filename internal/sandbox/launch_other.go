//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"sync"

	"remote-agent/internal/fault"
)

// Elsewhere nothing is confined: programs get their own environment and process
// group, and that is all.

const (
	defaultSelf = ""
	temporary   = "" // the system's
)

// RunIfHelper returns at once: there is no helper on this system.
func RunIfHelper() {}

func (r *Runner) detect() (Level, error) {
	return Level{Mode: r.cfg.Mode, Reasons: []string{"programs can be confined on Linux only"}}, nil
}

type group struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	dead bool
}

func (r *Runner) launch(ctx context.Context, s Spec, dir string) (tree, error) {
	home := homeOf(s, dir)
	path, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return nil, &fault.Error{Kind: fault.NotFound, Public: "There is no program " + s.Argv[0] + " here.", Err: err}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, s.Argv[1:]...) //nolint:gosec // running what it is told is its purpose
	cmd.Env = r.environment(s, home, filepath.Join(dir, "tmp"))
	cmd.Dir = s.Dir
	if cmd.Dir == "" {
		cmd.Dir = home
	}
	ownGroup(cmd)
	wire(cmd, s)
	if err := cmd.Start(); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "starting a program")
	}
	return &group{cmd: cmd}, nil
}

func (g *group) terminate() { g.signal(false) }

func (g *group) kill() { g.signal(true) }

func (g *group) signal(kill bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dead {
		signalGroup(g.cmd, kill)
	}
}

func (g *group) wait() (Result, error) {
	err := g.cmd.Wait()
	g.mu.Lock()
	g.dead = true
	signalGroup(g.cmd, true) // what is left of the group
	g.mu.Unlock()
	r := Result{Code: g.cmd.ProcessState.ExitCode(), CPU: g.cmd.ProcessState.UserTime() + g.cmd.ProcessState.SystemTime()}
	if r.Code < 0 {
		r.Signal = signalName(g.cmd.ProcessState)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err == nil || exited || errors.Is(err, exec.ErrWaitDelay) {
		return r, nil
	}
	return r, fault.Wrap(err, fault.Internal, "copying the output of a program")
}
