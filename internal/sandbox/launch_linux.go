package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

const (
	defaultSelf  = "/proc/self/exe"
	temporary    = "/tmp"
	startTimeout = 15 * time.Second       // for the helper; the program then runs
	killSpare    = 500 * time.Millisecond // after killWait, for a helper that does not end
	sweepWait    = 10 * time.Second       // for what a dead helper left behind
	markerName   = "REMOTE_AGENT_SANDBOX"
)

// helper is a running helper, as the daemon sees it.
type helper struct {
	cmd     *exec.Cmd
	have    features
	marker  string // in the environment of the tree; empty with a PID namespace
	group   int    // the program's; zero before it runs
	reports <-chan report
	outlets *outlets // nil for none

	mu      sync.Mutex
	control *os.File // nil once closed
	kills   *time.Timer
}

// launch starts a program and returns when it runs.
func (r *Runner) launch(ctx context.Context, s Spec, dir string) (tree, error) {
	o := r.order(s, dir)
	h, err := r.startHelper(ctx, o, s)
	if err != nil {
		return nil, err
	}
	var first report
	select {
	case first = <-h.reports: // the zero one if the helper is gone
		if first.Started {
			h.group = first.Group
			if err = h.outlets.serve(s.Outlets); err == nil {
				return h, nil
			}
			break
		}
		err = first.err()
	case <-ctx.Done():
		err = fault.Wrap(ctx.Err(), fault.Canceled, "starting a program")
	case <-time.After(startTimeout):
		err = fault.New(fault.Unavailable, "The sandbox took too long to start.")
	}
	if err == nil {
		// The program may have killed the helper before that could say a word.
		err = &fault.Error{Kind: fault.Unavailable, Uncertain: true, Public: "The sandbox ended unexpectedly while the command was started."}
	}
	h.kill()
	_, _ = h.wait() // err says why
	return nil, err
}

// order makes the helper's order of a Spec.
func (r *Runner) order(s Spec, dir string) order {
	o := order{
		Confine: r.cfg.Mode != Off, Have: r.level.features(), Argv: s.Argv, Dir: s.Dir, System: r.system,
		ReadOnly: append(existing(r.cfg.ReadOnly), s.ReadOnly...), Writable: append([]string{homeOf(s, dir)}, s.Writable...), Sealed: s.Sealed, Hidden: r.hidden(),
		Root: filepath.Join(dir, "root"), Tmp: filepath.Join(dir, "tmp"), Shm: filepath.Join(dir, "shm"),
		Network: s.Network, Ports: s.Ports, Limits: s.Limits, Nice: ownNice(), Daemon: os.Getpid(), Global: globalRoot(),
	}
	if o.Dir == "" {
		o.Dir = homeOf(s, dir)
	}
	for _, outlet := range s.Outlets {
		o.Outlets = append(o.Outlets, outlet.Port)
	}
	if !o.Have.Namespaces {
		o.Tasks = allTasks()
	}
	tmp := o.Tmp
	if o.Have.Namespaces {
		tmp = "/tmp"
	}
	o.Env = r.environment(s, homeOf(s, dir), tmp)
	return o
}

// startHelper starts the helper with an order.
func (r *Runner) startHelper(ctx context.Context, o order, s Spec) (*helper, error) {
	const doing = "starting the sandbox"
	h := &helper{have: o.Have}
	if !o.Have.PIDs {
		h.marker = markerName + "=" + newMarker()
		o.Env = append(o.Env, h.marker)
	}
	ask, err := o.file()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, doing)
	}
	defer ask.Close() //nolint:errcheck // it was written
	answer, answerEnd, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, doing)
	}
	defer answerEnd.Close() //nolint:errcheck // the helper's
	controlEnd, control, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(errors.Join(err, answer.Close()), fault.Unavailable, doing)
	}
	defer controlEnd.Close() //nolint:errcheck // the helper's

	// Its end is ours to decide, in steps; the context is watched elsewhere.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), r.self, argSupervise) //nolint:gosec // this program
	cmd.Env = []string{oneProcessor}
	if h.marker != "" {
		cmd.Env = append(cmd.Env, h.marker)
	}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{ask, answerEnd, controlEnd}
	var theirs *os.File
	if len(o.Outlets) > 0 {
		if h.outlets, theirs, err = newOutlets(); err != nil {
			return nil, fault.Wrap(errors.Join(err, answer.Close(), control.Close()), fault.Unavailable, doing)
		}
		defer theirs.Close() //nolint:errcheck // the helper's
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	}
	cmd.SysProcAttr = attributes(o)
	wire(cmd, s)
	if err := cmd.Start(); err != nil {
		h.outlets.close()
		return nil, &fault.Error{
			Kind: fault.Or(err, fault.Unavailable), Public: "The sandbox could not be started, so the command was not run.",
			Err: errors.Join(fmt.Errorf("%s: %w", doing, err), answer.Close(), control.Close()),
		}
	}
	h.cmd, h.control = cmd, control
	h.reports = readReports(answer)
	return h, nil
}

