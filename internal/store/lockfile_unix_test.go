//go:build unix

package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestLockEndsWithTheStoreWhileAChildStarts has a copy of the lock's descriptor,
// as a child has between fork and exec: whoever opens the database next must not
// be told that the closed store still works on it.
func TestLockEndsWithTheStoreWhileAChildStarts(t *testing.T) {
	t.Parallel()
	options := store.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "bot.db"), Log: storetest.Log(t), Exclusive: true}
	first, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(store.LockDescriptor(first))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited) //nolint:errcheck // a copy
	if second, err := store.Open(t.Context(), options); err == nil {
		_ = second.Close()
		t.Error("two stores were opened on one database")
	} else if !strings.Contains(fault.Public(err), "has just started, try again") {
		t.Errorf("a command that comes while the bot starts is told %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatalf("open after the close: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestALinkHasTheLockOfItsFile opens a database by two names.
func TestALinkHasTheLockOfItsFile(t *testing.T) {
	t.Parallel()
	file, link := filepath.Join(t.TempDir(), "bot.db"), filepath.Join(t.TempDir(), "link.db")
	storetest.Open(t, store.Options{URL: "sqlite:" + file, Exclusive: true})
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	second, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + link, Log: storetest.Log(t), Exclusive: true})
	if err == nil {
		_ = second.Close()
	}
	if !fault.Is(err, fault.Conflict) || !strings.HasPrefix(fault.Public(err), fmt.Sprintf("Another bot (PID %d) is using the data directory %s.", os.Getpid(), filepath.Dir(file))) {
		t.Errorf("two stores were opened on one database: %v", err)
	}
}

// Two bots on two hard links of a database each keep a log of their own, and destroy it.
func TestAHardLinkOfADatabaseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "bot.db"), filepath.Join(dir, "snapshot.db")
	reopen := func(name string) error {
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + name, Log: storetest.Log(t), Exclusive: true})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := errors.Join(reopen(file), os.Link(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		if err := reopen(name); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), name+" has 2 names") {
			t.Errorf("%s was opened: %v", name, err)
		}
	}
	if err := errors.Join(os.Remove(link), reopen(file)); err != nil {
		t.Error(err)
	}
}

// TestLockOfAKilledProcessIsWaitedFor has a process that was killed between the fork
// and the exec of a child: the child, here a file that is closed a little later, holds
// the lock until it runs its program.
func TestLockOfAKilledProcessIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bot.db")
	child, err := os.Create(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(child.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = child.Close() })
	next, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatalf("a start right after a kill: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}
