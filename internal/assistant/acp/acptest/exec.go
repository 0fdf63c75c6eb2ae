//go:build unix

// Package acptest starts agents for tests without a sandbox.
package acptest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"remote-agent/internal/assistant/acp"
)

// stderrDrain is how long the rest of stderr is read after the end, while a
// child that left the group keeps it open.
const stderrDrain = 200 * time.Millisecond

// Exec starts a program in a process group of its own. It is for acp.Config.Start.
func Exec(ctx context.Context, spec acp.StartSpec) (acp.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &process{read: make(chan struct{})}
	//nolint:gosec,noctx // argv of the operator; the group is ended by Terminate and Kill, not by a context
	p.cmd = exec.Command(spec.Command[0], spec.Command[1:]...)
	p.cmd.Env = append(make([]string, 0, len(spec.Env)), spec.Env...) // not nil: that would inherit ours
	p.cmd.Dir = spec.Dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Pipes of our own: those of os/exec keep Wait waiting for children that
	// hold them, or are closed before they are read.
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs, p.stdin = append(theirs, inR), inW
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	theirs, p.stdout = append(theirs, outW), outR
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	theirs, p.stderr = append(theirs, errW), errR
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW
	if spec.Serve != nil {
		if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil { //nolint:noctx // it takes no time
			return nil, errors.Join(err, p.close())
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if spec.Serve != nil {
		p.serving.Go(func() { spec.Serve(p.listener) })
	}
	go func() { // ends when stderr ends or Wait closes it
		defer close(p.read)
		_, _ = io.Copy(&p.tail, p.stderr)
	}()
	return p, nil
}

// process is an acp.Process of os/exec.
type process struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	tail                  acp.Tail
	read                  chan struct{} // closed when stderr is read to its end
	listener              net.Listener  // of what it is served; nil: nothing

	serving sync.WaitGroup

	mu    sync.Mutex
	ended bool // the group's id may belong to somebody else
}

func (p *process) close() (err error) {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if p.listener != nil {
		err = errors.Join(err, p.listener.Close())
	}
	return err
}

// Stdin implements acp.Process.
func (p *process) Stdin() io.WriteCloser { return p.stdin }

// Stdout implements acp.Process.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Address implements acp.Process.
func (p *process) Address() string {
	if p.listener == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// StderrTail implements acp.Process.
func (p *process) StderrTail() string { return p.tail.String() }

// Wait implements acp.Process.
func (p *process) Wait() error {
	err := p.cmd.Wait()
	p.mu.Lock()
	// While a child of the program lives, the group keeps its id; without one
	// there is nothing to end.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.ended = true
	p.mu.Unlock()
	timer := time.NewTimer(stderrDrain)
	defer timer.Stop()
	select {
	case <-p.read:
	case <-timer.C:
	}
	_ = p.stderr.Close()
	<-p.read
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.serving.Wait()
	return err
}

// Terminate implements acp.Process.
func (p *process) Terminate() { p.signal(syscall.SIGTERM) }

// Kill implements acp.Process.
func (p *process) Kill() { p.signal(syscall.SIGKILL) }

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}
