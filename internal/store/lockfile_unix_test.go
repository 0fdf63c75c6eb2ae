//go:build unix

package store_test

import (
	"path/filepath"
	"syscall"
	"testing"

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
