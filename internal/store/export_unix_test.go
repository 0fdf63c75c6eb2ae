//go:build unix

package store

// LockDescriptor is the descriptor that holds the lock of an exclusive store.
func LockDescriptor(s *Store) int { return int(s.lock.file.Fd()) }
