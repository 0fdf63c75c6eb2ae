package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// supervisor is the first stage of the helper. With a PID namespace it is the
// first process in it: when it exits, the kernel ends all others. Without, it is
// the one to whom orphans of the tree are given, so that it can find them.
type supervisor struct {
	order   order
	control *os.File

	mu       sync.Mutex
	reports  *json.Encoder
	finished bool // the last report was written

	child int
}

func (s *supervisor) run() error {
	// When memory runs out the kernel takes this tree first. A wish only.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl(PR_SET_CHILD_SUBREAPER)", err)
	}
	have := &s.order.Have
	if have.Net && !s.order.Network {
		if err := loopbackUp(); err != nil {
			return err
		}
		if err := passOutlets(s.order.Outlets); err != nil {
			return err
		}
	}
	if have.Namespaces {
		if err := buildView(&s.order); err != nil {
			return err
		}
	}
	if s.order.Probe {
		return s.probe()
	}
	// Nobody reads what this process holds, or attaches to it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl(PR_SET_DUMPABLE)", err)
	}
	if err := prepareThreads(threadsReady); err != nil {
		return err
	}
	if !have.PIDs {
		goFirst()
	}
	others := allTasks()
	if err := s.start(); err != nil {
		return err
	}
	s.report(report{Started: true, Group: s.child})
	go s.obey()
	go s.watch(others)
	return s.reap()
}

// threadsReady is more than what this process runs at a time: reap, obey, watch
// and the collector of garbage, each of which may be waiting in the kernel.
const threadsReady = 8

// prepareThreads makes the runtime start n threads, which it keeps for later use.
// A program that takes every process there is must find its supervisor with all
// the threads it needs: a runtime that is refused a new one ends its process, and
// with that, where there is no PID namespace, nobody would end the tree.
func prepareThreads(n int) error {
	var hold [2]int
	if err := unix.Pipe2(hold[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	var waiting sync.WaitGroup
	for range n {
		waiting.Go(func() {
			// The end of the pipe comes when all are waiting for it, each in a
			// blocking system call, so each on a thread of its own.
			_, _ = unix.Read(hold[0], make([]byte, 1))
		})
	}
	for ready := false; !ready; time.Sleep(100 * time.Microsecond) {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			break // no /proc here: as many as there are by now
		}
		ready = len(threads) > n
	}
	_ = unix.Close(hold[1])
	waiting.Wait()
	return unix.Close(hold[0])
}

// goFirst lets this process run before all others, where it may: a program that
// multiplies leaves no processor time to whoever is to end it. It has next to nothing to
// do. What it starts has the priority of the daemon again.
func goFirst() {
	threads, _ := os.ReadDir("/proc/self/task") // none is no harm
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetAttr(tid, &unix.SchedAttr{
				Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
			}, 0)
		}
	}
}

// probe tries on itself what the second stage does, and reports what worked.
func (s *supervisor) probe() error {
	have := s.order.Have
	var problems []string
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl(PR_SET_NO_NEW_PRIVS)", err)
	}
	if have.Landlock > 0 {
		if err := landlock(s.order); err != nil {
			problems = append(problems, err.Error())
			have.Landlock = 0
		}
	}
	if have.Seccomp {
		if err := seccomp(s.order); err != nil {
			problems = append(problems, err.Error())
			have.Seccomp = false
		}
	}
	s.report(report{Have: &have, Fail: strings.Join(problems, "; ")})
	return nil
}

// start starts the second stage and waits until it has become the program. The
// other end of the ready pipe is closed by that, or carries the reason why not.
func (s *supervisor) start() error {
	var ready [2]int
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	pid, err := syscall.ForkExec(defaultSelf, []string{defaultSelf, argEnter}, &syscall.ProcAttr{ //nolint:gosec // this program
		Env:   []string{oneProcessor},
		Files: []uintptr{0, 1, 2, fdOrder, uintptr(ready[1])}, //nolint:gosec // a descriptor fits
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	_ = unix.Close(ready[1])
	if err != nil {
		return fmt.Errorf("starting the second stage: %w", err)
	}
	s.child = pid
	in := os.NewFile(uintptr(ready[0]), "ready") //nolint:gosec // a descriptor fits
	defer in.Close()                             //nolint:errcheck // only read
	var refused report
	switch err := json.NewDecoder(in).Decode(&refused); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return fmt.Errorf("reading from the second stage: %w", err)
	default:
		return refused.err()
	}
	_ = unix.Close(fdOrder)
	return s.letGo()
}

// letGo closes the program's streams here, so that their other ends notice when
// the program closes them.
func (s *supervisor) letGo() error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open /dev/null", err)
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return unix.Close(null)
}

func (s *supervisor) report(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(r)
}

func (s *supervisor) write(r report) {
	if s.finished {
		return
	}
	s.finished = r.Done || r.Fail != ""
	_ = s.reports.Encode(r) // nobody is there if it fails
}

