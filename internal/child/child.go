// Package child runs a program, mostly this one again, as a process that can be killed
// and, on Linux, does not outlive this one.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// tail is how much of what a process wrote its errors repeat, in bytes.
const tail = 4 << 10

// Process is a process that was started. Its methods may be called by several
// goroutines.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
	err  error         // how; read after done
}

// Start starts a program in a folder, with an environment that is exactly environ. What
// it writes is appended to the file log. It goes on until it ends, is stopped or killed.
func Start(dir, log string, environ []string, command ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the caller's file
	if err != nil {
		return nil, err
	}
	defer file.Close()                                                                                //nolint:errcheck // the process has its own
	p := &Process{cmd: exec.Command(command[0], command[1:]...), log: log, done: make(chan struct{})} //nolint:gosec,noctx // the caller's program, ended by Stop or Kill
	p.cmd.Dir, p.cmd.Env, p.cmd.SysProcAttr = dir, environ, attributes()
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal, as far as the system has it.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill ends the process as a power cut does, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Stop asks the process to end, and kills it if it has not within that time: an error,
// as it is if the process says that it failed. Where there are no signals it kills.
func (p *Process) Stop(within time.Duration) error {
	if runtime.GOOS == "windows" {
		p.Kill()
		return nil
	}
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-p.done:
		return p.Err()
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("it did not stop within %s\n%s", within, p.Said())
	}
}

// Err returns how a process ended, with the end of what it wrote; nil if it said that
// all is well. It is called when the process has ended.
func (p *Process) Err() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", p.err, p.Said())
}

// Early is the error of a process that ended although nobody asked it to.
func (p *Process) Early() error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("it ended by itself\n" + p.Said())
}

// Said returns the end of what the process wrote, 4 KiB at most.
func (p *Process) Said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-tail):]))
}
