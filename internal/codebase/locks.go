package codebase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// locks are named mutexes that hold between goroutines and, through flock,
// between processes: the command line works beside the daemon. They end with the
// process that holds them.
type locks struct {
	dir string

	mu   sync.Mutex // guards held
	held map[string]*lockState
}

type lockState struct {
	slot  chan struct{} // of capacity one; who put something in has the lock
	users int           // holding or waiting
}

func newLocks(dir string) *locks { return &locks{dir: dir, held: map[string]*lockState{}} }

// lock waits for the lock of a name and returns what gives it back.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	_, unlock, err = l.lockFile(ctx, name)
	return unlock, err
}

// lockFile is lock, and returns the file whose lock it is: a program that has it
// open, too, holds the lock for as long as it runs.
func (l *locks) lockFile(ctx context.Context, name string) (file *os.File, unlock func(), err error) {
	l.mu.Lock()
	s := l.held[name]
	if s == nil {
		s = &lockState{slot: make(chan struct{}, 1)}
		l.held[name] = s
	}
	s.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, nil, fault.Wrap(context.Cause(ctx), fault.KindOf(ctx.Err()), "waiting for a lock")
	}
	f, err := waitForFile(ctx, l.path(name))
	if err != nil {
		<-s.slot
		leave()
		return nil, nil, err
	}
	return f, func() {
		_ = f.Close() // gives the file lock back
		<-s.slot
		leave()
	}, nil
}

func (l *locks) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:12]))
}

// waitForFile waits for another process by asking again: a blocking flock could not
// be given up.
func waitForFile(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLockFile(path)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, fault.Wrap(err, fault.Internal, "locking")
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fault.Wrap(context.Cause(ctx), fault.KindOf(ctx.Err()), "waiting for a lock")
		}
	}
}

func tryLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the name is a hash below the workspace
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
