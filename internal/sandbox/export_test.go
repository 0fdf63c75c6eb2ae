//go:build linux

package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// ThreadsReady is the number of threads that a supervisor has before it starts a program.
const ThreadsReady = threadsReady

// Weaken makes a Runner use less than the system offers, as on one that has less.
// It returns what the level then is.
func (r *Runner) Weaken(namespaces, pids, net, seccomp bool, landlock int) Level {
	f := r.level.features()
	f.Namespaces = f.Namespaces && namespaces
	f.PIDs = f.PIDs && pids
	f.Net = f.Net && net
	f.Seccomp = f.Seccomp && seccomp
	f.Landlock = min(f.Landlock, landlock)
	r.level = levelOf(r.cfg.Mode, f, []string{"made weaker for a test"})
	return r.level
}

// Cripple makes system calls fail for the calling thread and what it starts, as
// on a system that does not offer them: namespaces always, and those given.
func Cripple(calls ...uintptr) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var f filter
	f.load(seccompNumber)
	for _, number := range calls {
		f.refuseCall(number, unix.ENOSYS)
	}
	for _, number := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		f.onCall(number, func(b *filter) {
			b.load(seccompArg0)
			b.op(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, namespaceFlags, 0, 1)
			b.refuse(unix.EPERM)
		})
	}
	f.answer(seccompRetAllow)
	return f.install()
}

// ParseStat is what reads /proc/PID/stat.
func ParseStat(text string) (parent, group, threads int, pages int64, ok bool) {
	p, ok := parseStat(1, text)
	return p.parent, p.group, p.threads, p.pages, ok
}