// obey does what the daemon says.
func (s *supervisor) obey() {
	var b [1]byte
	for {
		if n, err := s.control.Read(b[:]); n == 0 || err != nil {
			s.exit() // the daemon wants the end, or is gone
		}
		s.terminate()
	}
}

// terminate asks all processes of the tree to end.
func (s *supervisor) terminate() {
	if s.order.Have.PIDs {
		_ = unix.Kill(-1, unix.SIGTERM)
		return
	}
	_ = unix.Kill(-s.child, unix.SIGTERM)
	for _, p := range descendants(os.Getpid()) {
		if p.group != s.child {
			_ = unix.Kill(p.pid, unix.SIGTERM)
		}
	}
}

// exit ends the tree and then this process. In a PID namespace the kernel ends
// the others before this process is gone.
func (s *supervisor) exit() {
	if !s.order.Have.PIDs {
		s.killAll()
	}
	unix.Exit(0) // not os.Exit, which waits a second in builds with the race detector
}

// killAll ends all processes below this one. New ones may appear while it looks,
// so it looks again until there are none; groups are ended as one, the program's
// own before the first look, which takes long where there are many processes.
func (s *supervisor) killAll() {
	own := os.Getpid()
	_ = unix.Kill(-s.child, unix.SIGKILL)
	for deadline := time.Now().Add(killWait); reapDead() && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		end(descendants(own))
	}
}

// end kills processes, their groups as one: one process after the other loses
// against a program that multiplies. Our own group is left alone, and what kill(2)
// takes for more than a group: 0 and 1.
func end(list []process) {
	done := map[int]bool{unix.Getpgrp(): true, 0: true, 1: true}
	for _, p := range list {
		if !done[p.group] {
			done[p.group] = true
			_ = unix.Kill(-p.group, unix.SIGKILL)
		}
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

// reapDead waits for what has ended and reports whether there are children left.
// Without children there is no tree: this process is given every orphan of it.
func reapDead() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if pid <= 0 || err != nil {
			return !errors.Is(err, unix.ECHILD)
		}
	}
}

// killWait bounds killAll. A process that cannot be killed hangs in the kernel.
const killWait = 1500 * time.Millisecond

// reap waits for the children, also those that were given to it, until the
// program itself has ended.
func (s *supervisor) reap() error {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case pid != s.child || !status.Exited() && !status.Signaled():
			continue
		}
		s.mu.Lock()
		s.write(s.last(status, usage)) // with the mutex held: nobody else ends this process meanwhile
		s.exit()
	}
}

// last is the report of the end of the program.
func (s *supervisor) last(status unix.WaitStatus, usage unix.Rusage) report {
	r := report{
		Done: true, Code: status.ExitStatus(),
		CPU:    time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		MaxRSS: int64(usage.Maxrss) << 10, //nolint:unconvert // not 64 bits everywhere
	}
	if status.Signaled() {
		r.Code, r.Signal = -1, status.Signal().String()
	}
	return r
}

// enforce ends the tree because of a limit.
func (s *supervisor) enforce(why End) {
	s.mu.Lock()
	s.write(report{Done: true, Code: -1, Signal: unix.SIGKILL.String(), Ended: why})
	s.exit()
}

// loopbackUp lets programs inside talk to each other over 127.0.0.1. In a network
// namespace of its own there is nothing else.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("ioctl(SIOCSIFFLAGS)", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}

// process is one of the tree.
type process struct {
	pid, parent, group int
	threads            int
	pages              int64 // resident
	dead               bool  // and not yet waited for
}

// descendants lists the living processes below pid.
func descendants(pid int) []process {
	all := processes()
	children := map[int][]process{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var out []process
	for next := []int{pid}; len(next) > 0; {
		parent := next[len(next)-1]
		next = next[:len(next)-1]
		for _, p := range children[parent] {
			next = append(next, p.pid)
			if !p.dead {
				out = append(out, p)
			}
		}
	}
	return out
}

// processes lists what /proc shows.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1) // what could be read
	_ = dir.Close()
	out := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

// readProcess reads /proc/PID/stat, whose second field is a name in parentheses
// that can contain anything.
func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, string(text))
}

func parseStat(pid int, text string) (process, bool) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, false
	}
	f := strings.Fields(text[end+1:]) // f[0] is field 3 of proc(5)
	if len(f) < 22 {
		return process{}, false
	}
	p := process{pid: pid, dead: f[0] == "Z" || f[0] == "X"}
	p.parent, _ = strconv.Atoi(f[1])
	p.group, _ = strconv.Atoi(f[2])
	p.threads, _ = strconv.Atoi(f[17])
	p.pages, _ = strconv.ParseInt(f[21], 10, 64)
	return p, true
}

// notFound says that there is no such program.
func notFound(name, path string) error {
	return fault.Newf(fault.NotFound, "There is no program %q here (looked in %s).", name, path)
}
