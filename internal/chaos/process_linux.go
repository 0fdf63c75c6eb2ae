package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// freeze stops the process where it is, and thaw lets it go on. When freeze returns, all of its
// threads stand still, or it has ended.
func (b *bot) freeze() error {
	if err := b.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for { // WNOWAIT leaves it to whoever waits for its end
		err := unix.Waitid(unix.P_PID, b.process.PID(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD): // it has ended, and that was heard of
			return nil
		default:
			return err
		}
	}
}

func (b *bot) thaw() error { return b.process.Signal(syscall.SIGCONT) }

// limitFiles sets how long files of the process may get, as a disk that is full does.
func (b *bot) limitFiles(size uint64) error {
	limit := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	return unix.Prlimit(b.process.PID(), unix.RLIMIT_FSIZE, &limit, nil)
}

const unlimited = unix.RLIM_INFINITY

// figures returns the resident memory in bytes, how much of it are pages of files, as
// those of the program itself, and the open descriptors.
func (b *bot) figures() (resident, ofFiles, descriptors float64, err error) {
	dir := fmt.Sprintf("/proc/%d/", b.process.PID())
	statm, err := os.ReadFile(dir + "statm") //nolint:gosec // of our own process
	if err != nil {
		return 0, 0, 0, err
	}
	open, err := os.ReadDir(dir + "fd")
	if err != nil {
		return 0, 0, 0, err
	}
	var size, all, shared int
	_, err = fmt.Sscan(string(statm), &size, &all, &shared)
	page := os.Getpagesize()
	return float64(all * page), float64(shared * page), float64(len(open)), err
}

// worked returns how long processors have worked for the process, and for this one.
func (b *bot) worked() (work Work, err error) {
	if work.Bot, err = workOf(fmt.Sprint(b.process.PID())); err != nil {
		return work, err
	}
	work.Emulators, err = workOf("self")
	return work, err
}

func workOf(process string) (time.Duration, error) {
	stat, err := os.ReadFile("/proc/" + process + "/stat") //nolint:gosec // of a process of ours
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may have anything in it; user and system time are the
	// 12th and 13th figure behind it, in hundredths of a second.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%s/stat has only %d figures", process, len(fields))
	}
	var user, system int64
	_, err = fmt.Sscan(string(fields[11])+" "+string(fields[12]), &user, &system)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}
