//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"remote-agent/internal/fault"
)

// fileLock is held by the one process that works on a SQLite database. The
// kernel gives it up when the process ends, however it ends, so no stale lock
// has to be recognized. The file itself stays.
type fileLock struct{ file *os.File }

// lockPatience is how long a lock is waited for. A process that was killed while it
// started a program leaves its lock to that child until the child runs it; without
// waiting, the next start came too early once in a thousand kills.
const lockPatience = time.Second

// lockFile locks a database, by whatever name: a link to it has the lock of the file.
func lockFile(ctx context.Context, database string) (*fileLock, error) {
	if file, err := filepath.EvalSymlinks(database); err == nil {
		database = file
	}
	for begin := time.Now(); ; {
		l, err := tryLock(database)
		if !fault.Is(err, fault.Conflict) || time.Since(begin) > lockPatience {
			return l, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// refuseLinks refuses a database that has several names: under each, SQLite keeps another
// log, and the lock beside it is another one.
func refuseLinks(database string) error {
	info, err := os.Stat(database)
	if err != nil {
		return unreadable(database, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return fault.Newf(fault.Invalid, "The database file %s has %d names (hard links), and bots on two of them would destroy it: "+
			"remove the others, which `find / -samefile` lists, or start on a copy.", database, stat.Nlink)
	}
	return nil
}

func tryLock(database string) (*fileLock, error) {
	path := database + ".lock"
	f, err := openOrMake(path, OwnerAt(filepath.Dir(path))) // the next one to lock it may be no root
	if err != nil {
		return nil, unreadable(path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, unreadable(path, err)
		}
		return nil, inUse(database, string(holder))
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, unreadable(path, err)
	}
	return &fileLock{file: f}, nil
}

func inUse(database, holder string) error {
	who := ""
	if pid, err := strconv.Atoi(strings.TrimSpace(holder)); err == nil {
		who = fmt.Sprintf(" (PID %d)", pid)
	}
	return fault.Newf(fault.Conflict,
		"Another bot%s is using the data directory %s. If it has just started, try again in a moment; else stop it, or set DATA_DIR to another directory.",
		who, filepath.Dir(database))
}

// release gives the lock up before it closes the file: a child that this process
// starts in the same moment has a copy of the descriptor until it runs its
// program, and to close the file would leave the lock to that copy.
func (l *fileLock) release() error {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("release the lock: %w", err)
	}
	var unlocked error
	err = raw.Control(func(fd uintptr) { unlocked = syscall.Flock(int(fd), syscall.LOCK_UN) })
	closed := l.file.Close()
	if errors.Is(closed, os.ErrClosed) {
		return nil // released before
	}
	return errors.Join(err, unlocked, closed)
}
