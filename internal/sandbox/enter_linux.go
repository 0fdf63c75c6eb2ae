package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// enter confines the calling thread and executes the program from it. It returns
// only if that failed. Its order matters: what needs a privilege comes before the
// privileges are dropped, and the filter of system calls comes last.
func enter(o order) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl(PR_SET_PDEATHSIG)", err)
	}
	if err := os.Chdir(o.Dir); err != nil {
		return &fault.Error{Kind: fault.NotFound, Public: fmt.Sprintf("The working directory %q cannot be entered.", o.Dir), Err: err}
	}
	path, err := lookUp(o.Argv[0], o.Env)
	if err != nil {
		return err
	}
	if err := setLimits(o); err != nil {
		return err
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, o.Nice) // a supervisor that goes first leaves 0 to it
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl(PR_SET_NO_NEW_PRIVS)", err)
	}
	if o.Confine {
		dropBounding()
	}
	if o.Have.Landlock > 0 {
		if err := landlock(o); err != nil {
			return err
		}
	}
	if o.Confine {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	// Whatever the daemon inherited without knowing ends here.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		closeOnExec()
	}
	if o.Have.Seccomp {
		if err := seccomp(o); err != nil {
			return err
		}
	}
	err = syscall.Exec(path, o.Argv, o.Env) //nolint:gosec // running what it is told is its purpose
	return cannotExecute(o.Argv[0], err)
}

func cannotExecute(name string, err error) error {
	kind, why := fault.Invalid, "it is not a program for this system"
	switch {
	case errors.Is(err, fs.ErrPermission):
		kind, why = fault.Forbidden, "it is not executable, or outside of what commands may use"
	case errors.Is(err, fs.ErrNotExist):
		kind, why = fault.NotFound, "the program or its interpreter does not exist"
	case errors.Is(err, unix.E2BIG):
		why = "its arguments and environment are too long"
	}
	return &fault.Error{Kind: kind, Public: fmt.Sprintf("The program %q cannot be started: %s.", name, why), Err: err}
}

// lookUp finds a program in the PATH of its own environment.
func lookUp(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return "", notFound(name, "the given place")
		}
		return name, nil
	}
	var path string
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // the working directory is not a place for programs
		}
		candidate := filepath.Join(dir, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && unix.Access(candidate, unix.X_OK) == nil {
			return candidate, nil
		}
	}
	return "", notFound(name, path)
}

// setLimits sets what the kernel enforces per process, and the number of them.
func setLimits(o order) error {
	l := o.Limits
	set := []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_CPU, limitOr(int64((l.CPU + time.Second - 1) / time.Second))},
		{unix.RLIMIT_FSIZE, limitOr(l.FileSize)},
		{unix.RLIMIT_NOFILE, limitOr(int64(l.OpenFiles))},
		{unix.RLIMIT_NPROC, processLimit(o)},
	}
	for _, s := range set {
		if s.value < 0 {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(s.resource, &now); err != nil {
			return os.NewSyscallError("getrlimit", err)
		}
		value := min(uint64(s.value), now.Max)
		if err := unix.Setrlimit(s.resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("setting limit %d to %d: %w", s.resource, value, err)
		}
	}
	return nil
}

// ownNice returns the nice value of this process.
func ownNice() int {
	turned, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 40 to 1 for -20 to 19; setpriority(2)
	if err != nil {
		return 0
	}
	return 20 - turned
}

// limitOr makes -1 of everything that means no limit.
func limitOr(n int64) int64 {
	if n <= 0 {
		return -1
	}
	return n
}

// processLimit is for the kernel's count of the user's threads: in a user
// namespace of its own that of this tree alone, with some for the helper; else
// that of the user on the whole system.
func processLimit(o order) int64 {
	n := int64(o.Limits.Processes)
	switch {
	case n <= 0:
		return -1
	case o.Have.Namespaces:
		return n + 32
	case o.Tasks > 0:
		return n + int64(o.Tasks)
	}
	return -1
}

// dropBounding makes sure that no file executed later gives a capability. It
// needs one itself: where it is refused there are none to lose.
func dropBounding() {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); c <= 63; c++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
}

func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// closeOnExec is for kernels before 5.11.
func closeOnExec() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