// attributes are the namespaces of the helper. It keeps its user and group; what
// it may do more in the namespace, it needs to set that up.
func attributes(o order) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !o.Have.Namespaces {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if o.Have.PIDs {
		a.Cloneflags |= unix.CLONE_NEWPID
	}
	if o.Have.Net && !o.Network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_SYS_PTRACE}
	return a
}

// readReports passes on what the helper writes. The channel is closed when the
// helper is gone; it never blocks the reader, for a helper writes few reports.
func readReports(from *os.File) <-chan report {
	out := make(chan report, 8)
	go func() {
		defer close(out)
		defer from.Close() //nolint:errcheck // only read
		for decoder := json.NewDecoder(from); ; {
			var r report
			if decoder.Decode(&r) != nil {
				return
			}
			select {
			case out <- r:
			default: // more than there are kinds of
			}
		}
	}()
	return out
}

func (h *helper) terminate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.control != nil {
		_, _ = h.control.Write([]byte{'T'}) // it may be gone already
	}
}

func (h *helper) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.control == nil {
		return
	}
	_ = h.control.Close()
	h.control = nil
	if h.have.PIDs {
		_ = h.cmd.Process.Kill() // the kernel ends the rest
		return
	}
	// The helper knows its tree and ends it. It may be slow where the program has taken
	// all there is, so the program's own group ends at once; its number is not another's
	// as long as the helper has not waited for the leader. Should the helper hang, it is
	// ended itself.
	if leader, ok := readProcess(h.group); ok && leader.parent == h.cmd.Process.Pid {
		_ = unix.Kill(-h.group, unix.SIGKILL)
	}
	h.kills = time.AfterFunc(killWait+killSpare, func() { _ = h.cmd.Process.Kill() })
}

func (h *helper) wait() (Result, error) {
	err := h.cmd.Wait() //nolint:errorlint // looked at below
	h.outlets.close()
	h.mu.Lock()
	if h.kills != nil {
		h.kills.Stop()
	}
	if h.control != nil {
		_ = h.control.Close()
	}
	killed := h.control == nil
	h.control = nil
	h.mu.Unlock()
	var last report
	for r := range h.reports {
		last = r
	}
	if h.marker != "" && !last.Done {
		sweep(h.marker, h.group)
	}
	switch {
	case last.Done:
		return Result{Code: last.Code, Signal: last.Signal, Ended: last.Ended, CPU: last.CPU, MaxRSS: last.MaxRSS}, copyError(err)
	case killed:
		return Result{Code: -1, Signal: unix.SIGKILL.String()}, nil
	case last.Fail != "":
		return Result{Code: -1}, last.err()
	}
	return Result{Code: -1}, &fault.Error{Kind: fault.Unavailable, Uncertain: true, Public: "The sandbox ended unexpectedly while the command ran.", Err: err}
}

// copyError is an error of copying output or input, not one of the helper's exit.
func copyError(err error) error {
	if _, exited := errors.AsType[*exec.ExitError](err); err == nil || exited || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return fault.Wrap(err, fault.Internal, "copying the output of a program")
}

// sweep ends processes that carry a marker in their environment: those of a tree
// whose helper died before it could end them. It begins with the program's group, for a
// program that multiplies does so faster than it can be looked through, and ends the
// group of whatever it finds before it looks on. One that is just becoming another
// program shows no environment for a moment, so it looks three times for nothing.
func sweep(marker string, group int) {
	if _, there := readProcess(group); group > 1 && (!there || carries(group, marker)) {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
	deadline := time.Now().Add(sweepWait)
	for nothing := 0; nothing < 3 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		nothing++
		for _, p := range processes() {
			if !p.dead && p.pid != os.Getpid() && carries(p.pid, marker) {
				nothing = 0
				end([]process{p})
			}
		}
	}
}

// carries reports whether a process has a marker in its environment.
func carries(pid int, marker string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && hasVariable(env, marker)
}

func hasVariable(environ []byte, variable string) bool {
	for e := range bytes.SplitSeq(environ, []byte{0}) {
		if string(e) == variable {
			return true
		}
	}
	return false
}

// allTasks is the number of processes and threads of the whole system.
func allTasks() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 4 {
		return 0
	}
	_, total, _ := strings.Cut(f[3], "/")
	n, _ := strconv.Atoi(total)
	return n
}

// globalRoot reports whether we are root outside of every user namespace.
func globalRoot() bool {
	if os.Geteuid() != 0 {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(text))
	return err != nil || len(f) >= 2 && f[0] == "0" && f[1] == "0"
}
